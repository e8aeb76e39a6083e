/* Lies to a process about the time and its disks: put in front of libc with LD_PRELOAD.

   What to lie is read from the file that TRILOGUE_LIES names, which may change at any time: compat_tests/lies.py has
   the same layout.  All zero: the truth. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

struct lies {
    int64_t wall_ns;   /* so far the wall's clock is ahead */
    int64_t frozen_ns; /* the monotonic clock stands there */
    int32_t write_error, sync_error; /* errno of every write and sync */
    int32_t write_bytes; /* so many bytes of a write are taken, and no more */
    char where[244];   /* in files whose path has this in it */
};

static volatile struct lies truth, *told = &truth;

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("TRILOGUE_LIES");
    int fd = name ? open(name, O_RDONLY) : -1;
    if (fd >= 0) {
        void *mapped = mmap(NULL, sizeof(struct lies), PROT_READ, MAP_SHARED, fd, 0);
        if (mapped != MAP_FAILED)
            told = mapped;
        close(fd);
    }
}

static int is_there(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0)
        return 0;
    path[size] = 0;
    return strstr(path, (const char *)told->where) != NULL;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (result == 0 && told->wall_ns && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t ns = now->tv_sec * SECOND + now->tv_nsec + told->wall_ns;
        now->tv_sec = ns / SECOND;
        now->tv_nsec = ns % SECOND;
    }
    int64_t frozen = told->frozen_ns;
    if (result == 0 && frozen && clock == CLOCK_MONOTONIC) {
        now->tv_sec = frozen / SECOND;
        now->tv_nsec = frozen % SECOND;
    }
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now)
        *now = exact.tv_sec;
    return exact.tv_sec;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    int error = told->write_error, most = told->write_bytes;
    if ((error || most) && is_there(fd)) {
        if (error) {
            errno = error;
            return -1;
        }
        if (size > (size_t)most)
            size = most;
    }
    return syscall(SYS_pwrite64, fd, data, size, at);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return pwrite64(fd, data, size, at); }

static int synced(int fd, long call) {
    int error = told->sync_error;
    if (error && is_there(fd)) {
        errno = error;
        return -1;
    }
    return syscall(call, fd);
}

int fsync(int fd) { return synced(fd, SYS_fsync); }

int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }
