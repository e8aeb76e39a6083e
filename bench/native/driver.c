/* librdkafka, driven from C: what a fast client can do to a broker, without an interpreter in between.
 *
 *     driver produce BOOTSTRAP TOPIC PARTITIONS COUNT BYTES [setting=value ...]     records as fast as they go
 *     driver consume BOOTSTRAP TOPIC PARTITIONS COUNT 0     [setting=value ...]     from the beginning
 *     driver acks    BOOTSTRAP TOPIC PARTITIONS COUNT BYTES [setting=value ...]     one in flight, and how long it takes
 *     driver tail    BOOTSTRAP TOPIC PARTITIONS COUNT BYTES rate=N [setting=...]    produced at a rate and consumed at once
 *
 * Linked with the library that confluent-kafka brings.  Its header is not there, so what is used of its stable interface is
 * declared here.  Each verb prints one JSON object.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>

typedef struct rd_kafka rd_kafka_t;
typedef struct rd_kafka_conf rd_kafka_conf_t;
typedef struct rd_kafka_topic rd_kafka_topic_t;
typedef struct rd_kafka_queue rd_kafka_queue_t;
typedef struct rd_kafka_list rd_kafka_list_t;
typedef struct {
    int err;
    rd_kafka_topic_t *topic;
    int32_t partition;
    void *payload;
    size_t size;
    void *key;
    size_t key_size;
    int64_t offset;
    void *opaque;
} rd_kafka_message_t;

extern rd_kafka_conf_t *rd_kafka_conf_new(void);
extern int rd_kafka_conf_set(rd_kafka_conf_t *, const char *, const char *, char *, size_t);
extern void rd_kafka_conf_set_dr_msg_cb(rd_kafka_conf_t *, void (*)(rd_kafka_t *, const rd_kafka_message_t *, void *));
extern rd_kafka_t *rd_kafka_new(int, rd_kafka_conf_t *, char *, size_t);
extern rd_kafka_topic_t *rd_kafka_topic_new(rd_kafka_t *, const char *, void *);
extern int rd_kafka_produce(rd_kafka_topic_t *, int32_t, int, void *, size_t, const void *, size_t, void *);
extern int rd_kafka_poll(rd_kafka_t *, int);
extern int rd_kafka_flush(rd_kafka_t *, int);
extern int rd_kafka_last_error(void);
extern const char *rd_kafka_err2str(int);
extern rd_kafka_list_t *rd_kafka_topic_partition_list_new(int);
extern void *rd_kafka_topic_partition_list_add(rd_kafka_list_t *, const char *, int32_t);
extern int rd_kafka_topic_partition_list_set_offset(rd_kafka_list_t *, const char *, int32_t, int64_t);
extern int rd_kafka_assign(rd_kafka_t *, const rd_kafka_list_t *);
extern rd_kafka_queue_t *rd_kafka_queue_get_consumer(rd_kafka_t *);
extern ssize_t rd_kafka_consume_batch_queue(rd_kafka_queue_t *, int, rd_kafka_message_t **, size_t);
extern rd_kafka_message_t *rd_kafka_consume_queue(rd_kafka_queue_t *, int);
extern void rd_kafka_message_destroy(rd_kafka_message_t *);
extern int rd_kafka_poll_set_consumer(rd_kafka_t *);

enum { PRODUCER = 0, CONSUMER = 1, QUEUE_FULL = -184, PARTITION_EOF = -191, BEGINNING = -2, END = -1, BATCH = 4096 };
enum { GIVE_UP_SECONDS = 120, WARM = 200, KEPT_BYTES = 1 << 30, TOP_BYTES = 16 << 20 };

static const char *bootstrap, *topic;
static int partitions, settings_count;
static long count, bytes;
static char **settings;
static double rate;
static volatile long delivered, failed;
static float *took;
static long tooks;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void die(const char *what) {
    fprintf(stderr, "driver: %s\n", what);
    exit(1);
}

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client, (void)opaque;
    if (message->err) {
        if (!failed++) fprintf(stderr, "driver: %s\n", rd_kafka_err2str(message->err));
    } else
        delivered++;
}

static rd_kafka_t *client(int kind) {
    char why[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, why, sizeof why);
    rd_kafka_conf_set(conf, "broker.address.family", "v4", why, sizeof why);
    if (kind == CONSUMER) {
        rd_kafka_conf_set(conf, "group.id", "bench", why, sizeof why);
        rd_kafka_conf_set(conf, "enable.auto.commit", "false", why, sizeof why);
        rd_kafka_conf_set(conf, "fetch.wait.max.ms", "100", why, sizeof why);
        rd_kafka_conf_set(conf, "queued.max.messages.kbytes", "1048576", why, sizeof why);
    } else {
        rd_kafka_conf_set(conf, "queue.buffering.max.messages", "1000000", why, sizeof why);
        rd_kafka_conf_set(conf, "queue.buffering.max.kbytes", "131072", why, sizeof why);
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    }
    for (int i = 0; i < settings_count; i++) {
        char *name = strdup(settings[i]), *value = strchr(name, '=');
        if (!value) die("settings are name=value");
        *value++ = 0;
        if (!strcmp(name, "rate")) rate = atof(value);
        else if (rd_kafka_conf_set(conf, name, value, why, sizeof why)) die(why);
        free(name);
    }
    rd_kafka_t *made = rd_kafka_new(kind, conf, why, sizeof why);
    if (!made) die(why);
    return made;
}

static char *payload(void) {
    /* Half noise, half words, as records may be: it can be compressed, but not to nothing. */
    char *made = malloc(bytes);
    static const char words[] = "{\"customer\": \"Ada Lovelace\", \"city\": \"London\", \"amount\": 1815.12} ";
    unsigned seed = 1815;
    for (long i = 0; i < bytes; i++)
        made[i] = (i / 64) % 2 ? words[i % (sizeof words - 1)] : (char)(seed = seed * 1664525u + 1013904223u, seed >> 24);
    return made;
}

