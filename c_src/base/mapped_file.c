#include "base/mapped_file.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/regular_file.h"
#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* The addresses of a mapping. The handler may walk the list of ranges at any time, so a range is never freed: a later
 * mapping uses it again. Only the holder of the lock adds ranges, and sets their paths. */
typedef struct ts_mapped_range {
  _Atomic uintptr_t begin, end; /* end 0: free */
  _Atomic bool is_cut, reported;
  char *path; /* NULL: free */
  struct ts_mapped_range *next;
} ts_mapped_range;

static struct {
  pthread_mutex_t lock;
  pthread_once_t once;
  ts_mapped_range *_Atomic first;
  struct sigaction before;
  sem_t cuts; /* posted by the handler */
  uintptr_t page;
} ranges = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

/* ---- the handler */

static ts_mapped_range *find(uintptr_t address) {
  ts_mapped_range *range = atomic_load(&ranges.first);
  while (range && !(atomic_load(&range->begin) <= address && address < atomic_load(&range->end))) range = range->next;
  return range;
}

/* Puts zeros from this page to the end of the mapping: a file that lacks a page lacks all later pages. */
static bool put_zeros(ts_mapped_range *range, uintptr_t address) {
  uintptr_t page = address / ranges.page * ranges.page, end = atomic_load(&range->end);
  void *made =
      mmap((void *)page, end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return false;
  atomic_store(&range->is_cut, true);
  sem_post(&ranges.cuts);
  return true;
}

/* Does what would happen without this handler. A default action happens when the instruction is repeated. */
static void pass_on(int signal, siginfo_t *info, void *context) {
  const struct sigaction *before = &ranges.before;
  if (before->sa_flags & SA_SIGINFO)
    before->sa_sigaction(signal, info, context);
  else if (before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN)
    sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
  else
    before->sa_handler(signal);
}

/* A signal may interrupt any code, so the handler takes no lock and allocates nothing: mmap is a system call, and
 * POSIX allows sem_post. */
static void on_bus_error(int signal, siginfo_t *info, void *context) {
  int error = errno;
  ts_mapped_range *range = info->si_code == BUS_ADRERR ? find((uintptr_t)info->si_addr) : NULL;
  if (!range || !put_zeros(range, (uintptr_t)info->si_addr)) pass_on(signal, info, context);
  errno = error;
}

static void *report_cuts(void *arg) {
  (void)arg;
  for (;;) {
    while (sem_wait(&ranges.cuts) != 0) continue;
    pthread_mutex_lock(&ranges.lock);
    for (ts_mapped_range *range = atomic_load(&ranges.first); range; range = range->next)
      if (range->path && atomic_load(&range->is_cut) && !atomic_exchange(&range->reported, true))
        ts_log_warning("the file %s was cut short while it was mapped: what is lost reads as zeros", range->path);
    pthread_mutex_unlock(&ranges.lock);
  }
  return NULL;
}

static void install(void) {
  struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
  sigemptyset(&action.sa_mask);
  ranges.page = (uintptr_t)sysconf(_SC_PAGESIZE);
  sem_init(&ranges.cuts, 0, 0);
  ts_thread_start("tessera files", report_cuts, 0); /* without the thread only the warning is missing */
  sigaction(SIGBUS, &action, &ranges.before);
}

/* ---- ranges */

/* A free range, or a new one. The caller has the lock. */
static ts_status get_free(ts_mapped_range **out) {
  *out = atomic_load(&ranges.first);
  while (*out && (*out)->path) *out = (*out)->next;
  if (*out) return TS_SUCCESS;
  TS_TRY(TS_NEW(out));
  (*out)->next = atomic_load(&ranges.first);
  atomic_store(&ranges.first, *out);
  return TS_SUCCESS;
}

static ts_status take_range(const char *path, const void *data, size_t size, ts_mapped_range **out) {
  char *name;
  TS_TRY(ts_strdup(path, &name));
  pthread_mutex_lock(&ranges.lock);
  ts_status status = get_free(out);
  if (!status) {
    (*out)->path = name;
    atomic_store(&(*out)->is_cut, false);
    atomic_store(&(*out)->reported, false);
    atomic_store(&(*out)->begin, (uintptr_t)data);
    atomic_store(&(*out)->end, (uintptr_t)data + (size + ranges.page - 1) / ranges.page * ranges.page);
  }
  pthread_mutex_unlock(&ranges.lock);
  if (status) ts_free(name);
  return status;
}

static void free_range(ts_mapped_range *range) {
  pthread_mutex_lock(&ranges.lock);
  atomic_store(&range->end, 0);
  ts_free(range->path);
  range->path = NULL;
  pthread_mutex_unlock(&ranges.lock);
}

/* ---- files */

static ts_status map_open(const ts_regular_file *file, const char *path, ts_mapped_file *out) {
  if (file->size == 0) return TS_SUCCESS;
  const void *data = ts_file_map(file->file, file->size, PROT_READ);
  if (!data) return ts_regular_file_refused(errno);
  ts_status status = take_range(path, data, file->size, &out->range);
  if (status) {
    ts_file_unmap(data, file->size);
    return status;
  }
  out->data = data;
  out->size = file->size;
  return TS_SUCCESS;
}

ts_status ts_mapped_file_open(const char *path, ts_mapped_file *out) {
  ts_regular_file file;
  *out = (ts_mapped_file){0};
  pthread_once(&ranges.once, install);
  TS_TRY(ts_regular_file_open(path, &file));
  ts_status status = map_open(&file, path, out);
  ts_regular_file_close(&file);
  return status;
}

void ts_mapped_file_close(ts_mapped_file *file) {
  if (!file->data) return;
  free_range(file->range);
  ts_file_unmap(file->data, file->size);
  *file = (ts_mapped_file){0};
}

bool ts_mapped_file_is_cut(const ts_mapped_file *file) { return file->range && atomic_load(&file->range->is_cut); }
