#include "jit/session/target.h"
#include "kernel/ref/ref_sum.h"
#include "tensor/contract_order.h"
#include "tensor/dot_order.h"

#include <math.h>

/* The dims of one operand by role. Batch and contracted dims are in the attributes' order, free dims in increasing
 * order. */
typedef struct dot_side {
  ts_shape batch, contract, free;
  int64_t batch_strides[TS_MAX_RANK], contract_strides[TS_MAX_RANK], free_strides[TS_MAX_RANK];
} dot_side;

static void take_dim(const ts_shape *shape, const int64_t *strides, int64_t dim, ts_shape *part,
                     int64_t *part_strides) {
  part_strides[part->rank] = strides[dim];
  part->dims[part->rank++] = shape->dims[dim];
}

static dot_side strided_side(const ts_shape *shape, const int64_t *strides, const ts_dims *batch,
                             const ts_dims *contract) {
  dot_side side = {0};
  bool taken[TS_MAX_RANK] = {false};
  for (int32_t i = 0; i < batch->rank; i++) {
    take_dim(shape, strides, batch->dims[i], &side.batch, side.batch_strides);
    taken[batch->dims[i]] = true;
  }
  for (int32_t i = 0; i < contract->rank; i++) {
    take_dim(shape, strides, contract->dims[i], &side.contract, side.contract_strides);
    taken[contract->dims[i]] = true;
  }
  for (int32_t d = 0; d < shape->rank; d++) {
    if (!taken[d]) take_dim(shape, strides, d, &side.free, side.free_strides);
  }
  return side;
}

static dot_side get_side(const ts_shape *shape, const ts_dims *batch, const ts_dims *contract) {
  int64_t strides[TS_MAX_RANK];
  ts_shape_strides(shape, strides);
  return strided_side(shape, strides, batch, contract);
}

/* One operand, and where its elements of a result begin. */
typedef struct dot_operand {
  const ts_buffer *buffer;
  dot_side side;
  int64_t base;
} dot_operand;

static int64_t base_of(const dot_side *side, const int64_t *batch, const int64_t *free) {
  return ts_ref_offset(side->batch.rank, batch, side->batch_strides) +
         ts_ref_offset(side->free.rank, free, side->free_strides);
}

/* The element at an index of the contracted dims, in the result's type. */
static ts_scalar element_at(const ts_ref_call *call, const dot_operand *o, const int64_t *index) {
  const int64_t at = o->base + ts_ref_offset(o->side.contract.rank, index, o->side.contract_strides);
  return ts_scalar_convert(o->buffer->dtype, ts_ref_get(o->buffer, at), call->result->dtype);
}

/* The factors of one term, in the type of the sum. operands: lhs, rhs, and the scale of scaled_dot_general. */
static void term_at(const ts_ref_call *call, const dot_operand *operands, const int64_t *index, ts_scalar out[2]) {
  const ts_op *op = call->op;
  const ts_dtype given = call->result->dtype, type = ts_dtype_accumulator(given);
  for (int i = 0; i < 2; i++) {
    out[i] = element_at(call, &operands[i], index);
    if (op->code == TS_OP_SCALED_DOT && i == op->attrs->scaled_dot.operand)
      out[i] = ts_ref_binary(TS_OP_MULTIPLY, given, out[i], element_at(call, &operands[2], index));
    out[i] = ts_scalar_convert(given, out[i], type);
  }
}

static ts_scalar dot_element(const ts_ref_call *call, const dot_operand *operands) {
  const ts_shape *contract = &operands[0].side.contract;
  const ts_dtype given = call->result->dtype, type = ts_dtype_accumulator(given);
  int64_t index[TS_MAX_RANK] = {0}, count = ts_shape_elements(contract);
  ts_scalar x[2];
  ts_ref_sum sum;
  ts_ref_sum_start(&sum, type, ts_contract_order_of(given, ts_target_host()->amx));
  for (int64_t k = 0; ts_ref_goes_on(call, k, count); k++, ts_ref_next(contract, index)) {
    term_at(call, operands, index, x);
    ts_ref_sum_add(&sum, x[0], x[1]);
  }
  return ts_scalar_convert(type, ts_ref_sum_end(&sum), given);
}

/* ---- without free dims */

/* Integers and complex numbers: the products are reduced. `terms` has room for them. */
static ts_scalar reduced_element(const ts_ref_call *call, const dot_operand *operands, ts_scalar *terms) {
  const ts_shape *contract = &operands[0].side.contract;
  const ts_dtype given = call->result->dtype, type = ts_dtype_accumulator(given);
  int64_t index[TS_MAX_RANK] = {0}, count = ts_shape_elements(contract);
  ts_scalar x[2];
  for (int64_t k = 0; ts_ref_goes_on(call, k, count); k++, ts_ref_next(contract, index)) {
    term_at(call, operands, index, x);
    terms[k] = ts_ref_binary(TS_OP_MULTIPLY, type, x[0], x[1]);
  }
  return ts_scalar_convert(type, ts_ref_sum_tree(call, type, terms, count), given);
}

