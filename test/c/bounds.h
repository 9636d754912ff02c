/* Bounds of the results of a program whose float reductions are split over partitions. The program is interpreted on
 * intervals: each value has, besides the whole program's elements, a lowest and a highest value for each element. They
 * are equal up to a split reduction. Its terms may be added in any order, so its interval is
 *
 *     result -+ (n + 64) eps sum |x|      of n terms x in the accumulator's unit eps, and the terms' own intervals
 *
 * (of a product the same with |result|). The 64 pays for linear ops that the partitioner does on terms before the sum.
 * Other ops map intervals to intervals: exactly where they are monotone in each operand, else to all values: "unknown".
 * Where nothing is unknown a wrong or missing part is far outside. Thread-safe. */
#ifndef TS_TEST_BOUNDS_H
#define TS_TEST_BOUNDS_H

#include "shard/shard.h"
#include "shard_run.h"
#include "tool/compare.h"

/* A result. Without low and high it has the whole program's bits. Owned by the caller. */
typedef struct bound {
  ts_buffer *whole, *low, *high;
} bound;

typedef struct bound_counts {
  int64_t exact, bounded, unknown; /* elements */
} bound_counts;

/* `out` has an entry for each result, all zeros before; also after an error the caller releases them. */
ts_status bounds_run(const ts_graph *graph, const tensors *args, const ts_shard_report *report, bound *out);
void bounds_release(bound *bounds, size_t count);

/* Whether each element is within its bounds; one without is the whole program's, to the bit (any two NaNs agree). When
 * false, the message says where not. Adds to the counts. */
bool bounds_hold(const bound *b, const ts_buffer *got, bound_counts *counts, char out_message[TS_COMPARE_TEXT]);

#endif
