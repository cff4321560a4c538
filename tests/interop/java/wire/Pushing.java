import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;

/** Consumers that are handed messages: order, offsets, broadcasting, filters. */
final class Pushing {
    private Pushing() {
    }

    /** Lets a consumer collect the texts of what it is handed, and starts it. */
    static Collection<String> collecting(DefaultMQPushConsumer consumer) throws Exception {
        Collection<String> texts = new ConcurrentLinkedQueue<>();
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            texts.addAll(World.texts(messages));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return texts;
    }

    static void concurrent(World world) throws Exception {
        world.makeTopic(4);
        DefaultMQProducer producer = world.producer();
        List<String> sent = world.sendAll(producer, "before", 40);
        DefaultMQPushConsumer consumer = world.consumer();
        consumer.subscribe(world.topic, "*");
        Collection<String> received = collecting(consumer);
        World.until("the first came", () -> received.size() >= 40);
        sent.addAll(world.sendAll(producer, "later", 40));
        World.until("all came", () -> received.size() >= sent.size());
        World.equal(World.sorted(sent), World.sorted(received), "received");
        consumer.shutdown(); // commits
        World.until("no lag is left", () -> {
            var stats = world.admin().examineConsumeStats(world.group, world.topic);
            return stats.getOffsetTable().size() >= 4 && stats.computeTotalDiff() == 0;
        });
        world.see("received", received.size());
    }

    static void offsetsKept(World world) throws Exception {
        world.makeTopic(2);
        DefaultMQProducer producer = world.producer();
        List<String> first = world.sendAll(producer, "first", 10);
        DefaultMQPushConsumer consumer = world.consumer();
        consumer.subscribe(world.topic, "*");
        Collection<String> received = collecting(consumer);
        World.until("the first came", () -> received.size() >= first.size());
        consumer.shutdown();
        List<String> second = world.sendAll(producer, "second", 10);
        DefaultMQPushConsumer next = world.consumer();
        next.subscribe(world.topic, "*");
        Collection<String> receivedNext = collecting(next);
        World.until("the second came", () -> receivedNext.size() >= second.size());
        World.equal(World.sorted(second), World.sorted(receivedNext), "received by the next");
        World.equal(World.sorted(first), World.sorted(received), "received by the first");
    }

    static void orderly(World world) throws Exception {
        world.makeTopic(4);
        DefaultMQProducer producer = world.producer();
        for (int step = 0; step < 10; step++) {
            for (int order = 0; order < 6; order++) {
                Message message = world.message(String.format("%d/%d", order, step));
                World.sent(producer.send(
                    message, (queues, ignored, key) -> queues.get((Integer) key % queues.size()),
                    order));
            }
        }
        Map<String, List<String>> steps = new ConcurrentHashMap<>();
        AtomicBoolean suspended = new AtomicBoolean();
        DefaultMQPushConsumer consumer = world.consumer();
        consumer.subscribe(world.topic, "*");
        consumer.setConsumeMessageBatchMaxSize(1);
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            String text = World.text(messages.get(0));
            if (text.equals("3/4") && suspended.compareAndSet(false, true)) {
                context.setSuspendCurrentQueueTimeMillis(300);
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            }
            steps.computeIfAbsent(text.split("/")[0], order -> new ArrayList<>()).add(text);
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        World.until("all came", () -> steps.values().stream().mapToInt(List::size).sum() >= 60);
        World.check(suspended.get(), "no queue was suspended");
        for (int order = 0; order < 6; order++) {
            List<String> expected = new ArrayList<>();
            for (int step = 0; step < 10; step++) {
                expected.add(order + "/" + step);
            }
            World.equal(expected, steps.get(String.valueOf(order)), "steps of an order");
        }
        world.see("orders", steps.size());
    }

    static void broadcast(World world) throws Exception {
        world.makeTopic(4);
        List<Collection<String>> received = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            DefaultMQPushConsumer consumer = world.consumer();
            Version.broadcast(consumer);
            consumer.subscribe(world.topic, "*");
            received.add(collecting(consumer));
        }
        List<String> sent = world.sendAll(world.producer(), "broadcast", 20);
        for (Collection<String> one : received) {
            World.until("each got all", () -> one.size() >= sent.size());
            World.equal(sent, World.sorted(one), "received by one");
        }
    }

    static void tagFilter(World world) throws Exception {
        world.makeTopic(2);
        DefaultMQProducer producer = world.producer();
        for (String text : World.numbered("tagged", 30)) {
            Message message = world.message(text);
            message.setTags(tagOf(text));
            World.sent(producer.send(message));
        }
        List<String> expected = World.numbered("tagged", 30).stream()
            .filter(text -> !tagOf(text).equals("B")).collect(Collectors.toList());
        DefaultMQPushConsumer consumer = world.consumer();
        consumer.subscribe(world.topic, "A || C");
        expectOnly(expected, collecting(consumer), producer, world);
    }

    static void sqlFilter(World world) throws Exception {
        world.makeTopic(2);
        DefaultMQProducer producer = world.producer();
        List<String> expected = new ArrayList<>();
        for (int number = 0; number < 30; number++) {
            Message message = world.message(String.format("sql-%02d", number));
            message.setTags(tagOf(World.text(message)));
            message.putUserProperty("number", String.valueOf(number));
            message.putUserProperty("colour", number % 2 == 0 ? "red" : "blue");
            World.sent(producer.send(message));
            if (number > 5 && number <= 25 && number % 2 == 0 && number % 3 != 1) {
                expected.add(World.text(message));
            }
        }
        DefaultMQPushConsumer consumer = world.consumer();
        consumer.subscribe(world.topic, MessageSelector.bySql(
            "number > 5 AND number BETWEEN 0 AND 25 AND colour = 'red' AND TAGS IN ('A', 'C')"));
        expectOnly(expected, collecting(consumer), producer, world);
    }

    /** Checks that a filter lets through what is expected and, after a last message, nothing else. */
    private static void expectOnly(
            List<String> expected, Collection<String> received, DefaultMQProducer producer,
            World world) throws Exception {
        World.until("the expected came", () -> received.size() >= expected.size());
        for (var queue : producer.fetchPublishMessageQueues(world.topic)) {
            Message last = world.message("zz-last-" + queue.getBrokerName() + queue.getQueueId());
            last.setTags("A");
            last.putUserProperty("number", "8");
            last.putUserProperty("colour", "red");
            World.sent(producer.send(last, queue));
        }
        int lasts = producer.fetchPublishMessageQueues(world.topic).size();
        World.until("the last of each queue came", () ->
            received.stream().filter(text -> text.startsWith("zz-last")).count() >= lasts);
        List<String> seen = received.stream()
            .filter(text -> !text.startsWith("zz-last")).sorted().collect(Collectors.toList());
        World.equal(expected, seen, "received");
        world.see("received", seen.size());
    }

    private static String tagOf(String text) {
        return List.of("A", "B", "C").get(Integer.parseInt(text.substring(text.length() - 2)) % 3);
    }
}
