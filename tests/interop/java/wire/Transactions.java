import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Exchanges that take more than one message: transactions, and requests with replies. */
final class Transactions {
    private Transactions() {
    }

    /** Says at once, or when asked back for the first time, what becomes of a message. */
    private static final class Listener implements TransactionListener {
        final Collection<String> askedBack = new ConcurrentLinkedQueue<>();
        final Map<String, String> transactionIds = new ConcurrentHashMap<>();
        final Collection<String> strangeIds = new ConcurrentLinkedQueue<>();

        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
            transactionIds.put(World.text(message), message.getTransactionId());
            switch (World.text(message)) {
                case "commit":
                    return LocalTransactionState.COMMIT_MESSAGE;
                case "rollback":
                    return LocalTransactionState.ROLLBACK_MESSAGE;
                default:
                    return LocalTransactionState.UNKNOW;
            }
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            String text = World.text(message);
            askedBack.add(text);
            if (!transactionIds.get(text).equals(message.getTransactionId())) {
                strangeIds.add(message.getTransactionId());
            }
            return text.equals("unknown-then-commit")
                ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.ROLLBACK_MESSAGE;
        }
    }

    static void endings(World world) throws Exception {
        world.makeTopic(2);
        Listener listener = new Listener();
        TransactionMQProducer producer = new TransactionMQProducer(world.group + "-producer");
        producer.setTransactionListener(listener);
        world.started(producer);
        DefaultMQPushConsumer consumer = world.consumer();
        consumer.subscribe(world.topic, "*");
        Collection<String> received = Pushing.collecting(consumer);
        List<String> endings =
            List.of("rollback", "unknown-then-rollback", "commit", "unknown-then-commit");
        for (String text : endings) {
            Message message = world.message(text);
            message.setKeys("key-" + text);
            var result = producer.sendMessageInTransaction(message, null);
            World.equal(SendStatus.SEND_OK, result.getSendStatus(), "status of a half message");
        }
        World.until("the committed came", () -> received.size() >= 2);
        World.until("both unknown were asked for", () ->
            listener.askedBack.containsAll(List.of("unknown-then-commit", "unknown-then-rollback")));
        Thread.sleep(1500); // what was rolled back would come now
        world.see("received", World.sorted(received));
        world.see("askedBack", World.sorted(listener.askedBack));
        World.equal(
            List.of("commit", "unknown-then-commit"),
            received.stream().distinct().sorted().collect(Collectors.toList()), "received");
        World.equal(1, Collections.frequency(received, "commit"), "deliveries of a commit");
        // A producer that is asked twice, because its answer was on its way, commits twice.
        World.check(
            Collections.frequency(received, "unknown-then-commit")
                <= Collections.frequency(listener.askedBack, "unknown-then-commit"),
            "more deliveries than answers: " + received);
        World.check(listener.strangeIds.isEmpty(), "transaction ids: " + listener.strangeIds);
    }

    static void requestReply(World world) throws Exception {
        world.makeTopic(2);
        DefaultMQProducer producer = world.producer();
        DefaultMQProducer replier = world.started(new DefaultMQProducer(world.group + "-replier"));
        DefaultMQPushConsumer consumer = world.consumer();
        consumer.subscribe(world.topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                try {
                    byte[] answer = ("re: " + World.text(message)).getBytes();
                    replier.send(MessageUtil.createReplyMessage(message, answer));
                } catch (Exception failed) {
                    failed.printStackTrace();
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Message reply = producer.request(world.message("question"), World.DEADLINE_MS);
        World.equal("re: question", World.text(reply), "reply");
        CompletableFuture<String> later = new CompletableFuture<>();
        producer.request(world.message("another"), new RequestCallback() {
            @Override
            public void onSuccess(Message message) {
                later.complete(World.text(message));
            }

            @Override
            public void onException(Throwable error) {
                later.completeExceptionally(error);
            }
        }, World.DEADLINE_MS);
        World.equal("re: another", later.get(World.DEADLINE_MS, TimeUnit.MILLISECONDS), "reply");
    }
}
