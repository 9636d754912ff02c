/* Shared by the files of inference: one call's inputs, and checks that read
 * like a list of rules. Internal to ir/. Pure, thread-safe. */
#ifndef TS_IR_INFER_H
#define TS_IR_INFER_H

#include "ir/graph.h"

typedef struct ts_infer_call {
  const ts_graph *graph;
  ts_opcode code;
  const ts_value_id *operands; /* checked to be values of the graph */
  size_t count;                /* checked against the op table */
  const ts_attrs *attrs;       /* not NULL when the op carries attributes */
} ts_infer_call;

/* "op(operand types): message", code TS_INVALID_ARGUMENT. */
ts_status ts_infer_error(const ts_infer_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull));
#ifdef __clang_analyzer__
#define ts_infer_error(...) ts_error_assume((ts_infer_error)(__VA_ARGS__))
#endif

static inline const ts_value *ts_infer_operand(const ts_infer_call *call, size_t i) {
  return ts_graph_value(call->graph, call->operands[i]);
}

/* The error for an op of a class without a function here. */
ts_status ts_infer_unknown(const ts_infer_call *call);
/* The type exists and the compiler supports it. */
ts_status ts_infer_check_dtype(ts_dtype dtype);
/* A type and shape that a value may have. */
ts_status ts_infer_check_type(ts_dtype dtype, const ts_shape *shape);
ts_status ts_infer_same_dtype(const ts_infer_call *call);
/* `axis` is in [lowest, rank) of operand 0. */
ts_status ts_infer_check_axis(const ts_infer_call *call, int64_t axis, int64_t lowest);
/* `axes` are distinct and in [0, rank). */
ts_status ts_infer_check_axes(const ts_infer_call *call, const char *what, const ts_dims *axes, int32_t rank);
/* `dims` has one entry per dimension of operand 0. */
ts_status ts_infer_check_rank(const ts_infer_call *call, const char *what, const ts_dims *dims);

/* Each sets the types of the op's results, as many as op.def says; shapes are checked by ts_infer. */
ts_status ts_infer_shape_op(const ts_infer_call *call, ts_type *out);
ts_status ts_infer_indexed(const ts_infer_call *call, ts_type *out);
ts_status ts_infer_conv(const ts_infer_call *call, ts_type *out);
ts_status ts_infer_window(const ts_infer_call *call, ts_type *out);
ts_status ts_infer_dot(const ts_infer_call *call, ts_type *out);
ts_status ts_infer_quantized_dot(const ts_infer_call *call, ts_type *out);
ts_status ts_infer_linalg(const ts_infer_call *call, ts_type *out);
ts_status ts_infer_collective(const ts_infer_call *call, ts_type *out);
ts_status ts_infer_fft(const ts_infer_call *call, ts_type *out);
#ifdef TS_TEST_ROWS
ts_status ts_infer_test(const ts_infer_call *call, ts_type *out); /* test/rows/test_ir.c */
#endif
/* The region of a general reduce. */
ts_status ts_infer_reduce_region(const ts_infer_call *call);
ts_status ts_infer_control(const ts_infer_call *call, size_t max_results, ts_type *out_types, size_t *out_count);

#endif
