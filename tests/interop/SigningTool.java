import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/**
 * Prints the signature that Apache's hook gives a request, for each line. Its words, all in Base64 ("-" is nothing):
 * access key, secret key, security token, body; then a name and a value for each field.
 */
public class SigningTool {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println("signature " + signature(line.split(" ")));
        }
    }

    private static String signature(String[] words) {
        SessionCredentials who = words[2].equals("-")
            ? new SessionCredentials(text(words[0]), text(words[1]))
            : new SessionCredentials(text(words[0]), text(words[1]), text(words[2]));
        RemotingCommand request = RemotingCommand.createRequestCommand(10, null);
        for (int at = 4; at < words.length; at += 2) {
            request.addExtField(text(words[at]), text(words[at + 1]));
        }
        if (!words[3].equals("-")) {
            request.setBody(Base64.getDecoder().decode(words[3]));
        }
        new AclClientRPCHook(who).doBeforeRequest("127.0.0.1:1", request);
        return request.getExtFields().get("Signature");
    }

    private static String text(String word) {
        return word.equals("-") ? "" : new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8);
    }
}
