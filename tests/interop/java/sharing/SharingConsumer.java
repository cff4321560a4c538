import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A push consumer of Apache's, as one of a group in which others are not in Java.
 *
 * <p>Arguments: the name server, the group, the topic. Prints "ready" when it has started and
 * "got BODY" for each message. It leaves the group, its offsets committed, when its input ends.
 */
public final class SharingConsumer {
    private SharingConsumer() { }

    public static void main(String[] words) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(words[1]);
        consumer.setNamesrvAddr(words[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(words[2], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                tell("got " + new String(message.getBody(), StandardCharsets.UTF_8));
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        tell("ready");
        while (System.in.read() >= 0) {
            continue;
        }
        consumer.shutdown();
        tell("left");
        Runtime.getRuntime().halt(0); // Apache's clients leave threads
    }

    private static synchronized void tell(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
