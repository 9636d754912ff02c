/* rng_bit_generator by ThreeFry 2x32 (20 rounds) and Philox 4x32 (10 rounds), with XLA's numbering of
 * counters and elements, and XLA's next state. DEFAULT is Philox, as on XLA's CPU. The state is the key, u64, and a
 * counter of one or two u64. */
#include "stablehlo/make.h"

/* u64 as its low and high half, u32 */
typedef struct halves {
  ts_value_id low, high;
} halves;

static ts_status number(const make_call *m, ts_opcode code, ts_value_id x, uint64_t y, ts_value_id *out) {
  return make_with_integer(m, code, x, (int64_t)y, out);
}

static ts_status split(const make_call *m, ts_value_id x, halves *out) {
  ts_value_id high;
  TS_TRY(make_convert(m, x, TS_U32, &out->low));
  TS_TRY(number(m, TS_OP_SHIFT_RIGHT, x, 32, &high));
  return make_convert(m, high, TS_U32, &out->high);
}

static ts_status join(const make_call *m, halves x, ts_value_id *out) {
  ts_value_id high;
  TS_TRY(make_convert(m, x.low, TS_U64, out));
  TS_TRY(make_convert(m, x.high, TS_U64, &high));
  TS_TRY(number(m, TS_OP_SHIFT_LEFT, high, 32, &high));
  return make_binary(m, TS_OP_OR, *out, high, out);
}

/* Word i of the state, as a scalar. */
static ts_status word(const make_call *m, int64_t i, ts_value_id *out) {
  TS_TRY(make_slice(m, m->operands[0].id, 0, (make_range){i, i + 1, 1}, out));
  return make_reshape(m, *out, &ts_shape_scalar, out);
}

/* The numbers 0, 1, ... of elements in order. */
static ts_status positions(const make_call *m, const ts_shape *shape, ts_value_id *out) {
  const ts_shape flat = {.rank = 1, .dims = {ts_shape_elements(shape)}};
  TS_TRY(make_iota(m, TS_U64, &flat, 0, out));
  return make_reshape(m, *out, shape, out);
}

/* ---- ThreeFry */

static ts_status threefry_round(const make_call *m, int turn, halves *x) {
  ts_value_id left, right;
  TS_TRY(make_binary(m, TS_OP_ADD, x->low, x->high, &x->low));
  TS_TRY(number(m, TS_OP_SHIFT_LEFT, x->high, (uint64_t)turn, &left));
  TS_TRY(number(m, TS_OP_SHIFT_RIGHT, x->high, (uint64_t)(32 - turn), &right));
  TS_TRY(make_binary(m, TS_OP_OR, left, right, &left));
  return make_binary(m, TS_OP_XOR, left, x->low, &x->high);
}

static ts_status threefry(const make_call *m, ts_value_id key, halves *x) {
  static const int turns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  ts_value_id keys[3];
  halves k;
  TS_TRY(split(m, key, &k));
  keys[0] = k.low;
  keys[1] = k.high;
  TS_TRY(make_binary(m, TS_OP_XOR, k.low, k.high, &keys[2]));
  TS_TRY(number(m, TS_OP_XOR, keys[2], 0x1BD11BDA, &keys[2]));
  const ts_shape *shape = make_value_of(m, x->low)->shape;
  for (int i = 0; i < 3; i++) TS_TRY(make_broadcast_to(m, keys[i], shape, &keys[i]));
  TS_TRY(make_binary(m, TS_OP_ADD, x->low, keys[0], &x->low));
  TS_TRY(make_binary(m, TS_OP_ADD, x->high, keys[1], &x->high));
  for (int i = 0; i < 5; i++) {
    for (int j = 0; j < 4; j++) TS_TRY(threefry_round(m, turns[i % 2][j], x));
    TS_TRY(make_binary(m, TS_OP_ADD, x->low, keys[(i + 1) % 3], &x->low));
    TS_TRY(make_binary(m, TS_OP_ADD, x->high, keys[(i + 2) % 3], &x->high));
    TS_TRY(number(m, TS_OP_ADD, x->high, (uint64_t)(i + 1), &x->high));
  }
  return TS_SUCCESS;
}

/* The dim whose neighbours are the two halves of one block: the first of an even size, else the first of the largest.
 */
static int32_t halved_dim(const ts_shape *shape) {
  int32_t largest = 0;
  for (int32_t d = 0; d < shape->rank; d++) {
    if (shape->dims[d] % 2 == 0) return d;
    if (shape->dims[d] > shape->dims[largest]) largest = d;
  }
  return largest;
}

static ts_status blocks_of_threefry(const make_call *m, const ts_shape *counters, halves *out) {
  ts_value_id key, count, numbers;
  TS_TRY(word(m, 0, &key));
  TS_TRY(word(m, 1, &count));
  TS_TRY(positions(m, counters, &numbers));
  TS_TRY(make_broadcast_to(m, count, counters, &count));
  TS_TRY(make_binary(m, TS_OP_ADD, numbers, count, &numbers));
  TS_TRY(split(m, numbers, out));
  return threefry(m, key, out);
}

