import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** What an operator asks: messages by key, traces, offsets, running consumers. */
final class Administration {
    private static final String TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC";
    private static final long HOUR_MS = 3_600_000;

    private Administration() {
    }

    static void query(World world) throws Exception {
        world.makeTopic(2);
        DefaultMQProducer producer = world.producer();
        List<SendResult> receipts = new ArrayList<>();
        for (String text : World.numbered("asked", 10)) {
            Message message = world.message(text);
            message.setKeys("own-" + text + " shared");
            receipts.add(World.sent(producer.send(message)));
        }
        World.equal(List.of("asked-03"), byKey(world, world.topic, "own-asked-03", 1), "by key");
        World.equal(
            World.numbered("asked", 10), byKey(world, world.topic, "shared", 10), "by shared key");
        SendResult fifth = receipts.get(5);
        MessageExt byUnique = world.admin().viewMessage(world.topic, fifth.getMsgId());
        World.equal("asked-05", World.text(byUnique), "by unique key");
        MessageExt byId = world.admin().viewMessage(world.topic, fifth.getOffsetMsgId());
        World.equal("asked-05", World.text(byId), "by message id");
        World.equal(fifth.getQueueOffset(), byId.getQueueOffset(), "its queue offset");
        world.see("messageId", fifth.getOffsetMsgId());
    }

    private static List<String> byKey(World world, String topic, String key, int count)
            throws Exception {
        List<MessageExt> found = new ArrayList<>();
        World.until(count + " messages have the key " + key, () -> {
            found.clear();
            long now = System.currentTimeMillis();
            found.addAll(world.admin()
                .queryMessage(topic, key, 64, now - HOUR_MS, now + HOUR_MS).getMessageList());
            return found.size() >= count;
        });
        return World.sorted(World.texts(found));
    }

    static void trace(World world) throws Exception {
        world.makeTopic(1);
        DefaultMQProducer producer =
            world.started(new DefaultMQProducer(world.group + "-producer", true, null));
        DefaultMQPushConsumer consumer =
            world.prepared(new DefaultMQPushConsumer(world.group, true, null));
        consumer.subscribe(world.topic, "*");
        Collection<String> received = Pushing.collecting(consumer);
        Message message = world.message("traced");
        message.setKeys("traced-key");
        SendResult receipt = World.sent(producer.send(message));
        World.until("it came", () -> !received.isEmpty());
        List<String> kinds = new ArrayList<>();
        World.until("sending and consuming were traced", () -> {
            String all = String.join("", byKey(world, TRACE_TOPIC, receipt.getMsgId(), 1));
            kinds.clear();
            for (String kind : List.of("Pub", "SubBefore", "SubAfter")) {
                if (all.contains(kind + (char) 1)) {
                    kinds.add(kind);
                }
            }
            return kinds.size() == 3;
        });
        world.see("kinds", kinds);
    }

    static void resetByTime(World world) throws Exception {
        world.makeTopic(2);
        DefaultMQProducer producer = world.producer();
        List<String> early = world.sendAll(producer, "early", 10);
        Thread.sleep(1000);
        long betweenMs = System.currentTimeMillis();
        Thread.sleep(1000);
        List<String> late = world.sendAll(producer, "late", 10);
        DefaultMQPushConsumer consumer = world.consumer();
        consumer.subscribe(world.topic, "*");
        Collection<String> received = Pushing.collecting(consumer);
        World.until("all came", () -> received.size() >= 20);
        consumer.getDefaultMQPushConsumerImpl().persistConsumerOffset();
        var offsets =
            world.admin().resetOffsetByTimestamp(world.topic, world.group, betweenMs, true);
        world.see("offsets", offsets.values().stream().sorted().collect(Collectors.toList()));
        World.until("the late came again", () -> {
            World.rebalance(consumer); // it gave its queues up for the reset
            return received.size() >= 30;
        });
        List<String> expected = new ArrayList<>(early);
        expected.addAll(late);
        expected.addAll(late);
        World.equal(World.sorted(expected), World.sorted(received), "received");
    }

    static void runningInfo(World world) throws Exception {
        world.makeTopic(4);
        DefaultMQProducer producer = world.producer();
        SendResult receipt = World.sent(producer.send(world.message("running")));
        DefaultMQPushConsumer consumer = world.consumer();
        consumer.subscribe(world.topic, "*");
        Collection<String> received = Pushing.collecting(consumer);
        World.until("it came", () -> !received.isEmpty());
        String clientId = consumer.getDefaultMQPushConsumerImpl().getmQClientFactory().getClientId();
        var connections = world.admin().examineConsumerConnectionInfo(world.group);
        World.equal(
            List.of(clientId),
            connections.getConnectionSet().stream().map(one -> one.getClientId())
                .collect(Collectors.toList()),
            "connections");
        World.equal("*", connections.getSubscriptionTable().get(world.topic).getSubString(), "subscription");
        var info = world.admin().getConsumerRunningInfo(world.group, clientId, false);
        long queues = info.getMqTable().keySet().stream()
            .filter(queue -> queue.getTopic().equals(world.topic)).count();
        World.equal(4L * world.brokerAddresses().size(), queues, "queues in the running info");
        World.equal("CONSUME_PASSIVELY", info.getProperties().getProperty("PROP_CONSUME_TYPE"), "type");
        var direct = world.admin()
            .consumeMessageDirectly(world.group, clientId, world.topic, receipt.getMsgId());
        World.equal("CR_SUCCESS", direct.getConsumeResult().name(), "direct consumption");
        World.equal(List.of("running", "running"), new ArrayList<>(received), "received");
        World.until("the producer is known", () -> world.admin()
            .examineProducerConnectionInfo(world.group + "-producer", world.topic)
            .getConnectionSet().size() == 1);
        world.see("clientId", clientId);
    }
}
