import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Producers and consumers that go on while their broker is killed and comes back.
 *
 * <p>Arguments: name server, topic, how many producers, consumers and messages, the most messages
 * that a send may have, a seed, a folder, and the number before which producers wait for a line of
 * input. A message's body is its number, many times over. What was not acknowledged is sent again
 * until it is. Prints how many numbers were acknowledged and consumed, again and again, then "done",
 * or "stuck" when neither grew for long; then the folder has the files "acknowledged" and
 * "consumed": how often each number was, an int each.
 */
public final class LoadRun {
    private static final int LONGS_IN_BODY = 16;
    private static final int SEND_TIMEOUT_MS = 5_000;
    private static final int AGAIN_MS = 50;
    private static final int LOOK_MS = 50;
    private static final long STUCK_MS = 90_000;

    private final String namesrv;
    private final String topic;
    private final int mostAtOnce;
    private final int seed;
    private final int heldFrom;
    private final CountDownLatch goOn = new CountDownLatch(1);
    private final AtomicInteger next = new AtomicInteger();
    private final AtomicIntegerArray acknowledged;
    private final AtomicIntegerArray consumed;
    private final AtomicInteger acknowledgedCount = new AtomicInteger();
    private final AtomicInteger consumedCount = new AtomicInteger();

    private LoadRun(
            String namesrv, String topic, int messages, int mostAtOnce, int seed, int heldFrom) {
        this.namesrv = namesrv;
        this.topic = topic;
        this.mostAtOnce = mostAtOnce;
        this.seed = seed;
        this.heldFrom = heldFrom;
        this.acknowledged = new AtomicIntegerArray(messages);
        this.consumed = new AtomicIntegerArray(messages);
    }

    public static void main(String[] words) throws Exception {
        PrintStream told = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        int messages = Integer.parseInt(words[4]);
        LoadRun run = new LoadRun(
            words[0], words[1], messages, Integer.parseInt(words[5]), Integer.parseInt(words[6]),
            Integer.parseInt(words[8]));
        for (int number = 0; number < Integer.parseInt(words[3]); number++) {
            run.startConsumer(number);
        }
        for (int number = 0; number < Integer.parseInt(words[2]); number++) {
            run.startProducer(number);
        }
        run.listen();
        boolean isDone = run.watch(messages, told);
        write(run.acknowledged, Path.of(words[7], "acknowledged"));
        write(run.consumed, Path.of(words[7], "consumed"));
        told.println(isDone ? "done" : "stuck");
        Runtime.getRuntime().halt(0); // Apache's clients are left
    }

    private void listen() {
        Thread listener = new Thread(() -> {
            try {
                System.in.read();
            } catch (IOException ended) {
                return;
            }
            goOn.countDown();
        });
        listener.setDaemon(true);
        listener.start();
    }

    /** Returns whether all was acknowledged and consumed, before nothing happened for long. */
    private boolean watch(int messages, PrintStream told) throws InterruptedException {
        long sum = -1;
        long changedAt = 0;
        while (true) {
            int sent = acknowledgedCount.get();
            int read = consumedCount.get();
            told.println(sent + " " + read);
            if (sent == messages && read == messages) {
                return true;
            }
            long now = System.nanoTime() / 1_000_000;
            if (sent + (long) read != sum) {
                sum = sent + (long) read;
                changedAt = now;
            } else if (now - changedAt > STUCK_MS) {
                return false;
            }
            Thread.sleep(LOOK_MS);
        }
    }

    // ------------------------------------------------------------------ sending

    private void startProducer(int number) throws Exception {
        DefaultMQProducer producer = configured(new DefaultMQProducer("load-producers"), "p" + number);
        producer.setSendMsgTimeout(SEND_TIMEOUT_MS);
        producer.start();
        Thread sender = new Thread(() -> sendAll(producer, new Random(31L * seed + number)));
        sender.setDaemon(true);
        sender.start();
    }

    private void sendAll(DefaultMQProducer producer, Random random) {
        int end = acknowledged.length();
        while (true) {
            int count = 1 + random.nextInt(mostAtOnce);
            int first = next.getAndAdd(count);
            if (first >= end) {
                return;
            }
            count = Math.min(count, end - first);
            try {
                if (first >= heldFrom) {
                    goOn.await();
                }
                while (!isStored(producer, messages(first, count))) {
                    Thread.sleep(AGAIN_MS);
                }
            } catch (InterruptedException ended) {
                return;
            }
            for (int number = first; number < first + count; number++) {
                acknowledged.incrementAndGet(number);
            }
            acknowledgedCount.addAndGet(count);
        }
    }

    private static boolean isStored(DefaultMQProducer producer, List<Message> messages) {
        try {
            SendResult result =
                messages.size() == 1 ? producer.send(messages.get(0)) : producer.send(messages);
            return result.getSendStatus() == SendStatus.SEND_OK;
        } catch (Exception notNow) {
            return false;
        }
    }

    private List<Message> messages(int first, int count) {
        List<Message> messages = new ArrayList<>(count);
        for (int number = first; number < first + count; number++) {
            ByteBuffer body = ByteBuffer.allocate(8 * LONGS_IN_BODY);
            for (int time = 0; time < LONGS_IN_BODY; time++) {
                body.putLong(number);
            }
            messages.add(new Message(topic, body.array()));
        }
        return messages;
    }

    // ------------------------------------------------------------------ consuming

    private void startConsumer(int number) throws Exception {
        DefaultMQPushConsumer consumer =
            configured(new DefaultMQPushConsumer("load-consumers"), "c" + number);
        consumer.setPersistConsumerOffsetInterval(500);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeThreadMin(1);
        consumer.setConsumeThreadMax(1);
        consumer.setConsumeMessageBatchMaxSize(32);
        consumer.subscribe(topic, "*");
        consumer.setMessageListener(
            (org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently)
                (messages, context) -> {
                    messages.forEach(this::note);
                    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                });
        consumer.start();
    }

    private void note(MessageExt message) {
        int number = (int) ByteBuffer.wrap(message.getBody()).getLong();
        if (consumed.incrementAndGet(number) == 1) {
            consumedCount.incrementAndGet();
        }
    }

    /** Each client has connections of its own, and hears soon of what changes. */
    private <T extends ClientConfig> T configured(T client, String name) {
        client.setNamesrvAddr(namesrv);
        client.setInstanceName(name);
        client.setHeartbeatBrokerInterval(1_000);
        client.setPollNameServerInterval(1_000);
        return client;
    }

    private static void write(AtomicIntegerArray counts, Path file) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(4 * counts.length());
        for (int number = 0; number < counts.length(); number++) {
            bytes.putInt(counts.get(number));
        }
        Files.write(file, bytes.array());
    }
}
