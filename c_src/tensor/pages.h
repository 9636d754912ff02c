/* Blocks straight from the system, for the pool. Thread-safe.
 *
 * A huge page that the system has at hand is the cheapest fresh memory there
 * is. But a virtual machine that tells its host of free memory tells it of huge
 * pages, so a fresh one may be one that the host has to find: 5 ms instead of
 * 0.2. Small pages come from smaller pieces, which the host has never taken
 * back. A block whose first huge pages are that slow is therefore made of small
 * ones, in haste; the pool has it replaced when nobody waits (renewal.h). */
#ifndef TS_TENSOR_PAGES_H
#define TS_TENSOR_PAGES_H

#include "base/parallel.h"
#include "tensor/pool.h"

#include <stdbool.h>
#include <stddef.h>

/* From here on blocks are made of huge pages, where the system has them. */
#define TS_HUGE_PAGE ((size_t)2 << 20)

/* Blocks of these sizes may be made in haste: below there is nothing to gain, and larger ones are not replaced. */
#define TS_HASTY_LEAST ((size_t)4 << 20)
#define TS_HASTY_MOST ((size_t)128 << 20)

#if defined(__SANITIZE_ADDRESS__)
#define TS_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TS_ADDRESS_SANITIZER 1
#endif
#endif
#ifndef TS_ADDRESS_SANITIZER
#define TS_ADDRESS_SANITIZER 0
#endif

/* Under AddressSanitizer no block is kept, so that every misuse is seen; but for tests of what is kept. */
#define TS_POOL_PASS_THROUGH (TS_ADDRESS_SANITIZER && !ts_pages_are_kept())
bool ts_pages_are_kept(void);
/* Before the first block is made. */
void ts_pages_keep(void);

typedef enum ts_haste {
  TS_HASTE_AUTO,  /* where huge pages are slow to come */
  TS_HASTE_NEVER, /* always huge pages */
  TS_HASTE_ALWAYS /* always small pages; for tests */
} ts_haste;

/* NULL when there is no memory. `size` > 0 is a multiple of 64, and of
 * TS_HUGE_PAGE where it is larger than that. *out_hasty says whether the block
 * was made in haste. With `enough` all pages come now, and nobody helps; once it is true the other ones come when
 * they are written. */
void *ts_pages_alloc(size_t size, const ts_enough *enough, bool *out_hasty);
/* The same, of huge pages, of which none has been asked for yet. */
void *ts_pages_map(size_t size);
void ts_pages_free(void *block, size_t size);

/* Asks for the huge page at `page`. Returns the CPU time that it took. */
int64_t ts_pages_touch(void *page);

void ts_pages_set_haste(ts_haste haste);
/* Who helps to fill a block with pages; until then callers do it alone. */
void ts_pages_set_helpers(const ts_parallel *helpers);

#endif
