import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * Runs named scenarios of Apache's Java clients against a cluster.
 *
 * <p>Arguments: name server, cluster, a word for fresh topics and groups, how many scenarios run at
 * once, then scenario names, or "all". Prints a JSON line per scenario on stdout: its name,
 * whether it passed, its seconds, what it saw, and the failure's text. "list" as the only argument
 * prints the names.
 */
public final class WireDriver {
    /** What happens in a scenario; an exception is its failure. */
    interface Scenario {
        void run(World world) throws Exception;
    }

    private WireDriver() {
    }

    /** Returns all scenarios; those that wait longest come first, so that none is left at the end. */
    static Map<String, Scenario> scenarios() {
        Map<String, Scenario> all = new LinkedHashMap<>();
        all.put("reset_by_time", Administration::resetByTime);
        all.put("rebalance_kill", Balance::kill);
        all.put("transactions", Transactions::endings);
        all.put("retry_to_dead_letter", Redelivery::deadLetter);
        all.put("delay_levels", Redelivery::delayLevels);
        Version.scenarios(all);
        all.put("lite_pull_subscribe", Pulling::liteSubscribe);
        all.put("trace", Administration::trace);
        all.put("rebalance_join", Balance::join);
        all.put("rebalance_leave", Balance::leave);
        all.put("orderly_push", Pushing::orderly);
        all.put("concurrent_push", Pushing::concurrent);
        all.put("offsets_kept", Pushing::offsetsKept);
        all.put("broadcast", Pushing::broadcast);
        all.put("tag_filter", Pushing::tagFilter);
        all.put("sql_filter", Pushing::sqlFilter);
        all.put("request_reply", Transactions::requestReply);
        all.put("sync_send", Sending::sync);
        all.put("async_send", Sending::async);
        all.put("oneway_send", Sending::oneway);
        all.put("batch_send", Sending::batch);
        all.put("compressed_body", Sending::compressed);
        all.put("refusals", Sending::refused);
        all.put("pull_by_offset", Pulling::byOffset);
        all.put("lite_pull_assign", Pulling::liteAssign);
        all.put("long_polling", Pulling::longPolling);
        all.put("query", Administration::query);
        all.put("running_info", Administration::runningInfo);
        return all;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream results = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        List<String> words = Arrays.asList(arguments);
        if (words.equals(List.of("list"))) {
            scenarios().keySet().forEach(results::println);
        } else if (words.get(0).equals("consume")) {
            Balance.consumeUntilKilled(words.get(1), words.get(2), words.get(3), results);
        } else {
            runAll(words, results);
        }
        Runtime.getRuntime().halt(0); // threads of Apache's clients may be left
    }

    private static void runAll(List<String> words, PrintStream results) throws Exception {
        Map<String, Scenario> all = scenarios();
        List<String> names = new ArrayList<>(words.subList(4, words.size()));
        if (names.equals(List.of("all"))) {
            names = new ArrayList<>(all.keySet());
        }
        ExecutorService pool = Executors.newFixedThreadPool(Integer.parseInt(words.get(3)));
        for (String name : names) {
            World world = new World(words.get(0), words.get(1), words.get(2) + "-" + name);
            pool.execute(() -> results.println(
                RemotingSerializable.toJson(outcome(name, all.get(name), world), false)));
        }
        pool.shutdown();
        pool.awaitTermination(1, TimeUnit.HOURS);
    }

    private static Map<String, Object> outcome(String name, Scenario scenario, World world) {
        Map<String, Object> line = new LinkedHashMap<>();
        long startedAtNanos = System.nanoTime();
        String failure = "";
        try {
            if (scenario == null) {
                throw new IllegalArgumentException("there is no scenario " + name);
            }
            scenario.run(world);
        } catch (Throwable error) {
            StringWriter trace = new StringWriter();
            error.printStackTrace(new PrintWriter(trace));
            failure = trace.toString();
        }
        line.put("scenario", name);
        line.put("passed", failure.isEmpty());
        line.put("seconds", (System.nanoTime() - startedAtNanos) / 1e9);
        line.put("saw", world.saw());
        line.put("failure", failure);
        world.close();
        return line;
    }
}
