import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Producers: each way to send, and what is stored of it. */
final class Sending {
    private Sending() {
    }

    static void sync(World world) throws Exception {
        world.makeTopic(4);
        DefaultMQProducer producer = world.producer();
        Map<String, SendResult> receipts = new HashMap<>();
        for (String text : World.numbered("sync", 20)) {
            Message message = world.message(text);
            message.setTags("tag-ü");
            message.setKeys("key-" + text + " second-" + text);
            message.putUserProperty("größe", "zwölf " + text);
            message.setFlag(7);
            receipts.put(text, World.sent(producer.send(message)));
        }
        for (MessageExt read : world.readBack(world.topic, 20)) {
            String text = World.text(read);
            SendResult receipt = receipts.remove(text);
            World.check(receipt != null, "read twice or never sent: " + text);
            World.equal(receipt.getMessageQueue().getQueueId(), read.getQueueId(), "queue");
            World.equal(receipt.getMessageQueue().getBrokerName(), read.getBrokerName(), "broker");
            World.equal(receipt.getQueueOffset(), read.getQueueOffset(), "queue offset");
            World.equal(receipt.getMsgId(), read.getMsgId(), "unique key");
            World.equal("tag-ü", read.getTags(), "tag");
            World.equal("key-" + text + " second-" + text, read.getKeys(), "keys");
            World.equal("zwölf " + text, read.getUserProperty("größe"), "property");
            World.equal(7, read.getFlag(), "flag");
        }
        World.check(receipts.isEmpty(), "not read back: " + receipts.keySet());
        world.see("messages", 20);
    }

    static void async(World world) throws Exception {
        world.makeTopic(4);
        DefaultMQProducer producer = world.producer();
        CountDownLatch answered = new CountDownLatch(30);
        ConcurrentLinkedQueue<Throwable> failures = new ConcurrentLinkedQueue<>();
        List<String> texts = World.numbered("async", 30);
        for (String text : texts) {
            producer.send(world.message(text), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    answered.countDown();
                }

                @Override
                public void onException(Throwable error) {
                    failures.add(error);
                    answered.countDown();
                }
            });
        }
        World.check(answered.await(World.DEADLINE_MS, TimeUnit.MILLISECONDS), "sends without answer");
        World.check(failures.isEmpty(), "failed sends: " + failures);
        World.equal(texts, World.sorted(World.texts(world.readBack(world.topic, 30))), "read back");
        world.see("messages", 30);
    }

    static void oneway(World world) throws Exception {
        world.makeTopic(4);
        DefaultMQProducer producer = world.producer();
        List<String> texts = World.numbered("oneway", 30);
        for (String text : texts) {
            producer.sendOneway(world.message(text));
        }
        World.equal(texts, World.sorted(World.texts(world.readBack(world.topic, 30))), "read back");
        world.see("messages", 30);
    }

    static void batch(World world) throws Exception {
        world.makeTopic(1);
        DefaultMQProducer producer = world.producer();
        List<String> sent = new ArrayList<>();
        MessageQueue queue = producer.fetchPublishMessageQueues(world.topic).get(0);
        for (int number = 0; number < 3; number++) {
            List<Message> batch = new ArrayList<>();
            for (String text : World.numbered("batch-" + number, 10)) {
                Message message = world.message(text);
                message.setKeys("key-" + text);
                batch.add(message);
                sent.add(text);
            }
            SendResult result = World.sent(producer.send(batch, queue));
            World.equal(number * 10L, result.getQueueOffset(), "queue offset of a batch");
            World.equal(10, result.getMsgId().split(",").length, "unique keys of a batch");
            World.equal(10, result.getOffsetMsgId().split(",").length, "message ids of a batch");
        }
        List<MessageExt> read = new ArrayList<>(world.readBack(world.topic, sent.size()));
        read.removeIf(message -> message.getBrokerName() != null
            && !message.getBrokerName().equals(queue.getBrokerName()));
        World.equal(sent, World.texts(read), "read back");
        World.equal("key-batch-1-04", read.get(14).getKeys(), "keys");
        world.see("messages", sent.size());
    }

    static void compressed(World world) throws Exception {
        world.makeTopic(1);
        DefaultMQProducer producer = world.producer();
        String body = "compressible ".repeat(5000); // beyond 4 KiB the client compresses
        World.sent(producer.send(world.message(body)));
        MessageExt read = world.readBack(world.topic, 1).get(0);
        World.equal(body, World.text(read), "body");
        World.check(read.getStoreSize() < body.length() / 2, "stored with " + read.getStoreSize());
        world.see("storedBytes", read.getStoreSize());
    }

    /** A message larger than the broker's limit, and topics that can't be read. */
    static void refused(World world) throws Exception {
        world.makeTopic(1);
        DefaultMQProducer producer = world.producer();
        producer.setMaxMessageSize(16 << 20);
        producer.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
        world.see("tooLarge", refusal(13, () -> producer.send(world.message("x".repeat(5 << 20)))));
        MessageQueue queue = producer.fetchPublishMessageQueues(world.topic).get(0);
        World.sent(producer.send(world.message("taken"), queue));
        DefaultMQPullConsumer puller = world.puller();
        World.equal(1, puller.pull(queue, "*", 0, 32).getMsgFoundList().size(), "messages");
        world.makeTopic(world.topic, 1, 2); // may only be written
        world.see("unreadable", refusal(16, () -> puller.pull(queue, "*", 0, 32)));
        MessageQueue missing = new MessageQueue(world.topic + "-no", queue.getBrokerName(), 0);
        world.see("missing", refusal(17, () -> puller.pull(missing, "*", 0, 32)));
    }

    private static String refusal(int code, Callable<?> call) throws Exception {
        try {
            call.call();
        } catch (MQBrokerException refusal) {
            World.equal(code, refusal.getResponseCode(), "code of " + refusal.getErrorMessage());
            return refusal.getErrorMessage();
        }
        throw new AssertionError("what should be refused with " + code + " was done");
    }
}
