#include "tensor/pages.h"

#include "base/system.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

/* Below, malloc: it packs small blocks into pages. Above, pages of their own,
 * which go back to the system for certain. */
#define MAP_THRESHOLD ((size_t)256 << 10)

/* The least page there is; where pages are larger some are written twice. */
#define SMALL_PAGE ((size_t)4 << 10)

/* A huge page at hand is zeroed in 0.1 to 0.3 ms; one that the host has to find takes 5. */
#define SLOW_NS 1500000

/* After a slow huge page the next ones are not tried for so long, and when small ones were slow as well, those. */
#define SLOW_MS 1000
#define IN_VAIN_MS 1000

/* So many pieces of small pages may be slow: no slower than the huge pages would be, and others are not. */
#define SLOW_PIECES 4

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

static struct {
  _Atomic int haste;
  _Atomic(const ts_parallel *) helpers;
  _Atomic int64_t slow_ns; /* what the last slow huge page took; 0: there was none */
  _Atomic int64_t slow_at; /* and when */
  _Atomic int64_t trusted; /* small pages are not tried before */
  _Atomic bool kept;
} known;

bool ts_pages_are_kept(void) { return atomic_load(&known.kept); }

void ts_pages_keep(void) { atomic_store(&known.kept, true); }

void ts_pages_set_haste(ts_haste haste) { atomic_store(&known.haste, haste); }

void ts_pages_set_helpers(const ts_parallel *helpers) { atomic_store(&known.helpers, helpers); }

/* ---- mapping */

static bool is_mapped(size_t size) { return !TS_POOL_PASS_THROUGH && size >= MAP_THRESHOLD; }

static void *map(size_t size) {
  void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return block == MAP_FAILED ? NULL : block;
}

/* Maps a huge page more than asked for and unmaps what sticks out at both ends. */
static void *map_aligned(size_t size) {
  char *start = map(size + TS_HUGE_PAGE);
  if (!start) return NULL;
  size_t head = -(uintptr_t)start & (TS_HUGE_PAGE - 1);
  if (head) munmap(start, head);
  munmap(start + head + size, TS_HUGE_PAGE - head);
  madvise(start + head, size, MADV_HUGEPAGE); /* a hint: refused where there are none */
  return start + head;
}

void *ts_pages_map(size_t size) {
  if (!is_mapped(size)) return aligned_alloc(TS_POOL_ALIGNMENT, size);
  return size < TS_HUGE_PAGE ? map(size) : map_aligned(size);
}

void ts_pages_free(void *block, size_t size) {
  if (is_mapped(size)) {
    munmap(block, size);
  } else {
    free(block);
  }
}

/* ---- filling a block with pages */

/* Time on other threads does not count: a busy machine is not a slow host. */
static int64_t thread_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void write_byte(char *at) { *(volatile char *)at = 0; }

int64_t ts_pages_touch(void *page) {
  int64_t start = thread_ns();
  write_byte(page);
  return thread_ns() - start;
}

/* Also where they are small. */
static void touch_all(char *start, size_t size) {
  if (madvise(start, size, MADV_POPULATE_WRITE) != 0)
    for (size_t i = 0; i < size; i += SMALL_PAGE) write_byte(start + i);
}

/* The small pages of one huge page. */
static int64_t touch_small(char *start) {
  int64_t before = thread_ns();
  touch_all(start, TS_HUGE_PAGE);
  return thread_ns() - before;
}

/* Huge pages of a block, one a task, in order until `patience` of them took longer than `most_ns`. */
typedef struct filling {
  char *start;
  bool small;
  int64_t most_ns;
  const ts_enough *enough; /* once it is true the rest counts as there; or NULL */
  _Atomic int patience;
  _Atomic int64_t end;     /* all pages before it are there */
  _Atomic int64_t slow_ns; /* what the one that took too long took; 0: none did */
} filling;

