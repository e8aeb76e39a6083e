import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.ByteBufferOutputStream;

/**
 * What kafka-clients 4.4.0 makes of records.  Reads commands from standard input, one to a line, words apart by
 * blanks, bytes in hexadecimal ("-" for null); answers each on a line.
 *
 *   write   a batch, or a message set of magic 0 or 1: its header's words, then its records  -> bytes
 *   read    bytes -> every batch and record in words
 *   keep    what compaction leaves of a batch if it keeps the records at these offsets       -> bytes
 *   marker  the end of a transaction                                                         -> bytes
 *
 * A record is offset/timestamp/key/value, followed by /name=value for every header.
 */
public class RecordsOracle {
    static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            out.append(answer(words)).append('\n');
        }
        System.out.print(out);
    }

    static String answer(String[] words) {
        try {
            return switch (words[0]) {
                case "write" -> write(words);
                case "read" -> read(words[1]);
                case "keep" -> keep(words);
                case "marker" -> marker(words);
                default -> throw new IllegalArgumentException(words[0]);
            };
        } catch (Throwable refused) { // hostile bytes make Kafka run out of memory, among other things
            return "refused " + refused;
        }
    }

    static byte[] bytes(String hex) {
        return hex.equals("-") ? null : HEX.parseHex(hex);
    }

    static String hex(ByteBuffer buffer) {
        if (buffer == null)
            return "-";
        byte[] copy = new byte[buffer.remaining()];
        buffer.duplicate().get(copy);
        return HEX.formatHex(copy);
    }

    /** write magic codec logAppendTime|- baseOffset lastOffset|- producerId epoch sequence transactional leaderEpoch horizon|- record... */
    static String write(String[] words) {
        boolean stamped = !words[3].equals("-");
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            new ByteBufferOutputStream(1024), Byte.parseByte(words[1]),
            Compression.of(CompressionType.forId(Integer.parseInt(words[2]))).build(),
            stamped ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME,
            Long.parseLong(words[4]),
            stamped ? Long.parseLong(words[3]) : RecordBatch.NO_TIMESTAMP,
            Long.parseLong(words[6]), Short.parseShort(words[7]), Integer.parseInt(words[8]),
            words[9].equals("1"), false, Integer.parseInt(words[10]), Integer.MAX_VALUE,
            words[11].equals("-") ? RecordBatch.NO_TIMESTAMP : Long.parseLong(words[11]));
        for (String word : Arrays.copyOfRange(words, 12, words.length)) {
            String[] parts = word.split("/", -1);
            Header[] headers = Arrays.stream(parts).skip(4).map(header -> {
                String[] pair = header.split("=", -1);
                return new RecordHeader(new String(bytes(pair[0]), StandardCharsets.UTF_8), bytes(pair[1]));
            }).toArray(Header[]::new);
            builder.appendWithOffset(Long.parseLong(parts[0]), Long.parseLong(parts[1]), bytes(parts[2]), bytes(parts[3]), headers);
        }
        if (!words[5].equals("-"))
            builder.overrideLastOffset(Long.parseLong(words[5]));
        return hex(builder.build().buffer());
    }

    static String read(String hex) {
        List<String> words = new ArrayList<>();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes(hex))).batches()) {
            batch.ensureValid();
            if (batch.magic() == 2)
                words.add(String.join(",", "batch", "" + batch.baseOffset(), "" + batch.lastOffset(), "" + batch.compressionType().id,
                    "" + batch.timestampType().id, "" + batch.maxTimestamp(), "" + batch.producerId(), "" + batch.producerEpoch(),
                    "" + batch.baseSequence(), "" + batch.lastSequence(), "" + batch.isTransactional(), "" + batch.isControlBatch(),
                    "" + batch.partitionLeaderEpoch(), "" + batch.countOrNull(), "" + batch.deleteHorizonMs().orElse(-1)));
            else
                words.add(String.join(",", "set", "" + batch.magic(), "" + batch.lastOffset(), "" + batch.compressionType().id,
                    "" + batch.timestampType().id, "" + batch.maxTimestamp()));
            if (batch.isControlBatch())
                words.add("control," + ControlRecordType.parse(batch.iterator().next().key()));
            for (Record record : batch) {
                record.ensureValid();
                String headers = Arrays.stream(record.headers())
                    .map(header -> "/" + HEX.formatHex(header.key().getBytes(StandardCharsets.UTF_8)) + "="
                        + (header.value() == null ? "-" : HEX.formatHex(header.value())))
                    .collect(Collectors.joining());
                words.add(record.offset() + "/" + record.timestamp() + "/" + hex(record.key()) + "/" + hex(record.value()) + headers);
            }
        }
        return String.join(" ", words);
    }

    /** keep bytes horizon|- offset... */
    static String keep(String[] words) {
        Set<Long> offsets = Arrays.stream(words).skip(3).map(Long::valueOf).collect(Collectors.toSet());
        boolean horizon = !words[2].equals("-");
        ByteBuffer out = ByteBuffer.allocate(1 << 20);
        // A horizon is now plus the retention: with none of the one, the other is what was asked for.
        MemoryRecords.RecordFilter filter = new MemoryRecords.RecordFilter(horizon ? Long.parseLong(words[2]) : -1, 0) {
            @Override
            protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                return new BatchRetentionResult(BatchRetention.RETAIN_EMPTY, false);
            }

            @Override
            protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return offsets.contains(record.offset());
            }
        };
        MemoryRecords.readableRecords(ByteBuffer.wrap(bytes(words[1]))).filterTo(filter, out, BufferSupplier.NO_CACHING, Integer.MAX_VALUE);
        out.flip();
        return hex(out);
    }

    /** marker commit coordinatorEpoch producerId producerEpoch timestamp baseOffset leaderEpoch */
    static String marker(String[] words) {
        EndTransactionMarker marker = new EndTransactionMarker(
            words[1].equals("1") ? ControlRecordType.COMMIT : ControlRecordType.ABORT, Integer.parseInt(words[2]));
        return hex(MemoryRecords.withEndTransactionMarker(Long.parseLong(words[6]), Long.parseLong(words[5]), Integer.parseInt(words[7]),
            Long.parseLong(words[3]), Short.parseShort(words[4]), marker).buffer());
    }
}
