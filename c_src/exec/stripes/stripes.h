/* Stripes: some rows of a product, a kernel on these rows (softmax), and their product with another matrix, one after
 * the other while the rows are in the second cache. So what is between the products is never in memory. As the kernel
 * needs for a row this row alone, and the sums of a product have one order, the bits are those of three steps.
 *
 * find.c finds such chains in a graph, build.c makes their steps, plan.c cuts them into stripes, run.c runs them.
 * Internal to exec/. */
#ifndef TS_EXEC_STRIPES_H
#define TS_EXEC_STRIPES_H

#include "exec/steps.h"
#include "kernel/gemm/gemm_op.h"

/* ---- find.c ---- */

/* A product, a kernel that reads it, and a product whose lhs is what the kernel makes; perhaps also an op that moves
 * the rows of the result. Nothing else reads the values between, so all is computed where the last op is. */
enum { TS_CHAIN_OPS = 12 };
typedef struct ts_chain {
  ts_op_id ops[TS_CHAIN_OPS]; /* all, in their order: there may be reshapes among them */
  uint32_t count;
  ts_op_id first, kernel, second;
  ts_op_id move;  /* TS_NO_ID: there is none */
  uint64_t reads; /* bit i: operand i of the kernel is the first product */
} ts_chain;

static inline ts_op_id ts_chain_last(const ts_chain *chain) { return chain->ops[chain->count - 1]; }

/* The chains of a region. */
typedef struct ts_chains {
  TS_VEC(ts_chain) found;
  uint32_t *numbers; /* of the chain of each op, and 1; 0: it is in none. NULL: there is no chain */
} ts_chains;
ts_status ts_chains_find(const ts_graph *graph, ts_region_id region, ts_chains *out);
/* The chain of an op; NULL: it is in none. */
static inline const ts_chain *ts_chains_of(const ts_chains *chains, ts_op_id op) {
  return chains->numbers && chains->numbers[op] ? &chains->found.data[chains->numbers[op] - 1] : NULL;
}
void ts_chains_deinit(ts_chains *chains);

/* ---- plan.c ---- */

typedef struct ts_stripes_product {
  ts_gemm_types types;
  ts_gemm_shape shape; /* of all rows; the rows between the products are where a stripe has them */
  ts_gemm_outer outer; /* its batches are numbered on from one product of the outer batch dims to the next */
  ts_gemm *gemm;
  int64_t columns; /* bytes of the rhs of a batch, which is packed for several stripes; 0: it is not */
} ts_stripes_product;

/* Where the rows of the result are, in elements. Batch b is the inner one b % inner of the outer one b / inner. */
typedef struct ts_stripes_result {
  int64_t inner, inner_stride, outer_stride, row;
} ts_stripes_result;

/* The step's operands are the first product's, then the kernel's, where any memory stands for the product, then the rhs
 * of the second product. */
typedef struct ts_stripes {
  ts_stripes_product first, second;
  ts_kernel_source source; /* of both products */
  const ts_work *work;     /* of one launch */
  const int64_t *words;    /* of the launch, with the strides of a stripe and without addresses */
  const int32_t *reads;    /* which of them are addresses of the first product */
  int32_t read_count, write;
  uint32_t rhs;             /* the step's operand that is the rhs of the second product */
  bool in_place;            /* the launch writes over the first product */
  int64_t pitch, out_pitch; /* bytes from row to row of the first product, and of what the launch writes */
  int64_t batch;            /* batches in all */
  int64_t rows, batches;    /* of a stripe, at most. Several batches have all of their rows */
  ts_stripes_result result;
  bool moves;             /* the result is that of the chain's move */
  int64_t parts;          /* tasks of a batch */
  int64_t worker_bytes;   /* memory of a thread */
  uint64_t operands_read; /* the chain's `reads` */
  ts_epilogue_space space;
} ts_stripes;

enum { TS_STRIPES_KERNEL_OPERANDS = 2 };

typedef struct ts_stripes_request {
  const ts_graph *graph;
  const ts_chain *chain;
  const ts_work *work; /* of the chain's kernel */
  ts_arena *arena;
} ts_stripes_request;

/* True if the products of the chain have common rows, and are worth stripes. */
bool ts_stripes_fit(const ts_graph *graph, const ts_chain *chain);
/* Fills a plan for such a chain, as ts_routine.plan. Its state stays NULL if the kernel is not one of rows. `moves` of
 * the state says whether the move is a part of it. */
ts_status ts_stripes_plan(const ts_stripes_request *request, ts_routine_plan *out);

/* Lays out the memory of a thread: the bytes of each part, of which some may be 0. */
enum {
  TS_STRIPES_WORDS,
  TS_STRIPES_FIRST,
  TS_STRIPES_SECOND,
  TS_STRIPES_PRODUCT,
  TS_STRIPES_ROWS,
  TS_STRIPES_SCRATCH,
  TS_STRIPES_PARTS
};
void ts_stripes_memory(const ts_stripes *stripes, int64_t out_bytes[TS_STRIPES_PARTS]);

/* ---- run.c ---- */

extern const ts_routine ts_stripes_routine; /* plans are made by ts_stripes_plan */

/* Where a batch begins: of lhs and rhs the first elements. */
static inline int64_t ts_stripes_lhs(const ts_stripes_product *p, int64_t batch) {
  return batch / p->shape.batch * p->outer.lhs + batch % p->shape.batch * p->shape.lhs_batch;
}
static inline int64_t ts_stripes_rhs(const ts_stripes_product *p, int64_t batch) {
  return batch / p->shape.batch * p->outer.rhs + batch % p->shape.batch * p->shape.rhs_batch;
}

/* The kernel between the products; NULL for plans of other routines. */
static inline const ts_work *ts_stripes_work(const ts_routine_plan *plan) {
  return plan->routine == &ts_stripes_routine ? ((const ts_stripes *)plan->state)->work : NULL;
}

#endif
