#include "random_internal.h"

static const ts_opcode float_unary[] = {TS_OP_ABS,   TS_OP_NEGATE, TS_OP_SIGN, TS_OP_CEIL,
                                        TS_OP_FLOOR, TS_OP_ROUND,  TS_OP_SQRT};
static const ts_opcode functions[] = {TS_OP_EXP,  TS_OP_EXPM1, TS_OP_LOG,   TS_OP_LOG1P,  TS_OP_SIGMOID, TS_OP_COS,
                                      TS_OP_SIN,  TS_OP_TAN,   TS_OP_COSH,  TS_OP_SINH,   TS_OP_TANH,    TS_OP_ACOS,
                                      TS_OP_ASIN, TS_OP_ATAN,  TS_OP_ACOSH, TS_OP_ASINH,  TS_OP_ATANH,   TS_OP_RSQRT,
                                      TS_OP_CBRT, TS_OP_ERF,   TS_OP_ERFC,  TS_OP_ERF_INV};
static const ts_opcode functions_of_two[] = {TS_OP_POW, TS_OP_ATAN2};
static const ts_opcode integer_unary[] = {TS_OP_ABS, TS_OP_NEGATE,   TS_OP_SIGN, TS_OP_FLOOR, TS_OP_NOT,
                                          TS_OP_CLZ, TS_OP_POPCOUNT, TS_OP_CEIL, TS_OP_ROUND};
static const ts_opcode float_binary[] = {TS_OP_ADD, TS_OP_SUBTRACT, TS_OP_MULTIPLY, TS_OP_DIVIDE,
                                         TS_OP_MIN, TS_OP_MAX,      TS_OP_REMAINDER};
static const ts_opcode integer_binary[] = {
    TS_OP_ADD, TS_OP_SUBTRACT, TS_OP_MULTIPLY, TS_OP_QUOTIENT, TS_OP_REMAINDER,  TS_OP_POW,        TS_OP_MIN,
    TS_OP_MAX, TS_OP_AND,      TS_OP_OR,       TS_OP_XOR,      TS_OP_SHIFT_LEFT, TS_OP_SHIFT_RIGHT};
static const ts_opcode compares[] = {TS_OP_EQUAL,       TS_OP_NOT_EQUAL,     TS_OP_GREATER,
                                     TS_OP_LESS,        TS_OP_GREATER_EQUAL, TS_OP_LESS_EQUAL,
                                     TS_OP_LOGICAL_AND, TS_OP_LOGICAL_OR,    TS_OP_LOGICAL_XOR};

static ts_status unary(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  bool is_float = ts_dtype_is_float(type_of(g, x).dtype);
  return add_unary(g, s, is_float ? RNG_PICK(&g->random, float_unary) : RNG_PICK(&g->random, integer_unary), x, out);
}

static ts_status companion(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  ts_type type = type_of(g, x);
  return pick_like(g, s, type.dtype, &type.shape, out);
}

static ts_status binary(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  bool is_float = ts_dtype_is_float(type_of(g, x).dtype);
  ts_opcode code = is_float ? RNG_PICK(&g->random, float_binary) : RNG_PICK(&g->random, integer_binary);
  ts_value_id y;
  TS_TRY(companion(g, s, x, &y));
  return rng_chance(&g->random, 50) ? add_binary(g, s, code, x, y, out) : add_binary(g, s, code, y, x, out);
}

static ts_status compare(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  ts_value_id y;
  if (rng_chance(&g->random, 20)) {
    return add_unary(g, s, rng_chance(&g->random, 50) ? TS_OP_IS_NAN : TS_OP_IS_INFINITY, x, out);
  }
  TS_TRY(companion(g, s, x, &y));
  return add_binary(g, s, RNG_PICK(&g->random, compares), x, y, out);
}

static ts_status select(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  ts_value_id operands[3] = {TS_NO_ID, x, TS_NO_ID};
  ts_shape shape = type_of(g, x).shape;
  if (rng_chance(&g->random, 70)) {
    TS_TRY(compare(g, s, x, &operands[0]));
  } else {
    TS_TRY(pick_like(g, s, TS_U8, &shape, &operands[0]));
  }
  TS_TRY(companion(g, s, x, &operands[2]));
  return add_op(g, s, TS_OP_SELECT, NULL, operands, 3, out);
}

