import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.zip.ZipFile;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.CompactArrayOf;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

/**
 * What Kafka itself writes: random samples of every message on the class path, in every version.
 *
 *     java -cp JARS Oracle.java SEED SAMPLES [NAME ...]
 *
 * prints SAMPLES lines `NAME VERSION HEX` for each version of each message (or of those named), and
 * nothing else; troubles go to stderr, and then the exit code is 1.  A line depends on the seed, the
 * name, the version and its number, not on what else was asked for.
 *
 * Chance fills the shape that Kafka's schema gives, Kafka's generated class reads this and writes it
 * again, and only what the class wrote is printed: it leaves out tagged fields that are at their
 * default.  Works with Kafka 3.9 and 4; where they differ, the comments say so.
 */
public class Oracle {
    /** A compact count takes one byte up to 126 elements: long arrays lie on both sides of that. */
    private static final int LONG_ARRAY = 126;

    /** One to four bytes long in UTF-8. */
    private static final int[] ALPHABET = {'a', 'z', '0', '-', '.', 0x7F, 0xE9, 0x7FF, 0x20AC, 0xFFFD, 0x1F600};

    /** After so many, a schema and its class are taken to disagree for good. */
    private static final int MOST_DRAWS = 100;

    private final SplittableRandom random;
    private final Class<? extends Message> generated;
    private final short version;
    private final Set<BoundField> nullableStructs;

    Oracle(long seed, String name, Class<? extends Message> generated, short version) throws Exception {
        this.random = new SplittableRandom(Objects.hash(seed, name, version));
        this.generated = generated;
        this.version = version;
        this.nullableStructs = nullableStructs(generated, version);
    }

    public static void main(String[] args) throws Exception {
        long seed = Long.parseLong(args[0]);
        int samples = Integer.parseInt(args[1]);
        List<String> asked = Arrays.asList(args).subList(2, args.length);
        Map<String, Class<? extends Message>> messages = messagesOnClassPath();
        boolean trouble = !messages.keySet().containsAll(asked);
        if (trouble) {
            System.err.println("not all on the class path: " + asked);
        }
        for (String name : messages.keySet()) {
            if (asked.isEmpty() || asked.contains(name)) {
                trouble |= !printSamples(seed, samples, name, messages.get(name));
            }
        }
        System.exit(trouble || System.out.checkError() ? 1 : 0);
    }

    private static boolean printSamples(long seed, int samples, String name, Class<? extends Message> generated)
            throws Exception {
        boolean good = true;
        short first = generated.getField("LOWEST_SUPPORTED_VERSION").getShort(null);
        short last = generated.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
        for (short version = first; version <= last; version++) {
            try {
                Oracle oracle = new Oracle(seed, name, generated, version);
                for (int sample = 0; sample < samples; sample++) {
                    System.out.println(name + " " + version + " " + HexFormat.of().formatHex(oracle.sample()));
                }
            } catch (Exception | AssertionError problem) {
                System.err.println(name + " " + version + ": " + problem);
                good = false;
            }
        }
        return good;
    }

