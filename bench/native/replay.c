/* Sends the same frame again and again over many connections, and measures how fast the answers come.
 *
 *     replay PORT CONNECTIONS IN_FLIGHT SECONDS ANSWER_BYTES < frame
 *
 * One thread, one epoll: the client must not be what is measured.  Every answer must have ANSWER_BYTES, which is the
 * size of an answer that was looked at before; anything else ends the run.  Prints one JSON object.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FRAME_MAX (8 << 20)
#define IN_FLIGHT_MAX 64
#define SAMPLES_MAX (8 << 20)
#define WARM_SECONDS 0.3

struct peer {
    int fd, first, flying;              /* the ring of the times at which requests left */
    size_t unsent;                      /* bytes of the frame at hand that the socket did not take yet */
    size_t heard;                       /* bytes of the answer at hand */
    int owed;                           /* requests that may leave, but did not fit into the socket */
    double left_at[IN_FLIGHT_MAX];
};

static unsigned char frame[FRAME_MAX];
static size_t frame_size, answer_size;
static float *samples;
static long sampled, answered, total;
static double measure_from;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void die(const char *what) {
    fprintf(stderr, "replay: %s (%s)\n", what, strerror(errno));
    exit(1);
}

static void push(struct peer *peer, double at) {
    while (peer->owed) {
        if (peer->unsent == 0) {
            peer->left_at[(peer->first + peer->flying++) % IN_FLIGHT_MAX] = at;
            peer->unsent = frame_size;
        }
        ssize_t sent = send(peer->fd, frame + frame_size - peer->unsent, peer->unsent, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EAGAIN) return;
            die("send");
        }
        peer->unsent -= sent;
        if (peer->unsent) return;
        peer->owed--;
    }
}

static void pull(struct peer *peer) {
    static unsigned char buffer[1 << 16];
    ssize_t size;
    do {                                /* edge-triggered: what is left in the socket is not told again */
        size = recv(peer->fd, buffer, sizeof buffer, 0);
        if (size < 0 && errno == EAGAIN) break;
        if (size <= 0) die("the broker hung up");
        peer->heard += size;
    } while (size == sizeof buffer);
    double at = now();
    while (peer->heard >= answer_size) {
        peer->heard -= answer_size;
        total++;
        if (at >= measure_from) {
            answered++;
            if (sampled < SAMPLES_MAX) samples[sampled++] = (at - peer->left_at[peer->first]) * 1e6;
        }
        peer->first = (peer->first + 1) % IN_FLIGHT_MAX;
        peer->flying--;
        peer->owed++;
    }
    push(peer, at);
}

static int by_size(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: replay PORT CONNECTIONS IN_FLIGHT SECONDS ANSWER_BYTES < frame\n");
        return 2;
    }
    int connections = atoi(argv[2]), in_flight = atoi(argv[3]);
    double seconds = atof(argv[4]);
    answer_size = atol(argv[5]);
    frame_size = fread(frame, 1, sizeof frame, stdin);
    if (connections < 1 || in_flight < 1 || in_flight > IN_FLIGHT_MAX || !frame_size || !answer_size) die("arguments");
    samples = malloc(SAMPLES_MAX * sizeof *samples);
    struct peer *peers = calloc(connections, sizeof *peers);
    int epoll = epoll_create1(0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < connections; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
        if (connect(fd, (struct sockaddr *)&address, sizeof address)) die("connect");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        fcntl(fd, F_SETFL, O_NONBLOCK);
        peers[i].fd = fd;
        peers[i].owed = in_flight;
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = &peers[i]};
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    }
    double begin = now();
    measure_from = begin + WARM_SECONDS;
    for (int i = 0; i < connections; i++) push(&peers[i], now());
    struct epoll_event ready[256];
    double end = measure_from + seconds;
    while (now() < end) {
        int count = epoll_wait(epoll, ready, 256, 1000);
        for (int i = 0; i < count; i++) {
            struct peer *peer = ready[i].data.ptr;
            if (ready[i].events & EPOLLOUT) push(peer, now());
            if (ready[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) pull(peer);
        }
        if (count == 0) die("no answer within a second");
    }
    qsort(samples, sampled, sizeof *samples, by_size);
    if (!sampled) die("no answers");
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
    printf("{\"per_second\": %.1f, \"total\": %ld, \"p50_us\": %.1f, \"p99_us\": %.1f, \"client_cpu\": %.3f}\n",
           answered / seconds, total, samples[sampled / 2], samples[(long)(sampled * 0.99)], cpu);
    return 0;
}
