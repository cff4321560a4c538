import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONObject;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Consumes a topic with a push consumer per group, each with an SQL92 filter, until it is ended.
 *
 * <p>Arguments: the name server's address, the topic, and a JSON object of filters by group. Prints
 * a JSON line for each message that a group gets.
 */
public final class SqlConsumers {
    private static final PrintStream OUT =
        new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);

    public static void main(String[] arguments) throws Exception {
        JSONObject filters = JSON.parseObject(arguments[2]);
        for (String group : filters.keySet()) {
            start(arguments[0], arguments[1], group, filters.getString(group));
        }
    }

    private static void start(String nameServer, String topic, String group, String sql)
        throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.setVipChannelEnabled(false);
        consumer.setInstanceName(group);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, MessageSelector.bySql(sql));
        MessageListenerConcurrently listener =
            (messages, context) -> {
                for (MessageExt message : messages) {
                    Map<String, Object> got =
                        Map.of(
                            "group", group,
                            "queueId", message.getQueueId(),
                            "queueOffset", message.getQueueOffset());
                    OUT.println(JSON.toJSONString(got));
                }
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            };
        consumer.registerMessageListener(listener);
        consumer.start();
    }
}
