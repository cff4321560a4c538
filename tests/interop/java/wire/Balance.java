import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;

/** Queues of a group are shared anew when a member joins, leaves or dies. */
final class Balance {
    private static final int QUEUES = 8;

    private Balance() {
    }

    static void join(World world) throws Exception {
        world.makeTopic(QUEUES);
        int all = queues(world);
        DefaultMQPushConsumer one = member(world);
        Collection<String> receivedOne = Pushing.collecting(one);
        World.until("one has all queues", () -> owned(one, world) == all);
        DefaultMQPushConsumer two = member(world);
        Collection<String> receivedTwo = Pushing.collecting(two);
        World.until("both have half", () ->
            owned(one, world) == all / 2 && owned(two, world) == all / 2);
        List<String> sent = world.sendAll(world.producer(), "shared", 32);
        World.until("all came", () -> receivedOne.size() + receivedTwo.size() >= sent.size());
        List<String> together = new ArrayList<>(receivedOne);
        together.addAll(receivedTwo);
        World.equal(sent, World.sorted(together), "received by both");
        World.check(!receivedOne.isEmpty() && !receivedTwo.isEmpty(), "one got nothing");
        world.see("received", List.of(receivedOne.size(), receivedTwo.size()));
    }

    static void leave(World world) throws Exception {
        world.makeTopic(QUEUES);
        int all = queues(world);
        DefaultMQPushConsumer one = member(world);
        DefaultMQPushConsumer two = member(world);
        Collection<String> received = Pushing.collecting(one);
        Pushing.collecting(two);
        World.until("both have half", () ->
            owned(one, world) == all / 2 && owned(two, world) == all / 2);
        two.shutdown();
        long leftAtMs = System.currentTimeMillis();
        World.until("one has all queues", () -> owned(one, world) == all);
        world.see("takenOverAfterMs", System.currentTimeMillis() - leftAtMs);
        List<String> sent = world.sendAll(world.producer(), "left", 32);
        World.until("all came", () -> received.size() >= sent.size());
        World.equal(sent, World.sorted(received), "received");
    }

    /** A member in a JVM of its own is killed: the broker sees only that its connection ends. */
    static void kill(World world) throws Exception {
        world.makeTopic(QUEUES);
        int all = queues(world);
        Process other = anotherJvm(world);
        world.atEnd(other::destroyForcibly);
        BufferedReader printed = new BufferedReader(new InputStreamReader(other.getInputStream()));
        World.equal("started", printed.readLine(), "the other JVM");
        DefaultMQPushConsumer one = member(world);
        Collection<String> received = Pushing.collecting(one);
        World.until("two members are known", () ->
            world.admin().examineConsumerConnectionInfo(world.group).getConnectionSet().size() == 2);
        World.until("one has half", () -> owned(one, world) == all / 2);
        other.destroyForcibly().waitFor();
        long killedAtMs = System.currentTimeMillis();
        World.until("one has all queues", () -> owned(one, world) == all);
        world.see("takenOverAfterMs", System.currentTimeMillis() - killedAtMs);
        List<String> sent = world.sendAll(world.producer(), "killed", 32);
        World.until("all came", () -> received.size() >= sent.size());
        World.equal(sent, World.sorted(received), "received");
    }

    /** The other JVM: consumes until somebody ends it. */
    static void consumeUntilKilled(String namesrv, String topic, String group, PrintStream results)
            throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(namesrv);
        consumer.subscribe(topic, "*");
        Pushing.collecting(consumer);
        results.println("started");
        while (System.in.read() >= 0) { // our end of the pipe closes when the driver is gone
            continue;
        }
    }

    private static Process anotherJvm(World world) throws Exception {
        List<String> command = new ArrayList<>();
        command.add(System.getProperty("java.home") + File.separator + "bin" + File.separator + "java");
        command.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), "WireDriver"));
        command.addAll(List.of("consume", world.namesrv, world.topic, world.group));
        return new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
    }

    private static DefaultMQPushConsumer member(World world) throws Exception {
        DefaultMQPushConsumer consumer = world.consumer();
        consumer.subscribe(world.topic, "*");
        return consumer;
    }

    private static int queues(World world) throws Exception {
        return QUEUES * world.brokerAddresses().size();
    }

    private static long owned(DefaultMQPushConsumer consumer, World world) {
        return consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable()
            .keySet().stream().filter(queue -> queue.getTopic().equals(world.topic)).count();
    }
}
