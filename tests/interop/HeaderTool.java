import java.io.PrintStream;
import java.lang.annotation.Annotation;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.Scanner;
import java.util.TreeMap;
import java.util.jar.JarFile;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;
import org.apache.rocketmq.remoting.protocol.SerializeType;

/**
 * Tells what Apache RocketMQ's own classes say of the protocol, those of 4.x or of 5.x.
 *
 * <p>Prints lines of words: `request NAME CODE`, `response NAME CODE`, `version NAME NUMBER`, and
 * for each header class `header CLASS` and its fields, `field CLASS CODE NAME TYPE
 * required|optional`; the code is 0 where the class says none; `end` after all. Then it answers each
 * line of its input with one of words; texts and bytes are in hex with `x` before them, `-` is none:
 *
 * <ul>
 *   <li>`encode KIND CODE OPAQUE FLAG REMARK BODY [NAME VALUE]...`: `encoded FRAME`
 *   <li>`decode FRAME`: `decoded KIND CODE OPAQUE FLAG VERSION LANGUAGE REMARK BODY [NAME VALUE]...`
 *   <li>`body CLASS BYTES`: `body BYTES`, read and written again, or `-` without such a class
 *   <li>`decompress BYTES` and `compress BYTES`: `body BYTES`, a registration
 * </ul>
 *
 * <p>Run from its source: `java -cp ... HeaderTool.java`. protocol_tool.py is the only caller.
 */
public final class HeaderTool {
    private static final PrintStream OUTPUT = System.out;
    private static final String[] PACKAGES = {
        "remoting.protocol.", "common.protocol.", "common.", "broker.", "store.",
    };
    private static final String[] SUBJECTS = {
        "", "body.", "heartbeat.", "route.", "header.", "admin.", "subscription.", "message.",
        "schedule.", "timer.",
    };

    public static void main(String[] arguments) throws Exception {
        System.setOut(System.err); // loggers of 4.x write there
        printCodes("request", find("RequestCode"));
        printCodes("response", find("RemotingSysResponseCode"));
        printCodes("response", find("ResponseCode"));
        for (MQVersion.Version version : MQVersion.Version.values()) {
            OUTPUT.println("version " + version.name() + " " + version.ordinal());
        }
        String codes = find("RequestCode").getName().replace('.', '/');
        String headers = codes.substring(0, codes.lastIndexOf('/')) + "/header/";
        String jar = find("RequestCode").getProtectionDomain().getCodeSource().getLocation().getPath();
        try (JarFile file = new JarFile(jar)) {
            file.stream().map(entry -> entry.getName())
                .filter(name -> name.startsWith(headers) && name.matches(".*Header(V2)?[.]class"))
                .sorted().forEach(HeaderTool::printFields);
        }
        OUTPUT.println("end");
        Scanner input = new Scanner(System.in, StandardCharsets.UTF_8);
        while (input.hasNextLine()) {
            OUTPUT.println(answer(input.nextLine().split(" ")));
        }
    }

    private static Class<?> find(String name) throws ClassNotFoundException {
        for (String prefix : PACKAGES) {
            for (String subject : SUBJECTS) {
                try {
                    return Class.forName("org.apache.rocketmq." + prefix + subject + name);
                } catch (ClassNotFoundException | NoClassDefFoundError missing) {
                    continue;
                }
            }
        }
        throw new ClassNotFoundException(name);
    }

    // --- codes and fields ---------------------------------------------------------------------

    private static void printCodes(String kind, Class<?> codes) throws Exception {
        for (Field field : codes.getDeclaredFields()) {
            if (field.getType() == int.class && Modifier.isStatic(field.getModifiers())) {
                OUTPUT.println(kind + " " + field.getName() + " " + field.getInt(null));
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
            OUTPUT.println("header " + header.getSimpleName());
            lines.forEach((name, rest) -> OUTPUT.println(
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

    // --- frames and bodies --------------------------------------------------------------------

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "encode":
                return "encoded " + hex(encoded(words));
            case "decode":
                byte[] frame = bytes(words[1]);
                return decoded(RemotingCommand.decode(ByteBuffer.wrap(frame, 4, frame.length - 4)));
            case "body":
                return "body " + again(words[1], bytes(words[2]));
            default:
                return "body " + hex(registered(words[0].equals("compress"), bytes(words[1])));
        }
    }

    private static String again(String name, byte[] data) {
        try {
            Object body = RemotingSerializable.decode(data, find(name));
            return hex(RemotingSerializable.encode(body));
        } catch (ClassNotFoundException missing) {
            return "-";
        }
    }

    private static byte[] encoded(String[] words) {
        RemotingCommand command =
            RemotingCommand.createRequestCommand(Integer.parseInt(words[2]), null);
        command.setSerializeTypeCurrentRPC(SerializeType.valueOf(words[1]));
        command.setOpaque(Integer.parseInt(words[3]));
        command.setFlag(Integer.parseInt(words[4]));
        command.setRemark(words[5].equals("-") ? null : text(words[5]));
        command.setBody(words[6].equals("-") ? null : bytes(words[6]));
        HashMap<String, String> fields = new HashMap<>();
        for (int at = 7; at < words.length; at += 2) {
            fields.put(text(words[at]), text(words[at + 1]));
        }
        command.setExtFields(fields);
        ByteBuffer frame = command.encode();
        byte[] data = new byte[frame.remaining()];
        frame.get(data);
        return data;
    }

    private static String decoded(RemotingCommand command) {
        StringBuilder line = new StringBuilder("decoded ");
        line.append(command.getSerializeTypeCurrentRPC()).append(' ').append(command.getCode());
        line.append(' ').append(command.getOpaque()).append(' ').append(command.getFlag());
        line.append(' ').append(command.getVersion()).append(' ').append(command.getLanguage());
        line.append(' ').append(hex(command.getRemark()));
        line.append(' ').append(command.getBody() == null ? "-" : hex(command.getBody()));
        Map<String, String> fields = command.getExtFields();
        if (fields != null) {
            new TreeMap<>(fields).forEach((name, value) ->
                line.append(' ').append(hex(name)).append(' ').append(hex(value)));
        }
        return line.toString();
    }

    /** Returns a registration, read in one form and written in the other. */
    private static byte[] registered(boolean compresses, byte[] data) throws Exception {
        Class<?> kind = find("RegisterBrokerBody");
        Object body = null;
        for (Method method : kind.getMethods()) {
            if (method.getName().equals("decode") && method.getReturnType() == kind) {
                body = method.getParameterCount() == 3
                    ? method.invoke(null, data, !compresses, MQVersion.Version.V5_0_0)
                    : method.invoke(null, data, !compresses);
            }
        }
        return (byte[]) kind.getMethod("encode", boolean.class).invoke(body, compresses);
    }

    private static String hex(String text) {
        return text == null ? "-" : hex(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String hex(byte[] data) {
        return "x" + HexFormat.of().formatHex(data);
    }

    private static byte[] bytes(String hex) {
        return HexFormat.of().parseHex(hex.substring(1));
    }

    private static String text(String hex) {
        return new String(bytes(hex), StandardCharsets.UTF_8);
    }
}