/* The lanes of one block of tensor/dot_order.h. */
typedef struct lane_sums {
  ts_dtype type;
  int64_t lanes, terms; /* terms: so far */
  ts_scalar chain[TS_DOT_MAX_LANES], sum[TS_DOT_MAX_LANES];
} lane_sums;

static void end_chains(lane_sums *s) {
  const bool is_first = s->terms <= s->lanes * TS_DOT_CHAIN;
  for (int64_t l = 0; l < s->lanes; l++) {
    s->sum[l] = is_first ? s->chain[l] : ts_ref_binary(TS_OP_ADD, s->type, s->sum[l], s->chain[l]);
    s->chain[l] = (ts_scalar){.words = {0, 0}};
  }
}

static void add_term(lane_sums *s, const ts_scalar x[2]) {
  ts_scalar *chain = &s->chain[s->terms++ % s->lanes];
  *chain = ts_ref_multiply_add(s->type, x[0], x[1], *chain);
  if (s->terms % (s->lanes * TS_DOT_CHAIN) == 0) end_chains(s);
}

static ts_scalar end_lanes(lane_sums *s) {
  if (s->terms % (s->lanes * TS_DOT_CHAIN) != 0) end_chains(s);
  for (int64_t half = s->lanes / 2; half > 0; half /= 2)
    for (int64_t l = 0; l < half; l++) s->sum[l] = ts_ref_binary(TS_OP_ADD, s->type, s->sum[l], s->sum[l + half]);
  s->terms = 0;
  return s->sum[0];
}

/* Floats. `blocks` has room for the sum of each block. */
static ts_scalar lanes_element(const ts_ref_call *call, const dot_operand *operands, ts_scalar *blocks) {
  const ts_shape *contract = &operands[0].side.contract;
  const ts_dtype given = call->result->dtype, type = ts_dtype_accumulator(given);
  const int64_t size = (int64_t)ts_dtype_size(type), block = ts_dot_block(size), count = ts_shape_elements(contract);
  int64_t index[TS_MAX_RANK] = {0}, done = 0;
  lane_sums s = {.type = type, .lanes = ts_dot_lanes(size)};
  ts_scalar x[2];
  blocks[0] = (ts_scalar){.words = {0, 0}};
  for (int64_t k = 0; ts_ref_goes_on(call, k, count); k++, ts_ref_next(contract, index)) {
    term_at(call, operands, index, x);
    add_term(&s, x);
    if (s.terms == block || k + 1 == count) blocks[done++] = end_lanes(&s);
  }
  for (int64_t step = 1; step < done; step *= 2)
    for (int64_t i = 0; i + step < done; i += 2 * step)
      blocks[i] = ts_ref_binary(TS_OP_ADD, type, blocks[i], blocks[i + step]);
  return ts_scalar_convert(type, blocks[0], given);
}

static int64_t room_of(const ts_ref_call *call, int64_t count) {
  const ts_dtype type = ts_dtype_accumulator(call->result->dtype);
  return ts_dtype_is_float(type) ? count / ts_dot_block((int64_t)ts_dtype_size(type)) + 1 : count;
}

/* `room`: room_of. */
static ts_scalar vector_element(const ts_ref_call *call, const dot_operand *operands, ts_scalar *room) {
  return ts_dtype_is_float(call->result->dtype) ? lanes_element(call, operands, room)
                                                : reduced_element(call, operands, room);
}

/* ---- any dims */

/* The scale with the dims of the operand that it scales. */
static dot_side get_scale(const ts_ref_call *call) {
  const ts_attrs *a = call->op->attrs;
  const ts_shape *scale = &call->operands[2]->shape;
  const int32_t which = a->scaled_dot.operand;
  int64_t own[TS_MAX_RANK], strides[TS_MAX_RANK] = {0};
  ts_shape_strides(scale, own);
  for (int32_t i = 0; i < scale->rank; i++)
    if (scale->dims[i] != 1) strides[a->scaled_dot.axes.dims[i]] = own[i];
  return strided_side(&call->operands[which]->shape, strides, which ? &a->dot.rhs_batch : &a->dot.lhs_batch,
                      which ? &a->dot.rhs_contract : &a->dot.lhs_contract);
}

