/* The reference interpreter: the meaning of every op, in plain code. Optimized code is tested against it, so it avoids
 * anything clever. Pure functions of their arguments; thread-safe. */
#ifndef TS_KERNEL_REF_H
#define TS_KERNEL_REF_H

#include "ir/graph.h"

/* Runs a verified graph. `args` are read-only and remain the caller's; each of `out_results` (one for each result of
 * the root) is a reference that the caller releases, and may be one of the arguments or appear twice. A wrong number,
 * type or shape of arguments is an error. On failure no result is set. */
ts_status ts_ref_run(const ts_graph *graph, ts_buffer *const *args, size_t arg_count, ts_pool *pool,
                     ts_buffer **out_results);
/* The same with a cancel flag, which ends it with TS_CANCELLED. It may be NULL. */
ts_status ts_ref_run_until(const ts_graph *graph, ts_buffer *const *args, size_t arg_count, ts_pool *pool,
                           const _Atomic bool *cancel, ts_buffer **out_results);

/* Whether the interpreter's bits are the op's meaning, for a first operand of that type. Of factors with orthonormal
 * columns, and of all linear algebra of complex matrices, the meaning is what defines the results (ir/op.def); the
 * interpreter has some of them, by the algorithms of textbooks. */
bool ts_ref_defines_bits(ts_opcode code, ts_dtype type);

/* Computes one of these ops instead of the interpreter, so that later ops of a program can be compared with a run bit
 * for bit. The results have the inferred types and shapes and must be filled. */
typedef struct ts_ref_stand_in {
  ts_status (*compute)(void *arg, const ts_op *op, ts_buffer *const *operands, ts_buffer *const *results);
  void *arg;
} ts_ref_stand_in;
/* ts_ref_run with a stand-in, which may be NULL. */
ts_status ts_ref_run_with(const ts_graph *graph, ts_buffer *const *args, size_t arg_count,
                          const ts_ref_stand_in *stand_in, ts_buffer **out_results);

/* Runs all partitions of a program with a mesh, in step: the meaning of collectives. `args` has the arguments of
 * partition 0, then of partition 1, and so on, without the coordinates: this function provides them. `out_results` has
 * the same order. Regions with collectives are run by all partitions or by none: a predicate that differs between them
 * is an error there. */
ts_status ts_ref_run_partitions(const ts_graph *graph, ts_buffer *const *args, size_t args_of_each, ts_pool *pool,
                                ts_buffer **out_results);

#endif
