import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.DynamicConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * What Kafka knows about settings, one JSON object per line.
 *
 *   Settings            every setting of a broker, a topic, a group, a metrics subscription
 *   Settings try        reads lines "kind name value" (by tabs) and says what that kind's definition makes of them
 */
public class Settings {
    static final Map<String, ConfigDef> KINDS = new TreeMap<>(Map.of(
        "broker", AbstractKafkaConfig.CONFIG_DEF,
        "topic", LogConfig.configDefCopy(),
        "group", GroupConfig.CONFIG_DEF,
        "client-metrics", ClientMetricsConfigs.configDef()));

    public static void main(String[] args) throws Exception {
        if (args.length > 0 && args[0].equals("try")) {
            attempt();
        } else {
            list();
        }
    }

    static void list() {
        Map<String, String> modes = DynamicBrokerConfig.dynamicConfigUpdateModes();
        Map<String, ConfigDef.ConfigKey> onlyDynamic = new TreeMap<>(DynamicConfig.Broker.configKeys());
        onlyDynamic.keySet().removeAll(KINDS.get("broker").names());
        Map<String, Map<String, ConfigDef.ConfigKey>> all = new TreeMap<>(Map.of("only-dynamic", onlyDynamic));
        KINDS.forEach((kind, definitions) -> all.put(kind, new TreeMap<>(definitions.configKeys())));
        all.forEach((kind, keys) -> keys.forEach((name, key) ->
            System.out.println("{\"kind\":" + json(kind)
                + ",\"name\":" + json(name)
                + ",\"type\":" + json(key.type.name())
                + ",\"required\":" + !key.hasDefault()
                + ",\"default\":" + json(key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null)
                + ",\"validator\":" + json(key.validator == null ? null : key.validator.toString())
                + ",\"internal\":" + key.internalConfig
                + ",\"mode\":" + json(modes.getOrDefault(name, "read-only"))
                + ",\"synonyms\":" + json(synonyms(kind, name))
                + "}")));
    }

    static List<String> synonyms(String kind, String name) {
        switch (kind) {
            case "topic":
                return ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.getOrDefault(name, List.of()).stream()
                    .map(ConfigSynonym::name).collect(Collectors.toList());
            case "group":
                return GroupConfig.brokerSynonym(name).stream().collect(Collectors.toList());
            case "client-metrics":
                return List.of();
            default:
                return DynamicBrokerConfig.brokerConfigSynonyms(name, true);
        }
    }

    static void attempt() throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] parts = line.split("\t", -1);
            ConfigDef.ConfigKey key = KINDS.get(parts[0]).configKeys().get(parts[1]);
            try {
                Object value = new ConfigDef().define(key).parse(Map.of(parts[1], parts[2])).get(parts[1]);
                System.out.println("{\"text\":" + json(ConfigDef.convertToString(value, key.type)) + "}");
            } catch (ConfigException refused) {
                System.out.println("{\"refused\":" + json(refused.getMessage()) + "}");
            }
        }
    }

    static String json(Object value) {
        if (value == null) {
            return "null";
        }
        if (value instanceof Collection) {
            return ((Collection<?>) value).stream().map(Settings::json).collect(Collectors.joining(",", "[", "]"));
        }
        StringBuilder text = new StringBuilder("\"");
        for (char c : value.toString().toCharArray()) {
            text.append(c < ' ' || c == '"' || c == '\\' || c > '~' ? String.format("\\u%04x", (int) c) : c);
        }
        return text.append('"').toString();
    }
}