static ts_status clamp(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  ts_value_id operands[3] = {x};
  TS_TRY(companion(g, s, x, &operands[1]));
  TS_TRY(companion(g, s, x, &operands[2]));
  return add_op(g, s, TS_OP_CLAMP, NULL, operands, 3, out);
}

static ts_status convert(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  return add_op(g, s, TS_OP_CONVERT, &(ts_attrs){.dtype = random_dtype(g)}, &x, 1, out);
}

/* Exponents that have no last digits to differ in. */
static ts_status power(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  static const double exponents[] = {0, 1, 2, 3, -1, 0.5};
  ts_type type = type_of(g, x);
  double exponent = RNG_PICK(&g->random, exponents);
  ts_value_id y;
  if (ts_dtype_is_integer(type.dtype)) exponent = (double)rng_below(&g->random, 4);
  TS_TRY(add_constant(g, s, type.dtype, &type.shape, exponent, &y));
  return add_binary(g, s, TS_OP_POW, x, y, out);
}

static ts_status step(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  switch (rng_below(&g->random, 11)) {
  case 0:
  case 1: return unary(g, s, x, out);
  case 6: return power(g, s, x, out);
  case 2: return select(g, s, x, out);
  case 3: return clamp(g, s, x, out);
  case 4: return convert(g, s, x, out);
  case 5: return compare(g, s, x, out);
  default: return binary(g, s, x, out);
  }
}

ts_status add_function(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  ts_value_id y;
  if (rng_chance(&g->random, 85)) return add_unary(g, s, RNG_PICK(&g->random, functions), x, out);
  TS_TRY(companion(g, s, x, &y));
  return add_binary(g, s, RNG_PICK(&g->random, functions_of_two), x, y, out);
}

/* Ends a chain with a function, whose result is approximate. */
static ts_status end_in_function(generator *g, scope *s, ts_value_id x) {
  if (!ts_dtype_is_float(type_of(g, x).dtype)) {
    TS_TRY(ts_graph_convert(g->graph, s->region, x, random_float_dtype(g), &x));
  }
  TS_TRY(add_function(g, s, x, &x));
  return offer(s, x, true);
}

ts_status make_chain(generator *g, scope *s) {
  ts_value_id x = pick(g, s);
  int64_t length = rng_chance(&g->random, 30) ? 1 : rng_between(&g->random, 1, 8);
  for (int64_t i = 0; i < length; i++) {
    TS_TRY(step(g, s, x, &x));
    if (i == length - 1 || rng_chance(&g->random, 20)) TS_TRY(offer(s, x, false));
  }
  return s->approximate_allowed && rng_chance(&g->random, 30) ? end_in_function(g, s, x) : TS_SUCCESS;
}

static ts_dtype other_dtype_of_width(generator *g, ts_dtype type) {
  for (int tries = 0; tries < 50; tries++) {
    ts_dtype other = random_dtype(g);
    if (ts_dtype_bits(other) == ts_dtype_bits(type)) return other;
  }
  return type;
}

/* A NaN's bits are not promised, so floats have none when they are bitcast. */
ts_status make_reinterpreted(generator *g, scope *s) {
  ts_value_id x = pick(g, s);
  ts_type type = type_of(g, x);
  if (ts_dtype_is_float(type.dtype)) {
    ts_value_id operands[3] = {TS_NO_ID, TS_NO_ID, x};
    TS_TRY(add_unary(g, s, TS_OP_IS_NAN, x, &operands[0]));
    TS_TRY(add_constant(g, s, type.dtype, &type.shape, 1, &operands[1]));
    TS_TRY(add_op(g, s, TS_OP_SELECT, NULL, operands, 3, &x));
  }
  ts_attrs attrs = {.dtype = other_dtype_of_width(g, type.dtype)};
  TS_TRY(add_op(g, s, TS_OP_BITCAST, &attrs, &x, 1, &x));
  return offer(s, x, false);
}

