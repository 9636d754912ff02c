#include "pass/complex/complex.h"

#include "pass/simplify.h"

/* ---- parts ---- */

static const ts_value *value_of(const ts_formula *f, ts_value_id value) {
  return ts_graph_value(f->call->rules->to, value);
}

static ts_dtype operand_type(const ts_formula *f, uint32_t i) { return value_of(f, f->call->op->operands[i])->dtype; }

/* The parts of any operand; a real one has the imaginary part 0. */
static ts_parts split(ts_formula *f, uint32_t i) {
  ts_value_id x = f->call->op->operands[i];
  return (ts_parts){ts_formula_unary(f, TS_OP_REAL, x), ts_formula_unary(f, TS_OP_IMAG, x)};
}

static ts_value_id join(ts_formula *f, ts_parts z) { return ts_formula_binary(f, TS_OP_COMPLEX, z.re, z.im); }

/* The op of the call on other operands. */
static ts_value_id again(ts_formula *f, const ts_value_id *operands) {
  return ts_formula_add(f, f->call->op->code, operands, f->call->op->operand_count, f->call->op->attrs);
}

/* The op of the call on each part of its first operand. */
static ts_parts each_part(ts_formula *f) {
  ts_parts z = split(f, 0);
  return (ts_parts){again(f, &z.re), again(f, &z.im)};
}

static ts_parts widened(ts_formula *f, ts_parts z) {
  return (ts_parts){ts_formula_convert(f, z.re, TS_F64), ts_formula_convert(f, z.im, TS_F64)};
}

static ts_parts narrowed(ts_formula *f, ts_parts z) {
  ts_dtype part = ts_dtype_part(f->call->dtype);
  return (ts_parts){ts_formula_convert(f, z.re, part), ts_formula_convert(f, z.im, part)};
}

/* ---- elementwise ---- */

static ts_value_id split_unary(ts_formula *f) {
  ts_opcode code = f->call->op->code;
  ts_parts z = split(f, 0);
  if (code == TS_OP_NEGATE) return join(f, each_part(f));
  f->dtype = TS_F64;
  if (code == TS_OP_SIGN) return join(f, narrowed(f, ts_complex_sign(f, widened(f, z))));
  if (code != TS_OP_ABS) return TS_NO_ID;
  if (f->call->dtype == TS_F32) return ts_complex_short_modulus(f, z, widened(f, z));
  return ts_complex_modulus(f, widened(f, z));
}

/* Functions compute in f64, also for c64: no overflow or cancellation within them is seen in f32. exp has no
 * cancellation, so it takes sine and cosine in f32. */
static ts_value_id split_function(ts_formula *f) {
  ts_parts z = split(f, 0), result;
  if (f->call->op->code == TS_OP_EXP && f->call->dtype == TS_C64) {
    f->dtype = TS_F32;
    return join(f, narrowed(f, ts_complex_short_exponential(f, z, ts_formula_convert(f, z.re, TS_F64))));
  }
  f->dtype = TS_F64;
  if (!ts_complex_function(f, f->call->op->code, widened(f, z), &result)) return TS_NO_ID;
  return join(f, narrowed(f, result));
}

static ts_value_id sum_of_products(ts_formula *f, ts_opcode code, ts_value_id a, ts_value_id b, ts_value_id c,
                                   ts_value_id d) {
  ts_value_id first = ts_formula_binary(f, TS_OP_MULTIPLY, a, b), second = ts_formula_binary(f, TS_OP_MULTIPLY, c, d);
  return ts_formula_binary(f, code, first, second);
}

