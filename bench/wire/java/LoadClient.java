import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * Measures a cluster with Apache's Java client, as it is told on standard input, a line each:
 *
 * <pre>
 * send NAMESRV TOPIC THREADS BATCH WARM_UP_MS MEASURED_MS   (a batch of 1 is a plain send)
 * fill NAMESRV TOPIC MESSAGES
 * pull NAMESRV TOPIC MOST_MESSAGES_A_PULL
 * </pre>
 *
 * <p>It answers "begin" when a measurement begins, and a line of JSON when it has ended. The same
 * clients, and the code that the JVM has compiled by then, serve all clusters.
 */
public final class LoadClient {
    private static final int QUEUES = 4;
    private static final int BODY_BYTES = 128;
    private static final int FILL_BATCH = 500;
    private static final int TIMEOUT_MS = 20_000;

    private final PrintStream answers;
    private final Map<String, DefaultMQProducer> producers = new LinkedHashMap<>();
    private final Map<String, DefaultMQPullConsumer> consumers = new LinkedHashMap<>();
    private final ExecutorService threads = Executors.newCachedThreadPool();

    private LoadClient(PrintStream answers) {
        this.answers = answers;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        LoadClient client = new LoadClient(answers);
        BufferedReader tasks = new BufferedReader(new InputStreamReader(System.in));
        for (String line = tasks.readLine(); line != null; line = tasks.readLine()) {
            answers.println(RemotingSerializable.toJson(client.did(line.split(" ")), false));
        }
        Runtime.getRuntime().halt(0); // threads of Apache's clients are left
    }

    private Map<String, Object> did(String[] words) throws Exception {
        switch (words[0]) {
            case "send":
                return send(words[1], words[2], Integer.parseInt(words[3]), Integer.parseInt(words[4]),
                    Long.parseLong(words[5]), Long.parseLong(words[6]));
            case "fill":
                return fill(words[1], words[2], Integer.parseInt(words[3]));
            case "pull":
                return pull(words[1], words[2], Integer.parseInt(words[3]));
            default:
                throw new IllegalArgumentException("there is no task " + words[0]);
        }
    }

    // ------------------------------------------------------------------ sending

    /** What one thread sent while it counted. */
    private static final class Sent {
        private int[] micros = new int[1 << 16];
        private int requests;
        private int refused;

        void add(long nanos) {
            if (requests == micros.length) {
                micros = Arrays.copyOf(micros, 2 * requests);
            }
            micros[requests++] = (int) (nanos / 1000);
        }
    }

    private volatile boolean counts;
    private volatile boolean goesOn;

    private Map<String, Object> send(
            String namesrv, String topic, int threadCount, int batch, long warmUpMs, long measuredMs)
            throws Exception {
        DefaultMQProducer producer = producer(namesrv);
        counts = false;
        goesOn = true;
        List<Future<Sent>> senders = new ArrayList<>();
        for (int number = 0; number < threadCount; number++) {
            Random random = new Random(number);
            senders.add(threads.submit(() -> sendUntilTold(producer, topic, batch, random)));
        }
        Thread.sleep(warmUpMs);
        answers.println("begin");
        counts = true;
        long began = System.nanoTime();
        Thread.sleep(measuredMs);
        counts = false;
        long ended = System.nanoTime();
        goesOn = false;
        List<Sent> sent = new ArrayList<>();
        for (Future<Sent> sender : senders) {
            sent.add(sender.get());
        }
        return told(sent, batch, (ended - began) / 1e9);
    }

    private Sent sendUntilTold(DefaultMQProducer producer, String topic, int batch, Random random)
            throws Exception {
        Sent sent = new Sent();
        byte[] body = new byte[BODY_BYTES];
        random.nextBytes(body);
        while (goesOn) {
            long began = System.nanoTime();
            boolean isStored;
            try {
                SendResult result = batch == 1
                    ? producer.send(new Message(topic, body))
                    : producer.send(messages(topic, body, batch));
                isStored = result.getSendStatus() == SendStatus.SEND_OK;
            } catch (Exception refused) {
                isStored = false;
            }
            if (counts && isStored) {
                sent.add(System.nanoTime() - began);
            } else if (counts) {
                sent.refused++;
            }
        }
        return sent;
    }

    private static List<Message> messages(String topic, byte[] body, int count) {
        List<Message> messages = new ArrayList<>(count);
        for (int number = 0; number < count; number++) {
            messages.add(new Message(topic, body));
        }
        return messages;
    }

