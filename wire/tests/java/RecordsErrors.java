import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Every error code of kafka-clients: number, name, whether it is worth another try. */
public class RecordsErrors {
    public static void main(String[] args) {
        for (Errors error : Errors.values())
            System.out.println(error.code() + " " + error.name() + " " + (error.exception() instanceof RetriableException));
    }
}