static void send_one(rd_kafka_t *producer, rd_kafka_topic_t *to, int32_t partition, char *data) {
    while (rd_kafka_produce(to, partition, 0, data, bytes, NULL, 0, NULL)) {
        if (rd_kafka_last_error() != QUEUE_FULL) die(rd_kafka_err2str(rd_kafka_last_error()));
        rd_kafka_poll(producer, 10);
    }
}

static void settle(rd_kafka_t *producer, long wanted) {
    double until = now() + GIVE_UP_SECONDS;
    while (delivered < wanted) {
        rd_kafka_poll(producer, 100);
        if (failed) die("records were not delivered");
        if (now() > until) die("the broker takes too long");
    }
}

static double client_cpu(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static int by_size(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static void print_times(const char *more) {
    qsort(took, tooks, sizeof *took, by_size);
    printf("{\"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, \"count\": %ld%s}\n", took[tooks / 2],
           took[(long)(tooks * 0.99)], took[(long)(tooks * 0.999)], tooks, more);
}

static void produce(void) {
    rd_kafka_t *producer = client(PRODUCER);
    rd_kafka_topic_t *to = rd_kafka_topic_new(producer, topic, NULL);
    char *data = payload();
    for (int i = 0; i < partitions; i++) send_one(producer, to, i, data);
    settle(producer, partitions);
    double begin = now();
    for (long i = 0; i < count; i++) {
        send_one(producer, to, i % partitions, data);
        if (i % 1000 == 0) rd_kafka_poll(producer, 0);
    }
    settle(producer, partitions + count);
    double seconds = now() - begin;
    printf("{\"seconds\": %.4f, \"records\": %ld, \"client_cpu\": %.3f}\n", seconds, count, client_cpu());
}

static rd_kafka_t *reader(int64_t from) {
    rd_kafka_t *consumer = client(CONSUMER);
    rd_kafka_poll_set_consumer(consumer);
    rd_kafka_list_t *list = rd_kafka_topic_partition_list_new(partitions);
    for (int i = 0; i < partitions; i++) {
        rd_kafka_topic_partition_list_add(list, topic, i);
        rd_kafka_topic_partition_list_set_offset(list, topic, i, from);
    }
    if (rd_kafka_assign(consumer, list)) die("assign");
    return consumer;
}

static void consume(void) {
    rd_kafka_t *consumer = reader(BEGINNING);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(consumer);
    static rd_kafka_message_t *batch[BATCH];
    long got = 0, first = 0, size = 0;
    double begin = 0, until = now() + GIVE_UP_SECONDS;
    while (got < count) {
        /* It waits for a full batch, so at the end no more is asked for than there is. */
        ssize_t found = rd_kafka_consume_batch_queue(queue, 100, batch, count - got < BATCH ? count - got : BATCH);
        for (ssize_t i = 0; i < found; i++) {
            if (batch[i]->err && batch[i]->err != PARTITION_EOF) die(rd_kafka_err2str(batch[i]->err));
            got += !batch[i]->err;
            size += batch[i]->size;
            rd_kafka_message_destroy(batch[i]);
        }
        if (!begin && got) begin = now(), first = got, size = 0;
        if (now() > until) die("not all records came");
    }
    printf("{\"seconds\": %.4f, \"records\": %ld, \"bytes\": %ld, \"client_cpu\": %.3f}\n", now() - begin, got - first,
           size, client_cpu());
    fflush(stdout);
    _Exit(0); /* closing is not measured, and takes its time */
}

static void acks(void) {
    rd_kafka_t *producer = client(PRODUCER);
    rd_kafka_topic_t *to = rd_kafka_topic_new(producer, topic, NULL);
    char *data = payload();
    took = malloc(count * sizeof *took);
    for (long i = 0; i < WARM + count; i++) {
        double begin = now(), until = begin + GIVE_UP_SECONDS;
        send_one(producer, to, i % partitions, data);
        while (delivered <= i) {
            rd_kafka_poll(producer, 1000);
            if (failed || now() > until) die("a record was not delivered");
        }
        if (i >= WARM) took[tooks++] = (now() - begin) * 1e6;
    }
    print_times("");
}

static volatile int reading;

static void *read_along(void *given) {
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(given);
    double until = now() + GIVE_UP_SECONDS;
    while (tooks < count) {
        rd_kafka_message_t *message = rd_kafka_consume_queue(queue, 100);
        double at = now(), sent = 0;
        if (at > until) die("not all records came");
        if (!message) continue;
        if (message->err == PARTITION_EOF) reading++;
        else if (message->err) die(rd_kafka_err2str(message->err));
        else memcpy(&sent, message->payload, sizeof sent);
        if (sent > 0) took[tooks++] = (at - sent) * 1e6;
        rd_kafka_message_destroy(message);
    }
    return NULL;
}

static void tail(void) {
    if (bytes < (long)sizeof(double)) die("records of 8 bytes at least: they carry the time");
    took = malloc(count * sizeof *took);
    /* What is given is for the producer. */
    char *for_reader[] = {"enable.partition.eof=true"}, **given = settings;
    int given_count = settings_count;
    settings = for_reader, settings_count = 1;
    rd_kafka_t *consumer = reader(END);
    settings = given, settings_count = given_count;
    rd_kafka_t *producer = client(PRODUCER);
    if (rate <= 0) die("tail needs rate=N");
    rd_kafka_topic_t *to = rd_kafka_topic_new(producer, topic, NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, read_along, consumer);
    double until = now() + 30;
    while (reading < partitions) {
        rd_kafka_poll(producer, 10);
        if (now() > until) die("the consumer does not get to the end");
    }
    char *data = payload();
    memset(data, 0, sizeof(double)); /* warm up with records that carry no time */
    for (int i = 0; i < partitions; i++) send_one(producer, to, i, data);
    settle(producer, partitions);
    double begin = now();
    for (long i = 0; i < count; i++) {
        double due = begin + i / rate, at;
        while ((at = now()) < due) {
            struct timespec nap = {0, (long)((due - at) * 1e9) < 200000 ? (long)((due - at) * 1e9) : 200000};
            rd_kafka_poll(producer, 0);
            nanosleep(&nap, NULL);
        }
        char *own = malloc(bytes);
        memcpy(own, data, bytes);
        memcpy(own, &at, sizeof at);
        /* 1 = librdkafka frees it */
        while (rd_kafka_produce(to, i % partitions, 1, own, bytes, NULL, 0, NULL)) {
            if (rd_kafka_last_error() != QUEUE_FULL) die(rd_kafka_err2str(rd_kafka_last_error()));
            rd_kafka_poll(producer, 10);
        }
    }
    settle(producer, partitions + count);
    pthread_join(thread, NULL);
    char more[64];
    snprintf(more, sizeof more, ", \"seconds\": %.4f", now() - begin);
    print_times(more);
    fflush(stdout);
    _Exit(0);
}

int main(int argc, char **argv) {
    if (argc < 7) {
        fprintf(stderr, "usage: driver produce|consume|acks|tail BOOTSTRAP TOPIC PARTITIONS COUNT BYTES [setting=value ...]\n");
        return 2;
    }
    /* librdkafka makes a compressor for every batch: without this its memory goes back to the system each time, and
     * getting it anew takes longer than compressing. */
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES), mallopt(M_TRIM_THRESHOLD, KEPT_BYTES), mallopt(M_TOP_PAD, TOP_BYTES);
    bootstrap = argv[2], topic = argv[3];
    partitions = atoi(argv[4]), count = atol(argv[5]), bytes = atol(argv[6]);
    settings = argv + 7, settings_count = argc - 7;
    if (!strcmp(argv[1], "produce")) produce();
    else if (!strcmp(argv[1], "consume")) consume();
    else if (!strcmp(argv[1], "acks")) acks();
    else if (!strcmp(argv[1], "tail")) tail();
    else die("produce, consume, acks or tail");
    fflush(stdout);
    _Exit(0);
}
