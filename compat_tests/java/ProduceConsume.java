import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The Java client in two verbs; records are lines of words, "-" for null and "x" with hex digits for bytes. */
public class ProduceConsume {
    static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        if (args[0].equals("produce")) produce(args[1], args[2], args[3], args[4]);
        else consume(args[1], args[2], Integer.parseInt(args[3]));
    }

    static void produce(String bootstrap, String topic, String codec, String idempotent) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("compression.type", codec);
        settings.put("enable.idempotence", idempotent);
        settings.put("max.request.size", String.valueOf(20 << 20));
        settings.put("buffer.memory", String.valueOf(64 << 20));
        settings.put("linger.ms", "5");
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
             var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] words = line.split(" ");
                var record = new ProducerRecord<byte[], byte[]>(topic, 0, bytes(words[0]), bytes(words[1]));
                for (int i = 2; i < words.length; i += 2)
                    record.headers().add(new String(bytes(words[i]), StandardCharsets.UTF_8), bytes(words[i + 1]));
                sent.add(producer.send(record));
            }
            producer.flush();
            for (var each : sent) System.out.println(each.get().offset());
        }
    }

    static void consume(String bootstrap, String topic, int count) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("fetch.max.bytes", String.valueOf(60 << 20));
        var out = new StringBuilder();
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            var partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long until = System.nanoTime() + 60_000_000_000L;
            int seen = 0;
            while (seen < count && System.nanoTime() < until)
                for (var record : consumer.poll(Duration.ofSeconds(1)))
                    if (seen++ < count) out.append(line(record)).append('\n');
        }
        System.out.print(out);
    }

    static String line(ConsumerRecord<byte[], byte[]> record) {
        var words = new ArrayList<>(List.of(word(record.key()), word(record.value())));
        for (Header header : record.headers()) {
            words.add(word(header.key().getBytes(StandardCharsets.UTF_8)));
            words.add(word(header.value()));
        }
        return String.join(" ", words);
    }

    static byte[] bytes(String word) {
        return word.equals("-") ? null : HEX.parseHex(word.substring(1));
    }

    static String word(byte[] bytes) {
        return bytes == null ? "-" : "x" + HEX.formatHex(bytes);
    }
}
