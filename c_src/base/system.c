#include "base/system.h"

#include "base/alloc.h"
#include "base/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* CPUs that the affinity mask and the groups' quotas allow. */
static int cpus;

static void count_cpus(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  int allowed = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
  int quota = ts_cgroup_cpus(&ts_cgroup_own);
  cpus = quota < allowed ? quota : allowed;
  if (cpus < 1) cpus = 1;
}

int ts_system_cpus(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, count_cpus);
  return cpus;
}

int64_t ts_system_memory(void) {
  int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  int64_t memory = pages > 0 && page > 0 ? pages * page : INT64_MAX;
  int64_t limit = ts_cgroup_memory(&ts_cgroup_own);
  return limit < memory ? limit : memory;
}

int64_t ts_system_coarse_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t ts_system_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- memory of others in this process */

/* The most parts of one write: IOV_MAX of Linux. They fit into a pipe. */
#define PAGES_AT_ONCE 1024

typedef struct probe {
  int read_end, write_end;
  struct iovec parts[PAGES_AT_ONCE];
} probe;

/* Has the kernel read the first byte of each of these pages: fewer bytes than a pipe holds. The call is made without
 * the C library, as sanitizers read the memory themselves before its writev. */
static bool can_read(probe *p, int count) {
  char drained[PAGES_AT_ONCE];
  long written = syscall(SYS_writev, p->write_end, p->parts, count);
  return written == count && read(p->read_end, drained, sizeof drained) == count;
}

static bool all_readable(probe *p, uintptr_t first, uintptr_t last) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  int count = 0;
  for (uintptr_t at = first;; at = at / page * page + page) {
    p->parts[count++] = (struct iovec){(void *)at, 1};
    bool is_last = last / page == at / page;
    if ((count == PAGES_AT_ONCE || is_last) && !can_read(p, count)) return false;
    if (count == PAGES_AT_ONCE) count = 0;
    if (is_last) return true;
  }
}

static ts_status check_range(probe *p, uintptr_t first, uintptr_t last) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    return ts_error(TS_RESOURCE_EXHAUSTED, "cannot check the memory at 0x%" PRIxPTR ": %s", first, strerror(errno));
  p->read_end = ends[0];
  p->write_end = ends[1];
  bool readable = all_readable(p, first, last);
  close(ends[0]);
  close(ends[1]);
  if (readable) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "the %" PRIuPTR " bytes of memory at 0x%" PRIxPTR " cannot all be read",
                  last - first + 1, first);
}

ts_status ts_system_check_readable(const void *address, int64_t bytes) {
  uintptr_t first = (uintptr_t)address, last;
  probe *p;
  if (bytes < 1) return TS_SUCCESS;
  if (!first || __builtin_add_overflow(first, (uintptr_t)bytes - 1, &last))
    return ts_error(TS_INVALID_ARGUMENT, "there are no %" PRId64 " bytes of memory at 0x%" PRIxPTR, bytes, first);
  TS_TRY(TS_NEW(&p));
  ts_status status = check_range(p, first, last);
  ts_free(p);
  return status;
}

/* The last argument is the library of a handler. LLVM's handlers name theirs. Ours names none, and is never called
 * before the process exits: the library stays loaded. */
extern int __cxa_atexit(void (*handler)(void *), void *object, void *library);

/* The handler gets an argument that it does not look at, as exit() of every C library here allows. One that called it
 * with the right type would need the argument, and ThreadSanitizer drops it where there is no library. */
bool ts_system_at_exit(void (*handler)(void)) {
  void (*taker)(void *);
  memcpy(&taker, &handler, sizeof(taker));
  return __cxa_atexit(taker, NULL, NULL) == 0;
}