static ts_value_id split_binary(ts_formula *f) {
  ts_opcode code = f->call->op->code;
  ts_parts a = split(f, 0), b = split(f, 1), z;
  f->dtype = TS_F64;
  switch (code) {
  case TS_OP_ADD:
  case TS_OP_SUBTRACT:
    z = (ts_parts){ts_formula_binary(f, code, a.re, b.re), ts_formula_binary(f, code, a.im, b.im)};
    return join(f, z);
  case TS_OP_MULTIPLY:
    z.re = sum_of_products(f, TS_OP_SUBTRACT, a.re, b.re, a.im, b.im);
    z.im = sum_of_products(f, TS_OP_ADD, a.re, b.im, a.im, b.re);
    return join(f, z);
  case TS_OP_DIVIDE: return join(f, narrowed(f, ts_complex_quotient(f, widened(f, a), widened(f, b))));
  case TS_OP_POW:
    z = (f->call->dtype == TS_C64 ? ts_complex_short_power : ts_complex_power)(f, widened(f, a), widened(f, b));
    return join(f, narrowed(f, z));
  default: return TS_NO_ID;
  }
}

/* 1 where a part is not 0. */
static ts_value_id truth(ts_formula *f, uint32_t i) {
  ts_parts z = split(f, i);
  return ts_formula_binary(f, TS_OP_LOGICAL_OR, z.re, z.im);
}

static ts_value_id split_compare(ts_formula *f) {
  ts_opcode code = f->call->op->code;
  if (code != TS_OP_EQUAL && code != TS_OP_NOT_EQUAL) return again(f, (const ts_value_id[]){truth(f, 0), truth(f, 1)});
  ts_parts a = split(f, 0), b = split(f, 1);
  ts_value_id re = ts_formula_binary(f, code, a.re, b.re), im = ts_formula_binary(f, code, a.im, b.im);
  return ts_formula_binary(f, code == TS_OP_EQUAL ? TS_OP_AND : TS_OP_OR, re, im);
}

static ts_value_id split_predicate(ts_formula *f) {
  ts_parts z = each_part(f);
  return ts_formula_binary(f, TS_OP_OR, z.re, z.im);
}

static ts_value_id split_convert(ts_formula *f) {
  ts_value_id x = f->call->op->operands[0];
  ts_dtype to = f->call->dtype, part = ts_dtype_part(to);
  if (operand_type(f, 0) == to) return x;
  if (!ts_dtype_is_complex(operand_type(f, 0))) {
    f->dtype = part;
    ts_value_id re = ts_formula_convert(f, x, part);
    return ts_formula_binary(f, TS_OP_COMPLEX, re, ts_formula_number(f, 0));
  }
  ts_parts z = split(f, 0);
  return ts_dtype_is_complex(to) ? join(f, narrowed(f, z)) : ts_formula_convert(f, z.re, to);
}

/* iota and eye */
static ts_value_id split_source(ts_formula *f) {
  ts_attrs attrs = ts_op_copy_attrs(f->call->op);
  if (f->call->op->code == TS_OP_IOTA)
    attrs.iota.dtype = f->dtype;
  else
    attrs.shaped.dtype = f->dtype;
  ts_value_id re = ts_formula_add(f, f->call->op->code, NULL, 0, &attrs);
  return ts_formula_binary(f, TS_OP_COMPLEX, re, ts_formula_number(f, 0));
}

/* ---- sums and updates ---- */

static ts_value_id split_reduce(ts_formula *f) {
  ts_opcode code = f->call->op->code;
  if (code == TS_OP_REDUCE_SUM) return join(f, each_part(f));
  if (code != TS_OP_REDUCE_ALL && code != TS_OP_REDUCE_ANY) return TS_NO_ID;
  ts_value_id x = truth(f, 0);
  return again(f, &x);
}

static ts_value_id split_indexed_add(ts_formula *f) {
  ts_value_id indices = f->call->op->operands[1];
  ts_parts target = split(f, 0), updates = split(f, 2);
  ts_parts sum = {again(f, (const ts_value_id[]){target.re, indices, updates.re}),
                  again(f, (const ts_value_id[]){target.im, indices, updates.im})};
  return join(f, sum);
}

/* ---- products: as products of real matrices; a complex number is a row or a block of its parts ---- */

static ts_value_id reshaped(ts_formula *f, ts_value_id x, const ts_shape *shape) {
  return ts_formula_add(f, TS_OP_RESHAPE, &x, 1, &(ts_attrs){.shape = *shape});
}

