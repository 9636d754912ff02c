/* Factorizations as loops of plain ops, for devices whose compilers have no such op (loops.c). Internal to pass/.
 *
 * Values are batches of matrices: rank 3, a batch of one for a single matrix. Vectors are matrices of one column or
 * row. After an error all further ops are skipped, so that formulas need no checks. */
#ifndef TS_PASS_LOOPS_H
#define TS_PASS_LOOPS_H

#include "ir/graph.h"

typedef ts_value_id val;

typedef struct loops {
  ts_graph *graph;
  ts_region_id region;  /* where ops are added */
  ts_dtype dtype, part; /* of the numbers: f32, f64, c64 or c128; of their parts */
  ts_status status;
} loops;

/* ---- loops_build.c: ops. Operands are broadcast to a common shape. ---- */
val loops_add(loops *l, ts_opcode code, const val *operands, size_t count, const ts_attrs *attrs);
val loops_unary(loops *l, ts_opcode code, val x);
val loops_binary(loops *l, ts_opcode code, val x, val y);
val loops_pick(loops *l, val predicate, val x, val y);
val loops_number(loops *l, ts_dtype dtype, double number);
val loops_zeros(loops *l, ts_dtype dtype, int64_t batch, int64_t rows, int64_t cols);
val loops_eye(loops *l, int64_t batch, int64_t rows, int64_t cols);
val loops_convert(loops *l, val x, ts_dtype dtype);
val loops_reshape(loops *l, val x, const ts_shape *shape);
int64_t loops_dim(const loops *l, val x, int32_t axis);
/* Indices along an axis, of type s32, as [1, count, 1] or [1, 1, count]. */
val loops_iota(loops *l, int32_t axis, int64_t count);
/* A reduction that keeps the axis. */
val loops_reduce(loops *l, ts_opcode code, val x, int32_t axis);
val loops_argmax(loops *l, val x, int32_t axis);
val loops_slice(loops *l, val x, int32_t axis, int64_t start, int64_t limit);
/* Row (axis 1) or column (axis 2) `index`, which is s32[]. */
val loops_line(loops *l, val x, int32_t axis, val index);
val loops_concatenate(loops *l, int32_t axis, const val *parts, size_t count);
/* Rows (axis 1) or columns (axis 2) by `indices`, which are broadcast along the other axis. */
val loops_take(loops *l, val x, val indices, int32_t axis);
/* A column as a row, or a row as a column. */
val loops_turned(loops *l, val x);
val loops_adjoint(loops *l, val x);
val loops_conjugate(loops *l, val x);
val loops_size(loops *l, val x);          /* |x|, of the parts' type */
val loops_real(loops *l, val x);          /* the real part, of the parts' type */
val loops_times(loops *l, val x, val by); /* a number times one of the parts' type */
val loops_over(loops *l, val x, val by);
val loops_from_real(loops *l, val x);   /* of the numbers' type */
val loops_larger_part(loops *l, val x); /* the larger of the sizes of a number's parts */
val loops_phase(loops *l, val x);       /* x / |x|, of 0 it is 1 */
/* The largest power of two that is at most x, and at least the least normal number. x is of the parts' type and not
 * negative. */
val loops_power_below(loops *l, val x);

static inline val loops_plus(loops *l, val x, val y) { return loops_binary(l, TS_OP_ADD, x, y); }
static inline val loops_minus(loops *l, val x, val y) { return loops_binary(l, TS_OP_SUBTRACT, x, y); }
static inline val loops_product(loops *l, val x, val y) { return loops_binary(l, TS_OP_MULTIPLY, x, y); }
static inline val loops_quotient(loops *l, val x, val y) { return loops_binary(l, TS_OP_DIVIDE, x, y); }
static inline val loops_less(loops *l, val x, val y) { return loops_binary(l, TS_OP_LESS, x, y); }
static inline val loops_equal(loops *l, val x, val y) { return loops_binary(l, TS_OP_EQUAL, x, y); }
static inline val loops_both(loops *l, val x, val y) { return loops_binary(l, TS_OP_LOGICAL_AND, x, y); }
static inline val loops_either(loops *l, val x, val y) { return loops_binary(l, TS_OP_LOGICAL_OR, x, y); }
static inline val loops_real_number(loops *l, double number) { return loops_number(l, l->part, number); }

/* A loop: while more(state), state = step(state). Both see the state alone, as regions are closed. `step` replaces the
 * entries of `state`. */
enum { LOOPS_STATE = 8 };
typedef struct loops_while {
  val (*more)(loops *l, const val *state, const void *context); /* u8[] */
  void (*step)(loops *l, val *state, const void *context);
  const void *context;
} loops_while;
void loops_run(loops *l, const loops_while *loop, val *state, size_t count);

/* state[0], s32[], counts from 0: the loop ends after as many steps. */
typedef struct loops_for {
  int64_t count;
  void (*step)(loops *l, val *state, const void *context); /* without state[0] + 1 */
  const void *context;
} loops_for;
void loops_run_for(loops *l, const loops_for *loop, val *state, size_t count);

/* ---- what the families share ---- */

/* Matrices as `a` times `power`. The largest part of a matrix in `a` is from 1 to 2. A matrix with NaN or an infinity
 * is zero in `a`. */
typedef struct loops_scaled {
  val a, power, finite; /* power: of the parts' type, [batch, 1, 1]; finite: u8[batch, 1, 1] */
} loops_scaled;
loops_scaled loops_scale(loops *l, val a);
/* x with positive zeros. */
val loops_without_signs(loops *l, val x);
/* x, but NaN for matrices that are not finite. */
val loops_finite_or_nan(loops *l, const loops_scaled *s, val x);

/* ---- the families: results as op.def says, as batches of rank 3 ---- */
val loops_determinant(loops *l, val a);
val loops_solve(loops *l, val a, val b);
void loops_lu(loops *l, val a, val out[3]);
void loops_qr(loops *l, val a, bool full, val out[2]);
void loops_eigh(loops *l, val a, val out[2]);           /* values as a row */
void loops_svd(loops *l, val a, bool full, val out[3]); /* values as a row */
/* The same for matrices that loops_scale made. */
void loops_qr_of_scaled(loops *l, val a, bool full, val out[2]);

#endif
