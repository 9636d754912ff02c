/* A slow cable between two hosts that are network namespaces (hosts.sh): an Ethernet device in each, and this process,
 * which passes frames from one to the other. Each direction is a wire: it takes one frame after the other, at a fixed
 * rate in bits a second, and delivers each after a delay. Frames that come while MAX_FRAMES wait are dropped, as by a
 * switch.
 *
 *     relay NAMESPACE NAMESPACE DEVICE DELAY_MS BITS_PER_SECOND LIFETIME_S
 *
 * Prints "ready" when both devices are there. Ends when it can read from its input, or at the input's end, and prints
 * the number of passed frames; and in any case after its lifetime. The devices end with the process. Needs root. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FRAMES = 1000, FRAME = 2048, BATCH = 64 };

typedef struct frame {
  int64_t due_ns;
  size_t size;
  char bytes[FRAME];
} frame;

/* From one device to the other. */
typedef struct wire {
  int in, out;
  int64_t free_ns; /* when the last frame has left the sender */
  size_t first, count;
  int64_t frames, bytes, dropped;
  frame queue[MAX_FRAMES];
} wire;

static wire wires[2];
static int64_t delay_ns, bits;

static int fail(const char *what) {
  fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
  return -1;
}

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool enter(const char *namespace) {
  char path[256];
  snprintf(path, sizeof path, "/run/netns/%s", namespace);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return !fail(path);
  bool is_there = !setns(fd, CLONE_NEWNET);
  if (!is_there) fail("setns");
  close(fd);
  return is_there;
}

/* A device in that namespace, which this process stays in; its descriptor, or -1. */
static int device(const char *namespace, const char *name) {
  struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
  if (strlen(name) >= sizeof request.ifr_name) {
    errno = EINVAL;
    return fail(name);
  }
  memcpy(request.ifr_name, name, strlen(name));
  if (!enter(namespace)) return -1;
  int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return fail("/dev/net/tun");
  if (!ioctl(fd, TUNSETIFF, &request)) return fd;
  fail("TUNSETIFF");
  close(fd);
  return -1;
}

/* Takes a frame from the sender, if any. A device that is down has none. */
static bool take(wire *w) {
  char ignored[FRAME];
  bool is_full = w->count == MAX_FRAMES;
  frame *next = &w->queue[(w->first + w->count) % MAX_FRAMES];
  ssize_t size = read(w->in, is_full ? ignored : next->bytes, FRAME);
  if (size <= 0) return false;
  if (is_full) {
    w->dropped++;
    return true;
  }
  int64_t now = now_ns();
  if (w->free_ns < now) w->free_ns = now;
  w->free_ns += (int64_t)size * 8 * 1000000000 / bits;
  next->size = (size_t)size;
  next->due_ns = w->free_ns + delay_ns;
  w->count++;
  return true;
}

static void deliver(wire *w) {
  while (w->count && w->queue[w->first].due_ns <= now_ns()) {
    const frame *f = &w->queue[w->first];
    if (write(w->out, f->bytes, f->size) == (ssize_t)f->size) {
      w->frames++;
      w->bytes += (int64_t)f->size;
    } else {
      w->dropped++;
    }
    w->first = (w->first + 1) % MAX_FRAMES;
    w->count--;
  }
}

/* Until the next frame is due: at most a second. */
static struct timespec patience(void) {
  int64_t wait = 1000000000, now = now_ns();
  for (int i = 0; i < 2; i++) {
    if (!wires[i].count) continue;
    int64_t due = wires[i].queue[wires[i].first].due_ns - now;
    if (due < wait) wait = due < 0 ? 0 : due;
  }
  return (struct timespec){.tv_sec = (time_t)(wait / 1000000000), .tv_nsec = (long)(wait % 1000000000)};
}

/* Until there is something to read from the input. */
static bool pass(void) {
  for (;;) {
    struct pollfd fds[3] = {{wires[0].in, POLLIN, 0}, {wires[1].in, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    struct timespec wait = patience();
    if (ppoll(fds, 3, &wait, NULL) < 0 && errno != EINTR) return !fail("ppoll");
    if (fds[2].revents) return true;
    for (int i = 0; i < 2; i++) {
      for (int n = 0; n < BATCH && fds[i].revents && take(&wires[i]); n++) {}
      deliver(&wires[i]);
    }
  }
}

static bool number(const char *text, int64_t most, int64_t *out) {
  char *end;
  errno = 0;
  *out = strtoll(text, &end, 10);
  if (!errno && end != text && !*end && *out >= 0 && *out <= most) return true;
  errno = EINVAL;
  return !fail(text);
}

int main(int argc, char *argv[]) {
  int64_t milliseconds, lifetime;
  if (argc != 7) {
    fprintf(stderr, "usage: relay NAMESPACE NAMESPACE DEVICE DELAY_MS BITS_PER_SECOND LIFETIME_S\n");
    return 2;
  }
  if (!number(argv[4], 10000, &milliseconds) || !number(argv[5], INT64_C(100000000000), &bits) ||
      !number(argv[6], 3600, &lifetime))
    return 2;
  if (!bits || !lifetime) return fprintf(stderr, "relay: bits and the lifetime must not be 0\n"), 2;
  delay_ns = milliseconds * 1000000;
  alarm((unsigned)lifetime);                                  /* whose signal ends the process */
  if (setpriority(PRIO_PROCESS, 0, -15)) fail("setpriority"); /* a cable waits for no CPU */
  int a = device(argv[1], argv[3]), b = a < 0 ? -1 : device(argv[2], argv[3]);
  if (b < 0) return 1;
  wires[0].in = wires[1].out = a;
  wires[1].in = wires[0].out = b;
  puts("ready");
  fflush(stdout);
  if (!pass()) return 1;
  for (int i = 0; i < 2; i++)
    printf("%lld frames, %lld bytes, %lld dropped\n", (long long)wires[i].frames, (long long)wires[i].bytes,
           (long long)wires[i].dropped);
  return 0;
}