/* The shape with a dim of `size` before dim `at`. */
static ts_shape with_dim(const ts_shape *shape, int32_t at, int64_t size) {
  ts_shape out = {.rank = shape->rank + 1};
  for (int32_t d = 0; d < out.rank; d++) out.dims[d] = d == at ? size : shape->dims[d < at ? d : d - 1];
  return out;
}

/* x and y along a new dim before dim `at` of their shape. */
static ts_value_id stacked(ts_formula *f, ts_value_id x, ts_value_id y, const ts_shape *shape, int32_t at) {
  ts_shape one = with_dim(shape, at, 1);
  const ts_value_id both[2] = {reshaped(f, x, &one), reshaped(f, y, &one)};
  return ts_formula_add(f, TS_OP_CONCATENATE, both, 2, &(ts_attrs){.axis = at});
}

/* The parts from a real result [..., 2]. */
static ts_value_id joined(ts_formula *f, ts_value_id x, const ts_shape *shape) {
  ts_shape pairs = with_dim(shape, shape->rank, 2);
  ts_value_id parts[2];
  x = reshaped(f, x, &pairs);
  for (int i = 0; i < 2; i++) {
    ts_attrs attrs = {.slice = {.start = {.rank = pairs.rank}, .limit = pairs, .stride = {.rank = pairs.rank}}};
    for (int32_t d = 0; d < pairs.rank; d++) attrs.slice.stride.dims[d] = 1;
    attrs.slice.start.dims[shape->rank] = i;
    attrs.slice.limit.dims[shape->rank] = i + 1;
    parts[i] = reshaped(f, ts_formula_add(f, TS_OP_SLICE, &x, 1, &attrs), shape);
  }
  return join(f, (ts_parts){parts[0], parts[1]});
}

/* Operand `i` with its dims in the order batch, first, second; `first` and `second` as one dim each. */
static ts_parts as_matrices(ts_formula *f, uint32_t i, const ts_dims *batch, const ts_dims *contract,
                            bool contract_last, ts_shape *out) {
  const ts_shape *shape = value_of(f, f->call->op->operands[i])->shape;
  uint64_t taken = ts_dims_mask(batch) | ts_dims_mask(contract);
  ts_attrs move = {.axes = *batch};
  ts_dims free = {0};
  int64_t sizes[3] = {1, 1, 1};
  for (int32_t d = 0; d < shape->rank; d++)
    if (!(taken >> d & 1)) free.dims[free.rank++] = d;
  const ts_dims *groups[3] = {batch, contract_last ? &free : contract, contract_last ? contract : &free};
  move.axes.rank = 0;
  for (int g = 0; g < 3; g++) {
    for (int32_t d = 0; d < groups[g]->rank; d++) {
      move.axes.dims[move.axes.rank++] = groups[g]->dims[d];
      sizes[g] *= shape->dims[groups[g]->dims[d]];
    }
  }
  *out = (ts_shape){.rank = 3, .dims = {sizes[0], sizes[1], sizes[2]}};
  ts_value_id x = f->call->op->operands[i];
  x = reshaped(f, ts_formula_add(f, TS_OP_TRANSPOSE, &x, 1, &move), out);
  return (ts_parts){ts_formula_unary(f, TS_OP_REAL, x), ts_formula_unary(f, TS_OP_IMAG, x)};
}

/* [..., k, n] as [..., 2k, 2n]: [[re, im], [-im, re]] for each number. */
static ts_value_id blocks(ts_formula *f, ts_parts z, const ts_shape *shape) {
  int32_t rank = shape->rank;
  ts_shape pairs = with_dim(shape, rank, 2), wide = *shape;
  ts_value_id first = stacked(f, z.re, z.im, shape, rank);
  ts_value_id second = stacked(f, ts_formula_unary(f, TS_OP_NEGATE, z.im), z.re, shape, rank);
  wide.dims[rank - 2] *= 2;
  wide.dims[rank - 1] *= 2;
  return reshaped(f, stacked(f, first, second, &pairs, rank - 1), &wide);
}