static void fill_one(void *arg, int64_t task, int worker) {
  (void)worker;
  filling *f = arg;
  int64_t end = atomic_load(&f->end);
  if (task >= end || (f->enough && f->enough->is(f->enough->context))) return;
  char *page = f->start + (size_t)task * TS_HUGE_PAGE;
  int64_t ns = f->small ? touch_small(page) : ts_pages_touch(page);
  if (ns <= f->most_ns) return;
  atomic_store(&f->slow_ns, ns);
  if (atomic_fetch_sub(&f->patience, 1) > 1) return;
  while (task + 1 < end && !atomic_compare_exchange_weak(&f->end, &end, task + 1)) {}
}

/* Gives how many pages are there. */
static int64_t fill(filling *f, char *start, int64_t pages, bool small, int64_t most_ns, const ts_enough *enough) {
  const ts_parallel *helpers = enough ? NULL : atomic_load(&known.helpers);
  *f = (filling){.start = start, .small = small, .most_ns = most_ns, .enough = enough};
  atomic_init(&f->end, pages);
  atomic_init(&f->patience, small ? SLOW_PIECES : 1);
  ts_parallel_run(helpers && pages > 1 ? helpers : &ts_parallel_serial, pages, fill_one, f);
  return atomic_load(&f->end);
}

/* The advice is for the filling only: the system may make huge pages of these later. But what is still to come is to
 * come as small ones. */
static int64_t fill_small(char *start, int64_t pages, int64_t most_ns, const ts_enough *enough) {
  filling f;
  madvise(start, (size_t)pages * TS_HUGE_PAGE, MADV_NOHUGEPAGE);
  int64_t there = fill(&f, start, pages, true, most_ns, enough);
  if (!enough) madvise(start, (size_t)pages * TS_HUGE_PAGE, MADV_HUGEPAGE);
  return there;
}

/* Fills the block with huge pages while they are at hand, and gives how many are there. All at once is also no slower
 * than as the block is worked on: 64 MB of pages at hand and a sum into them 12 to 18 ms, else 19 to 28. */
static int64_t fill_huge(char *start, int64_t pages, int64_t now, const ts_enough *enough) {
  filling f;
  if (atomic_load(&known.slow_ns) > 0 && now - atomic_load(&known.slow_at) < SLOW_MS) return 0;
  int64_t there = fill(&f, start, pages, false, SLOW_NS, enough);
  int64_t slow_ns = atomic_load(&f.slow_ns);
  if (slow_ns == 0) return pages;
  atomic_store(&known.slow_ns, slow_ns);
  atomic_store(&known.slow_at, now);
  return there;
}

/* Small pages are worth it where they take less than half of a slow huge page's time. */
static bool fill_in_haste(char *start, int64_t pages, const ts_enough *enough) {
  int64_t now = ts_system_coarse_ms();
  if (now < atomic_load(&known.trusted)) return false;
  int64_t there = fill_huge(start, pages, now, enough);
  if (there == pages) return false;
  char *rest = start + (size_t)there * TS_HUGE_PAGE;
  if (fill_small(rest, pages - there, atomic_load(&known.slow_ns) / 2, enough) < pages - there)
    atomic_store(&known.trusted, now + IN_VAIN_MS);
  return true;
}

void *ts_pages_alloc(size_t size, const ts_enough *enough, bool *out_hasty) {
  char *block = ts_pages_map(size);
  *out_hasty = false;
  if (!block || !is_mapped(size) || size > TS_HASTY_MOST) return block;
  if (size < TS_HASTY_LEAST) {
    if (enough) touch_all(block, size);
    return block;
  }
  int haste = atomic_load(&known.haste);
  int64_t pages = (int64_t)(size / TS_HUGE_PAGE);
  if (haste == TS_HASTE_ALWAYS)
    *out_hasty = fill_small(block, pages, INT64_MAX, enough) == pages;
  else if (haste == TS_HASTE_AUTO)
    *out_hasty = fill_in_haste(block, pages, enough);
  return block;
}
