import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Clients that live on while the broker of their store is another one each turn.
 *
 * <p>Arguments: the name server and the topic. Reads a command per line and prints "done" after it:
 * "turn 2", "send TEXT", "half TEXT" (its transaction stays open), "level LEVEL TEXT", "timer MS TEXT",
 * and "read COUNT", which lets a new consumer of the group "readers" consume until the group has got
 * so many different texts. A text begins with its turn, as in "2-commit". In that turn questions for
 * it are not answered, and if it ends in "-fail" consuming it fails; later it is committed, unless it
 * ends in "-rollback", or consumed. Prints "asked TURN TEXT" and "got GROUP TURN TEXT TIMES" as it
 * happens.
 */
public final class HandsClient {
    private static final int SEND_TIMEOUT_MS = 5_000;
    private static final int TRIES = 60;
    private static final long READ_TIMEOUT_S = 60;

    private final String namesrv;
    private final String topic;
    private final PrintStream told;
    private final Set<String> readTexts = ConcurrentHashMap.newKeySet();
    private volatile int turn = 1;

    private HandsClient(String namesrv, String topic, PrintStream told) {
        this.namesrv = namesrv;
        this.topic = topic;
        this.told = told;
    }

    public static void main(String[] words) throws Exception {
        PrintStream told = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        HandsClient client = new HandsClient(words[0], words[1], told);
        TransactionMQProducer producer = client.producer();
        client.consumer("workers", text -> { }).start();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            client.obey(Arrays.asList(line.split(" ")).iterator(), producer);
            told.println("done");
        }
        Runtime.getRuntime().halt(0); // Apache's clients are left
    }

    private void obey(Iterator<String> words, TransactionMQProducer producer) throws Exception {
        String command = words.next();
        int number = command.equals("send") || command.equals("half") ? 0 : Integer.parseInt(words.next());
        if (command.equals("turn")) {
            turn = number;
            return;
        }
        if (command.equals("read")) {
            read(number);
            return;
        }
        Message message = new Message(topic, words.next().getBytes(StandardCharsets.UTF_8));
        if (command.equals("level")) {
            message.setDelayTimeLevel(number);
        } else if (command.equals("timer")) {
            message.setDelayTimeMs(number);
        }
        send(producer, message, command.equals("half"));
    }

    /** Sends until it is acknowledged: a broker that has just come is found soon. */
    private void send(TransactionMQProducer producer, Message message, boolean isHalf) throws Exception {
        for (int tries = 1; ; tries++) {
            try {
                SendResult result =
                    isHalf ? producer.sendMessageInTransaction(message, null) : producer.send(message);
                if (result.getSendStatus() != SendStatus.SEND_OK) {
                    throw new IllegalStateException("not stored: " + result);
                }
                return;
            } catch (Exception notNow) {
                if (tries == TRIES) {
                    throw notNow;
                }
                Thread.sleep(500);
            }
        }
    }

    /** Lets a consumer get what is left of so many texts; what it got is committed then. */
    private void read(int count) throws Exception {
        DefaultMQPushConsumer reader = consumer("readers", readTexts::add);
        reader.start();
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(READ_TIMEOUT_S);
        while (readTexts.size() < count && System.nanoTime() < deadline) {
            Thread.sleep(20);
        }
        reader.shutdown();
        if (readTexts.size() < count) {
            throw new IllegalStateException("readers got only " + readTexts + " of " + count);
        }
    }

    private boolean isLater(Message message) {
        return Integer.parseInt(text(message).split("-")[0]) < turn;
    }

    private TransactionMQProducer producer() throws Exception {
        TransactionMQProducer producer = configured(new TransactionMQProducer("payers"));
        producer.setSendMsgTimeout(SEND_TIMEOUT_MS);
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                return LocalTransactionState.UNKNOW;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                told.println("asked " + turn + " " + text(message));
                if (!isLater(message)) {
                    return LocalTransactionState.UNKNOW;
                }
                return text(message).endsWith("-rollback")
                    ? LocalTransactionState.ROLLBACK_MESSAGE : LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        producer.start();
        return producer;
    }

    private DefaultMQPushConsumer consumer(String group, Consumer<String> onText) throws Exception {
        DefaultMQPushConsumer consumer = configured(new DefaultMQPushConsumer(group));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeThreadMin(2);
        consumer.setConsumeThreadMax(2);
        consumer.setMaxReconsumeTimes(1_000_000);
        consumer.setPersistConsumerOffsetInterval(500);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            MessageExt message = messages.get(0);
            told.println("got " + group + " " + turn + " " + text(message) + " "
                + message.getReconsumeTimes());
            onText.accept(text(message));
            context.setDelayLevelWhenNextConsume(1);
            boolean fails = group.equals("workers") && text(message).endsWith("-fail")
                && !isLater(message);
            return fails
                ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        return consumer;
    }

    private <T extends ClientConfig> T configured(T client) {
        client.setNamesrvAddr(namesrv);
        client.setInstanceName(UUID.randomUUID().toString());
        client.setPollNameServerInterval(1_000);
        client.setHeartbeatBrokerInterval(1_000);
        return client;
    }

    private static String text(Message message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }
}
