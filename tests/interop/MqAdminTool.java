import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.Permission;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * Apache's mqadmin, many commands in one JVM. Each line of input is a command, its words separated
 * by tabs; the answer is the number of bytes that it printed, a line of its own, and these bytes.
 * What a server refused is told by a line of its own: code and remark, without the stack.
 * Words that begin with an @ are no commands of mqadmin's, but clients that live on in here:
 * "@consumer GROUP TOPIC COUNT", which waits until it was given so many messages, "@producer GROUP
 * TOPIC", "@send TOPIC QUEUE TAG KEY BODY" and "@stop".
 */
public class MqAdminTool {
    private static final long LONGEST_MS = 60_000;
    private static final List<Runnable> CLOSERS = new ArrayList<>();
    private static DefaultMQProducer producer;

    private static class Exit extends SecurityException {
        Exit(int status) {
            super("exit " + status);
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setProperty("rocketmq.namesrv.addr", arguments[0]);
        System.setSecurityManager(new SecurityManager() {
            @Override
            public void checkExit(int status) {
                throw new Exit(status);
            }

            @Override
            public void checkPermission(Permission permission) {
            }
        });
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            byte[] printed = run(line.split("\t", -1));
            answers.println(printed.length);
            answers.write(printed);
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static byte[] run(String[] words) throws Exception {
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        PrintStream stream = new PrintStream(printed, true, "UTF-8");
        ByteArrayOutputStream failed = new ByteArrayOutputStream();
        PrintStream before = System.out;
        PrintStream errorsBefore = System.err;
        System.setOut(stream);
        System.setErr(new PrintStream(failed, true, "UTF-8"));
        Thread work = new Thread(() -> {
            try {
                if (words[0].startsWith("@")) {
                    client(words);
                } else {
                    MQAdminStartup.main0(words, null);
                }
            } catch (Exit exit) {
                stream.println(exit.getMessage());
            } catch (Throwable error) {
                stream.println(error);
            }
        });
        work.start();
        work.join(LONGEST_MS);
        System.setOut(before);
        System.setErr(errorsBefore);
        for (String line : failed.toString("UTF-8").split("\n")) {
            int at = line.indexOf("CODE: ");
            if (at >= 0) {
                stream.println("refused: " + line.substring(at));
                break;
            }
        }
        if (work.isAlive()) {
            stream.println("still running after " + LONGEST_MS + " ms");
        }
        return printed.toByteArray();
    }

    private static void client(String[] words) throws Exception {
        switch (words[0]) {
            case "@consumer":
                DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(words[1]);
                consumer.setInstanceName("admin-test");
                consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
                consumer.subscribe(words[2], "*");
                CountDownLatch wanted = new CountDownLatch(Integer.parseInt(words[3]));
                consumer.registerMessageListener((MessageListenerConcurrently)
                    (messages, context) -> {
                        messages.forEach(message -> wanted.countDown());
                        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                    });
                consumer.start();
                CLOSERS.add(consumer::shutdown);
                if (!wanted.await(LONGEST_MS / 2, TimeUnit.MILLISECONDS)) {
                    System.out.println("lacks messages: " + wanted.getCount());
                }
                break;
            case "@producer":
                producer = new DefaultMQProducer(words[1]);
                producer.setInstanceName("admin-test");
                producer.start();
                producer.fetchPublishMessageQueues(words[2]);
                producer.getDefaultMQProducerImpl().getMqClientFactory()
                    .sendHeartbeatToAllBrokerWithLock();
                CLOSERS.add(producer::shutdown);
                break;
            case "@send":
                List<MessageQueue> queues = producer.fetchPublishMessageQueues(words[1]);
                queues.sort(null);
                byte[] body = words[5].getBytes(StandardCharsets.UTF_8);
                producer.send(new Message(words[1], words[3], words[4], body),
                    queues.get(Integer.parseInt(words[2])));
                break;
            default:
                CLOSERS.forEach(Runnable::run);
                CLOSERS.clear();
        }
    }
}
