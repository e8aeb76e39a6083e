import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Consume, transform, produce, exactly once: the twin of copy.py.
 * Arguments: bootstrap, name (of the group, the member and the transactional id), input, output, records in a transaction.
 * Says "started", then "committed" after every transaction, and ends when its group has committed the end of the input.
 */
public class Copy {
    public static void main(String[] args) throws Exception {
        Properties writing = new Properties();
        writing.put("bootstrap.servers", args[0]);
        writing.put("transactional.id", args[1]);
        writing.put("linger.ms", "0");
        Properties reading = new Properties();
        reading.put("bootstrap.servers", args[0]);
        reading.put("group.id", args[1]);
        reading.put("group.instance.id", args[1]);  // whoever comes after us is us: nobody waits for our session to end
        reading.put("session.timeout.ms", "6000");
        reading.put("isolation.level", "read_committed");
        reading.put("auto.offset.reset", "earliest");
        reading.put("enable.auto.commit", "false");
        reading.put("max.poll.records", args[4]);
        reading.put("fetch.max.wait.ms", "20");
        try (var producer = new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer());
             var consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
            say("started");
            producer.initTransactions();
            consumer.subscribe(List.of(args[2]));
            while (true) {
                var records = consumer.poll(Duration.ofMillis(100));
                if (records.isEmpty()) {
                    if (atTheEnd(consumer)) return;
                    continue;
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> places = new HashMap<>();
                for (var record : records) {
                    producer.send(new ProducerRecord<>(args[3], record.partition(), null, record.value().toUpperCase()));
                    places.put(new TopicPartition(record.topic(), record.partition()),
                        new OffsetAndMetadata(record.offset() + 1));
                }
                Thread.sleep(10);  // so that a kill finds us in each of the steps
                producer.sendOffsetsToTransaction(places, consumer.groupMetadata());
                Thread.sleep(10);
                producer.commitTransaction();
                say("committed");
            }
        }
    }

    static boolean atTheEnd(KafkaConsumer<String, String> consumer) {
        var ends = consumer.endOffsets(consumer.assignment());
        var places = consumer.committed(consumer.assignment());
        return !ends.isEmpty() && ends.entrySet().stream().allMatch(end ->
            places.get(end.getKey()) != null && places.get(end.getKey()).offset() == end.getValue());
    }

    static void say(String word) {
        System.out.println(word);
        System.out.flush();
    }
}
