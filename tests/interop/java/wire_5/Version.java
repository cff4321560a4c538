import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;

/** What the client 5.5.0 spells in its own way, and the scenarios that only it can play. */
final class Version {
    private Version() {
    }

    static void broadcast(DefaultMQPushConsumer consumer) {
        consumer.setMessageModel(MessageModel.BROADCASTING);
    }

    static void scenarios(Map<String, WireDriver.Scenario> all) {
        all.put("timer_recall", Version::timerRecall);
    }

    /** One message waits two seconds, one for a time of day; a third is taken back before its time. */
    private static void timerRecall(World world) throws Exception {
        world.makeTopic(2);
        DefaultMQProducer producer = world.producer();
        Map<String, Long> arrivals = new ConcurrentHashMap<>();
        DefaultMQPushConsumer consumer = Redelivery.arriving(world, arrivals);
        consumer.start();
        long sentAtMs = System.currentTimeMillis();
        Message waiting = world.message("waiting");
        waiting.setDelayTimeMs(2000);
        World.sent(producer.send(waiting));
        Message dated = world.message("dated");
        dated.setDeliverTimeMs(sentAtMs + 3000);
        World.sent(producer.send(dated));
        Message recalled = world.message("recalled");
        recalled.setDeliverTimeMs(sentAtMs + 6000);
        SendResult receipt = World.sent(producer.send(recalled));
        Message last = world.message("last");
        last.setDeliverTimeMs(sentAtMs + 9000);
        World.sent(producer.send(last));
        World.check(receipt.getRecallHandle() != null, "no recall handle");
        String recalledId = producer.recallMessage(world.topic, receipt.getRecallHandle());
        World.equal(receipt.getMsgId(), recalledId, "id of the recalled message");
        World.until("the others came", () ->
            arrivals.keySet().containsAll(List.of("waiting", "dated", "last")));
        World.check(!arrivals.containsKey("recalled"), "the recalled message came");
        long[] atLeastMs = {2000, 3000, 9000};
        String[] texts = {"waiting", "dated", "last"};
        for (int i = 0; i < texts.length; i++) {
            long delayMs = arrivals.get(texts[i]) - sentAtMs;
            world.see(texts[i] + "Ms", delayMs);
            // Apache's wheel counts in whole seconds and may ring up to one too early.
            World.check(delayMs >= atLeastMs[i] - 1000, texts[i] + " came after " + delayMs);
        }
    }
}
