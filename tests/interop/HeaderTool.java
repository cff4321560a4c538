import java.lang.annotation.Annotation;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.TreeMap;
import java.util.jar.JarFile;
import org.apache.rocketmq.remoting.protocol.RemotingSysResponseCode;
import org.apache.rocketmq.remoting.protocol.RequestCode;
import org.apache.rocketmq.remoting.protocol.ResponseCode;

/**
 * Tells what Apache RocketMQ's own classes say of the protocol.
 *
 * <p>Prints lines of words: `request NAME CODE`, `response NAME CODE`, and for each field of each
 * header class `field CLASS CODE NAME TYPE required|optional`; the code is 0 where the class says
 * none. Run from its source: `java -cp ... HeaderTool.java`. test_headers.py is the only caller.
 */
public final class HeaderTool {
    private static final String PACKAGE = "org/apache/rocketmq/remoting/protocol/header/";

    public static void main(String[] arguments) throws Exception {
        printCodes("request", RequestCode.class);
        printCodes("response", RemotingSysResponseCode.class);
        printCodes("response", ResponseCode.class);
        String jar = RequestCode.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        try (JarFile file = new JarFile(jar)) {
            file.stream().map(entry -> entry.getName())
                .filter(name -> name.startsWith(PACKAGE) && name.matches(".*Header(V2)?[.]class"))
                .sorted().forEach(HeaderTool::printFields);
        }
    }

    private static void printCodes(String kind, Class<?> codes) throws Exception {
        for (Field field : codes.getDeclaredFields()) {
            if (field.getType() == int.class && Modifier.isStatic(field.getModifiers())) {
                System.out.println(kind + " " + field.getName() + " " + field.getInt(null));
            }
        }
    }

    private static void printFields(String entry) {
        try {
            Class<?> header = Class.forName(
                entry.substring(0, entry.length() - ".class".length()).replace('/', '.'));
            TreeMap<String, String> lines = new TreeMap<>();
            for (Class<?> each = header; each != Object.class && each != null;
                    each = each.getSuperclass()) {
                for (Field field : each.getDeclaredFields()) {
                    if (!Modifier.isStatic(field.getModifiers())) {
                        lines.putIfAbsent(field.getName(), field.getType().getSimpleName() + " "
                            + (isRequired(field) ? "required" : "optional"));
                    }
                }
            }
            lines.forEach((name, rest) -> System.out.println(
                "field " + header.getSimpleName() + " " + code(header) + " " + name + " " + rest));
        } catch (ClassNotFoundException | NoClassDefFoundError missing) {
            System.err.println(missing);
        }
    }

    private static boolean isRequired(Field field) {
        for (Annotation annotation : field.getAnnotations()) {
            if (annotation.annotationType().getSimpleName().equals("CFNotNull")) {
                return true;
            }
        }
        return false;
    }

    private static int code(Class<?> header) {
        for (Annotation annotation : header.getAnnotations()) {
            if (annotation.annotationType().getSimpleName().equals("RocketMQAction")) {
                try {
                    return (int) annotation.annotationType().getMethod("value").invoke(annotation);
                } catch (ReflectiveOperationException cause) {
                    throw new IllegalStateException(cause);
                }
            }
        }
        return 0;
    }
}
