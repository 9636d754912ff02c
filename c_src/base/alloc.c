#include "base/alloc.h"

#include "base/slots.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Allocations until the failing one; 0: no allocation fails. */
static _Atomic int64_t countdown;
static _Atomic bool sticky_failure;
static _Atomic int64_t failures;
static ts_counter live;

bool ts_alloc_should_fail(void) {
  int64_t left = atomic_load_explicit(&countdown, memory_order_relaxed);
  if (left == 0) return false;
  /* A sticky failure leaves the count at 1, so that the next allocation fails as well. */
  int64_t next;
  do {
    next = left == 1 && atomic_load(&sticky_failure) ? 1 : left - 1;
  } while (!atomic_compare_exchange_weak(&countdown, &left, next) && left != 0);
  if (left != 1) return false;
  atomic_fetch_add(&failures, 1);
  return true;
}

void ts_alloc_fail_after(int64_t n, bool sticky) {
  atomic_store(&sticky_failure, sticky);
  atomic_store(&failures, 0);
  atomic_store(&countdown, n > 0 ? n : 0);
}

int64_t ts_alloc_failures(void) { return atomic_load(&failures); }

int64_t ts_alloc_live(void) { return ts_counter_sum(&live); }

static void *counted(void *block) {
  if (block) (void)ts_counter_add(&live, 1);
  return block;
}

void *ts_malloc_raw(size_t size) {
  if (ts_alloc_should_fail()) return NULL;
  return counted(malloc(size ? size : 1));
}

enum { KEPT_BYTES = 16 << 20 };

void ts_alloc_keep_freed(void) {
#ifdef __GLIBC__
  (void)mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
  (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
#endif
}

/* Small blocks come from malloc, whose per-thread cache calloc does not use. */
static void *zeroed(size_t size) {
  if (size > 1024) return calloc(1, size);
  void *block = malloc(size ? size : 1);
  return block ? memset(block, 0, size) : NULL;
}

ts_status ts_alloc(size_t size, void **out) {
  *out = ts_alloc_should_fail() ? NULL : counted(zeroed(size));
  return *out ? TS_SUCCESS : ts_error_no_memory();
}

ts_status ts_alloc_array(size_t count, size_t element_size, void **out) {
  *out = NULL;
  size_t size;
  if (!ts_mul_size(count, element_size, &size)) return ts_error_no_memory();
  return ts_alloc(size, out);
}

ts_status ts_realloc_array(size_t count, size_t element_size, void **inout) {
  size_t size;
  if (!ts_mul_size(count, element_size, &size) || ts_alloc_should_fail()) return ts_error_no_memory();
  void *grown = realloc(*inout, size ? size : 1);
  if (!grown) return ts_error_no_memory();
  if (!*inout) counted(grown);
  *inout = grown;
  return TS_SUCCESS;
}

ts_status ts_strdup(const char *text, char **out) {
  *out = NULL;
  size_t size = strlen(text) + 1;
  void *copy = ts_malloc_raw(size);
  if (!copy) return ts_error_no_memory();
  *out = memcpy(copy, text, size);
  return TS_SUCCESS;
}

void ts_free(void *pointer) {
  if (!pointer) return;
  (void)ts_counter_add(&live, -1);
  free(pointer);
}
