import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/**
 * Runs the JUnit classes named as arguments, in their order, and prints a JSON line per test.
 *
 * <p>The lines go to stdout; what the tests themselves print goes to stderr. A failure outside of
 * a test, in a class's set-up say, is a line whose method is empty.
 */
public final class SuiteRunner extends RunListener {
    private final PrintStream results;
    private String outcome;
    private String text;
    private long startedAtNanos;

    private SuiteRunner(PrintStream results) {
        this.results = results;
    }

    public static void main(String[] classNames) throws ClassNotFoundException {
        PrintStream results = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        JUnitCore core = new JUnitCore();
        core.addListener(new SuiteRunner(results));
        for (String name : classNames) {
            core.run(Class.forName(name));
        }
        // Clients that a test left running have threads that would keep the JVM.
        Runtime.getRuntime().halt(0);
    }

    @Override
    public void testStarted(Description test) {
        outcome = "passed";
        text = "";
        startedAtNanos = System.nanoTime();
    }

    @Override
    public void testFailure(Failure failure) {
        StringWriter trace = new StringWriter();
        failure.getException().printStackTrace(new PrintWriter(trace));
        outcome = "failed";
        text = trace.toString();
        if (!failure.getDescription().isTest()) {
            print(failure.getDescription());
        }
    }

    @Override
    public void testAssumptionFailure(Failure failure) {
        outcome = "ignored";
        text = String.valueOf(failure.getMessage());
    }

    @Override
    public void testFinished(Description test) {
        print(test);
    }

    @Override
    public void testIgnored(Description test) {
        outcome = "ignored";
        text = "";
        startedAtNanos = System.nanoTime();
        print(test);
    }

    private void print(Description test) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("class", test.getClassName());
        line.put("method", test.getMethodName() == null ? "" : test.getMethodName());
        line.put("outcome", outcome);
        line.put("seconds", (System.nanoTime() - startedAtNanos) / 1e9);
        line.put("text", text);
        results.println(RemotingSerializable.toJson(line, false));
    }
}
