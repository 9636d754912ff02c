/* Random valid programs and arguments for them, for differential tests: the
 * same seed and options always give the same. Covers every op but fusion,
 * every supported type, ranks 0 to 10, empty and odd sizes, several results,
 * values with many uses and with none, and nested regions. Thread-safe. */
#ifndef TS_TEST_RANDOM_GRAPH_H
#define TS_TEST_RANDOM_GRAPH_H

#include "ir/graph.h"
#include "tool/random_args.h" /* for the arguments of random programs */

typedef struct ts_random_options {
  int32_t steps;        /* productions at the root, each of one to some twenty ops; 0: 10 */
  int64_t max_elements; /* of any tensor; 0: 4096, or 50000 in one graph of 12 */
  uint32_t dtypes;      /* bit i: TS_DTYPE number i may occur; 0: all (u8 and s32 occur anyway) */
  bool exact_only;      /* just ops whose bits are defined: no transcendental functions */
  bool no_control;      /* no while, cond, call, nor reduce with a region */
  bool no_dot;
  bool no_library; /* no transforms, qr, eigh or svd: for runs whose operands may differ in last digits */
  bool no_factors; /* no qr, eigh, svd, lu, determinants or systems, which have no form in StableHLO */
  int32_t sums;    /* percent of the productions that are reductions or contractions, beyond those by chance */
  bool even;       /* most dims are multiples of small numbers, so that parts of a mesh are equal */
} ts_random_options;

/* Unless exact_only, transcendental functions occur, but nothing is done with
 * their results that could lose digits. So two runs with functions that are
 * good to 2 ULP agree within this many, and exactly where no function was. */
#define TS_RANDOM_ULPS 64

/* The bound of errors of Fourier transforms, and of moved elements of them, in units of the type's epsilon: their lines
 * have up to 64 numbers of at most 8. */
#define TS_RANDOM_TRANSFORM 4096
/* For each result of the root, whether it comes from a transform. */
void ts_random_transformed(const ts_graph *graph, bool *out);

/* NULL options: the defaults. */
ts_status ts_random_graph(uint64_t seed, const ts_random_options *options, ts_graph **out);

#endif