/* A complex number of a float of f32 or f64 and another one. */
static ts_status join_parts(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  ts_value_id y;
  TS_TRY(companion(g, s, x, &y));
  return add_binary(g, s, TS_OP_COMPLEX, x, y, out);
}

/* The product with another tensor of complex numbers, or z if that would be large. */
static ts_status complex_product(generator *g, scope *s, ts_value_id z, ts_value_id *out) {
  const ts_type type = type_of(g, z);
  const ts_dtype part = ts_dtype_part(type.dtype);
  ts_value_id parts[2], operands[2] = {z};
  dot_plan plan;
  *out = z;
  if (!random_dot_plan(g, &type.shape, &plan)) return TS_SUCCESS;
  for (int i = 0; i < 2; i++) TS_TRY(pick_like(g, s, part, &plan.rhs, &parts[i]));
  TS_TRY(add_binary(g, s, TS_OP_COMPLEX, parts[0], parts[1], &operands[1]));
  return add_op(g, s, TS_OP_DOT, &plan.attrs, operands, 2, out);
}

ts_status make_complex(generator *g, scope *s) {
  static const ts_opcode binary_codes[] = {TS_OP_ADD, TS_OP_SUBTRACT, TS_OP_MULTIPLY, TS_OP_DIVIDE};
  ts_value_id x, z, w, part;
  if (g->options.dtypes) return TS_SUCCESS; /* a choice of types is of real ones */
  TS_TRY(pick_float(g, s, &x));
  TS_TRY(ts_graph_convert(g->graph, s->region, x, rng_chance(&g->random, 50) ? TS_F32 : TS_F64, &x));
  TS_TRY(join_parts(g, s, x, &z));
  if (rng_chance(&g->random, 60)) {
    TS_TRY(join_parts(g, s, x, &w));
    TS_TRY(add_binary(g, s, RNG_PICK(&g->random, binary_codes), z, w, &z));
  }
  if (!g->options.no_dot && rng_chance(&g->random, 25)) TS_TRY(complex_product(g, s, z, &z));
  if (rng_chance(&g->random, 30)) TS_TRY(add_unary(g, s, TS_OP_NEGATE, z, &z));
  if (rng_chance(&g->random, 40)) TS_TRY(add_reshape(g, s, z, &z));
  TS_TRY(add_unary(g, s, rng_chance(&g->random, 50) ? TS_OP_REAL : TS_OP_IMAG, z, &part));
  return offer(s, part, false);
}

/* ---- sources ---- */

static ts_status literal(generator *g, scope *s, ts_value_id *out) {
  ts_shape shape = {.rank = 1, .dims = {rng_between(&g->random, 0, 20)}};
  ts_attrs attrs = {0};
  TS_TRY(ts_buffer_create(ts_pool_default(), random_dtype(g), &shape, &attrs.literal.buffer));
  ts_buffer *buffer = attrs.literal.buffer;
  for (int64_t i = 0; i < shape.dims[0]; i++) {
    ts_scalar value = ts_scalar_from_s64(buffer->dtype, rng_between(&g->random, -20, 100));
    ts_scalar_store(buffer->dtype, value, (char *)buffer->data + (size_t)i * ts_dtype_size(buffer->dtype));
  }
  ts_status status = add_op(g, s, TS_OP_LITERAL, &attrs, NULL, 0, out);
  ts_buffer_release(buffer);
  return status;
}

ts_status make_source(generator *g, scope *s) {
  ts_shape shape = random_shape(g);
  ts_value_id x;
  ts_attrs attrs = {.shaped = {.dtype = random_dtype(g), .shape = shape}};
  if (rng_chance(&g->random, 40)) {
    TS_TRY(literal(g, s, &x));
  } else if (shape.rank >= 2) {
    TS_TRY(add_op(g, s, TS_OP_EYE, &attrs, NULL, 0, &x));
  } else {
    attrs = (ts_attrs){.iota = {.dtype = random_dtype(g), .shape = shape, .axis = shape.rank - 1}};
    TS_TRY(add_op(g, s, TS_OP_IOTA, &attrs, NULL, 0, &x));
  }
  return offer(s, x, false);
}
