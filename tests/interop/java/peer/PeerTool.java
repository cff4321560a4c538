import com.alibaba.fastjson2.JSON;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Apache's Java clients on the other side of ours. Reads one command a line, prints one JSON object
 * a line: what consumers get, and "ready" after each command that starts something.
 *
 * <p>listen GROUP TOPIC orderly|concurrently tag|sql EXPRESSION: a push consumer.
 * answer GROUP TOPIC: one that replies to each request what it says, in capitals.
 * ask TOPIC BODY: a request; prints the reply.
 * send TOPIC BODY: a message; prints the topic of its queue, as the client shows it.
 * A GROUP or a TOPIC to send to may have a namespace before it, with a slash between them.
 */
public final class PeerTool {
    private static final PrintStream OUT =
        new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);

    private final String nameServer;
    private final DefaultMQProducer producer;

    private PeerTool(String nameServer) throws Exception {
        this.nameServer = nameServer;
        producer = new DefaultMQProducer("java-peer");
        producer.setNamesrvAddr(nameServer);
        producer.setVipChannelEnabled(false);
        producer.setSendMsgTimeout(30_000);
        producer.start();
    }

    public static void main(String[] arguments) throws Exception {
        PeerTool tool = new PeerTool(arguments[0]);
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            tool.serve(line.split(" ", 6));
        }
        System.exit(0);
    }

    private void serve(String[] words) throws Exception {
        switch (words[0]) {
            case "listen" -> listen(words[1], words[2], words[3], words[4], words[5]);
            case "answer" -> answer(words[1], words[2]);
            case "ask" -> ask(words[1], words[2]);
            case "send" -> send(words[1], words[2]);
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private void listen(String group, String topic, String order, String kind, String expression)
            throws Exception {
        DefaultMQPushConsumer consumer = consumer(group);
        consumer.subscribe(topic, kind.equals("sql")
            ? MessageSelector.bySql(expression) : MessageSelector.byTag(expression));
        if (order.equals("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                messages.forEach(message -> print(group, message));
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                messages.forEach(message -> print(group, message));
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        consumer.start();
        OUT.println(JSON.toJSONString(Map.of("ready", group)));
    }

    private void answer(String group, String topic) throws Exception {
        DefaultMQPushConsumer consumer = consumer(group);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt request : messages) {
                String body = new String(request.getBody(), StandardCharsets.UTF_8);
                byte[] reply = body.toUpperCase(Locale.ROOT).getBytes(StandardCharsets.UTF_8);
                try {
                    producer.send(MessageUtil.createReplyMessage(request, reply), 30_000);
                } catch (Exception failure) {
                    failure.printStackTrace();
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        OUT.println(JSON.toJSONString(Map.of("ready", group)));
    }

    private void ask(String topic, String body) throws Exception {
        Message request = new Message(topic, body.getBytes(StandardCharsets.UTF_8));
        Message reply = producer.request(request, 60_000);
        String said = new String(reply.getBody(), StandardCharsets.UTF_8);
        OUT.println(JSON.toJSONString(Map.of("reply", said)));
    }

    private void send(String topic, String body) throws Exception {
        DefaultMQProducer sender = new DefaultMQProducer("java-sender");
        sender.setNamesrvAddr(nameServer);
        sender.setVipChannelEnabled(false);
        sender.setSendMsgTimeout(30_000);
        sender.setInstanceName("sender-" + System.nanoTime());
        sender.setNamespace(namespaceOf(topic));
        sender.start();
        Message message = new Message(bare(topic), body.getBytes(StandardCharsets.UTF_8));
        String shown = sender.send(message).getMessageQueue().getTopic();
        OUT.println(JSON.toJSONString(Map.of("sent", body, "topic", shown)));
        sender.shutdown();
    }

    private static String namespaceOf(String name) {
        return name.contains("/") ? name.substring(0, name.indexOf('/')) : null;
    }

    private static String bare(String name) {
        return name.substring(name.indexOf('/') + 1);
    }

    private DefaultMQPushConsumer consumer(String group) {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(bare(group));
        consumer.setNamespace(namespaceOf(group));
        consumer.setNamesrvAddr(nameServer);
        consumer.setVipChannelEnabled(false);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        return consumer;
    }

    private static void print(String group, MessageExt message) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("group", group);
        fields.put("topic", message.getTopic());
        fields.put("body", new String(message.getBody(), StandardCharsets.UTF_8));
        fields.put("tags", message.getTags());
        fields.put("keys", message.getKeys());
        fields.put("properties", message.getProperties());
        fields.put("flag", message.getFlag());
        fields.put("queueId", message.getQueueId());
        fields.put("queueOffset", message.getQueueOffset());
        fields.put("msgId", message.getMsgId());
        OUT.println(JSON.toJSONString(fields));
    }
}
