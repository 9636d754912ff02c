/* Splits a program with a mesh over its partitions. The partitioned program is an ordinary graph on parts, one for all
 * partitions; its root shardings say how parts make up the whole. Pure, thread-safe. */
#ifndef TS_SHARD_SHARD_H
#define TS_SHARD_SHARD_H

#include "ir/graph.h"

#include <stdatomic.h>

/* An op of the whole program, and its first result. */
typedef struct ts_reported_op {
  ts_opcode code;
  ts_value_id result;
  int32_t operand, dim; /* of `gathered` */
} ts_reported_op;

/* A report of the partitioner; all zeros before. Values are values of the whole program. Freed by
 * ts_shard_report_deinit.
 */
typedef struct ts_shard_report {
  TS_VEC(ts_reported_op) split;      /* reductions of floats, whose results may differ from the whole program's */
  TS_VEC(ts_reported_op) replicated; /* ops with cut operands, but without a rule */
  TS_VEC(ts_reported_op) gathered;   /* a dim of an operand is cut, and the op's rule has it whole */
  ts_text values; /* a line for each argument and result of an op that is cut, or left as terms of a sum */
} ts_shard_report;
void ts_shard_report_deinit(ts_shard_report *report);

/* Propagates shardings, then makes the program of one partition: each op on parts, with the assignment of mesh axes
 * that moves the fewest bytes, and collectives where shardings differ; all_reduces that can be one message are one op.
 * Collectives and callbacks in `in` are an error. `cancel` and `report` may be NULL. */
ts_status ts_shard_partition(const ts_graph *in, const _Atomic bool *cancel, ts_shard_report *report, ts_graph **out);

/* Joins all_reduces that do not wait for each other, and moves collectives that a loop repeats to before the loop
 * (combine.c). Part of ts_shard_partition. */
ts_status ts_shard_combine(const ts_graph *in, ts_graph **out);

/* The program with the shardings that propagation finds: constraints on all values that are cut, and shardings of all
 * results. For tests and tools. */
ts_status ts_shard_annotate(const ts_graph *in, ts_graph **out);

/* Appends a line for each collective: its axes, its number of tensors, and the bytes that it sends for one partition;
 * then the sum, and from `report` (which may be NULL) the sharding of each value, and the replicated ops. */
ts_status ts_shard_print_report(const ts_graph *partitioned, const ts_shard_report *report, ts_text *out);

/* Copies a partition's part out of a tensor, or into its place there. Both are in host memory. */
typedef enum ts_part_copy { TS_PART_OUT, TS_PART_IN } ts_part_copy;
void ts_shard_copy_part(const ts_mesh *mesh, const ts_sharding *sharding, ts_buffer *whole, ts_buffer *part,
                        int32_t partition, ts_part_copy way);
/* The first partition that has the same part: `partition` itself, unless the tensor is replicated. */
int32_t ts_shard_first_like(const ts_mesh *mesh, const ts_sharding *sharding, int32_t partition);
/* A partition's part of a tensor, and the tensor of all parts. New buffers. */
ts_status ts_shard_cut(const ts_mesh *mesh, const ts_sharding *sharding, const ts_buffer *whole, int32_t partition,
                       ts_pool *pool, ts_buffer **out);
ts_status ts_shard_join(const ts_mesh *mesh, const ts_sharding *sharding, ts_buffer *const *parts, ts_pool *pool,
                        ts_buffer **out);

#endif
