import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONObject;
import com.alibaba.fastjson2.JSONWriter;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.exception.OffsetNotFoundException;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.compression.CompressorFactory;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.sysflag.MessageSysFlag;
import org.apache.rocketmq.remoting.RemotingClient;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RequestCode;
import org.apache.rocketmq.remoting.protocol.ResponseCode;
import org.apache.rocketmq.remoting.protocol.header.ConsumerSendMsgBackRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.QueryConsumerOffsetRequestHeader;
import org.apache.rocketmq.remoting.protocol.route.BrokerData;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * Drives Apache RocketMQ's own Java clients for the interop tests.
 *
 * <p>Argument: the name server's address. Reads calls as JSON lines from stdin, each a command and
 * its requests; prints the answers as JSON lines on stdout and an empty line when the call is done.
 * An exception ends the tool with a stack trace. What requests and answers hold is written at
 * rocketmq_tool.py, the only caller.
 */
public final class RocketMqTool {
    private static final int PULL_BATCH = 32;
    private static final int QUERY_MAX = 64;
    private static final Duration DISPATCH_TIMEOUT = Duration.ofSeconds(60);
    private static final PrintStream OUT =
        new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);

    private final String nameServer;

    private DefaultMQPullConsumer reader;
    private DefaultMQAdminExt admin;
    private DefaultMQProducer producer;

    private RocketMqTool(String nameServer) {
        this.nameServer = nameServer;
    }

    public static void main(String[] arguments) {
        int status = 0;
        try {
            RocketMqTool tool = new RocketMqTool(arguments[0]);
            BufferedReader calls =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = calls.readLine(); line != null; line = calls.readLine()) {
                JSONObject call = JSON.parseObject(line);
                List<JSONObject> requests = call.getList("requests", JSONObject.class);
                tool.run(call.getString("command"), requests);
                OUT.println();
                OUT.flush();
            }
        } catch (Throwable failure) {
            failure.printStackTrace();
            status = 1;
        }
        // The clients' own shutdown takes seconds and every request above was answered.
        Runtime.getRuntime().halt(status);
    }

    private void run(String command, List<JSONObject> requests) throws Exception {
        switch (command) {
            case "pull" -> pull(requests);
            case "query" -> query(requests);
            case "send" -> send(requests);
            case "offsets" -> offsets(requests);
            case "commit" -> commit(requests);
            case "committed" -> committed(requests);
            case "consume" -> consume(requests);
            case "sendBack" -> sendBack(requests);
            default -> throw new IllegalArgumentException("unknown command " + command);
        }
    }

    private static void print(Map<String, Object> answer) {
        OUT.println(JSON.toJSONString(answer, JSONWriter.Feature.WriteNulls));
    }

    private DefaultMQPullConsumer reader() throws MQClientException {
        if (reader == null) {
            reader = new DefaultMQPullConsumer("interop_reader");
            reader.setNamesrvAddr(nameServer);
            reader.setVipChannelEnabled(false);
            // As stored: the client would hide the compressed bit and the compressed bytes.
            reader.setDecodeDecompressBody(false);
            reader.start();
        }
        return reader;
    }

    private MQClientAPIImpl api() throws MQClientException {
        return reader().getDefaultMQPullConsumerImpl().getRebalanceImpl().getmQClientFactory()
            .getMQClientAPIImpl();
    }

    private DefaultMQAdminExt admin() throws MQClientException {
        if (admin == null) {
            admin = new DefaultMQAdminExt();
            admin.setNamesrvAddr(nameServer);
            admin.setVipChannelEnabled(false);
            admin.start();
        }
        return admin;
    }

    private DefaultMQProducer producer() throws MQClientException {
        if (producer == null) {
            producer = new DefaultMQProducer("interop_writer");
            producer.setNamesrvAddr(nameServer);
            producer.setVipChannelEnabled(false);
            producer.setSendMsgTimeout(30_000);
            producer.start();
        }
        return producer;
    }

    /** Prints every message of every queue of the topics, in queue order. */
    private void pull(List<JSONObject> requests) throws Exception {
        DefaultMQPullConsumer consumer = reader();
        for (JSONObject request : requests) {
            String topic = request.getString("topic");
            for (MessageQueue queue : new TreeSet<>(consumer.fetchSubscribeMessageQueues(topic))) {
                pullQueue(consumer, queue);
            }
        }
    }

    private static void pullQueue(DefaultMQPullConsumer consumer, MessageQueue queue)
        throws Exception {
        long end = consumer.maxOffset(queue);
        long next = consumer.minOffset(queue);
        while (next < end) {
            PullResult result = consumer.pull(queue, "*", next, PULL_BATCH);
            if (result.getPullStatus() != PullStatus.FOUND) {
                throw new IllegalStateException(queue + " at " + next + " of " + end + ": " + result);
            }
            for (MessageExt message : result.getMsgFoundList()) {
                print(fields(message));
            }
            next = result.getNextBeginOffset();
        }
    }

    private static Map<String, Object> fields(MessageExt message) throws Exception {
        Map<String, String> properties = new TreeMap<>(message.getProperties());
        properties.remove(MessageConst.PROPERTY_MIN_OFFSET);
        properties.remove(MessageConst.PROPERTY_MAX_OFFSET);
        byte[] stored = message.getBody() == null ? new byte[0] : message.getBody();
        byte[] body = stored;
        int sysFlag = message.getSysFlag();
        if ((sysFlag & MessageSysFlag.COMPRESSED_FLAG) != 0) {
            CompressionType type = MessageSysFlag.getCompressionType(sysFlag);
            body = CompressorFactory.getCompressor(type).decompress(stored);
        }
        Map<String, Object> fields = identity(message);
        fields.put("storeSize", message.getStoreSize());
        fields.put("uniqKey", properties.get(MessageConst.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX));
        fields.put("tags", message.getTags());
        fields.put("keys", message.getKeys());
        fields.put("properties", properties);
        fields.put("bodyBase64", Base64.getEncoder().encodeToString(body));
        fields.put("bodyCRC", message.getBodyCRC());
        fields.put("sysFlag", sysFlag);
        fields.put("flag", message.getFlag());
        fields.put("bornTimestamp", message.getBornTimestamp());
        fields.put("storeTimestamp", message.getStoreTimestamp());
        fields.put("bornHost", host(message.getBornHost()));
        fields.put("storeHost", host(message.getStoreHost()));
        fields.put("reconsumeTimes", message.getReconsumeTimes());
        fields.put("preparedTransactionOffset", message.getPreparedTransactionOffset());
        return fields;
    }

    private static Map<String, Object> identity(MessageExt message) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("topic", message.getTopic());
        fields.put("queueId", message.getQueueId());
        fields.put("queueOffset", message.getQueueOffset());
        fields.put("commitLogOffset", message.getCommitLogOffset());
        fields.put("msgId", MessageDecoder.createMessageId(
            message.getStoreHost(), message.getCommitLogOffset()));
        return fields;
    }

    private static String host(SocketAddress address) {
        InetSocketAddress host = (InetSocketAddress) address;
        return host.getAddress().getHostAddress() + ":" + host.getPort();
    }

    /** Prints for each request what the index finds; "type" is K (key), U (unique key), T (tag). */
    private void query(List<JSONObject> requests) throws Exception {
        DefaultMQAdminExt admin = admin();
        for (JSONObject request : requests) {
            String topic = request.getString("topic");
            String key = request.getString("key");
            String type = request.getString("type");
            List<Map<String, Object>> found = new ArrayList<>();
            try {
                QueryResult result = admin.queryMessage(
                    null, topic, key, QUERY_MAX, 0, Long.MAX_VALUE, type, null);
                for (MessageExt message : result.getMessageList()) {
                    found.add(identity(message));
                }
            } catch (MQClientException failure) {
                if (failure.getResponseCode() != ResponseCode.NO_MESSAGE) {
                    throw failure;
                }
            }
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("topic", topic);
            answer.put("key", key);
            answer.put("type", type);
            answer.put("messages", found);
            print(answer);
        }
    }

    /** Sends each request's messages one by one, or as one batch; returns when all can be pulled. */
    private void send(List<JSONObject> requests) throws Exception {
        DefaultMQProducer producer = producer();
        for (JSONObject request : requests) {
            String topic = request.getString("topic");
            List<Message> messages = new ArrayList<>();
            JSONArray specifications = request.getJSONArray("messages");
            for (int i = 0; i < specifications.size(); i++) {
                messages.add(message(topic, specifications.getJSONObject(i)));
            }
            List<SendResult> results = new ArrayList<>();
            if (request.getBooleanValue("batch")) {
                results.add(producer.send(messages));
            } else {
                for (Message message : messages) {
                    results.add(producer.send(message));
                }
            }
            boolean isWaiting = messages.stream().anyMatch(
                message -> message.getDelayTimeLevel() > 0 || message.getDeliverTimeMs() > 0);
            for (SendResult result : results) {
                printReceipts(topic, result);
                if (!isWaiting) {
                    awaitDispatch(result);
                }
            }
        }
    }

    /** The broker acknowledges a message before its queue has it. */
    private void awaitDispatch(SendResult result) throws Exception {
        int messages = result.getOffsetMsgId().split(",").length;
        long end = result.getQueueOffset() + messages;
        long deadline = System.nanoTime() + DISPATCH_TIMEOUT.toNanos();
        while (admin().maxOffset(result.getMessageQueue()) < end) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("acknowledged but not dispatched: " + result);
            }
            Thread.sleep(5);
        }
    }

    private static Message message(String topic, JSONObject specification) {
        byte[] body = Base64.getDecoder().decode(specification.getString("bodyBase64"));
        Message message = new Message(topic, body);
        message.setFlag(specification.getIntValue("flag"));
        if (specification.containsKey("tags")) {
            message.setTags(specification.getString("tags"));
        }
        if (specification.containsKey("keys")) {
            message.setKeys(specification.getString("keys"));
        }
        if (specification.containsKey("delayLevel")) {
            message.setDelayTimeLevel(specification.getIntValue("delayLevel"));
        }
        if (specification.containsKey("deliverTimeMs")) {
            message.setDeliverTimeMs(specification.getLongValue("deliverTimeMs"));
        }
        JSONObject properties = specification.getJSONObject("properties");
        if (properties != null) {
            for (String name : properties.keySet()) {
                message.putUserProperty(name, properties.getString(name));
            }
        }
        return message;
    }

    private static void printReceipts(String topic, SendResult result) {
        if (result.getSendStatus() != SendStatus.SEND_OK) {
            throw new IllegalStateException("not stored: " + result);
        }
        String[] ids = result.getOffsetMsgId().split(",");
        String[] uniqueKeys = result.getMsgId().split(",");
        for (int i = 0; i < ids.length; i++) {
            Map<String, Object> receipt = new LinkedHashMap<>();
            receipt.put("topic", topic);
            receipt.put("queueId", result.getMessageQueue().getQueueId());
            receipt.put("queueOffset", result.getQueueOffset() + i);
            receipt.put("msgId", ids[i]);
            receipt.put("uniqKey", uniqueKeys[i]);
            print(receipt);
        }
    }

    /** Prints for each queue its bounds and the offsets of the timestamps, of both boundary types. */
    private void offsets(List<JSONObject> requests) throws Exception {
        DefaultMQAdminExt admin = admin();
        DefaultMQPullConsumer consumer = reader();
        for (JSONObject request : requests) {
            String topic = request.getString("topic");
            Set<MessageQueue> queues = new TreeSet<>(consumer.fetchSubscribeMessageQueues(topic));
            for (MessageQueue queue : queues) {
                List<Long> lower = new ArrayList<>();
                List<Long> upper = new ArrayList<>();
                for (Long time : request.getJSONArray("timestamps").toList(Long.class)) {
                    lower.add(admin.searchLowerBoundaryOffset(queue, time));
                    upper.add(admin.searchUpperBoundaryOffset(queue, time));
                }
                Map<String, Object> answer = new LinkedHashMap<>();
                answer.put("topic", topic);
                answer.put("queueId", queue.getQueueId());
                answer.put("min", admin.minOffset(queue));
                answer.put("max", admin.maxOffset(queue));
                answer.put("lower", lower);
                answer.put("upper", upper);
                print(answer);
            }
        }
    }

    /** Sets group offsets, makes the groups before, and prints each request again when it is done. */
    private void commit(List<JSONObject> requests) throws Exception {
        DefaultMQAdminExt admin = admin();
        for (JSONObject request : requests) {
            String topic = request.getString("topic");
            BrokerData broker = admin.examineTopicRouteInfo(topic).getBrokerDatas().get(0);
            String address = broker.selectBrokerAddr();
            SubscriptionGroupConfig group = new SubscriptionGroupConfig();
            group.setGroupName(request.getString("group"));
            admin.createAndUpdateSubscriptionGroupConfig(address, group);
            admin.updateConsumeOffset(
                address,
                group.getGroupName(),
                new MessageQueue(topic, broker.getBrokerName(), request.getIntValue("queueId")),
                request.getLongValue("offset"));
            print(request);
        }
    }

    /**
     * Prints the offset of each queue that a group has committed, as the broker tells a consumer.
     *
     * <p>A consumer of the group itself would become one of its members, and take queues away from
     * those that run.
     */
    private void committed(List<JSONObject> requests) throws Exception {
        for (JSONObject request : requests) {
            String topic = request.getString("topic");
            String address =
                admin().examineTopicRouteInfo(topic).getBrokerDatas().get(0).selectBrokerAddr();
            for (MessageQueue queue : new TreeSet<>(reader().fetchSubscribeMessageQueues(topic))) {
                Map<String, Object> answer = new LinkedHashMap<>();
                answer.put("queueId", queue.getQueueId());
                answer.put("offset", committed(address, request.getString("group"), queue));
                print(answer);
            }
        }
    }

    private long committed(String address, String group, MessageQueue queue) throws Exception {
        QueryConsumerOffsetRequestHeader header = new QueryConsumerOffsetRequestHeader();
        header.setConsumerGroup(group);
        header.setTopic(queue.getTopic());
        header.setQueueId(queue.getQueueId());
        try {
            return api().queryConsumerOffset(address, header, DISPATCH_TIMEOUT.toMillis());
        } catch (OffsetNotFoundException none) {
            return -1;
        }
    }

    /**
     * Lets a group consume a topic until it was given so many messages again; prints all it was
     * given. Each one fails, to come again after a second, until it was tried "fails" times.
     */
    private void consume(List<JSONObject> requests) throws Exception {
        for (JSONObject request : requests) {
            int fails = request.getIntValue("fails");
            CountDownLatch wanted = new CountDownLatch(request.getIntValue("retried"));
            List<Map<String, Object>> given = Collections.synchronizedList(new ArrayList<>());
            DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(request.getString("group"));
            consumer.setNamesrvAddr(nameServer);
            consumer.setVipChannelEnabled(false);
            consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            consumer.subscribe(request.getString("topic"), "*");
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                MessageExt message = messages.get(0);
                try {
                    given.add(fields(message));
                } catch (Exception failure) {
                    throw new IllegalStateException(failure);
                }
                int tries = message.getReconsumeTimes();
                if (tries > 0) {
                    wanted.countDown();
                }
                context.setDelayLevelWhenNextConsume(1);
                return tries > 0 && tries < fails
                    ? ConsumeConcurrentlyStatus.RECONSUME_LATER
                    : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
            consumer.start();
            boolean done = wanted.await(DISPATCH_TIMEOUT.toSeconds(), TimeUnit.SECONDS);
            consumer.shutdown();
            if (!done) {
                throw new IllegalStateException("not given again: only " + given);
            }
            for (Map<String, Object> message : given) {
                print(message);
            }
        }
    }

    /** Sends messages back without a number of tries of the client's, which would win. */
    private void sendBack(List<JSONObject> requests) throws Exception {
        RemotingClient client = api().getRemotingClient();
        for (JSONObject request : requests) {
            String topic = request.getString("topic");
            ConsumerSendMsgBackRequestHeader header = new ConsumerSendMsgBackRequestHeader();
            header.setGroup(request.getString("group"));
            header.setOriginTopic(topic);
            header.setOffset(request.getLongValue("offset"));
            header.setDelayLevel(request.getIntValue("delayLevel"));
            String address =
                admin().examineTopicRouteInfo(topic).getBrokerDatas().get(0).selectBrokerAddr();
            RemotingCommand answer = client.invokeSync(
                address,
                RemotingCommand.createRequestCommand(RequestCode.CONSUMER_SEND_MSG_BACK, header),
                DISPATCH_TIMEOUT.toMillis());
            if (answer.getCode() != ResponseCode.SUCCESS) {
                throw new IllegalStateException("not sent back: " + answer);
            }
            print(request);
        }
    }
}