/* The result's dims: batch, free dims of lhs, free dims of rhs. */
ts_status ts_ref_dot(const ts_ref_call *call) {
  const ts_attrs *attrs = call->op->attrs;
  const bool has_scale = call->op->code == TS_OP_SCALED_DOT;
  dot_operand of[3] = {{.buffer = call->operands[0]}, {.buffer = call->operands[1]}};
  dot_operand *lhs = &of[0], *rhs = &of[1];
  lhs->side = get_side(&lhs->buffer->shape, &attrs->dot.lhs_batch, &attrs->dot.lhs_contract);
  rhs->side = get_side(&rhs->buffer->shape, &attrs->dot.rhs_batch, &attrs->dot.rhs_contract);
  if (has_scale) of[2] = (dot_operand){call->operands[2], get_scale(call), 0};
  const bool of_vectors = call->op->code == TS_OP_DOT && lhs->side.free.rank + rhs->side.free.rank == 0;
  const ts_shape *shape = &call->result->shape;
  int64_t index[TS_MAX_RANK] = {0};
  ts_scalar *room = NULL;
  if (of_vectors) TS_TRY(TS_NEW_ARRAY((size_t)room_of(call, ts_shape_elements(&lhs->side.contract)), &room));
  for (int64_t i = 0; ts_ref_goes_on(call, i, ts_shape_elements(shape)); i++, ts_ref_next(shape, index)) {
    const int64_t *free[2] = {index + lhs->side.batch.rank, index + lhs->side.batch.rank + lhs->side.free.rank};
    for (int o = 0; o < 2; o++) of[o].base = base_of(&of[o].side, index, free[o]);
    if (has_scale) of[2].base = base_of(&of[2].side, index, free[attrs->scaled_dot.operand]);
    ts_ref_set(call->result, i, of_vectors ? vector_element(call, of, room) : dot_element(call, of));
  }
  ts_free(room);
  return TS_SUCCESS;
}

/* ---- convolution */

/* The element of the operand that a tap of the kernel reads; -1 for padding, and between dilated elements. */
static int64_t tap_element(const ts_ref_call *call, const int64_t *output, const int64_t *tap, int32_t spatial) {
  const ts_attrs *a = call->op->attrs;
  const ts_shape *x = &call->operands[0]->shape;
  int64_t element = output[0];
  for (int32_t d = 0; d < spatial; d++) {
    int64_t dilation = a->conv.input_dilation.dims[d];
    int64_t at =
        output[1 + d] * a->conv.strides.dims[d] - a->conv.low.dims[d] + tap[d] * a->conv.kernel_dilation.dims[d];
    if (at < 0 || at % dilation != 0 || at / dilation >= x->dims[1 + d]) return -1;
    element = element * x->dims[1 + d] + at / dilation;
  }
  return element * x->dims[spatial + 1];
}

/* That of the product where the convolution is one. */
static ts_contract_order conv_order(const ts_ref_call *call) {
  const bool product = ts_conv_is_point(call->op->attrs, &call->operands[1]->shape);
  return ts_contract_order_of(call->result->dtype, product && ts_target_host()->amx);
}

static ts_scalar conv_element(const ts_ref_call *call, const int64_t *output) {
  const ts_buffer *x = call->operands[0], *kernel = call->operands[1];
  int32_t spatial = x->shape.rank - 2;
  ts_shape taps = {.rank = spatial};
  ts_dtype type = ts_dtype_accumulator(x->dtype);
  int64_t channels = kernel->shape.dims[spatial], features = kernel->shape.dims[spatial + 1], tap[TS_MAX_RANK] = {0};
  int64_t feature = output[spatial + 1], group = feature / (features / call->op->attrs->conv.groups), k = 0;
  ts_ref_sum sum;
  ts_ref_sum_start(&sum, type, conv_order(call));
  for (int32_t d = 0; d < spatial; d++) taps.dims[d] = kernel->shape.dims[d];
  for (int64_t t = 0; ts_ref_goes_on(call, t, ts_shape_elements(&taps)); t++, ts_ref_next(&taps, tap)) {
    int64_t element = tap_element(call, output, tap, spatial);
    for (int64_t c = 0; ts_ref_goes_on(call, c, channels); c++, k++) {
      ts_scalar l = {.bits = 0}, r = ts_scalar_convert(x->dtype, ts_ref_get(kernel, k * features + feature), type);
      if (element >= 0) l = ts_scalar_convert(x->dtype, ts_ref_get(x, element + group * channels + c), type);
      ts_ref_sum_add(&sum, l, r);
    }
  }
  return ts_scalar_convert(type, ts_ref_sum_end(&sum), call->result->dtype);
}

void ts_ref_conv(const ts_ref_call *call) {
  const ts_shape *shape = &call->result->shape;
  int64_t index[TS_MAX_RANK] = {0};
  for (int64_t i = 0; ts_ref_goes_on(call, i, ts_shape_elements(shape)); i++, ts_ref_next(shape, index))
    ts_ref_set(call->result, i, conv_element(call, index));
}
