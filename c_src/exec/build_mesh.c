/* The parts of an executable that only programs on a mesh have: coordinates, and steps for collectives. */
#include "exec/builder.h"
#include "exec/step_collective.h"

static ts_status make_coordinates(ts_executable *exe, int32_t partition) {
  int32_t at[TS_MAX_MESH_AXES];
  ts_shape shape = {.rank = 1, .dims = {exe->mesh.rank}};
  ts_buffer **out = &exe->coordinates[partition];
  TS_TRY(ts_buffer_create(ts_pool_default(), TS_S32, &shape, out));
  ts_mesh_coordinates(&exe->mesh, partition, at);
  memcpy((*out)->data, at, (size_t)exe->mesh.rank * sizeof *at);
  return TS_SUCCESS;
}

ts_status ts_builder_mesh(ts_builder *b) {
  ts_executable *exe = b->exe;
  exe->mesh = b->graph->mesh;
  if (!exe->mesh.coordinates) return TS_SUCCESS;
  int32_t count = ts_mesh_partitions(&exe->mesh);
  TS_TRY(TS_ARENA_ARRAY(&exe->arena, (size_t)count, &exe->coordinates));
  for (int32_t p = 0; p < count; p++) TS_TRY(make_coordinates(exe, p));
  return TS_SUCCESS;
}

/* ---- collectives ---- */

/* The members of every group, one group after the other. */
static ts_status list_groups(ts_builder *b, const ts_op *op, ts_collective *c) {
  const ts_mesh *mesh = &b->graph->mesh;
  const ts_dims *axes = ts_op_mesh_axes(op);
  int32_t at = 0;
  c->partitions = ts_mesh_partitions(mesh);
  c->size = ts_mesh_group_size(mesh, axes);
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, (size_t)c->partitions, &c->members));
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, (size_t)c->partitions, &c->positions));
  for (int32_t p = 0; p < c->partitions; p++) {
    if (ts_mesh_index(mesh, axes, p) != 0) continue; /* listed with its first member */
    for (int32_t m = 0; m < c->size; m++, at++) {
      c->members[at] = (uint16_t)ts_mesh_member(mesh, axes, p, m);
      c->positions[c->members[at]] = (uint16_t)at;
    }
  }
  return TS_SUCCESS;
}

static ts_status set_attrs(const ts_op *op, ts_collective *c) {
  const ts_attrs *attrs = op->attrs;
  for (int32_t m = 0; m < c->size; m++) c->senders[m] = TS_NO_MEMBER;
  switch ((ts_ops_COLLECTIVE)op->code) {
  case TS_OP_ALL_GATHER:
  case TS_OP_REDUCE_SCATTER: c->split = c->concat = attrs->along.dim; return TS_SUCCESS;
  case TS_OP_ALL_TO_ALL:
    c->split = attrs->exchange.split;
    c->concat = attrs->exchange.concat;
    return TS_SUCCESS;
  case TS_OP_COLLECTIVE_BROADCAST:
    for (int32_t m = 0; m < c->size; m++) c->senders[m] = (uint16_t)attrs->rooted.root;
    return TS_SUCCESS;
  case TS_OP_COLLECTIVE_PERMUTE:
    for (int32_t i = 0; i < attrs->permute.targets.rank; i++)
      c->senders[attrs->permute.targets.dims[i]] = (uint16_t)attrs->permute.sources.dims[i];
    return TS_SUCCESS;
  case TS_OP_ALL_REDUCE_SUM:
  case TS_OP_ALL_REDUCE_PRODUCT:
  case TS_OP_ALL_REDUCE_MIN:
  case TS_OP_ALL_REDUCE_MAX:
  case TS_OP_ALL_REDUCE_AND:
  case TS_OP_ALL_REDUCE_OR:
  case TS_OP_BARRIER:
    for (int32_t m = 0; m < c->size; m++) c->senders[m] = (uint16_t)m;
    return TS_SUCCESS;
  case TS_OP_SHARDING_CONSTRAINT: break;
  }
  return ts_error(TS_UNIMPLEMENTED, "%s is no collective of a run", ts_op_name(op->code));
}

