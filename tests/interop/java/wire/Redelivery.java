import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Messages that come again, or later. */
final class Redelivery {
    private Redelivery() {
    }

    /** One message always fails, one fails once; both are retried after a second. */
    static void deadLetter(World world) throws Exception {
        world.makeTopic(2);
        DefaultMQProducer producer = world.producer();
        List<String> attempts = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = world.consumer();
        consumer.subscribe(world.topic, "*");
        consumer.setMaxReconsumeTimes(2);
        consumer.setConsumeMessageBatchMaxSize(1);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            MessageExt message = messages.get(0);
            attempts.add(World.text(message) + " " + message.getReconsumeTimes() + " "
                + message.getTopic());
            context.setDelayLevelWhenNextConsume(1);
            boolean fails = World.text(message).equals("always")
                || World.text(message).equals("once") && message.getReconsumeTimes() == 0;
            return fails
                ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        SendResult always = World.sent(producer.send(world.message("always")));
        World.sent(producer.send(world.message("once")));
        World.until("both came again", () -> {
            World.rebalance(consumer); // it has queues of its retry topic only then
            return attempts.size() >= 5;
        });
        MessageExt dead = world.readBack("%DLQ%" + world.group, 1).get(0);
        World.equal("always", World.text(dead), "dead letter");
        List<String> expected = new ArrayList<>();
        for (int times = 0; times <= 2; times++) {
            expected.add("always " + times + " " + world.topic);
        }
        expected.add("once 0 " + world.topic);
        expected.add("once 1 " + world.topic);
        World.equal(expected, World.sorted(attempts), "attempts");
        World.equal(world.topic, dead.getProperty("RETRY_TOPIC"), "RETRY_TOPIC");
        World.equal(always.getOffsetMsgId(), dead.getProperty("ORIGIN_MESSAGE_ID"), "origin");
        world.see("attempts", new ArrayList<>(attempts));
        world.see("deadLetter", dead.getProperties());
        world.see("deadLetterReconsumeTimes", dead.getReconsumeTimes());
    }

    static void delayLevels(World world) throws Exception {
        world.makeTopic(2);
        DefaultMQProducer producer = world.producer();
        Map<String, Long> arrivals = new ConcurrentHashMap<>();
        DefaultMQPushConsumer consumer = arriving(world, arrivals);
        consumer.start();
        Map<String, Long> sentAt = new ConcurrentHashMap<>();
        for (int level = 0; level <= 2; level++) {
            Message message = world.message("level-" + level);
            message.setDelayTimeLevel(level);
            sentAt.put("level-" + level, System.currentTimeMillis());
            World.sent(producer.send(message));
        }
        World.until("all came", () -> arrivals.size() == 3);
        long[] atLeastMs = {0, 1000, 5000};
        for (int level = 0; level <= 2; level++) {
            long delayMs = arrivals.get("level-" + level) - sentAt.get("level-" + level);
            world.see("level" + level + "Ms", delayMs);
            World.check(delayMs >= atLeastMs[level], "level " + level + " came after " + delayMs);
        }
    }

    /** Returns a consumer that notes when each text came; the caller starts it. */
    static DefaultMQPushConsumer arriving(World world, Map<String, Long> arrivals) throws Exception {
        DefaultMQPushConsumer consumer = world.consumer();
        consumer.subscribe(world.topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                arrivals.put(World.text(message), System.currentTimeMillis());
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        return consumer;
    }
}