static ts_status threefry_32(const make_call *m, const ts_shape *shape, int64_t *out_used, ts_value_id *out) {
  const int32_t dim = shape->rank ? halved_dim(shape) : 0;
  const int64_t size = shape->rank ? shape->dims[dim] : 1;
  ts_shape counters = {.rank = 4, .dims = {1, (size + 1) / 2, 1, 1}};
  ts_attrs attrs = {.axis = 2};
  halves x;
  for (int32_t d = 0; d < shape->rank; d++)
    if (d != dim) counters.dims[d < dim ? 0 : 3] *= shape->dims[d];
  *out_used = ts_shape_elements(&counters);
  TS_TRY(blocks_of_threefry(m, &counters, &x));
  TS_TRY(make_add(m, TS_OP_CONCATENATE, (ts_values){(ts_value_id[]){x.low, x.high}, 2}, &attrs, out));
  const ts_shape pairs = {.rank = 3, .dims = {counters.dims[0], 2 * counters.dims[1], counters.dims[3]}};
  TS_TRY(make_reshape(m, *out, &pairs, out));
  TS_TRY(make_slice(m, *out, 1, (make_range){0, size, 1}, out));
  return make_reshape(m, *out, shape, out);
}

static ts_status threefry_64(const make_call *m, const ts_shape *shape, int64_t *out_used, ts_value_id *out) {
  halves x;
  *out_used = ts_shape_elements(shape);
  TS_TRY(blocks_of_threefry(m, shape, &x));
  return join(m, x, out);
}

/* ---- Philox */

static ts_status product(const make_call *m, ts_value_id x, uint64_t y, halves *out) {
  TS_TRY(make_convert(m, x, TS_U64, &x));
  TS_TRY(number(m, TS_OP_MULTIPLY, x, y, &x));
  return split(m, x, out);
}

static ts_status three(const make_call *m, ts_value_id x, ts_value_id y, ts_value_id z, ts_value_id *out) {
  TS_TRY(make_binary(m, TS_OP_XOR, x, y, out));
  return make_binary(m, TS_OP_XOR, *out, z, out);
}

static ts_status philox(const make_call *m, halves key, ts_value_id x[4]) {
  const ts_shape *shape = make_value_of(m, x[0])->shape;
  halves first, last;
  ts_value_id keys[2];
  for (int i = 0; i < 10; i++) {
    TS_TRY(make_broadcast_to(m, key.low, shape, &keys[0]));
    TS_TRY(make_broadcast_to(m, key.high, shape, &keys[1]));
    TS_TRY(product(m, x[0], 0xD2511F53, &first));
    TS_TRY(product(m, x[2], 0xCD9E8D57, &last));
    TS_TRY(three(m, last.high, x[1], keys[0], &x[0]));
    TS_TRY(three(m, first.high, x[3], keys[1], &x[2]));
    x[1] = last.low;
    x[3] = first.low;
    TS_TRY(number(m, TS_OP_ADD, key.low, 0x9E3779B9, &key.low));
    TS_TRY(number(m, TS_OP_ADD, key.high, 0xBB67AE85, &key.high));
  }
  return TS_SUCCESS;
}

/* The counter's two words. With one word of state for it the other is the key. */
static ts_status counter(const make_call *m, ts_value_id *low, ts_value_id *high) {
  const bool two = make_operand_of(m, 0)->shape->dims[0] >= 3;
  TS_TRY(word(m, 1, low));
  return word(m, two ? 2 : 0, high);
}

/* Adds numbers to the counter: a carry is added to the high word. */
static ts_status advance(const make_call *m, ts_value_id numbers, ts_value_id *low, ts_value_id *high) {
  ts_value_id carry, sum;
  const ts_shape *shape = make_value_of(m, numbers)->shape;
  TS_TRY(make_broadcast_to(m, *low, shape, low));
  TS_TRY(make_broadcast_to(m, *high, shape, high));
  TS_TRY(make_binary(m, TS_OP_ADD, *low, numbers, &sum));
  TS_TRY(make_binary(m, TS_OP_LESS, sum, *low, &carry));
  TS_TRY(make_convert(m, carry, TS_U64, &carry));
  *low = sum;
  return make_binary(m, TS_OP_ADD, *high, carry, high);
}

/* Columns beside each other, in order, and the first `count` of all. */
static ts_status interleave(const make_call *m, ts_value_id *columns, size_t width, int64_t count, ts_value_id *out) {
  const int64_t rows = make_value_of(m, columns[0])->shape->dims[0];
  const ts_shape column = {.rank = 2, .dims = {rows, 1}}, line = {.rank = 1, .dims = {rows * (int64_t)width}};
  ts_attrs attrs = {.axis = 1};
  for (size_t i = 0; i < width; i++) TS_TRY(make_reshape(m, columns[i], &column, &columns[i]));
  TS_TRY(make_add(m, TS_OP_CONCATENATE, (ts_values){columns, width}, &attrs, out));
  TS_TRY(make_reshape(m, *out, &line, out));
  return make_slice(m, *out, 0, (make_range){0, count, 1}, out);
}

