import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * One transactional producer, led by the hand: a verb a line, answered by a line.  "ok", or the names of the exception and
 * its causes.  Arguments: bootstrap, transactional id, timeout in milliseconds.
 */
@SuppressWarnings("removal")
public class Transactions {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("transactional.id", args[1]);
        settings.put("transaction.timeout.ms", args[2]);
        settings.put("max.block.ms", "20000");
        settings.put("delivery.timeout.ms", "20000");
        settings.put("request.timeout.ms", "10000");
        settings.put("linger.ms", "0");
        var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            try {
                obey(producer, line.split(" "));
                System.out.println("ok");
            } catch (Throwable problem) {
                StringBuilder names = new StringBuilder();
                for (Throwable each = problem; each != null; each = each.getCause())
                    names.append(each.getClass().getSimpleName()).append(' ');
                System.out.println(names.toString().trim());
            }
            System.out.flush();
        }
        producer.close();
    }

    static void obey(KafkaProducer<String, String> producer, String[] words) throws Exception {
        switch (words[0]) {
            case "init" -> producer.initTransactions();
            case "begin" -> producer.beginTransaction();
            case "send" -> producer.send(new ProducerRecord<>(words[1], Integer.parseInt(words[2]), null, words[3])).get();
            case "offset" -> producer.sendOffsetsToTransaction(
                Map.of(new TopicPartition(words[2], Integer.parseInt(words[3])),
                    new OffsetAndMetadata(Long.parseLong(words[4]))),
                new ConsumerGroupMetadata(words[1]));
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "many" -> many(producer, words[1], Integer.parseInt(words[2]));
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    /** So many transactions of one record each: for figures. */
    static void many(KafkaProducer<String, String> producer, String topic, int count) {
        for (int i = 0; i < count; i++) {
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, null, "many" + i));
            producer.commitTransaction();
        }
    }
}
