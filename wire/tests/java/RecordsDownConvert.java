import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.utils.Time;

/**
 * What kafka-clients 3.9 makes of batches for older consumers (4.0 dropped it).  Reads lines of magic, first offset and batches in
 * hexadecimal; answers each with the message sets.
 */
public class RecordsDownConvert {
    public static void main(String[] args) throws Exception {
        HexFormat hex = HexFormat.of();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            try {
                MemoryRecords batches = MemoryRecords.readableRecords(ByteBuffer.wrap(hex.parseHex(words[2])));
                ByteBuffer sets = ((MemoryRecords) batches.downConvert(Byte.parseByte(words[0]), Long.parseLong(words[1]), Time.SYSTEM).records()).buffer();
                byte[] copy = new byte[sets.remaining()];
                sets.get(copy);
                System.out.println(hex.formatHex(copy));
            } catch (Exception refused) {
                System.out.println("refused " + refused);
            }
        }
    }
}