static ts_status philox_bits(const make_call *m, const ts_shape *shape, bool wide, int64_t *out_used,
                             ts_value_id *out) {
  const int64_t count = ts_shape_elements(shape), words = wide ? 2 * count : count;
  const ts_shape line = {.rank = 1, .dims = {(words + 3) / 4}};
  ts_value_id key, low, high, x[4];
  halves parts[2], k;
  *out_used = line.dims[0];
  TS_TRY(word(m, 0, &key));
  TS_TRY(split(m, key, &k));
  TS_TRY(counter(m, &low, &high));
  TS_TRY(positions(m, &line, &x[0]));
  TS_TRY(advance(m, x[0], &low, &high));
  TS_TRY(split(m, low, &parts[0]));
  TS_TRY(split(m, high, &parts[1]));
  for (int i = 0; i < 4; i++) x[i] = i % 2 ? parts[i / 2].high : parts[i / 2].low;
  TS_TRY(philox(m, k, x));
  if (wide)
    for (int i = 0; i < 2; i++) TS_TRY(join(m, (halves){x[2 * i], x[2 * i + 1]}, &x[i]));
  TS_TRY(interleave(m, x, wide ? 2 : 4, count, out));
  return make_reshape(m, *out, shape, out);
}

/* ---- the op */

/* The state after `used` counters. */
static ts_status next_state(const make_call *m, bool is_philox, int64_t used, ts_value_id *out) {
  const ts_shape one = {.rank = 1, .dims = {1}};
  const int64_t size = make_operand_of(m, 0)->shape->dims[0];
  ts_value_id words[3], count;
  ts_attrs attrs = {0};
  for (int64_t i = 0; i < size; i++) TS_TRY(word(m, i, &words[i]));
  TS_TRY(make_integer_of(m, TS_U64, &ts_shape_scalar, used, &count));
  if (size == 3 && is_philox)
    TS_TRY(advance(m, count, &words[1], &words[2]));
  else
    TS_TRY(make_binary(m, TS_OP_ADD, words[1], count, &words[1]));
  for (int64_t i = 0; i < size; i++) TS_TRY(make_reshape(m, words[i], &one, &words[i]));
  return make_add(m, TS_OP_CONCATENATE, (ts_values){words, (size_t)size}, &attrs, out);
}

static ts_status check(const make_call *m, bool *out_philox) {
  const mlir_attr *algorithm = make_attr(m, "algorithm|rng_algorithm");
  TS_TRY(make_count_operands(m, 1));
  const ts_value *state = make_operand_of(m, 0);
  if (m->op->types.count != 2) return make_error(m, TS_INVALID_ARGUMENT, "expected two results");
  const bool is_threefry = algorithm && mlir_token_is(algorithm->token, "THREE_FRY");
  *out_philox = !is_threefry;
  if (algorithm && !is_threefry && !mlir_token_is(algorithm->token, "PHILOX") &&
      !mlir_token_is(algorithm->token, "DEFAULT"))
    return mlir_error(TS_INVALID_ARGUMENT, algorithm->token, "expected DEFAULT, PHILOX or THREE_FRY");
  if (state->dtype != TS_U64 || state->shape->rank != 1 || state->shape->dims[0] < 2 ||
      state->shape->dims[0] > (is_threefry ? 2 : 3))
    return make_error(m, TS_INVALID_ARGUMENT, "its state is %s, expected u64[2]%s",
                      TS_SHAPE_STR(state->dtype, state->shape), is_threefry ? "" : " or u64[3]");
  return TS_SUCCESS;
}

ts_status make_in_random(const make_call *m) {
  bool is_philox;
  int64_t used = 0;
  ts_value_id bits, state;
  TS_TRY(check(m, &is_philox));
  const mlir_type *type = &m->op->types.data[1];
  const int size = ts_dtype_bits(type->dtype);
  const ts_dtype plain = ts_dtype_of_bits(TS_KIND_UNSIGNED, size);
  if (type->is_bool || size < 8 || plain == TS_DTYPE_NONE)
    return make_error(m, TS_UNIMPLEMENTED, "random bits of %s cannot be read", ts_dtype_name(type->dtype));
  if (!mlir_shape_is_known(type->shape)) return make_error(m, TS_INVALID_ARGUMENT, "its size is not known");
  if (ts_shape_elements(type->shape) == 0)
    TS_TRY(make_integer_of(m, plain, type->shape, 0, &bits));
  else if (is_philox)
    TS_TRY(philox_bits(m, type->shape, size == 64, &used, &bits));
  else if (size == 64)
    TS_TRY(threefry_64(m, type->shape, &used, &bits));
  else
    TS_TRY(threefry_32(m, type->shape, &used, &bits));
  TS_TRY(make_convert(m, bits, plain, &bits)); /* of short types the low bits */
  TS_TRY(make_bitcast(m, bits, type->dtype, &bits));
  TS_TRY(next_state(m, is_philox, used, &state));
  make_result(m, 0, state);
  make_result(m, 1, bits);
  return TS_SUCCESS;
}
