import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Consumers that say themselves where they read. */
final class Pulling {
    private Pulling() {
    }

    static void byOffset(World world) throws Exception {
        world.makeTopic(1);
        DefaultMQProducer producer = world.producer();
        MessageQueue queue = producer.fetchPublishMessageQueues(world.topic).get(0);
        List<Long> storedAt = new ArrayList<>();
        for (String text : World.numbered("pull", 10)) {
            World.sent(producer.send(world.message(text), queue));
            Thread.sleep(5);
        }
        DefaultMQPullConsumer puller = world.puller();
        PullResult first = puller.pull(queue, "*", 0, 4);
        World.equal(PullStatus.FOUND, first.getPullStatus(), "status");
        World.equal(World.numbered("pull", 4), World.texts(first.getMsgFoundList()), "first four");
        World.equal(4L, first.getNextBeginOffset(), "next offset");
        World.equal(0L, first.getMinOffset(), "min offset");
        World.equal(10L, first.getMaxOffset(), "max offset");
        PullResult rest = puller.pull(queue, "*", 4, 32);
        World.equal(6, rest.getMsgFoundList().size(), "the rest");
        for (MessageExt message : rest.getMsgFoundList()) {
            storedAt.add(message.getStoreTimestamp());
        }
        World.equal(PullStatus.NO_NEW_MSG, puller.pull(queue, "*", 10, 32).getPullStatus(), "end");
        PullResult beyond = puller.pull(queue, "*", 99, 32);
        World.equal(PullStatus.OFFSET_ILLEGAL, beyond.getPullStatus(), "beyond the end");
        world.see("correctedOffset", beyond.getNextBeginOffset());
        World.equal(10L, beyond.getNextBeginOffset(), "corrected offset");
        World.equal(0L, puller.minOffset(queue), "minOffset");
        World.equal(10L, puller.maxOffset(queue), "maxOffset");
        World.equal(6L, puller.searchOffset(queue, storedAt.get(2)), "searchOffset");
        World.check(puller.earliestMsgStoreTime(queue) <= storedAt.get(0), "earliest store time");
        puller.updateConsumeOffset(queue, 7);
        puller.getDefaultMQPullConsumerImpl().getOffsetStore().persist(queue);
        World.until("the offset was committed", () -> puller.fetchConsumeOffset(queue, true) == 7);
    }

    static void liteSubscribe(World world) throws Exception {
        world.makeTopic(4);
        List<String> sent = world.sendAll(world.producer(), "lite", 40);
        DefaultLitePullConsumer consumer = lite(world, world.group);
        consumer.setAutoCommit(false);
        consumer.subscribe(world.topic, "*");
        consumer.start();
        List<MessageExt> polled = new ArrayList<>();
        World.until("all were polled", () -> {
            polled.addAll(consumer.poll(500));
            return polled.size() >= sent.size();
        });
        World.equal(sent, World.sorted(World.texts(polled)), "polled");
        consumer.commitSync();
        Set<MessageQueue> queues = new HashSet<>(consumer.assignment());
        World.until("the commit reached the broker", () -> {
            long committed = 0;
            for (MessageQueue queue : queues) {
                committed += world.admin().examineConsumeStats(world.group, world.topic)
                    .getOffsetTable().get(queue).getConsumerOffset();
            }
            world.see("committed", committed);
            return committed == sent.size();
        });
    }

    static void liteAssign(World world) throws Exception {
        world.makeTopic(2);
        DefaultMQProducer producer = world.producer();
        MessageQueue queue = producer.fetchPublishMessageQueues(world.topic).get(0);
        for (String text : World.numbered("assigned", 10)) {
            World.sent(producer.send(world.message(text), queue));
        }
        DefaultLitePullConsumer consumer = lite(world, world.group);
        consumer.setAutoCommit(false);
        consumer.start();
        consumer.assign(List.of(queue));
        consumer.seek(queue, 4);
        List<MessageExt> polled = new ArrayList<>();
        World.until("six were polled", () -> {
            polled.addAll(consumer.poll(500));
            return polled.size() >= 6;
        });
        World.equal(World.numbered("assigned", 10).subList(4, 10), World.texts(polled), "polled");
        consumer.seekToBegin(queue);
        polled.clear();
        World.until("all were polled again", () -> {
            polled.addAll(consumer.poll(500));
            return polled.size() >= 10;
        });
        World.equal(World.numbered("assigned", 10), World.texts(polled), "polled again");
        World.equal(queue, consumer.fetchMessageQueues(world.topic).stream()
            .filter(queue::equals).findFirst().orElseThrow(), "queues of the topic");
    }

    static void longPolling(World world) throws Exception {
        world.makeTopic(1);
        DefaultMQProducer producer = world.producer();
        MessageQueue queue = producer.fetchPublishMessageQueues(world.topic).get(0);
        World.sent(producer.send(world.message("before"), queue));
        DefaultMQPullConsumer puller = world.puller();
        World.equal(1L, puller.maxOffset(queue), "max offset");
        List<Long> latenciesMs = new ArrayList<>();
        for (int round = 0; round < 5; round++) {
            long position = 1 + round;
            CompletableFuture<PullResult> held = CompletableFuture.supplyAsync(() -> {
                try {
                    return puller.pullBlockIfNotFound(queue, "*", position, 32);
                } catch (Exception error) {
                    throw new IllegalStateException(error);
                }
            });
            Thread.sleep(700);
            World.check(!held.isDone(), "the pull was answered before a message came");
            World.sent(producer.send(world.message("held-" + round), queue));
            long sentAtNanos = System.nanoTime();
            PullResult result = held.get(World.DEADLINE_MS, TimeUnit.MILLISECONDS);
            latenciesMs.add((System.nanoTime() - sentAtNanos) / 1_000_000);
            World.equal(PullStatus.FOUND, result.getPullStatus(), "status");
            World.equal(List.of("held-" + round), World.texts(result.getMsgFoundList()), "found");
        }
        world.see("latenciesMs", latenciesMs);
    }

    private static DefaultLitePullConsumer lite(World world, String group) {
        DefaultLitePullConsumer consumer = world.configured(new DefaultLitePullConsumer(group));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPullThreadNums(2);
        world.atEnd(consumer::shutdown);
        return consumer;
    }
}
