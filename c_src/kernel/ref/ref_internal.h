/* The shared part of the reference interpreter's files; internal to them. */
#ifndef TS_KERNEL_REF_INTERNAL_H
#define TS_KERNEL_REF_INTERNAL_H

#include "base/cancel.h"
#include "ir/graph.h"
#include "kernel/ref/ref.h"

/* One run. Regions are closed and do not recurse, so a value has at most one buffer at a time and a single table serves
 * all regions. */
typedef struct ts_ref_state {
  const ts_graph *graph;
  ts_pool *pool;
  const _Atomic bool *cancel;
  ts_buffer **values;              /* a reference for each value that is live now */
  const ts_ref_stand_in *stand_in; /* may be NULL */
} ts_ref_state;

/* ref.c: takes the reference, and releases the value's other one. */
void ts_ref_set_value(ts_ref_state *in, ts_value_id id, ts_buffer *owned);
/* Sets the results of an op whose operands are set. */
ts_status ts_ref_run_op(ts_ref_state *in, const ts_op *op);
void ts_ref_forget_region(ts_ref_state *in, const ts_region *region);

/* One op on buffers; the results have the inferred types and shapes and must be filled. */
typedef struct ts_ref_call {
  const ts_op *op;
  ts_buffer *const *operands;
  ts_buffer *const *results;  /* op->result_count */
  ts_buffer *result;          /* the first of them */
  const _Atomic bool *cancel; /* may be NULL */
} ts_ref_call;

/* The condition of every loop over elements: i < count, unless the run was cancelled. */
static inline bool ts_ref_goes_on(const ts_ref_call *call, int64_t i, int64_t count) {
  return i < count && (i % 1024 != 0 || !ts_cancelled(call->cancel));
}

/* The error for an op without a case. */
static inline ts_status ts_ref_unknown(const ts_ref_call *call) {
  return ts_error(TS_UNIMPLEMENTED, "%s has no meaning in the interpreter", ts_op_name(call->op->code));
}

/* ref_scalar.c: one element. Operands and result have the given type; a
 * compare op's operands do, its result is plain truth. */
/* True when an elementwise op defines its meaning for the type; other ops do so themselves. */
bool ts_ref_has_meaning(ts_opcode code, ts_dtype type);
ts_scalar ts_ref_unary(ts_opcode code, ts_dtype type, ts_scalar x);
ts_scalar ts_ref_binary(ts_opcode code, ts_dtype type, ts_scalar a, ts_scalar b);
bool ts_ref_compare(ts_opcode code, ts_dtype type, ts_scalar a, ts_scalar b);
bool ts_ref_predicate(ts_opcode code, ts_dtype type, ts_scalar x);
bool ts_ref_truth(ts_dtype type, ts_scalar x); /* != 0; NaN is true */

/* ref_complex.c: one element of a complex type; false when the op is not defined for it. */
bool ts_ref_complex_unary(ts_opcode code, ts_dtype type, ts_scalar x, ts_scalar *out);
bool ts_ref_complex_binary(ts_opcode code, ts_dtype type, ts_scalar left, ts_scalar right, ts_scalar *out);
bool ts_ref_complex_compare(ts_opcode code, ts_dtype type, ts_scalar a, ts_scalar b, bool *out);
bool ts_ref_complex_predicate(ts_opcode code, ts_dtype type, ts_scalar x, bool *out);
bool ts_ref_complex_truth(ts_dtype type, ts_scalar x);
/* The real or imaginary part of an element of complex type `type`, and an element of two parts of type `part`. */
ts_scalar ts_ref_complex_part(ts_opcode code, ts_dtype type, ts_scalar x);
ts_scalar ts_ref_complex_join(ts_dtype part, ts_scalar re, ts_scalar im);

/* ref.c: any op without regions, by its class. */
ts_status ts_ref_compute(const ts_ref_call *call);

/* ref_elementwise.c, ref_shape.c, ref_reduce.c, ref_sort.c, ref_window.c, ref_dot.c, ref_linalg*.c, ref_fft.c: one op
 * each call. */
ts_status ts_ref_elementwise(const ts_ref_call *call);
ts_status ts_ref_source(const ts_ref_call *call);
ts_status ts_ref_shape_op(const ts_ref_call *call);
ts_status ts_ref_indexed(const ts_ref_call *call);
ts_status ts_ref_reduce(const ts_ref_call *call);
/* The sum of `count` numbers by tensor/reduce_tree.h; overwrites them. */
ts_scalar ts_ref_sum_tree(const ts_ref_call *call, ts_dtype type, ts_scalar *x, int64_t count);
void ts_ref_arg_reduce(const ts_ref_call *call);
ts_status ts_ref_scan(const ts_ref_call *call);
ts_status ts_ref_sort(const ts_ref_call *call);
ts_status ts_ref_window(const ts_ref_call *call);
void ts_ref_conv(const ts_ref_call *call);
ts_status ts_ref_dot(const ts_ref_call *call);
void ts_ref_quantized_dot(const ts_ref_call *call); /* ref_quantized.c */
ts_status ts_ref_linalg(const ts_ref_call *call);
ts_status ts_ref_fft(const ts_ref_call *call);

/* ref_sum.c: acc = l * r + acc. Integers wrap. Floats round once, where the machine can do that: where not, the product
 * rounds by itself, and overflows by itself. */
ts_scalar ts_ref_multiply_add(ts_dtype type, ts_scalar l, ts_scalar r, ts_scalar acc);
#ifdef TS_TEST_ROWS
ts_status ts_ref_test(const ts_ref_call *call); /* test/rows/test_kernel.c */
#endif

/* The dims of a reduction's operand, split into kept and reduced ones, both in increasing order, with the operand's
 * strides. */
typedef struct ts_ref_split {
  ts_shape kept, reduced;
  int64_t kept_strides[TS_MAX_RANK], reduced_strides[TS_MAX_RANK];
} ts_ref_split;
ts_ref_split ts_ref_split_dims(const ts_shape *shape, const ts_dims *axes);

/* Advances `index` to the next element in row-major order, back to 0 after the last. */
static inline void ts_ref_next(const ts_shape *shape, int64_t *index) {
  for (int32_t d = shape->rank - 1; d >= 0; d--) {
    if (++index[d] < shape->dims[d]) return;
    index[d] = 0;
  }
}

static inline int64_t ts_ref_offset(int32_t rank, const int64_t *index, const int64_t *strides) {
  int64_t offset = 0;
  for (int32_t d = 0; d < rank; d++) offset += index[d] * strides[d];
  return offset;
}

static inline ts_scalar ts_ref_get(const ts_buffer *buffer, int64_t element) {
  return ts_scalar_load(buffer->dtype, (const char *)buffer->data + (size_t)element * ts_dtype_size(buffer->dtype));
}

static inline void ts_ref_set(ts_buffer *buffer, int64_t element, ts_scalar value) {
  ts_scalar_store(buffer->dtype, value, (char *)buffer->data + (size_t)element * ts_dtype_size(buffer->dtype));
}

/* Half types accumulate in f32. */

#endif
