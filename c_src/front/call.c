#include "front/call.h"

#include "front/promote.h"
#include "ir/attrs.h"

ts_device *ts_call_device(ts_buffer *const *buffers, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (buffers[i]) return buffers[i]->device;
  return ts_device_default();
}

/* ---- keys ---- */

/* The class of the number: ts_op_operand_types depends on it. */
static uint64_t number_word(const ts_number *n) { return UINT64_C(1) << 63 | ts_number_class(n); }

/* At least the words of the key. */
static size_t most_words(const ts_call *c, ts_attr_kind kind) {
  if (kind == TS_ATTR_NONE && c->count <= 2) return TS_CALL_KEY_FEW;
  size_t words = 1 + c->count + (kind == TS_ATTR_NONE ? 0 : ts_attrs_count_words(kind, &c->attrs));
  for (size_t i = 0; i < c->count; i++)
    if (c->buffers[i]) words += (size_t)c->buffers[i]->shape.rank;
  return words;
}

static uint64_t *add_buffer(uint64_t *word, const ts_buffer *b) {
  *word++ = (uint64_t)b->dtype << 32 | (uint64_t)b->shape.rank;
  for (int32_t d = 0; d < b->shape.rank; d++) *word++ = (uint64_t)b->shape.dims[d];
  return word;
}

ts_status ts_call_key_init(const ts_call *c, ts_call_key *out) {
  ts_attr_kind kind = ts_op_attr_kind(c->code);
  size_t most = most_words(c, kind);
  out->data = out->few;
  if (most > TS_CALL_KEY_FEW) TS_TRY(TS_NEW_ARRAY(most, &out->data));
  uint64_t *word = out->data;
  *word++ = (uint64_t)c->device->client->group << 48 | (uint64_t)c->code << 32 | c->count;
  for (size_t i = 0; i < c->count; i++) {
    if (c->buffers[i])
      word = add_buffer(word, c->buffers[i]);
    else
      *word++ = number_word(&c->numbers[i]);
  }
  if (kind != TS_ATTR_NONE) word += ts_attrs_words(kind, &c->attrs, word);
  out->words = (size_t)(word - out->data);
  return TS_SUCCESS;
}

/* ---- programs ---- */

static ts_operand operand(const ts_call *c, size_t i) {
  const ts_buffer *b = c->buffers[i];
  if (b) return (ts_operand){.dtype = b->dtype, .shape = &b->shape};
  return (ts_operand){
      .is_number = true, .number = c->numbers[i], .dtype = ts_number_dtype(&c->numbers[i]), .shape = &ts_shape_scalar};
}

/* Every operand is a parameter; a number is a scalar one, since its value is not part of the program. */
static ts_status add_params(ts_graph *graph, ts_opcode code, ts_operand *operands, ts_dtype *types, size_t count) {
  TS_TRY(ts_op_operand_types(code, (ts_operands){operands, count}, types));
  for (size_t i = 0; i < count; i++) {
    ts_operand *o = &operands[i];
    if (o->is_number) *o = (ts_operand){.dtype = types[i], .shape = &ts_shape_scalar};
    TS_TRY(ts_graph_add_param(graph, TS_ROOT, o->dtype, o->shape, &o->value));
  }
  return TS_SUCCESS;
}

static ts_status add_results(ts_graph *graph, const ts_call *c, ts_operands operands) {
  ts_value_id results[TS_MAX_RESULTS];
  TS_TRY(ts_op_build(graph, TS_ROOT, c->code, operands, &c->attrs, results));
  if (ts_op_results(c->code) < 1)
    return ts_error(TS_INVALID_ARGUMENT, "%s: expected an op that can run outside of a program", ts_op_name(c->code));
  size_t count = (size_t)ts_op_results(c->code);
  for (size_t i = 1; i < count; i++) results[i] = results[0] + (ts_value_id)i;
  return ts_graph_set_results(graph, TS_ROOT, results, count);
}

static ts_status build_program(ts_graph *graph, const ts_call *c) {
  ts_operand *operands;
  ts_dtype *types = NULL;
  TS_TRY(TS_NEW_ARRAY(c->count, &operands));
  ts_status status = TS_NEW_ARRAY(c->count, &types);
  for (size_t i = 0; !status && i < c->count; i++) operands[i] = operand(c, i);
  if (!status) status = add_params(graph, c->code, operands, types, c->count);
  if (!status) status = add_results(graph, c, (ts_operands){operands, c->count});
  ts_free(types);
  ts_free(operands);
  return status;
}

ts_status ts_call_graph(const ts_call *call, ts_graph **out) {
  TS_TRY(ts_graph_create(out));
  ts_status status = build_program(*out, call);
  if (!status) return TS_SUCCESS;
  ts_graph_destroy(*out);
  *out = NULL;
  return status;
}

ts_status ts_call_compile(const ts_call *call, const _Atomic bool *cancel, ts_loaded **out) {
  const ts_program_options options = {.cancel = cancel};
  ts_graph *graph;
  TS_TRY(ts_call_graph(call, &graph));
  ts_status status = ts_loaded_create(call->device->client, graph, &options, out);
  ts_graph_destroy(graph);
  return status;
}

bool ts_call_is_view(const ts_call *call) {
  if (call->code != TS_OP_RESHAPE || call->count != 1 || !call->buffers[0]) return false;
  const ts_buffer *b = call->buffers[0];
  return ts_status_consume_ok(ts_shape_check(&call->attrs.shape, b->dtype)) &&
         ts_shape_elements(&call->attrs.shape) == ts_shape_elements(&b->shape);
}
