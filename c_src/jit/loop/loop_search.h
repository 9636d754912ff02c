/* A search for the part of a row that has the first of its best elements (loop_search.c). */
#ifndef TS_JIT_LOOP_SEARCH_H
#define TS_JIT_LOOP_SEARCH_H

#include "jit/loop/loop_reduce.h"

/* The points [from, to); `best` is the best element in all lanes, where none of them is NaN. */
typedef struct ts_part {
  ts_v from, to, best;
} ts_part;

/* Emits the search among the values of `node` at points 0 to `length`. `by` is an ARG that finds the first of equals.
 */
ts_status ts_loop_search(ts_loop *loop, const ts_reducer *by, int32_t node, ts_v length, ts_part *out);

#endif
