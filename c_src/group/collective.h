/* The arithmetic of collectives, in memory that this process can read: each operand of each group of
 * partitions by itself. The meaning, to the bit, is kernel/ref/ref_partitions.c. A result may be written while other
 * members' operands are read, so no result shares memory with an operand. Pure functions on memory of the caller's. */
#ifndef TS_GROUP_COLLECTIVE_H
#define TS_GROUP_COLLECTIVE_H

#include "base/parallel.h"
#include "exec/step_collective.h"

#include <stdatomic.h>

/* Where operands and results are: of partition p operand i at base[p - first][operands[i]]. */
typedef struct ts_collective_memory {
  int32_t first, count; /* the partitions that this process has */
  void *const *const *base;
  const uint32_t *operands, *results;
} ts_collective_memory;

static inline char *ts_collective_operand(const ts_collective_memory *m, int32_t partition, uint32_t i) {
  return m->base[partition - m->first][m->operands[i]];
}
static inline char *ts_collective_result(const ts_collective_memory *m, int32_t partition, uint32_t i) {
  return m->base[partition - m->first][m->results[i]];
}

/* Computes all results of these partitions, whose groups are complete. Work that has not begun at a cancellation is
 * skipped. */
void ts_collective_run(const ts_collective *c, const ts_collective_memory *memory, const ts_parallel *parallel,
                       const _Atomic bool *cancel);

/* ---- parts of tensors ---- */

/* Bytes of two tensors that belong together: runs of `run` bytes, which lie `to_at` and `from_at` behind the tensors'
 * beginnings and two loops' strides apart. The bytes are numbered in the loops' order: `run` fastest, then [1]. */
typedef struct ts_move {
  int64_t run, count[2];
  int64_t to[2], from[2], to_at, from_at;
} ts_move;

/* All of a tensor. */
static inline ts_move ts_move_whole(int64_t bytes) { return (ts_move){.run = bytes, .count = {1, 1}}; }
static inline int64_t ts_move_bytes(const ts_move *m) { return m->run * m->count[0] * m->count[1]; }
/* The part of the operand of member `from` that member `own` receives in gathers, scatters, exchanges and copies; for a
 * reduce_scatter, of each term of its sum. Its bytes are 0 when it has nothing. */
ts_move ts_collective_move(const ts_collective *c, uint32_t operand, int32_t own, int32_t from);
/* Copies the bytes [first, last). */
void ts_move_copy(const ts_move *m, char *to, const char *from, int64_t first, int64_t last);
/* The same bytes, where one side is a block of them in their order. */
ts_move ts_move_pack(const ts_move *m);   /* to a block */
ts_move ts_move_unpack(const ts_move *m); /* from a block */

/* ---- collective_reduce.c ---- */

enum { TS_REDUCTION_TERMS = 256 };

/* Combines `count` vectors of `elements` elements in a balanced tree over their index, into `out`: at most
 * TS_REDUCTION_TERMS of them. Vectors that are partial are combinations of blocks of the tree: each of the same power
 * of two of terms, the last of fewer. */
typedef struct ts_reduction {
  ts_opcode code;
  ts_dtype type;
  int32_t count;
  bool from_partial, to_partial;
} ts_reduction;
/* Bytes of an element of a partial vector: its type is the type of the tree's sums, before rounding. */
int64_t ts_reduction_partial_size(ts_opcode code, ts_dtype type);
/* Most elements at a time: they stay in the nearest cache with all intermediate results. */
int64_t ts_reduction_segment(const ts_reduction *r);
void ts_reduction_run(const ts_reduction *r, const char *const *in, char *out, int64_t elements);

/* The elements of one term of a sum: the whole tensor, or packed the part's elements from byte `first` of it on. */
typedef struct ts_term {
  const char *at;
  int64_t first;
  bool packed;
} ts_term;

/* A part of a tensor in all members of a group, and where its combination is written. The terms may be any number;
 * their places are asked for. */
typedef struct ts_sum {
  ts_reduction reduction;
  ts_move part;      /* of each term; its loop [0] has one iteration */
  int64_t out_first; /* the byte of the part at which results begin */
  const void *context;
  ts_term (*term)(const void *context, int32_t m);
  char *(*out)(const void *context, int32_t i); /* all get the same elements; some may be one memory */
  int32_t outs;
} ts_sum;
/* Combines the bytes [range[0], range[1]) of the part: whole elements. */
void ts_collective_reduce(const ts_sum *sum, const int64_t range[2], const _Atomic bool *cancel);

#endif
