#include "base/regular_file.h"

#include "base/system.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A piece is two huge pages. A thread is worth some pieces. */
#define PIECE ((size_t)4 << 20)
#define PIECES_OF_THREAD 2
/* More threads read no faster: two already reach the speed of the memory or of a disk. */
#define MOST_THREADS 4

ts_status ts_regular_file_refused(int error) {
  ts_code code = error == ENOENT || error == ENOTDIR                     ? TS_UNAVAILABLE
                 : error == ENOMEM || error == EMFILE || error == ENFILE ? TS_RESOURCE_EXHAUSTED
                                                                         : TS_FAILED_PRECONDITION;
  return ts_error(code, "%s", strerror(error));
}

static ts_status check(int file, size_t *out_size) {
  struct stat s;
  if (fstat(file, &s) != 0) return ts_regular_file_refused(errno);
  if (S_ISDIR(s.st_mode)) return ts_regular_file_refused(EISDIR);
  if (!S_ISREG(s.st_mode)) return ts_error(TS_FAILED_PRECONDITION, "it is no regular file");
  *out_size = (size_t)s.st_size;
  return TS_SUCCESS;
}

ts_status ts_regular_file_open(const char *path, ts_regular_file *out) {
  *out = (ts_regular_file){.file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
  if (out->file < 0) return ts_regular_file_refused(errno);
  ts_status status = check(out->file, &out->size);
  if (status) ts_regular_file_close(out);
  return status;
}

void ts_regular_file_close(ts_regular_file *file) {
  if (file->file >= 0) close(file->file);
  file->file = -1;
}

/* ---- reading ---- */

/* Failures that are no errno. */
enum { CUT = -1, CANCELLED = -2 };

typedef struct reading {
  const ts_regular_file *file;
  char *to;
  ts_goes_on goes_on;
  pthread_t caller;
  _Atomic size_t next; /* the first byte that no thread reads */
  _Atomic int failure; /* the first one, or 0 */
} reading;

static void fail(reading *r, int failure) {
  int none = 0;
  atomic_compare_exchange_strong(&r->failure, &none, failure);
}

static int read_piece(const reading *r, size_t begin, size_t end) {
  while (begin < end) {
    ssize_t n = pread(r->file->file, r->to + begin, end - begin, (off_t)begin);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return CUT;
    begin += (size_t)n;
  }
  return 0;
}

static bool is_stopped(reading *r, bool is_caller) {
  if (is_caller && r->goes_on.ask && !r->goes_on.ask(r->goes_on.context)) fail(r, CANCELLED);
  return atomic_load(&r->failure) != 0;
}

static void *read_pieces(void *arg) {
  reading *r = arg;
  const size_t size = r->file->size;
  const bool is_caller = pthread_equal(pthread_self(), r->caller);
  while (!is_stopped(r, is_caller)) {
    size_t begin = atomic_fetch_add(&r->next, PIECE);
    if (begin >= size) break;
    int failure = read_piece(r, begin, size - begin < PIECE ? size : begin + PIECE);
    if (failure) fail(r, failure);
  }
  return NULL;
}

static int threads_for(size_t size) {
  size_t worth = size / (PIECE * PIECES_OF_THREAD), cpus = (size_t)ts_system_cpus();
  if (worth > MOST_THREADS) worth = MOST_THREADS;
  if (worth > cpus) worth = cpus;
  return worth > 1 ? (int)worth : 1;
}

ts_status ts_regular_file_read(const ts_regular_file *file, void *to, ts_goes_on goes_on) {
  reading r = {.file = file, .to = to, .goes_on = goes_on, .caller = pthread_self()};
  ts_threads_run("tessera read", read_pieces, &r, threads_for(file->size) - 1);
  switch (atomic_load(&r.failure)) {
  case 0: return TS_SUCCESS;
  case CUT: return ts_error(TS_DATA_LOSS, "it has become shorter while it was read");
  case CANCELLED: return ts_error(TS_CANCELLED, "the read was cancelled");
  default: return ts_regular_file_refused(atomic_load(&r.failure));
  }
}
