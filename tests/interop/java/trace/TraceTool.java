import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Apache's Java clients, of 4.x as of 5.x, that write traces. Reads a command a line and answers it
 * with one line of JSON; each command makes a client of its own and shuts it down, so that all that
 * it traced is written when the answer comes.
 *
 * <p>send GROUP TOPIC TAG KEYS LEVEL BODY: a message, KEYS with commas between them, LEVEL of delay.
 * batch GROUP TOPIC BODY,BODY...: a batch.
 * transaction GROUP TOPIC commit|rollback BODY: a message in a transaction.
 * consume GROUP TOPIC concurrently|orderly FAILED CALLS: until so many calls, the first ones fail.
 * poll GROUP TOPIC COUNT: a consumer that pulls, until it has so many.
 * A GROUP may have a namespace before it, with a slash between them.
 */
public final class TraceTool {
    private static final PrintStream OUT;
    private static final long LONGEST_S = 60;
    private static final long WRITTEN_MS = 6_000;  // consumers of 5.x forget traces at their end
    private static String nameServer;
    private static String traceTopic;

    static {
        try {
            OUT = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
        } catch (java.io.UnsupportedEncodingException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    public static void main(String[] arguments) throws Exception {
        nameServer = arguments[0];
        traceTopic = arguments.length > 1 ? arguments[1] : null;
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            OUT.println(answer(line.split(" ")));
        }
        System.exit(0);
    }

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "send":
                return send(words);
            case "batch":
                return batch(words);
            case "transaction":
                return transact(words);
            case "consume":
                return consume(words);
            case "poll":
                return poll(words);
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static String send(String[] words) throws Exception {
        DefaultMQProducer producer = producer(words[1]);
        Message message = new Message(words[2], words[3], body(words[6]));
        message.setKeys(words[4].replace(',', ' '));
        int level = Integer.parseInt(words[5]);
        if (level > 0) {
            message.setDelayTimeLevel(level);
        }
        String sent = ids(producer.send(message));
        producer.shutdown();
        return sent;
    }

    private static String batch(String[] words) throws Exception {
        DefaultMQProducer producer = producer(words[1]);
        List<Message> messages = new ArrayList<>();
        for (String each : words[3].split(",")) {
            messages.add(new Message(words[2], "t", "k-" + each, body(each)));
        }
        String sent = ids(producer.send(messages));
        producer.shutdown();
        return sent;
    }

    private static String transact(String[] words) throws Exception {
        TransactionMQProducer producer =
            new TransactionMQProducer(namespaceOf(words[1]), bare(words[1]), null, true, traceTopic);
        started(producer);
        LocalTransactionState state = words[3].equals("commit")
            ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.ROLLBACK_MESSAGE;
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message half, Object argument) {
                return state;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt half) {
                return state;
            }
        });
        producer.start();
        Message message = new Message(words[2], "t", "k-" + words[4], body(words[4]));
        String sent = ids(producer.sendMessageInTransaction(message, null));
        producer.shutdown();
        return sent;
    }

    private static String consume(String[] words) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(
            namespaceOf(words[1]), bare(words[1]), null, new AllocateMessageQueueAveragely(), true,
            traceTopic);
        consumer.setNamesrvAddr(nameServer);
        consumer.setVipChannelEnabled(false);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        switchOn(consumer);
        consumer.subscribe(words[2], "*");
        int failed = Integer.parseInt(words[4]);
        CountDownLatch calls = new CountDownLatch(Integer.parseInt(words[5]));
        if (words[3].equals("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                calls.countDown();
                context.setSuspendCurrentQueueTimeMillis(100);
                return messages.get(0).getReconsumeTimes() < failed
                    ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
                    : ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                calls.countDown();
                return messages.get(0).getReconsumeTimes() < failed
                    ? ConsumeConcurrentlyStatus.RECONSUME_LATER
                    : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        consumer.start();
        boolean isDone = calls.await(LONGEST_S, TimeUnit.SECONDS);
        Thread.sleep(WRITTEN_MS);
        consumer.shutdown();
        return "{\"isDone\": " + isDone + "}";
    }

    private static String poll(String[] words) throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(words[1]);
        consumer.setNamesrvAddr(nameServer);
        consumer.setVipChannelEnabled(false);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setEnableMsgTrace(true);
        consumer.setCustomizedTraceTopic(traceTopic);
        consumer.subscribe(words[2], "*");
        consumer.start();
        int got = 0;
        long last = System.nanoTime() + TimeUnit.SECONDS.toNanos(LONGEST_S);
        while (got < Integer.parseInt(words[3]) && System.nanoTime() < last) {
            got += consumer.poll(500).size();
        }
        Thread.sleep(WRITTEN_MS);
        consumer.shutdown();
        return "{\"got\": " + got + "}";
    }

    private static DefaultMQProducer producer(String group) throws Exception {
        DefaultMQProducer producer =
            new DefaultMQProducer(namespaceOf(group), bare(group), null, true, traceTopic);
        started(producer);
        producer.start();
        return producer;
    }

    private static void started(DefaultMQProducer producer) {
        producer.setNamesrvAddr(nameServer);
        producer.setVipChannelEnabled(false);
        producer.setSendMsgTimeout(30_000);
        producer.setInstanceName("tracer-" + System.nanoTime());
    }

    /** Consumers of 5.x go by a setting that 4.x does not have. */
    private static void switchOn(ClientConfig client) throws Exception {
        for (Method each : ClientConfig.class.getMethods()) {
            if (each.getName().equals("setEnableTrace")) {
                each.invoke(client, true);
            }
        }
    }

    private static String ids(SendResult sent) {
        return String.format("{\"uniqueKey\": \"%s\", \"offsetId\": \"%s\"}", sent.getMsgId(),
            sent.getOffsetMsgId());
    }

    private static String namespaceOf(String name) {
        return name.contains("/") ? name.substring(0, name.indexOf('/')) : null;
    }

    private static String bare(String name) {
        return name.substring(name.indexOf('/') + 1);
    }

    private static byte[] body(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
