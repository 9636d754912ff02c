/* Routines: code of the project or of a library that computes an op without a generated kernel (products, scans, the
 * interpreter). A routine is planned once for an executable and for the types of its operands, and then run any number
 * of times, by many threads at once. A new one is a file in kernel/ that defines a ts_routine, and a row of the table
 * in routine.c: the memory plan, runs, epilogues, cancelling and tessera:explain come from exec/.
 *
 * A numeric failure (a matrix that is singular or not positive definite, an iteration that does not converge) is no
 * error. The routine fills its results with the NaNs or infinities that kernel/ref/ref.c defines and succeeds, so that
 * one bad matrix of a batch harms no other. A status reports that the routine could not run: no memory, a plugin's
 * error, a cancelled run. */
#ifndef TS_KERNEL_ROUTINE_H
#define TS_KERNEL_ROUTINE_H

#include "base/arena.h"
#include "base/parallel.h"
#include "ir/graph.h"
#include "jit/jit.h"
#include "kernel/epilogue.h"
#include "tensor/pool.h"
#include "tensor/prepared.h"

struct ts_routine;
struct ts_routine_plan;
struct ts_routine_run;

/* An operand that runs read faster in another order: where it does not change between runs, it is copied once. */
typedef struct ts_weights {
  uint32_t operand;
  ts_prepared_key key;
  int64_t bytes; /* of the copy */
  ts_status (*prepare)(const struct ts_routine_plan *plan, const struct ts_routine_run *run, void *out);
} ts_weights;

/* The op to plan, of a verified graph. The plan's data is allocated in `arena`, which lives as long as the plan;
 * `graph` does not. */
typedef struct ts_routine_request {
  const ts_graph *graph;
  ts_op_id op;
  uint64_t slices; /* bit i: operand i is a slice that is read where it lies; base[operands[i]] is its first element */
  uint64_t unread; /* bit i: nothing reads result i, which may be left undefined. (It has memory all the same.) */
  ts_arena *arena;
  const _Atomic bool
      *cancel; /* of the compile; may be NULL. A long plan ends with TS_CANCELLED soon after it is true */
} ts_routine_request;

/* Made once by ts_routine.plan, then read-only. Owned by the executable. */
typedef struct ts_routine_plan {
  const struct ts_routine *routine;
  void *state; /* the routine's own data; NULL: it declines these types, and a kernel or the interpreter is used */
  uint32_t operand_count;
  int64_t cost_ns;      /* estimated time on one thread */
  int64_t bytes, flops; /* for profiles, set by exec/: of operands and results; of a product, else 0 */
  ts_opcode op;         /* set by exec/ */
  bool is_foreign;      /* its runs call code that may take any time: they leave the scheduler (exec/away.h) */
  bool varies;          /* the time of a run depends on the values of its operands, by more than a small factor */
  int64_t most_ns;      /* where it varies: a run hardly takes longer on one thread, whatever the values; 0: unknown */
  int64_t workspace;    /* bytes for each run */
  int64_t thread_workspace; /* bytes for each thread in addition, a multiple of 64 */
  /* inplace[r * operand_count + o]: result r may be written over operand o, of the same size. NULL: never. */
  const bool *inplace;
  const ts_epilogue_space *epilogue; /* NULL: it takes no epilogue; always so with several results, as op.def says */
  const ts_kernel_source *kernel;    /* a kernel that runs use; NULL: none. Lives as long as the plan */
  const ts_weights *weights;         /* NULL: none */
} ts_routine_plan;

/* The arguments of one run. Operands and results are at base[operands[i]] and base[results[i]]. Every result has
 * memory, even if the program does not use it. */
typedef struct ts_routine_run {
  void *const *base;
  const uint32_t *operands, *results;
  char *workspace, *thread_workspace; /* the latter has a part for each worker of `parallel` */
  const ts_epilogue *epilogue;        /* NULL: none */
  const void *prepared;               /* the copy of the plan's weights; NULL: there is none */
  const ts_parallel *parallel;
  ts_pool *pool;              /* for memory whose size depends on the number of threads */
  const _Atomic bool *cancel; /* may be NULL; once it is true the run soon ends with TS_CANCELLED */
} ts_routine_run;

static inline const void *ts_routine_operand(const ts_routine_run *run, uint32_t i) {
  return run->base[run->operands[i]];
}
static inline void *ts_routine_result(const ts_routine_run *run, uint32_t i) { return run->base[run->results[i]]; }

typedef struct ts_routine {
  const char *name; /* as tessera:explain prints it */
  /* Fills `out`, which is zero except `routine` and `operand_count`. Leaves `state` NULL to decline. May set another
   * routine, and leaves the op to that. */
  ts_status (*plan)(const ts_routine_request *request, ts_routine_plan *out);
  /* Retains the kernel that the plan requested, before the first run. NULL for routines without kernels. */
  void (*adopt)(const ts_routine_plan *plan, ts_kernel *kernel);
  ts_status (*run)(const ts_routine_plan *plan, const ts_routine_run *run);
  /* Frees the parts of `state` outside of the arena, also after a plan that failed midway. May be NULL. */
  void (*deinit)(ts_routine_plan *plan);
} ts_routine;

/* The routine to prefer over a kernel for an op whose first operand has that type; NULL when there is none. */
const ts_routine *ts_routine_of(ts_opcode op, ts_dtype type);
/* True if the operand is a slice whose elements the op's routine reads where they lie: of a matrix times a few
 * vectors, with neighbours enough to gain by it, of tiles that are as fast on its strides, or of two vectors. */
bool ts_gemm_reads_slice(const ts_graph *graph, const ts_op *op, uint32_t operand);
/* The interpreter, which never declines: for ops that neither a routine nor a kernel can compute. */
extern const ts_routine ts_reference_routine;

/* ---- for routine.c: the routines, each in its file ---- */
extern const ts_routine ts_gemm_routine, ts_scan_routine, ts_scatter_routine, ts_sort_routine, ts_top_k_routine,
    ts_window_routine, ts_conv_routine, ts_factor_routine, ts_fft_routine, ts_complex_reduce_routine,
    ts_vector_dot_routine, ts_quantized_routine;
extern const ts_routine ts_custom_routine; /* not in the table: the op has regions */
#ifdef TS_TEST_ROWS
extern const ts_routine ts_test_routine; /* test/rows/test_kernel.c */
#endif

#endif
