/* Blocks straight from the system, for the pool. Thread-safe. */
#ifndef TS_TENSOR_PAGES_H
#define TS_TENSOR_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* From here on blocks are made of huge pages, where the system has them. */
#define TS_HUGE_PAGE ((size_t)2 << 20)

#if defined(__SANITIZE_ADDRESS__)
#define TS_POOL_PASS_THROUGH 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TS_POOL_PASS_THROUGH 1
#endif
#endif
/* Under AddressSanitizer no block is kept, so that every misuse is seen. */
#ifndef TS_POOL_PASS_THROUGH
#define TS_POOL_PASS_THROUGH 0
#endif

/* NULL when there is no memory. `size` > 0 is a multiple of 64, and of
 * TS_HUGE_PAGE where it is larger than that. */
void *ts_pages_alloc(size_t size);
void ts_pages_free(void *block, size_t size);

#endif
