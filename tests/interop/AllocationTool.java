import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Asks Apache RocketMQ's own allocation strategies.
 *
 * <p>Reads cases as JSON lines from stdin and prints for each a line: the queues that the member
 * gets, each as [topic, broker, id], or "refused" if the strategy throws IllegalArgumentException.
 * Run from its source: `java -cp ... AllocationTool.java`. test_allocation.py is the only caller.
 */
public final class AllocationTool {
    public static void main(String[] arguments) throws Exception {
        BufferedReader cases =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = cases.readLine(); line != null; line = cases.readLine()) {
            System.out.println(answer(JSON.parseObject(line)));
        }
    }

    private static String answer(JSONObject one) {
        AllocateMessageQueueStrategy strategy = strategy(one.getString("strategy"), one);
        try {
            List<MessageQueue> got = strategy.allocate("group", one.getString("member"),
                queues(one.getJSONArray("queues")),
                one.getJSONArray("members").toJavaList(String.class));
            JSONArray answer = new JSONArray();
            for (MessageQueue queue : got) {
                answer.add(JSONArray.of(
                    queue.getTopic(), queue.getBrokerName(), queue.getQueueId()));
            }
            return answer.toJSONString();
        } catch (IllegalArgumentException refused) {
            return "\"refused\"";
        }
    }

    private static AllocateMessageQueueStrategy strategy(String name, JSONObject one) {
        switch (name) {
            case "averagely":
                return new AllocateMessageQueueAveragely();
            case "circle":
                return new AllocateMessageQueueAveragelyByCircle();
            case "config":
                AllocateMessageQueueByConfig config = new AllocateMessageQueueByConfig();
                config.setMessageQueueList(queues(one.getJSONArray("config")));
                return config;
            case "machineRoom":
                AllocateMessageQueueByMachineRoom room = new AllocateMessageQueueByMachineRoom();
                room.setConsumeridcs(
                    new HashSet<>(one.getJSONArray("rooms").toJavaList(String.class)));
                return room;
            case "machineRoomNearby":
                return new AllocateMachineRoomNearby(
                    strategy(one.getString("inner"), one), new RoomBeforeAt());
            case "consistentHash":
                return new AllocateMessageQueueConsistentHash(one.getIntValue("places"));
            default:
                throw new IllegalStateException(name);
        }
    }

    private static List<MessageQueue> queues(JSONArray given) {
        List<MessageQueue> queues = new ArrayList<>();
        for (int index = 0; index < given.size(); index++) {
            JSONArray queue = given.getJSONArray(index);
            queues.add(new MessageQueue(
                queue.getString(0), queue.getString(1), queue.getIntValue(2)));
        }
        return queues;
    }

    private static final class RoomBeforeAt
        implements AllocateMachineRoomNearby.MachineRoomResolver {
        @Override
        public String brokerDeployIn(MessageQueue queue) {
            return room(queue.getBrokerName());
        }

        @Override
        public String consumerDeployIn(String member) {
            return room(member);
        }

        private static String room(String name) {
            int mark = name.indexOf('@');
            return mark < 0 ? "" : name.substring(0, mark);
        }
    }
}
