/* Memory from the system, for the pool. Sizes from 2 MB on use huge pages where the system has them. Thread-safe. */
#ifndef TS_TENSOR_PAGES_H
#define TS_TENSOR_PAGES_H

#include <stdbool.h>
#include <stddef.h>

#define TS_HUGE_PAGE ((size_t)2 << 20)

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

/* Under AddressSanitizer the pool keeps no blocks, so that every misuse is found; tests of the pool itself switch that
 * off. */
#define TS_POOL_PASS_THROUGH (TS_ADDRESS_SANITIZER && !ts_pages_are_kept())
bool ts_pages_are_kept(void);
/* Must be called before the first allocation. */
void ts_pages_keep(void);

/* NULL when there is no memory. `size` > 0 is a multiple of 64, and of TS_HUGE_PAGE where it is larger than that. */
void *ts_pages_alloc(size_t size);
void ts_pages_free(void *block, size_t size);

#endif
