/* Steps of any kind, and the storages of their operands and results. */
#include "exec/builder.h"
#include "exec/pool.h"

ts_status ts_builder_add_storage(ts_builder *b, ts_memory_kind kind, uint32_t index, int64_t bytes,
                                 ts_storage_id *out) {
  *out = (ts_storage_id)b->storages.count;
  if (b->storages.count == b->storages.capacity) TS_TRY(TS_VEC_RESERVE(&b->storages, b->storages.count + 1));
  b->storages.data[b->storages.count++] = (ts_storage){.kind = (uint8_t)kind,
                                                       .index = index,
                                                       .bytes = bytes,
                                                       .first = INT32_MAX,
                                                       .last = -1,
                                                       .merged = *out,
                                                       .loop = -1,
                                                       .last_in_loop = -1,
                                                       .first_in_loop = -1,
                                                       .donor = -1};
  return TS_SUCCESS;
}

int64_t ts_builder_bytes(const ts_builder *b, ts_value_id v) {
  const ts_value *value = ts_graph_value(b->graph, v);
  return ts_shape_bytes(value->shape, value->dtype);
}

ts_status ts_builder_keep_type(ts_builder *b, ts_value_id value, const ts_type **out) {
  const ts_value *v = ts_graph_value(b->graph, value);
  size_t at = ((uintptr_t)v->shape / sizeof(*v->shape) + v->dtype) % TS_TYPES_SEEN;
  ts_type *type;
  *out = b->types[at].type;
  if (b->types[at].shape == v->shape && (*out)->dtype == v->dtype) return TS_SUCCESS;
  TS_TRY(ts_arena_take(&b->exe->arena, sizeof(*type), (void **)&type));
  ts_type_set(type, v->dtype, v->shape);
  b->types[at].shape = v->shape;
  *out = b->types[at].type = type;
  return TS_SUCCESS;
}

ts_status ts_builder_name(ts_builder *b, ts_step *step, const ts_op *op) {
  step->code = (uint16_t)op->code;
  step->type = NULL;
  return op->result_count > 0 ? ts_builder_keep_type(b, op->first_result, &step->type) : TS_SUCCESS;
}

void ts_builder_read(ts_builder *b, const ts_op *op, int32_t position, ts_storage_id *out) {
  for (uint32_t i = 0; i < op->operand_count; i++) {
    out[i] = b->map[op->operands[i]];
    ts_builder_use(b, out[i], position);
  }
}

ts_status ts_builder_write(ts_builder *b, const ts_op *op, int32_t position, ts_storage_id *out) {
  for (uint32_t i = 0; i < op->result_count; i++) {
    ts_value_id value = op->first_result + i;
    TS_TRY(ts_builder_add_storage(b, TS_MEMORY_TEMP, 0, ts_builder_bytes(b, value), &out[i]));
    b->map[value] = out[i];
    ts_builder_use(b, out[i], position);
  }
  return TS_SUCCESS;
}

ts_status ts_builder_start(ts_builder *b, ts_step_kind kind, const ts_op *op, uint32_t more, ts_step *out) {
  size_t count = (size_t)op->operand_count + op->result_count + more;
  *out = (ts_step){.kind = (uint8_t)kind,
                   .position = b->position++,
                   .operand_count = op->operand_count,
                   .result_count = op->result_count};
  TS_TRY(ts_builder_name(b, out, op));
  TS_TRY(ts_arena_take(&b->exe->arena, count * sizeof(*out->ids), (void **)&out->ids));
  ts_builder_read(b, op, out->position, out->ids);
  return ts_builder_write(b, op, out->position, ts_step_results(out));
}

ts_status ts_builder_copy(ts_builder *b, ts_block *block, ts_storage_id from, ts_storage_id to, const ts_op *op) {
  ts_step step = {.kind = TS_STEP_COPY, .position = b->position++, .operand_count = 1, .result_count = 1};
  TS_TRY(ts_builder_name(b, &step, op));
  TS_TRY(ts_arena_take(&b->exe->arena, 2 * sizeof(*step.ids), (void **)&step.ids));
  step.ids[0] = from;
  step.ids[1] = to;
  step.copy_bytes = ts_builder_storage(b, to)->bytes;
  step.cost_ns = step.copy_bytes / 10 + 20;
  ts_builder_use(b, from, step.position);
  ts_builder_use(b, to, step.position);
  return TS_VEC_PUSH(&block->steps, step);
}

ts_status ts_builder_scratch(ts_builder *b, int32_t position, int64_t shared, int64_t each, ts_storage_id *out) {
  int64_t bytes;
  *out = TS_NO_ID;
  if (!ts_mul_i64(each, ts_cpu_count(), &bytes) || !ts_add_i64(bytes, shared, &bytes))
    return ts_error(TS_RESOURCE_EXHAUSTED, "an op's workspace is larger than any memory");
  if (bytes == 0) return TS_SUCCESS;
  TS_TRY(ts_builder_add_storage(b, TS_MEMORY_TEMP, 0, bytes, out));
  ts_builder_use(b, *out, position);
  return TS_SUCCESS;
}