/* A program that was parsed may have sizes whose sum is no number. */
static int64_t sum_bytes(int64_t a, int64_t b) {
  int64_t sum;
  return ts_add_i64(a, b, &sum) ? sum : INT64_MAX;
}

static ts_status describe(ts_builder *b, const ts_op *op, ts_collective **out) {
  ts_collective *c;
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, 1, out));
  c = *out;
  c->code = op->code;
  c->count = op->operand_count;
  TS_TRY(list_groups(b, op, c));
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, (size_t)c->size, &c->senders));
  TS_TRY(set_attrs(op, c));
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, (size_t)c->count, &c->types));
  for (uint32_t i = 0; i < c->count; i++) {
    TS_TRY(ts_builder_keep_type(b, op->operands[i], &c->types[i]));
    c->bytes = sum_bytes(c->bytes, ts_builder_bytes(b, op->operands[i]));
    c->bytes = sum_bytes(c->bytes, ts_builder_bytes(b, op->first_result + i));
  }
  return TS_SUCCESS;
}

ts_status ts_builder_collective(ts_builder *b, ts_block *block, const ts_op *op) {
  ts_step step;
  ts_collective *collective;
  if (ts_op_is_identity(b->graph, op)) {
    for (uint32_t i = 0; i < op->result_count; i++) b->map[op->first_result + i] = b->map[op->operands[i]];
    return TS_SUCCESS;
  }
  TS_TRY(ts_builder_start(b, TS_STEP_COLLECTIVE, op, 0, &step));
  TS_TRY(describe(b, op, &collective));
  step.collective = collective;
  step.cost_ns = collective->bytes / 10 + 200;
  b->collectives++;
  if (!b->exe->collective) b->exe->collective = op->code;
  return TS_VEC_PUSH(&block->steps, step);
}

/* ---- results that members share ---- */

typedef struct writes {
  const ts_executable *exe;
  uint8_t *counts; /* the writes of each RESULT, counted up to 2 */
} writes;

static void count_write(writes *w, ts_memory_id id) {
  uint32_t index;
  if (ts_memory_kind_of(w->exe, id, &index) == TS_MEMORY_RESULT && w->counts[index] < 2) w->counts[index]++;
}

static ts_status count_writes(void *context, ts_step *step) {
  writes *w = context;
  for (uint32_t i = 0; i < step->result_count; i++) {
    count_write(w, ts_step_results(step)[i]);
    if (step->kind == TS_STEP_WHILE) count_write(w, step->loop->next[i]);
  }
  return TS_SUCCESS;
}

/* A result of the program that no other step writes keeps its value, whichever partition is ahead. */
static ts_status share_results(ts_executable *exe, const ts_step *step, const uint8_t *counts) {
  ts_collective *c = (ts_collective *)(uintptr_t)step->collective;
  TS_TRY(TS_ARENA_ARRAY(&exe->arena, (size_t)c->count, &c->shared));
  for (uint32_t i = 0; i < c->count; i++) {
    uint32_t index;
    c->shared[i] = ts_memory_kind_of(exe, ts_step_results(step)[i], &index) == TS_MEMORY_RESULT && counts[index] == 1;
  }
  return TS_SUCCESS;
}

ts_status ts_builder_share(ts_builder *b) {
  ts_executable *exe = b->exe;
  writes w = {.exe = exe};
  TS_TRY(TS_NEW_ARRAY(exe->made_count, &w.counts));
  ts_status status = ts_block_walk(&exe->root, count_writes, &w);
  for (size_t i = 0; !status && i < exe->root.steps.count; i++) {
    const ts_step *step = &exe->root.steps.data[i];
    if (step->kind == TS_STEP_COLLECTIVE && ts_collective_is_equal_in_all(step->code))
      status = share_results(exe, step, w.counts);
  }
  ts_free(w.counts);
  return status;
}
