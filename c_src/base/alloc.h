/* Host memory for metadata (tensor data comes from tensor/pool.h). Every
 * allocation in the core is made here, so that tests can make the n-th one
 * fail. Thread-safe. Sizes are checked: a product that overflows is an error. */
#ifndef TS_BASE_ALLOC_H
#define TS_BASE_ALLOC_H

#include "base/status.h"

#include <stdint.h>

/* `*out` gets `size` zeroed bytes (size 0 gives a unique pointer). On failure
 * `*out` is NULL and the status is TS_RESOURCE_EXHAUSTED. */
ts_status ts_alloc(size_t size, void **out);
ts_status ts_alloc_array(size_t count, size_t element_size, void **out);

/* Grows or shrinks `*inout`; on failure it is unchanged. New bytes are not zeroed. */
ts_status ts_realloc_array(size_t count, size_t element_size, void **inout);
ts_status ts_strdup(const char *text, char **out);
void ts_free(void *pointer);

/* Makes the C library keep some MB of freed memory, where it can: each compilation allocates about the same amount
 * again, and a fresh page costs more than a microsecond. Applies to the whole process. */
void ts_alloc_keep_freed(void);

/* For library calls that take a malloc-like function: NULL on failure. */
void *ts_malloc_raw(size_t size);

#define TS_NEW(out) ts_alloc(sizeof(**(out)), (void **)(out))
#define TS_NEW_ARRAY(count, out) ts_alloc_array((count), sizeof(**(out)), (void **)(out))

/* Overflow-checked arithmetic: false when the result does not fit. */
static inline bool ts_mul_size(size_t a, size_t b, size_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool ts_add_size(size_t a, size_t b, size_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool ts_mul_i64(int64_t a, int64_t b, int64_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool ts_add_i64(int64_t a, int64_t b, int64_t *out) { return !__builtin_add_overflow(a, b, out); }

/* Test hooks. After ts_alloc_fail_after(n) the n-th allocation from now on this
 * process fails (1 = the next one), and every later one too when `sticky`;
 * n = 0 turns failing off. ts_alloc_failures() says how many failed since, and
 * ts_alloc_live() how many blocks are allocated now. */
void ts_alloc_fail_after(int64_t n, bool sticky);
int64_t ts_alloc_failures(void);
int64_t ts_alloc_live(void);

/* For other allocators (tensor/pool.h): counts one allocation, true when it must fail. */
bool ts_alloc_should_fail(void);

#endif
