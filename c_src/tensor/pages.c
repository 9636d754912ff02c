#include "tensor/pages.h"

#include "tensor/pool.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Smaller sizes use malloc, which packs them into pages. Larger ones use mmap, so that freeing always returns the pages
 * to the system. */
#define MAP_THRESHOLD ((size_t)256 << 10)

static _Atomic bool kept;

bool ts_pages_are_kept(void) { return atomic_load(&kept); }

void ts_pages_keep(void) { atomic_store(&kept, true); }

static bool is_mapped(size_t size) { return !TS_POOL_PASS_THROUGH && size >= MAP_THRESHOLD; }

/* In front of each mapping stays a page that can be read. Binaries of Erlang refer to tensors' bytes, and the compiled
 * code of OTP 26 and later loads eight bytes where a match wants six, from in front of the binary. */
static size_t page_size(void) {
  static _Atomic size_t known;
  size_t size = atomic_load_explicit(&known, memory_order_relaxed);
  if (size) return size;
  size = (size_t)sysconf(_SC_PAGESIZE);
  atomic_store_explicit(&known, size, memory_order_relaxed);
  return size;
}

static void *map(size_t size) {
  char *start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return start == MAP_FAILED ? NULL : start;
}

static void *map_after_page(size_t size) {
  char *start = map(page_size() + size);
  return start ? start + page_size() : NULL;
}

/* Maps one huge page more than requested and unmaps the excess at both ends. */
static void *map_aligned(size_t size) {
  const size_t page = page_size();
  char *start = map(page + size + TS_HUGE_PAGE);
  if (!start) return NULL;
  size_t head = -((uintptr_t)start + page) & (TS_HUGE_PAGE - 1);
  char *block = start + page + head;
  if (head) munmap(start, head);
  munmap(block + size, TS_HUGE_PAGE - head);
  madvise(block, size, MADV_HUGEPAGE); /* a hint, which fails where there are no huge pages */
  return block;
}

void *ts_pages_alloc(size_t size) {
  if (!is_mapped(size)) return aligned_alloc(TS_POOL_ALIGNMENT, size);
  return size < TS_HUGE_PAGE ? map_after_page(size) : map_aligned(size);
}

void ts_pages_free(void *block, size_t size) {
  if (is_mapped(size)) {
    munmap((char *)block - page_size(), page_size() + size);
  } else {
    free(block);
  }
}