static ts_value_id rows(ts_formula *f, ts_parts z, const ts_shape *shape) {
  ts_shape wide = *shape;
  wide.dims[shape->rank - 1] *= 2;
  return reshaped(f, stacked(f, z.re, z.im, shape, shape->rank), &wide);
}

/* Up to this number of columns and of terms, a product of the parts is faster. */
#define FEW 4

static int64_t extent_of(const ts_shape *shape, const ts_dims *dims) {
  int64_t out = 1;
  for (int32_t i = 0; i < dims->rank; i++) out *= shape->dims[dims->dims[i]];
  return out;
}

/* True for a product that takes complex numbers as they are (kernel/gemm/gemm_pack_complex.c, kernel/gemm/complex). */
static bool is_whole_product(const ts_formula *f) {
  const ts_attrs *attrs = f->call->op->attrs;
  const ts_shape *right = value_of(f, f->call->op->operands[1])->shape;
  const int64_t terms = extent_of(right, &attrs->dot.rhs_contract), batch = extent_of(right, &attrs->dot.rhs_batch);
  if (operand_type(f, 0) != f->call->dtype || operand_type(f, 1) != f->call->dtype) return false;
  if (terms == 0 || terms > FEW || batch == 0) return true;
  const int64_t columns = ts_shape_elements(right) / terms / batch;
  return columns <= 1 || columns > FEW;
}

static ts_value_id split_dot(ts_formula *f) {
  const ts_attrs *attrs = f->call->op->attrs;
  ts_shape left, right;
  if (f->shape->rank == TS_MAX_RANK || is_whole_product(f)) return TS_NO_ID;
  ts_parts a = as_matrices(f, 0, &attrs->dot.lhs_batch, &attrs->dot.lhs_contract, true, &left);
  ts_parts b = as_matrices(f, 1, &attrs->dot.rhs_batch, &attrs->dot.rhs_contract, false, &right);
  const ts_value_id operands[2] = {rows(f, a, &left), blocks(f, b, &right)};
  ts_attrs product = {.dot = {.lhs_contract = {.rank = 1, .dims = {2}},
                              .lhs_batch = {.rank = 1, .dims = {0}},
                              .rhs_contract = {.rank = 1, .dims = {1}},
                              .rhs_batch = {.rank = 1, .dims = {0}}}};
  return joined(f, ts_formula_add(f, TS_OP_DOT, operands, 2, &product), f->shape);
}

/* Channels and features are the last dims, so that pairs are channels and features of the same groups. */
static ts_value_id split_conv(ts_formula *f) {
  ts_shape x = *value_of(f, f->call->op->operands[0])->shape, kernel = *value_of(f, f->call->op->operands[1])->shape;
  if (x.rank + 2 > TS_MAX_RANK) return TS_NO_ID;
  const ts_value_id operands[2] = {rows(f, split(f, 0), &x), blocks(f, split(f, 1), &kernel)};
  return joined(f, again(f, operands), f->shape);
}

/* ---- parts of a number that was joined from two parts ---- */

static const ts_op *maker(const ts_formula *f, ts_value_id value) {
  ts_op_id op = value_of(f, value)->op;
  return op == TS_NO_ID ? NULL : ts_graph_op(f->call->rules->to, op);
}

static bool moves_one(ts_opcode code) { return ts_op_get_class(code) == TS_CLASS_SHAPE && ts_op_operands(code) == 1; }

/* True for two parts that are joined, then perhaps moved. */
static bool is_joined(const ts_formula *f, ts_value_id value) {
  const ts_op *op = maker(f, value);
  for (int depth = 0; op && moves_one(op->code) && depth < 8; depth++) op = maker(f, op->operands[0]);
  return op && op->code == TS_OP_COMPLEX;
}

