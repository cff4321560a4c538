import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** What one scenario works with: names of its own, clients that are ended with it, what it saw. */
final class World {
    static final long DEADLINE_MS = Long.getLong("rocketpy.deadlineMs", 60_000);
    static final int SEND_TIMEOUT_MS = 20_000;

    final String namesrv;
    final String topic;
    final String group;
    private final String cluster;
    private final Map<String, Object> saw = Collections.synchronizedMap(new LinkedHashMap<>());
    private final List<Runnable> endings = new ArrayList<>();
    private DefaultMQAdminExt admin;

    World(String namesrv, String cluster, String name) {
        this.namesrv = namesrv;
        this.cluster = cluster;
        this.topic = name;
        this.group = name + "-group";
    }

    // ------------------------------------------------------------------ what is reported

    void see(String what, Object value) {
        saw.put(what, value);
    }

    Map<String, Object> saw() {
        return new LinkedHashMap<>(saw);
    }

    static void check(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }

    static void equal(Object expected, Object actual, String what) {
        check(expected.equals(actual), what + ": expected " + expected + ", was " + actual);
    }

    /** Waits until something holds; an exception on the way counts as "not yet". */
    static void until(String what, Callable<Boolean> holds) throws InterruptedException {
        long deadline = System.currentTimeMillis() + DEADLINE_MS;
        Exception last = null;
        while (System.currentTimeMillis() < deadline) {
            try {
                if (holds.call()) {
                    return;
                }
                last = null;
            } catch (InterruptedException interrupted) {
                throw interrupted;
            } catch (Exception notYet) {
                last = notYet;
            }
            Thread.sleep(50);
        }
        throw new AssertionError("waited in vain until " + what, last);
    }

    // ------------------------------------------------------------------ topics and clients

    /** Makes the scenario's topic on every broker and waits until the name server knows it. */
    void makeTopic(int queues) throws Exception {
        makeTopic(topic, queues, 6);
    }

    void makeTopic(String name, int queues, int permission) throws Exception {
        List<String> addresses = brokerAddresses();
        for (String address : addresses) {
            admin().createAndUpdateTopicConfig(address, new TopicConfig(name, queues, queues, permission));
        }
        until("topic " + name + " has a route", () ->
            admin().examineTopicRouteInfo(name).getQueueDatas().size() == addresses.size());
    }

    List<String> brokerAddresses() throws Exception {
        var table = admin().examineBrokerClusterInfo();
        List<String> addresses = new ArrayList<>();
        for (String name : table.getClusterAddrTable().get(cluster)) {
            addresses.add(table.getBrokerAddrTable().get(name).getBrokerAddrs().get(0L));
        }
        return addresses;
    }

    synchronized DefaultMQAdminExt admin() throws Exception {
        if (admin == null) {
            DefaultMQAdminExt made = configured(new DefaultMQAdminExt(SEND_TIMEOUT_MS));
            made.start();
            endings.add(made::shutdown);
            admin = made;
        }
        return admin;
    }

    DefaultMQProducer producer() throws Exception {
        return started(new DefaultMQProducer(group + "-producer"));
    }

    <T extends DefaultMQProducer> T started(T producer) throws Exception {
        configured(producer);
        producer.setSendMsgTimeout(SEND_TIMEOUT_MS);
        producer.start();
        endings.add(producer::shutdown);
        return producer;
    }

    /** Returns a consumer from the first offset on; the caller subscribes, listens and starts. */
    DefaultMQPushConsumer consumer() {
        return prepared(new DefaultMQPushConsumer(group));
    }

    DefaultMQPushConsumer prepared(DefaultMQPushConsumer consumer) {
        configured(consumer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeThreadMin(2);
        consumer.setConsumeThreadMax(2);
        endings.add(consumer::shutdown);
        return consumer;
    }

    /**
     * Lets a consumer look for new queues now instead of within 20 seconds.
     *
     * <p>Not for members that join or leave: there the broker has to say so.
     */
    static void rebalance(DefaultMQPushConsumer consumer) {
        consumer.getDefaultMQPushConsumerImpl().getmQClientFactory().rebalanceImmediately();
    }

    DefaultMQPullConsumer puller() throws Exception {
        DefaultMQPullConsumer consumer = configured(new DefaultMQPullConsumer(group + "-puller"));
        consumer.start();
        endings.add(consumer::shutdown);
        return consumer;
    }

    <T extends ClientConfig> T configured(T client) {
        client.setNamesrvAddr(namesrv);
        client.setInstanceName(UUID.randomUUID().toString());
        client.setPollNameServerInterval(1000); // routes of retry topics are seen in a second
        client.setHeartbeatBrokerInterval(1000); // brokers know a new producer as soon
        client.setPersistConsumerOffsetInterval(1000);
        return client;
    }

    void atEnd(Runnable ending) {
        endings.add(ending);
    }

    void close() {
        Collections.reverse(endings);
        for (Runnable ending : endings) {
            try {
                ending.run();
            } catch (RuntimeException failed) {
                failed.printStackTrace();
            }
        }
    }

    // ------------------------------------------------------------------ messages

    Message message(String body) {
        return new Message(topic, body.getBytes(StandardCharsets.UTF_8));
    }

    static String text(Message message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }

    static List<String> texts(Collection<? extends Message> messages) {
        return messages.stream().map(World::text).collect(Collectors.toList());
    }

    static List<String> sorted(Collection<String> texts) {
        return texts.stream().sorted().collect(Collectors.toList());
    }

    /** Returns "prefix-00", "prefix-01" and so on: their order as texts is that of their numbers. */
    static List<String> numbered(String prefix, int count) {
        List<String> texts = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            texts.add(String.format("%s-%02d", prefix, i));
        }
        return texts;
    }

    List<String> sendAll(DefaultMQProducer producer, String prefix, int count) throws Exception {
        List<String> texts = numbered(prefix, count);
        for (String text : texts) {
            sent(producer.send(message(text)));
        }
        return texts;
    }

    static SendResult sent(SendResult result) {
        equal(SendStatus.SEND_OK, result.getSendStatus(), "status of a send");
        return result;
    }

    /** Waits until a topic holds `count` messages and returns them, queue by queue. */
    List<MessageExt> readBack(String name, int count) throws Exception {
        DefaultMQPullConsumer puller = puller();
        until(name + " holds " + count + " messages", () -> {
            long held = 0;
            for (MessageQueue queue : puller.fetchSubscribeMessageQueues(name)) {
                held += puller.maxOffset(queue) - puller.minOffset(queue);
            }
            return held >= count;
        });
        List<MessageExt> found = new ArrayList<>();
        List<MessageQueue> queues = new ArrayList<>(puller.fetchSubscribeMessageQueues(name));
        queues.sort(Comparator.naturalOrder());
        for (MessageQueue queue : queues) {
            long position = puller.minOffset(queue);
            while (position < puller.maxOffset(queue)) {
                PullResult pulled = puller.pull(queue, "*", position, 32);
                equal(PullStatus.FOUND, pulled.getPullStatus(), "pull of " + queue + " at " + position);
                found.addAll(pulled.getMsgFoundList());
                position = pulled.getNextBeginOffset();
            }
        }
        equal(count, found.size(), "messages in " + name);
        return found;
    }
}
