/* Sorting along one axis: values, indices (argsort), and the greatest k of each line (sort_top.c).
 *
 * The order is stable. NaN is last, first when descending, with either sign; -0 equals +0. The bits of every element
 * are kept, also of NaNs and zeros. The result of a sort is a permutation of the operand's bits, and only one is right.
 * So neither the number of threads nor the instruction set changes a bit. Types: all but complex ones.
 *
 * A sort is planned once from shapes and types (nothing to free) and run any number of times, by many threads at once.
 * Runs allocate nothing: the plan says which workspace they take. */
#ifndef TS_KERNEL_SORT_H
#define TS_KERNEL_SORT_H

#include "base/parallel.h"
#include "base/status.h"
#include "tensor/shape.h"

#include <stdatomic.h>
#include <stdbool.h>

/* How elements become unsigned keys in the wanted order; see sort_internal.h. */
typedef struct ts_sort_key {
  uint64_t zero_mask, zero, magnitude, limit, nan, negative, flip;
} ts_sort_key;

typedef struct ts_sort_spec {
  ts_dtype dtype;
  const ts_shape *shape;
  int axis;
  bool descending;
  ts_dtype index; /* TS_DTYPE_NONE: values are sorted. Any integer type: the result is the indices, cut to this type */
} ts_sort_spec;

typedef enum ts_sort_method {
  TS_SORT_COPY,        /* no line has two elements */
  TS_SORT_LANES,       /* short lines: many at once by a network, one in each lane of a vector */
  TS_SORT_SHORT_LINES, /* each by ranks */
  TS_SORT_LINES,       /* each line by radix on one thread */
  TS_SORT_SPLIT,       /* one line after the other by radix on all threads */
} ts_sort_method;

typedef struct ts_sort_plan {
  ts_sort_method method;
  int64_t cost_ns;          /* rough time on one thread */
  int64_t workspace;        /* bytes for a run */
  int64_t thread_workspace; /* bytes for each thread besides, a multiple of 64 */
  ts_sort_key key;
  int64_t n, inner, lines; /* a line's elements, the distance between them, and how many lines */
  int width;               /* log2 of an element's bytes */
  int index_size;          /* bytes of an index, 0 when values are sorted */
  int64_t per_task;        /* groups of lines, or lines */
} ts_sort_plan;

/* The state of a run. Both workspaces are aligned to 64 bytes; the second has a part for each worker. */
typedef struct ts_sort_resources {
  const ts_parallel *parallel;
  char *workspace, *thread_workspace;
  const _Atomic bool *cancel; /* may be NULL; once it is true the run ends soon with TS_CANCELLED */
} ts_sort_resources;

/* True for the types that are sorted here; the interpreter sorts others. */
bool ts_sort_has_type(ts_dtype type);
/* Errors name the fault in the types or the axis. */
ts_status ts_sort_plan_make(const ts_sort_spec *spec, ts_sort_plan *out);

/* `out` has the operand's shape and must not overlap it. */
ts_status ts_sort_run(const ts_sort_plan *plan, const ts_sort_resources *resources, const void *in, void *out);

#endif