static ts_value_id simplify_part(ts_formula *f) {
  ts_value_id x = f->call->op->operands[0];
  const ts_op *op = maker(f, x);
  ts_opcode code = f->call->op->code;
  if (!op || !is_joined(f, x)) return TS_NO_ID;
  if (op->code == TS_OP_COMPLEX) return op->operands[code == TS_OP_IMAG];
  ts_opcode move = op->code;
  ts_attrs attrs = ts_op_copy_attrs(op);
  ts_value_id part = ts_formula_unary(f, code, op->operands[0]);
  return ts_formula_add(f, move, &part, 1, &attrs);
}

/* complex(real(x), imag(x)) is x. */
static ts_value_id simplify_join(ts_formula *f) {
  const ts_op *re = maker(f, f->call->op->operands[0]), *im = maker(f, f->call->op->operands[1]);
  bool whole = re && im && re->code == TS_OP_REAL && im->code == TS_OP_IMAG && re->operands[0] == im->operands[0];
  return whole ? re->operands[0] : TS_NO_ID;
}

static ts_value_id simplify(ts_formula *f) {
  switch ((ts_ops_COMPLEX)f->call->op->code) {
  case TS_OP_COMPLEX: return simplify_join(f);
  case TS_OP_REAL:
  case TS_OP_IMAG: return simplify_part(f);
  }
  return TS_NO_ID;
}

static ts_value_id split_product(ts_formula *f) {
  switch ((ts_ops_DOT)f->call->op->code) {
  case TS_OP_CONV: return split_conv(f);
  case TS_OP_DOT: return split_dot(f);
  case TS_OP_WIDE_DOT:
  case TS_OP_SCALED_DOT:
  case TS_OP_QUANTIZED_DOT: break; /* of real numbers */
  }
  return TS_NO_ID;
}

/* ---- the rule ---- */

static ts_value_id split_op(ts_formula *f) {
  ts_opcode code = f->call->op->code;
  switch (ts_op_get_class(code)) {
  case TS_CLASS_SOURCE: return code == TS_OP_IOTA || code == TS_OP_EYE ? split_source(f) : TS_NO_ID;
  case TS_CLASS_UNARY_FLOAT: return split_function(f);
  case TS_CLASS_UNARY: return split_unary(f);
  case TS_CLASS_PREDICATE: return split_predicate(f);
  case TS_CLASS_COMPLEX: return simplify(f);
  case TS_CLASS_BINARY:
  case TS_CLASS_BINARY_FLOAT: return split_binary(f);
  case TS_CLASS_COMPARE: return split_compare(f);
  case TS_CLASS_CONVERT: return code == TS_OP_CONVERT ? split_convert(f) : TS_NO_ID;
  case TS_CLASS_REDUCE: return split_reduce(f);
  case TS_CLASS_SCAN: return code == TS_OP_CUMULATIVE_SUM ? join(f, each_part(f)) : TS_NO_ID;
  case TS_CLASS_WINDOW: return code == TS_OP_WINDOW_SUM ? join(f, each_part(f)) : TS_NO_ID;
  case TS_CLASS_INDEXED: return code == TS_OP_INDEXED_ADD ? split_indexed_add(f) : TS_NO_ID;
  case TS_CLASS_DOT: return split_product(f);
  default: return TS_NO_ID;
  }
}

static bool is_complex(const ts_rule_call *call) {
  if (ts_dtype_is_complex(call->dtype)) return true;
  for (uint32_t i = 0; i < call->op->operand_count; i++) {
    if (ts_dtype_is_complex(ts_graph_value(call->rules->to, call->op->operands[i])->dtype)) return true;
  }
  return false;
}

/* While probing, ops that are added have no values: any op of the formulas ends the probe. */
ts_status ts_complex_split(const ts_rule_call *call, ts_value_id *out) {
  ts_formula f = {.call = call, .dtype = ts_dtype_part(call->dtype), .shape = call->shape};
  if (!is_complex(call)) return TS_SUCCESS;
  if (call->rules->probing && ts_op_get_class(call->op->code) != TS_CLASS_SHAPE) {
    call->rules->changes = true;
    return TS_SUCCESS;
  }
  *out = split_op(&f);
  return f.status;
}
