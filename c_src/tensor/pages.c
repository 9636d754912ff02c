#include "tensor/pages.h"

#include "tensor/pool.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Smaller sizes use malloc, which packs them into pages. Larger ones use mmap, so that freeing always returns the pages
 * to the system. */
#define MAP_THRESHOLD ((size_t)256 << 10)

static _Atomic bool kept;

bool ts_pages_are_kept(void) { return atomic_load(&kept); }

void ts_pages_keep(void) { atomic_store(&kept, true); }

static bool is_mapped(size_t size) { return !TS_POOL_PASS_THROUGH && size >= MAP_THRESHOLD; }

static void *map(size_t size) {
  void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return block == MAP_FAILED ? NULL : block;
}

/* Maps one huge page more than requested and unmaps the excess at both ends. */
static void *map_aligned(size_t size) {
  char *start = map(size + TS_HUGE_PAGE);
  if (!start) return NULL;
  size_t head = -(uintptr_t)start & (TS_HUGE_PAGE - 1);
  if (head) munmap(start, head);
  munmap(start + head + size, TS_HUGE_PAGE - head);
  madvise(start + head, size, MADV_HUGEPAGE); /* a hint, which fails where there are no huge pages */
  return start + head;
}

void *ts_pages_alloc(size_t size) {
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
