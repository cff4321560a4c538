import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONObject;
import com.alibaba.fastjson2.JSONWriter;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.broker.filter.MessageEvaluationContext;
import org.apache.rocketmq.common.filter.ExpressionType;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.filter.FilterFactory;
import org.apache.rocketmq.filter.expression.Expression;
import org.apache.rocketmq.filter.util.BloomFilter;

/**
 * Answers with Apache's own filter classes; JSON lines in, JSON lines out, in the same order.
 *
 * <p>{"sql", "messages": [property strings]} gives {"answers": [true, false, null or "error"]}, or
 * {"refused": why}. {"bloom": text, "errorRate", "groups"} gives {"bitNum", "bitPos"}.
 */
public final class SqlAnswers {
    public static void main(String[] arguments) throws Exception {
        PrintStream out =
            new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JSONObject question = JSON.parseObject(line);
            Map<String, Object> answer =
                question.containsKey("bloom") ? bloom(question) : sql(question);
            out.println(JSON.toJSONString(answer, JSONWriter.Feature.WriteNulls));
        }
        out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, Object> sql(JSONObject question) {
        Map<String, Object> answer = new TreeMap<>();
        Expression expression;
        try {
            expression =
                FilterFactory.INSTANCE.get(ExpressionType.SQL92).compile(question.getString("sql"));
        } catch (Throwable refusal) {
            answer.put("refused", String.valueOf(refusal.getCause()));
            return answer;
        }
        List<Object> answers = new ArrayList<>();
        for (String properties : question.getList("messages", String.class)) {
            answers.add(ask(expression, MessageDecoder.string2messageProperties(properties)));
        }
        answer.put("answers", answers);
        return answer;
    }

    private static Object ask(Expression expression, Map<String, String> properties) {
        try {
            return expression.evaluate(new MessageEvaluationContext(properties));
        } catch (Throwable failure) {
            return "error";
        }
    }

    private static Map<String, Object> bloom(JSONObject question) {
        BloomFilter filter =
            BloomFilter.createByFn(question.getIntValue("errorRate"), question.getIntValue("groups"));
        Map<String, Object> answer = new TreeMap<>();
        answer.put("bitNum", filter.getM());
        answer.put("bitPos", filter.calcBitPositions(question.getString("bloom")));
        return answer;
    }
}
