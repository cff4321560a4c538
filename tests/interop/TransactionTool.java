import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A transactional producer of Apache's: sends messages, then answers the broker until it is ended.
 *
 * <p>Arguments: the name server's address, the group, the topic, and what to do with each body: a
 * word such as `send:a=COMMIT_MESSAGE` (its local transaction ends so) or `answer:a=UNKNOW`. Prints
 * `sent <body> <queue offset>`, `ready` when all are sent, and `asked <body> <times>`.
 */
public final class TransactionTool {
    private static final PrintStream OUT =
        new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);

    public static void main(String[] arguments) throws Exception {
        Map<String, LocalTransactionState> sends = new TreeMap<>();
        Map<String, LocalTransactionState> answers = new TreeMap<>();
        for (int i = 3; i < arguments.length; i++) {
            String[] words = arguments[i].split("[:=]");
            (words[0].equals("send") ? sends : answers)
                .put(words[1], LocalTransactionState.valueOf(words[2]));
        }
        TransactionMQProducer producer = new TransactionMQProducer(arguments[1]);
        producer.setNamesrvAddr(arguments[0]);
        producer.setVipChannelEnabled(false);
        producer.setSendMsgTimeout(30_000);
        producer.setHeartbeatBrokerInterval(500);
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object state) {
                return (LocalTransactionState) state;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                String body = text(message);
                String times = message.getUserProperty("TRANSACTION_CHECK_TIMES");
                OUT.println("asked " + body + " " + times);
                return answers.getOrDefault(body, LocalTransactionState.UNKNOW);
            }
        });
        producer.start();
        for (Map.Entry<String, LocalTransactionState> send : sends.entrySet()) {
            byte[] body = send.getKey().getBytes(StandardCharsets.UTF_8);
            Message message = new Message(arguments[2], "paid", send.getKey(), body);
            SendResult result = producer.sendMessageInTransaction(message, send.getValue());
            OUT.println("sent " + send.getKey() + " " + result.getQueueOffset());
        }
        OUT.println("ready");
        Thread.sleep(Long.MAX_VALUE);
    }

    private static String text(Message message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }
}