    private static Map<String, Object> told(List<Sent> sent, int batch, double seconds) {
        int requests = sent.stream().mapToInt(each -> each.requests).sum();
        int[] micros = new int[requests];
        int at = 0;
        for (Sent each : sent) {
            System.arraycopy(each.micros, 0, micros, at, each.requests);
            at += each.requests;
        }
        Arrays.sort(micros);
        Map<String, Object> answer = answer(requests, (long) requests * batch, seconds);
        answer.put("refused", sent.stream().mapToInt(each -> each.refused).sum());
        answer.put("p50_us", requests == 0 ? 0 : micros[requests / 2]);
        answer.put("p99_us", requests == 0 ? 0 : micros[(int) (requests * 0.99)]);
        return answer;
    }

    /** Gives each queue of a topic its share of the messages. */
    private Map<String, Object> fill(String namesrv, String topic, int messages) throws Exception {
        DefaultMQProducer producer = producer(namesrv);
        byte[] body = new byte[BODY_BYTES];
        new Random(messages).nextBytes(body);
        producer.send(new Message(topic, body)); // makes the topic, with its queues
        List<MessageQueue> queues = queues(producer, topic);
        int requests = 0;
        answers.println("begin");
        long began = System.nanoTime();
        for (int left = messages - 1; left > 0; left -= FILL_BATCH) {
            MessageQueue queue = queues.get(requests++ % queues.size());
            producer.send(messages(topic, body, Math.min(left, FILL_BATCH)), queue);
        }
        return answer(requests, messages, (System.nanoTime() - began) / 1e9);
    }

    private static List<MessageQueue> queues(DefaultMQProducer producer, String topic) throws Exception {
        while (true) {
            try {
                List<MessageQueue> queues = producer.fetchPublishMessageQueues(topic);
                if (queues.size() == QUEUES) {
                    return queues;
                }
            } catch (org.apache.rocketmq.client.exception.MQClientException notYet) {
                // the broker has not told the name server of the new topic
            }
            Thread.sleep(50);
        }
    }

    private DefaultMQProducer producer(String namesrv) throws Exception {
        DefaultMQProducer producer = producers.get(namesrv);
        if (producer == null) {
            producer = new DefaultMQProducer("bench");
            producer.setNamesrvAddr(namesrv);
            producer.setInstanceName("producer-" + namesrv.replace(':', '-'));
            producer.setDefaultTopicQueueNums(QUEUES);
            producer.setSendMsgTimeout(TIMEOUT_MS);
            producer.setRetryTimesWhenSendFailed(0);
            producer.start();
            producers.put(namesrv, producer);
        }
        return producer;
    }

    // ------------------------------------------------------------------ pulling

    private Map<String, Object> pull(String namesrv, String topic, int most) throws Exception {
        DefaultMQPullConsumer consumer = consumer(namesrv);
        List<Callable<long[]>> readers = new ArrayList<>();
        for (MessageQueue queue : consumer.fetchSubscribeMessageQueues(topic)) {
            long end = consumer.maxOffset(queue);
            readers.add(() -> pullAll(consumer, queue, end, most));
        }
        answers.println("begin");
        long began = System.nanoTime();
        long requests = 0;
        long messages = 0;
        for (Future<long[]> reader : threads.invokeAll(readers)) {
            requests += reader.get()[0];
            messages += reader.get()[1];
        }
        return answer(requests, messages, (System.nanoTime() - began) / 1e9);
    }

    private static long[] pullAll(DefaultMQPullConsumer consumer, MessageQueue queue, long end, int most)
            throws Exception {
        long requests = 0;
        long messages = 0;
        for (long at = 0; at < end; requests++) {
            PullResult result = consumer.pull(queue, "*", at, most, TIMEOUT_MS);
            if (result.getPullStatus() == PullStatus.FOUND) {
                messages += result.getMsgFoundList().size();
            }
            at = result.getNextBeginOffset();
        }
        return new long[] {requests, messages};
    }

    private DefaultMQPullConsumer consumer(String namesrv) throws Exception {
        DefaultMQPullConsumer consumer = consumers.get(namesrv);
        if (consumer == null) {
            consumer = new DefaultMQPullConsumer("bench-readers");
            consumer.setNamesrvAddr(namesrv);
            consumer.setInstanceName("consumer-" + namesrv.replace(':', '-'));
            consumer.start();
            consumers.put(namesrv, consumer);
        }
        return consumer;
    }

    private static Map<String, Object> answer(long requests, long messages, double seconds) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("requests", requests);
        answer.put("messages", messages);
        answer.put("seconds", seconds);
        return answer;
    }
}
