import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.common.protocol.heartbeat.MessageModel;

/** What the client 4.9.7 spells in its own way. */
final class Version {
    private Version() {
    }

    static void broadcast(DefaultMQPushConsumer consumer) {
        consumer.setMessageModel(MessageModel.BROADCASTING);
    }

    static void scenarios(Map<String, WireDriver.Scenario> all) {
        // It has nothing that 5.x lacks.
    }
}
