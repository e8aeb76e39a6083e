import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Java's kafka-clients, 2.8 to 4.4, by the rules of program.py: jobs come in as lines, answers go out as JSON. */
public class Client {
    final Map<String, Object> common = new HashMap<>();
    Admin admin;
    KafkaConsumer<byte[], byte[]> member;

    public static void main(String[] args) throws Exception {
        Client client = new Client();
        client.common.put("bootstrap.servers", args[0]);
        client.common.putAll(pairs(args));
        var input = new BufferedReader(new InputStreamReader(System.in), 1 << 20);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            Object answer;
            try {
                answer = client.act(words[0], pairs(words));
            } catch (Throwable problem) {  // whatever a client can throw is an answer here
                answer = Map.of("error", problem.toString() + " " + problem.getCause());
            }
            System.out.println(json(answer));
            System.out.flush();
        }
        System.exit(0);
    }

    static Map<String, String> pairs(String[] words) {
        Map<String, String> found = new LinkedHashMap<>();
        for (int i = 1; i < words.length; i++) {
            int middle = words[i].indexOf('=');
            found.put(words[i].substring(0, middle), words[i].substring(middle + 1));
        }
        return found;
    }

    Map<String, ?> act(String verb, Map<String, String> given) throws Exception {
        String topic = given.get("topic"), group = given.get("group");
        int partition = Integer.parseInt(given.getOrDefault("partition", "0"));
        switch (verb) {
            case "version": {
                var about = new Properties();
                about.load(Admin.class.getResourceAsStream("/kafka/kafka-version.properties"));
                return Map.of("version", about.getProperty("version"));
            }
            case "produce": return produce(topic, partition, given);
            case "consume": return consume(new TopicPartition(topic, partition), given);
            case "position": return position(new TopicPartition(topic, partition), given.get("at"));
            case "transact": return transact(topic, given);
            case "join": return join(topic, group, given.getOrDefault("protocol", "classic"));
            case "poll": return poll(Double.parseDouble(given.get("seconds")));
            case "commit": member.commitSync(); return Map.of();
            case "leave": member.close(); return Map.of();
            default: return administer(verb, topic, group, partition, given);
        }
    }

    // -- writing and reading ----------------------------------------------------------------------

    Map<String, ?> produce(String topic, int partition, Map<String, String> given) throws Exception {
        var settings = new HashMap<>(common);
        settings.put("compression.type", given.getOrDefault("codec", "none"));
        settings.put("acks", given.getOrDefault("acks", "all"));
        settings.put("enable.idempotence", given.getOrDefault("idempotent", "false"));
        settings.put("max.request.size", 20 << 20);
        settings.put("linger.ms", 5);
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            return Map.of("offsets", send(producer, topic, partition, given));
        }
    }

    static List<Long> send(
        KafkaProducer<byte[], byte[]> producer, String topic, int partition, Map<String, String> given
    ) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        String[] records = given.get("records").split(";");
        String first = given.get("timestamp");
        for (int i = 0; i < records.length; i++) {
            String[] words = records[i].split(",", -1);
            Long stamp = first == null ? null : Long.valueOf(Long.parseLong(first) + 1000L * i);
            var record = new ProducerRecord<>(topic, partition, stamp, bytes(words[0]), bytes(words[1]));
            for (int j = 2; j < words.length; j += 2)
                record.headers().add(new String(bytes(words[j]), "UTF-8"), bytes(words[j + 1]));
            sent.add(producer.send(record));
        }
        producer.flush();
        List<Long> offsets = new ArrayList<>();
        for (var each : sent) offsets.add(each.get().offset());
        return offsets;
    }

    Map<String, ?> consume(TopicPartition place, Map<String, String> given) {
        int count = Integer.parseInt(given.get("count"));
        List<Object> found = new ArrayList<>();
        long deadline = System.currentTimeMillis() + 15_000;
        try (var consumer = consumer(Map.of("isolation.level", given.getOrDefault("isolation", "read_uncommitted")))) {
            consumer.assign(List.of(place));
            consumer.seek(place, Long.parseLong(given.getOrDefault("start", "0")));
            while (found.size() < count && System.currentTimeMillis() < deadline)
                for (var each : consumer.poll(Duration.ofMillis(200)))
                    if (found.size() < count) found.add(told(each));
        }
        return Map.of("records", found);
    }

    static Map<String, ?> told(ConsumerRecord<byte[], byte[]> record) {
        List<Object> headers = new ArrayList<>();
        for (Header each : record.headers()) headers.add(list(each.key(), hex(each.value())));
        Map<String, Object> told = new HashMap<>();
        told.put("offset", record.offset());
        told.put("timestamp", record.timestamp());
        told.put("key", hex(record.key()));
        told.put("value", hex(record.value()));
        told.put("headers", headers);
        return told;
    }

    Map<String, ?> position(TopicPartition place, String at) {
        try (var consumer = consumer(Map.of())) {
            consumer.assign(List.of(place));
            if (at.equals("earliest")) consumer.seekToBeginning(List.of(place));
            else if (at.equals("latest")) consumer.seekToEnd(List.of(place));
            else consumer.seek(place, consumer.offsetsForTimes(Map.of(place, Long.parseLong(at))).get(place).offset());
            return Map.of("position", consumer.position(place));
        }
    }

    KafkaConsumer<byte[], byte[]> consumer(Map<String, ?> more) {
        var settings = new HashMap<>(common);
        settings.put("enable.auto.commit", false);
        settings.put("max.partition.fetch.bytes", 20 << 20);
        settings.putAll(more);
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    Map<String, ?> transact(String topic, Map<String, String> given) throws Exception {
        var settings = new HashMap<>(common);
        settings.put("transactional.id", given.get("name"));
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            send(producer, topic, 0, given);
            if (given.get("end").equals("commit")) producer.commitTransaction();
            else producer.abortTransaction();
        }
        return Map.of();
    }

    // -- a member of a group ----------------------------------------------------------------------

    Map<String, ?> join(String topic, String group, String protocol) {
        Map<String, Object> settings = new HashMap<>(Map.of("group.id", group, "auto.offset.reset", "earliest"));
        if (protocol.equals("classic"))
            settings.putAll(Map.of("session.timeout.ms", 6000, "heartbeat.interval.ms", 500));
        else settings.put("group.protocol", protocol);
        member = consumer(settings);
        member.subscribe(List.of(topic));
        return Map.of();
    }

    Map<String, ?> poll(double seconds) {
        List<String> values = new ArrayList<>();
        long deadline = System.currentTimeMillis() + (long) (seconds * 1000);
        while (values.isEmpty() && System.currentTimeMillis() < deadline)
            for (var each : member.poll(Duration.ofMillis(100))) values.add(hex(each.value()));
        var partitions = member.assignment().stream().map(TopicPartition::partition).sorted();
        return Map.of("assignment", partitions.collect(Collectors.toList()), "values", values);
    }

    // -- administration ---------------------------------------------------------------------------

    Map<String, ?> administer(String verb, String topic, String group, int partition, Map<String, String> given)
        throws Exception {
        if (admin == null) admin = Admin.create(common);
        var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic == null ? "" : topic);
        switch (verb) {
            case "create": {
                var wish = new NewTopic(topic, Integer.parseInt(given.getOrDefault("partitions", "1")), (short) 1);
                var configs = new HashMap<>(given);
                configs.keySet().removeAll(Set.of("topic", "partitions"));
                admin.createTopics(List.of(wish.configs(configs))).all().get();
                return Map.of();
            }
            case "delete":
                admin.deleteTopics(List.of(topic)).all().get();
                return Map.of();
            case "grow": {
                var wish = NewPartitions.increaseTo(Integer.parseInt(given.get("partitions")));
                admin.createPartitions(Map.of(topic, wish)).all().get();
                return Map.of();
            }
            case "topics":
                return Map.of("topics", new TreeSet<>(admin.listTopics().names().get()));
            case "describe":
                try (var consumer = consumer(Map.of())) {
                    var partitions = consumer.partitionsFor(topic).stream().map(each -> each.partition()).sorted();
                    return Map.of("partitions", partitions.collect(Collectors.toList()));
                }
            case "configs": {
                var described = admin.describeConfigs(List.of(resource)).all().get().get(resource);
                return Map.of("value", described.get(given.get("name")).value());
            }
            case "alter": {
                var entry = new ConfigEntry(given.get("name"), given.get("value"));
                var wish = List.of(new AlterConfigOp(entry, AlterConfigOp.OpType.SET));
                admin.incrementalAlterConfigs(Map.of(resource, wish)).all().get();
                return Map.of();
            }
            case "groups": {
                var names = admin.listConsumerGroups().all().get().stream().map(each -> each.groupId());
                return Map.of("groups", names.sorted().collect(Collectors.toList()));
            }
            case "describe-group": {
                var described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
                return Map.of("state", described.state().toString(), "members", described.members().size());
            }
            case "group-offsets": {
                Map<String, Long> offsets = new TreeMap<>();
                admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
                    .forEach((place, offset) -> offsets.put("" + place.partition(), offset.offset()));
                return Map.of("offsets", offsets);
            }
            case "delete-group":
                admin.deleteConsumerGroups(List.of(group)).all().get();
                return Map.of();
            case "delete-records": {
                var place = new TopicPartition(topic, partition);
                var wish = Map.of(place, RecordsToDelete.beforeOffset(Long.parseLong(given.get("offset"))));
                return Map.of("low_watermark", admin.deleteRecords(wish).lowWatermarks().get(place).get().lowWatermark());
            }
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    // -- words ------------------------------------------------------------------------------------

    static byte[] bytes(String word) {
        return word.equals("-") ? null : HexFormat.of().parseHex(word);
    }

    static String hex(byte[] data) {
        return data == null ? null : HexFormat.of().formatHex(data);
    }

    static List<Object> list(Object first, Object second) {
        List<Object> pair = new ArrayList<>();  // List.of takes no null
        pair.add(first);
        pair.add(second);
        return pair;
    }

    static String json(Object value) {
        if (value instanceof Map<?, ?> map)
            return map.entrySet().stream().map(each -> json(each.getKey()) + ":" + json(each.getValue()))
                .collect(Collectors.joining(",", "{", "}"));
        if (value instanceof Iterable<?> items) {
            List<String> words = new ArrayList<>();
            items.forEach(each -> words.add(json(each)));
            return "[" + String.join(",", words) + "]";
        }
        if (value instanceof String text) {
            var quoted = new StringBuilder("\"");
            for (char each : text.toCharArray())
                quoted.append(each == '"' || each == '\\' || each < ' ' ? String.format("\\u%04x", (int) each) : each);
            return quoted.append('"').toString();
        }
        return String.valueOf(value);
    }
}
