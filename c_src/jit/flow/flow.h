/* A loop over small tensors as one native function: its launches are emitted in place, one after the other, and its
 * control flow is branches. Internal to jit/ and exec/ (exec/native.c makes the description from steps).
 *
 * Memory. The steps work on the memory that the executable has planned for them, as they would if they ran one by one:
 * every piece of memory is a *slot*, whose address is a word of the function's arguments. A while swaps the addresses
 * of a variable and of its next value, as exec/run.c does. Small slots are *cells*: their values are in registers
 * between steps (jit/flow/flow_cells.h). At the head of any loop the function can stop: it stores the cells, and then
 * the words and the slots are the whole state. When it continues there, it loads the cells again.
 *
 * Bits. A launch is emitted by the emitter of its kernel, with constants for the extents and strides (ts_site). Its
 * vectors may have fewer lanes than the machine's, where that changes no bit. So the bits are those of launches.
 *
 * The function calls exec/ for ops without a kernel, and for copies of much memory.
 *
 * Words: those of ts_flow_word, then the slots' addresses, then the addresses that a while's variables had when it
 * began (`home`), then the scalars of floats; those of integers are constants of the code. */
#ifndef TS_JIT_FLOW_H
#define TS_JIT_FLOW_H

#include "base/arena.h"
#include "jit/lower/lower.h"

typedef enum ts_flow_word {
  TS_FLOW_CONTROL, /* address of a ts_run_control */
  TS_FLOW_MASK,    /* which of its two flags count, as bytes of a 16-bit word */
  TS_FLOW_HELPER,  /* address of a ts_flow_helper */
  TS_FLOW_CONTEXT, /* its first argument */
  TS_FLOW_STATE,   /* before: 0, or what it was when the function stopped; after: 0: done, TS_FLOW_FAILED, or else the
                      loop, from 1 on, at whose head it stopped because of a flag */
  TS_FLOW_SLOTS
} ts_flow_word;

#define TS_FLOW_FAILED (-1)

/* Computes call number `call`, or copies bytes where that is TS_FLOW_COPY_BYTES; false: it failed. */
typedef bool (*ts_flow_helper)(void *context, int64_t call, void *to, const void *from, int64_t bytes);
#define TS_FLOW_COPY_BYTES (-1)
/* From so many bytes on a copy is such a call. */
#define TS_FLOW_LARGE_COPY 16384

typedef enum ts_flow_kind {
  TS_FLOW_LAUNCH,
  TS_FLOW_COPY,    /* `bytes` from slot operands[0] to slot results[0] */
  TS_FLOW_CALL,    /* operands: all slots that it uses, `count` of them; TS_NO_ID: none */
  TS_FLOW_DOT,     /* operands: lhs, rhs; results[0]: [batch, rows, columns] */
  TS_FLOW_SCAN,    /* operands[0] to results[0] */
  TS_FLOW_SCATTER, /* operands: target of `bytes`, indices, updates; results[0]: the target with the updates */
  TS_FLOW_WHILE,   /* operands: initial values; results: the variables; temps: their next values */
  TS_FLOW_COND     /* operands[0]: the predicate */
} ts_flow_kind;

typedef struct ts_flow_block {
  struct ts_flow_step *steps;
  int32_t count;
} ts_flow_block;

/* Bytes between elements of an operand of a product along the batch, along its rows or columns, and along the terms. */
typedef struct ts_flow_strides {
  int64_t batch, along, term;
} ts_flow_strides;

/* A product of f32 or f64 with at most TS_CONTRACT_CHAIN terms. */
typedef struct ts_flow_dot {
  ts_dtype type;
  int64_t batch, rows, columns, terms; /* at least 1 */
  ts_flow_strides lhs, rhs;
} ts_flow_dot;

/* A cumulative sum or product of f32, f64, or integers of 32 or 64 bits along the last dim. */
typedef struct ts_flow_scan {
  ts_dtype type;
  ts_opcode op;
  bool reverse;
  int64_t lines, count; /* at least 1; elements of a line */
} ts_flow_scan;

/* Rows of updates that are put into, or added to, rows of a target with elements of 4 or 8 bytes, in order. Row `r` of
 * the updates has `outer_count` parts of `columns` elements, which lie behind one another. Strides are bytes. */
#define TS_FLOW_MOST_OUTER 16
typedef struct ts_flow_scatter {
  ts_dtype type, index;
  ts_opcode op;
  int64_t rows, columns;                              /* at least 1 */
  int32_t axis_count, outer_count;                    /* numbers of an index; parts of a row */
  int64_t extents[TS_MAX_RANK], strides[TS_MAX_RANK]; /* of the target, along each axis of the indices */
  int64_t outer[TS_FLOW_MOST_OUTER];                  /* where each part begins in the target */
} ts_flow_scatter;

static inline bool ts_flow_has_one_index(const ts_flow_scatter *s) { return s->rows == 1 && s->axis_count == 1; }

typedef struct ts_flow_step {
  ts_flow_kind kind;
  const uint32_t *operands, *results, *temps; /* slots */
  const ts_launch *launch;
  const ts_flow_dot *dot;
  const ts_flow_scan *scan;
  const ts_flow_scatter *scatter;
  uint32_t scratch;      /* LAUNCH: slot of the workspace; TS_NO_ID: none */
  int32_t number;        /* CALL: of the call; WHILE: of the loop, from 1 on */
  int32_t first;         /* LAUNCH: index of its first scalar; WHILE: of the first of its `count` homes */
  int32_t count;         /* WHILE: variables; CALL: operands */
  int64_t bytes;         /* COPY; SCATTER: of the target */
  const int64_t *sizes;  /* WHILE: bytes of each variable */
  uint32_t predicate;    /* WHILE: slot of the condition's result */
  ts_flow_block *blocks; /* WHILE: condition, body; COND: true, false */
} ts_flow_step;

typedef struct ts_flow {
  ts_flow_step *loop; /* the outermost while */
  int32_t slot_count, home_count, loop_count;
} ts_flow;

/* The slot that a pointer of the step's launch points into. */
static inline uint32_t ts_flow_pointer_slot(const ts_flow_step *step, const ts_launch_pointer *p) {
  const uint32_t *slots[] = {
      [TS_ROLE_OPERAND] = step->operands, [TS_ROLE_RESULT] = step->results, [TS_ROLE_TEMP] = step->temps};
  return slots[p->role][p->index];
}

static inline int32_t ts_flow_home_word(const ts_flow *flow, int32_t home) {
  return TS_FLOW_SLOTS + flow->slot_count + home;
}
static inline int32_t ts_flow_scalar_word(const ts_flow *flow, int32_t scalar) {
  return ts_flow_home_word(flow, flow->home_count) + scalar;
}
/* True for a scalar that is a word of its own: a NaN of an operation on constants may have other bits in LLVM than on
 * the machine. */
static inline bool ts_flow_has_word(ts_dtype type) { return !ts_dtype_is_integer(type); }

/* Makes the source; `text` is the caller's (ts_free), and `flow` must live until the kernel is ready. */
ts_status ts_flow_make_source(const ts_flow *flow, char **out_text, ts_kernel_source *out);

/* flow_emit.c: the `emit` of the source. */
ts_status ts_flow_emit(struct ts_emit *e, const char *name, const void *description);

#endif
