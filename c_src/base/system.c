#include "base/system.h"

#include "base/cgroup.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
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

/* A byte of each page, through the kernel, which fails where a load would end the process. */
bool ts_system_can_read(const void *address, size_t bytes) {
  const uintptr_t page = 4096;
  uintptr_t at = (uintptr_t)address, left = bytes;
  while (left > 0) {
    char byte;
    struct iovec to = {&byte, 1}, from = {(void *)at, 1};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) < 0 && errno == EFAULT) return false;
    uintptr_t step = page - at % page;
    if (step >= left || at + step < at) return step >= left;
    at += step;
    left -= step;
  }
  return true;
}