    /**
     * A jar holds the definitions of its messages, and beside them the classes generated from those.
     * A definition without a class is that of a message without versions.
     */
    static Map<String, Class<? extends Message>> messagesOnClassPath() throws Exception {
        Map<String, Class<? extends Message>> found = new TreeMap<>();
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!path.endsWith(".jar")) {
                continue;
            }
            Set<String> names = new TreeSet<>();
            Map<String, String> classes = new HashMap<>();
            try (ZipFile jar = new ZipFile(path)) {
                jar.stream().map(entry -> new File(entry.getName())).forEach(file -> {
                    String folder = String.valueOf(file.getParent());
                    String stem = file.getName().split("\\.")[0];
                    if (folder.equals("common/message")) {
                        names.add(stem);
                    } else if (folder.endsWith("/message") || folder.endsWith("/generated")) {
                        classes.put(stem, folder.replace('/', '.') + "." + stem);
                    }
                });
            }
            for (String name : names) {
                String className = classes.getOrDefault(name, classes.get(name + "Data"));
                if (className != null) {
                    found.put(name, Class.forName(className).asSubclass(Message.class));
                }
            }
        }
        return found;
    }

    /** Bytes as Kafka writes them; the class that wrote them understands them, to the last byte. */
    byte[] sample() throws Exception {
        Message message = draw();
        byte[] bytes = write(message);
        Message again = read(bytes);
        check(message.equals(again), "what was written is read as another message");
        check(Arrays.equals(bytes, write(again)), "what was read is written as other bytes");
        return bytes;
    }

    /** Kafka 3's schemas let all records be null, its classes do not: draw until both are content. */
    private Message draw() throws Exception {
        for (int draws = 1; ; draws++) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            fill(schema(generated, version), new DataOutputStream(bytes));
            try {
                return read(bytes.toByteArray());
            } catch (RuntimeException refused) {
                boolean merelyNull = String.valueOf(refused.getMessage()).startsWith("non-nullable field");
                if (!merelyNull || draws == MOST_DRAWS) {
                    throw refused;
                }
            }
        }
    }

    private Message read(byte[] bytes) throws Exception {
        Message message = generated.getConstructor().newInstance();
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        message.read(new ByteBufferAccessor(buffer), version);
        check(!buffer.hasRemaining(), buffer.remaining() + " bytes were left unread");
        return message;
    }

    private byte[] write(Message message) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        check(!buffer.hasRemaining(), "the message is smaller than its size");
        return buffer.array();
    }

    private static void check(boolean fact, String otherwise) {
        if (!fact) {
            throw new AssertionError(otherwise);
        }
    }

    private void fill(Type type, DataOutputStream out) throws Exception {
        if (type instanceof Schema && type.isNullable()) {
            fillNullableStruct((Schema) type, -1, out);
        } else if (type instanceof Schema) {
            fillStruct((Schema) type, out);
        } else if (type instanceof TaggedFields) {
            fillTaggedFields((TaggedFields) type, out);
        } else if (type.isArray()) {
            fillArray(type, out);
        } else {
            put(type, type.isNullable() && oneIn(4) ? null : value(type), out);
        }
    }

    private void fillStruct(Schema struct, DataOutputStream out) throws Exception {
        for (BoundField field : struct.fields()) {
            if (nullableStructs.contains(field)) {
                fillNullableStruct((Schema) field.def.type, -1, out);
            } else {
                fill(field.def.type, out);
            }
        }
    }

    private void fillNullableStruct(Schema struct, int ifNull, DataOutputStream out) throws Exception {
        boolean isNull = oneIn(4);
        out.writeByte(isNull ? ifNull : 1);
        if (!isNull) {
            fillStruct(struct, out);
        }
    }

    private void fillTaggedFields(TaggedFields type, DataOutputStream out) throws Exception {
        Map<Integer, byte[]> present = new TreeMap<>();
        for (var field : fieldsByTag(type).entrySet()) {
            if (oneIn(2)) {
                ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                fillTaggedField(field.getValue().type, new DataOutputStream(bytes));
                present.put(field.getKey(), bytes.toByteArray());
            }
        }
        putVarint(present.size(), out);
        for (var field : present.entrySet()) {
            putVarint(field.getKey(), out);
            putVarint(field.getValue().length, out);
            out.write(field.getValue());
        }
    }

    /** Here a varint goes before a struct that may be null, whatever the schema says: null is 0, not -1. */
    private void fillTaggedField(Type type, DataOutputStream out) throws Exception {
        if (type instanceof Schema && type.isNullable()) {
            fillNullableStruct((Schema) type, 0, out);
        } else {
            fill(type, out);
        }
    }

    /** Kafka 3 has no accessor for them. */
    @SuppressWarnings("unchecked")
    private static Map<Integer, org.apache.kafka.common.protocol.types.Field> fieldsByTag(TaggedFields type)
            throws Exception {
        Field fields = TaggedFields.class.getDeclaredField("fields");
        fields.setAccessible(true);
        return (Map<Integer, org.apache.kafka.common.protocol.types.Field>) fields.get(type);
    }

    private void fillArray(Type array, DataOutputStream out) throws Exception {
        Type element = array.arrayElementType().get();
        int count = array.isNullable() && oneIn(4) ? -1 : count(element);
        if (array instanceof CompactArrayOf) {
            putVarint(count + 1, out);
        } else {
            out.writeInt(count);
        }
        for (int i = 0; i < count; i++) {
            fill(element, out);
        }
    }

    private int count(Type element) {
        boolean small = !(element instanceof Schema) && !element.toString().matches(".*(STRING|BYTES)");
        if (small && oneIn(8)) {
            return LONG_ARRAY + random.nextInt(8);
        }
        return oneIn(8) ? 0 : 1 + random.nextInt(3);
    }

    private static void put(Type type, Object value, DataOutputStream out) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(type.sizeOf(value));
        type.write(bytes, value);
        out.write(bytes.array());
    }

    private static void putVarint(int value, DataOutputStream out) throws IOException {
        for (; value > 0x7F; value >>>= 7) {
            out.writeByte(value | 0x80);
        }
        out.writeByte(value);
    }

    private Object value(Type type) {
        String name = type.toString().replace("COMPACT_", "").replace("NULLABLE_", "");
        switch (name) {
            case "BOOLEAN": return random.nextBoolean();
            case "INT8": return (byte) integer(Byte.SIZE);
            case "INT16": return (short) integer(Short.SIZE);
            case "UINT16": return (int) (integer(Short.SIZE) & 0xFFFFL);
            case "INT32": return (int) integer(Integer.SIZE);
            case "UINT32": return integer(Integer.SIZE) & 0xFFFFFFFFL;
            case "INT64": return integer(Long.SIZE);
            case "FLOAT64": return real();
            case "UUID": return oneIn(4) ? Uuid.ZERO_UUID : new Uuid(random.nextLong(), random.nextLong());
            case "STRING": return string();
            case "BYTES": return ByteBuffer.wrap(bytes());
            case "RECORDS": return records();
            default: throw new AssertionError("no values known for a " + type);
        }
    }

    /** A number of so many bits: half the time one near the edges. */
    private long integer(int bits) {
        long most = -1L >>> (Long.SIZE - bits + 1);
        long[] edges = {0, 1, -1, most, ~most};
        return oneIn(2) ? edges[random.nextInt(edges.length)] : random.nextLong() >> (Long.SIZE - bits);
    }

    /** Not NaN: it is not equal to itself. */
    private double real() {
        double[] edges = {0, -0.0, Double.MIN_VALUE, -Double.MAX_VALUE, Double.NEGATIVE_INFINITY};
        return oneIn(2) ? edges[random.nextInt(edges.length)] : random.nextGaussian() * 1e9;
    }

    private String string() {
        StringBuilder text = new StringBuilder();
        for (int left = length(); left > 0; left--) {
            text.appendCodePoint(ALPHABET[random.nextInt(ALPHABET.length)]);
        }
        return text.toString();
    }

    private byte[] bytes() {
        byte[] bytes = new byte[length()];
        random.nextBytes(bytes);
        return bytes;
    }

    /** Any bytes will do, nobody looks inside.  Their class cannot be named: Kafka 4 has moved it. */
    private Object records() {
        ByteBuffer bytes = ByteBuffer.wrap(bytes());
        return new ByteBufferAccessor(bytes).readRecords(bytes.remaining());
    }

    /** Mostly short; some about as long as one byte of a compact length can say, some longer. */
    private int length() {
        switch (random.nextInt(16)) {
            case 0: return 0;
            case 1: return 125 + random.nextInt(5);
            case 2: return random.nextInt(301);
            default: return 1 + random.nextInt(10);
        }
    }

    private boolean oneIn(int chances) {
        return random.nextInt(chances) == 0;
    }

    /**
     * The fields whose struct may be null, which a byte before it says: 1, or -1 for null.  Kafka 4's
     * schemas tell this, Kafka 3's forget it, the classes of both know: such a field is null from the start.
     */
    private static Set<BoundField> nullableStructs(Class<?> generated, short version) throws Exception {
        Set<BoundField> found = new HashSet<>();
        List<Class<?>> holders = new ArrayList<>(List.of(generated.getDeclaredClasses()));
        holders.add(generated);
        for (Class<?> holder : holders) {
            if (!Message.class.isAssignableFrom(holder) || schema(holder, version) == null) {
                continue;
            }
            Object fresh = holder.getConstructor().newInstance();
            for (Field field : holder.getDeclaredFields()) {
                field.setAccessible(true);
                if (Message.class.isAssignableFrom(field.getType()) && field.get(fresh) == null) {
                    String name = field.getName().replaceAll("([A-Z])", "_$1").toLowerCase(Locale.ROOT);
                    found.add(schema(holder, version).get(name));
                }
            }
        }
        return found;
    }

    /** Null where the struct is not a part of that version. */
    private static Schema schema(Class<?> struct, short version) throws Exception {
        Schema[] schemas = (Schema[]) struct.getField("SCHEMAS").get(null);
        return version < schemas.length ? schemas[version] : null;
    }
}
