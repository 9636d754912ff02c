/* INTERLEAVED: as many groups as a vector has lanes at once. Each member of a group is a vector: packed operands are
 * taken apart and put together by shuffles (emit_interleave.h), and a reduction over the members combines vectors. All
 * members are emitted. All loads come before all stores.
 *
 * The last groups of an operand may be fewer than lanes. Their elements are copied to a buffer on the stack, and
 * results from one, so that there is one code for whole vectors. Groups that are only moved may be stored twice:
 * the last vector of a line begins earlier. */
#include "jit/emit/emit_interleave.h"
#include "jit/loop/loop_body.h"
#include "jit/loop/loop_reduce.h"

/* The elements of an operand in the current groups: `lines` of them, with `length` elements of each group. */
typedef struct lines {
  bool packed, down; /* down: groups are read downwards */
  int count;
  int64_t length;
  ts_dtype type;
  ts_v buffer, buffer_pitch;
  ts_v first, pitch; /* in memory; pitch: bytes between lines */
  ts_v at, at_pitch; /* there, or in the buffer */
} lines;

typedef struct interleaved {
  int members;
  bool per_member; /* some value is loaded once for each member, or depends on its number */
  bool moves;      /* nothing is computed */
  bool *varies;    /* of each node: between the members */
  ts_v *values;    /* of each node of each member: [member][node] */
  lines *of;       /* of each input and output */
  ts_v *loaded;    /* of each input, for the current member */
  ts_v *packed;    /* [input][member]: members of packed inputs */
  ts_v outer[TS_KERNEL_MAX_RANK];
  ts_emit_cut cut;
  ts_v index, rest, whole; /* the first group, the number of groups (at most lanes), and whether these are all lanes */
} interleaved;

static const ts_kernel_operand *operand_at(const ts_loop *loop, int32_t i) {
  const ts_kernel_desc *d = loop->d;
  return i < d->input_count ? &d->inputs[i] : &d->outputs[i - d->input_count].operand;
}

static uint8_t class_of(const ts_loop *loop, int32_t i, int32_t from_last) {
  return operand_at(loop, i)->stride[loop->d->rank - 1 - from_last];
}

/* Inputs with one value for all groups are values of a row. */
static bool has_lines(const ts_loop *loop, int32_t i) { return class_of(loop, i, 0) != TS_STRIDE_ZERO; }

static int32_t operands(const ts_loop *loop) { return loop->d->input_count + loop->d->output_count; }

/* ---- lines ---- */

static void describe_lines(ts_loop *loop, const interleaved *t, int32_t i, lines *out) {
  const uint8_t class = class_of(loop, i, 0);
  const bool packed = ts_stride_is_group(class);
  *out = (lines){.packed = packed, .down = class == TS_STRIDE_GROUP_DOWN, .type = operand_at(loop, i)->dtype};
  out->count = packed || class_of(loop, i, 1) == TS_STRIDE_ZERO ? 1 : t->members;
  out->length = packed ? t->members : 1;
  LLVMTypeRef element = ts_emit_memory_type(loop->e, out->type);
  const uint64_t elements = (uint64_t)t->members * (uint64_t)loop->e->lanes;
  out->buffer = ts_emit_alloca(loop->e, LLVMArrayType2(element, elements));
  out->buffer_pitch = ts_loop_number(loop, loop->e->lanes * (int64_t)ts_dtype_size(out->type));
}

static ts_v bytes_of(ts_loop *loop, const lines *l, ts_v groups) {
  return ts_loop_mul(loop, groups, ts_loop_number(loop, l->length * (int64_t)ts_dtype_size(l->type)));
}

/* The lowest address of the current groups. `base` is that of group 0 and member 0. */
static void find_lines(ts_loop *loop, const interleaved *t, int32_t i, lines *l) {
  LLVMBuilderRef b = loop->e->b;
  const int64_t size = (int64_t)ts_dtype_size(l->type);
  ts_v first = loop->base[i], past = bytes_of(loop, l, t->index);
  if (l->down) {
    ts_v last = LLVMBuildAdd(b, t->index, LLVMBuildSub(b, t->rest, ts_loop_number(loop, 1), ""), "");
    past = LLVMBuildNeg(b, bytes_of(loop, l, last), "");
  }
  first = ts_loop_offset(loop, first, past);
  if (l->packed && class_of(loop, i, 1) == TS_STRIDE_DOWN)
    first = ts_loop_offset(loop, first, ts_loop_number(loop, -(t->members - 1) * size));
  l->first = first;
  ts_v pitch = loop->stride[i * loop->d->rank + loop->d->rank - 2];
  l->pitch = l->count > 1 ? pitch : ts_loop_number(loop, 0);
}

/* Groups that are read downwards end where the last lane is. */
static ts_v start_in_buffer(ts_loop *loop, const interleaved *t, const lines *l) {
  ts_v lanes = ts_loop_number(loop, loop->e->lanes);
  ts_v groups = l->down ? LLVMBuildSub(loop->e->b, lanes, t->rest, "") : ts_loop_number(loop, 0);
  return ts_loop_mul(loop, groups, ts_loop_number(loop, l->length));
}

static void copy_element(ts_loop *loop, ts_dtype type, ts_v from, ts_v from_index, ts_v to, ts_v to_index) {
  LLVMTypeRef element = ts_emit_memory_type(loop->e, type);
  ts_v value = LLVMBuildLoad2(loop->e->b, element, ts_loop_element(loop, type, from, from_index), "");
  LLVMSetAlignment(value, (unsigned)ts_dtype_alignment(type));
  ts_v store = LLVMBuildStore(loop->e->b, value, ts_loop_element(loop, type, to, to_index));
  LLVMSetAlignment(store, (unsigned)ts_dtype_alignment(type));
}

/* Fills whole vectors of the buffer: lanes past the groups repeat elements of these. */
static void copy_in(ts_loop *loop, const interleaved *t, const lines *l) {
  LLVMBuilderRef b = loop->e->b;
  ts_v zero = ts_loop_number(loop, 0), one = ts_loop_number(loop, 1), length = ts_loop_number(loop, l->length);
  ts_v last = LLVMBuildSub(b, ts_loop_mul(loop, t->rest, length), one, ""), start = start_in_buffer(loop, t, l);
  ts_counter line = ts_loop_count_some(loop, zero, ts_loop_number(loop, l->count), one);
  ts_v from = ts_loop_offset(loop, l->first, ts_loop_mul(loop, line.index, l->pitch));
  ts_v to = ts_loop_offset(loop, l->buffer, ts_loop_mul(loop, line.index, l->buffer_pitch));
  ts_counter at = ts_loop_count_some(loop, zero, ts_loop_number(loop, l->length * loop->e->lanes), one);
  ts_v element = LLVMBuildSub(b, at.index, start, "");
  element = ts_emit_intrinsic(loop->e, "llvm.smax", NULL, (ts_v[]){element, zero}, 2);
  element = ts_emit_intrinsic(loop->e, "llvm.smin", NULL, (ts_v[]){element, last}, 2);
  copy_element(loop, l->type, from, element, to, at.index);
  ts_loop_count_end(loop, &at);
  ts_loop_count_end(loop, &line);
}

static void copy_out(ts_loop *loop, const interleaved *t, const lines *l) {
  ts_v zero = ts_loop_number(loop, 0), one = ts_loop_number(loop, 1);
  ts_counter line = ts_loop_count_some(loop, zero, ts_loop_number(loop, l->count), one);
  ts_v from = ts_loop_offset(loop, l->buffer, ts_loop_mul(loop, line.index, l->buffer_pitch));
  ts_v to = ts_loop_offset(loop, l->first, ts_loop_mul(loop, line.index, l->pitch));
  ts_counter at = ts_loop_count_some(loop, zero, ts_loop_mul(loop, t->rest, ts_loop_number(loop, l->length)), one);
  copy_element(loop, l->type, from, at.index, to, at.index);
  ts_loop_count_end(loop, &at);
  ts_loop_count_end(loop, &line);
}

/* Copies between memory and buffers where the groups are fewer than lanes. */
static void copy_rest(ts_loop *loop, const interleaved *t, int32_t from, int32_t to,
                      void (*copy)(ts_loop *loop, const interleaved *t, const lines *l)) {
  LLVMBuilderRef b = loop->e->b;
  LLVMBasicBlockRef part = ts_loop_block(loop, "part"), done = ts_loop_block(loop, "whole");
  LLVMBuildCondBr(b, t->whole, done, part);
  LLVMPositionBuilderAtEnd(b, part);
  for (int32_t i = from; i < to; i++)
    if (has_lines(loop, i)) copy(loop, t, &t->of[i]);
  LLVMBuildBr(b, done);
  LLVMPositionBuilderAtEnd(b, done);
}

static void place_lines(ts_loop *loop, interleaved *t) {
  LLVMBuilderRef b = loop->e->b;
  for (int32_t i = 0; i < operands(loop); i++)
    if (has_lines(loop, i)) find_lines(loop, t, i, &t->of[i]);
  copy_rest(loop, t, 0, loop->d->input_count, copy_in);
  for (int32_t i = 0; i < operands(loop); i++) {
    if (!has_lines(loop, i)) continue;
    lines *l = &t->of[i];
    l->at = LLVMBuildSelect(b, t->whole, l->first, l->buffer, "");
    l->at_pitch = LLVMBuildSelect(b, t->whole, l->pitch, l->buffer_pitch, "");
  }
}

/* ---- loads and stores ---- */

static ts_v vector_at(ts_loop *loop, const lines *l, int k) {
  if (!l->packed) return ts_loop_offset(loop, l->at, ts_loop_mul(loop, ts_loop_number(loop, k), l->at_pitch));
  return ts_loop_element(loop, l->type, l->at, ts_loop_number(loop, (int64_t)k * loop->e->lanes));
}

static void load_packed(ts_loop *loop, const interleaved *t, int32_t input) {
  const lines *l = &t->of[input];
  ts_v vectors[TS_MOST_INTERLEAVED];
  for (int k = 0; k < t->members; k++) vectors[k] = ts_emit_load_memory(loop->e, l->type, vector_at(loop, l, k));
  ts_emit_deinterleave(loop->e, vectors, t->members, &t->cut);
  for (int k = 0; k < t->members; k++) {
    ts_v x = vectors[class_of(loop, input, 1) == TS_STRIDE_DOWN ? t->members - 1 - k : k];
    if (l->down) x = ts_emit_reverse(loop->e, x);
    t->packed[input * t->members + k] = ts_emit_to_register(loop->e, l->type, x);
  }
}

static void load_member(ts_loop *loop, const interleaved *t, int k) {
  for (int32_t i = 0; i < loop->d->input_count; i++) {
    if (!has_lines(loop, i)) continue;
    const lines *l = &t->of[i];
    t->loaded[i] = l->packed                ? t->packed[i * t->members + k]
                   : k == 0 || l->count > 1 ? ts_emit_load(loop->e, l->type, vector_at(loop, l, k))
                                            : t->loaded[i];
  }
}

static ts_v value_of(const ts_loop *loop, const interleaved *t, int k, int32_t node) {
  return loop->plan.level[node] == TS_LEVEL_KERNEL ? loop->value[node] : t->values[k * loop->d->node_count + node];
}

static void store_output(ts_loop *loop, const interleaved *t, int32_t output) {
  const lines *l = &t->of[loop->d->input_count + output];
  const int32_t node = loop->d->outputs[output].node;
  ts_v vectors[TS_MOST_INTERLEAVED];
  for (int k = 0; k < t->members; k++) {
    if (!l->packed && k < l->count) ts_emit_store(loop->e, l->type, value_of(loop, t, k, node), vector_at(loop, l, k));
    if (l->packed) vectors[k] = ts_emit_to_memory(loop->e, l->type, value_of(loop, t, k, node));
  }
  if (!l->packed) return;
  ts_emit_interleave(loop->e, vectors, t->members, &t->cut);
  for (int k = 0; k < t->members; k++) ts_emit_store_memory(loop->e, l->type, vectors[k], vector_at(loop, l, k));
}

/* ---- nodes ---- */

/* Marks what a member computes after `stage` reductions; false if that is nothing. */
static bool want(ts_loop *loop, const interleaved *t, int32_t stage, int k) {
  bool any = false;
  for (int32_t id = 0; id < loop->d->node_count; id++) {
    const bool here = loop->plan.needed[id] && loop->plan.stage[id] == stage &&
                      loop->plan.level[id] != TS_LEVEL_KERNEL && !ts_kernel_node_reduces(&loop->d->nodes[id]);
    loop->wanted[id] = here && (k == 0 || t->varies[id]);
    any |= loop->wanted[id];
  }
  return any;
}

static ts_status member_nodes(ts_loop *loop, interleaved *t, int32_t stage, int k) {
  const int32_t nodes = loop->d->node_count;
  if (!want(loop, t, stage, k)) return TS_SUCCESS;
  ts_emit_cut_block(loop->e, &t->cut);
  for (int32_t id = 0; id < nodes; id++)
    if (loop->plan.level[id] != TS_LEVEL_KERNEL) loop->value[id] = t->values[k * nodes + id];
  t->outer[loop->d->rank - 2] = ts_loop_number(loop, k);
  if (t->per_member) ts_loop_set_row(loop, t->outer, loop->d->rank - 1);
  if (stage == 0) load_member(loop, t, k);
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_ROW, NULL));
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_POINT, &(ts_point){.index = t->index}));
  for (int32_t id = 0; id < nodes; id++)
    for (int m = k; loop->wanted[id] && m < (t->varies[id] ? k + 1 : t->members); m++)
      t->values[m * nodes + id] = loop->value[id];
  return TS_SUCCESS;
}

static ts_status reduce_members(ts_loop *loop, interleaved *t, int32_t id) {
  const ts_reducer r = ts_reducer_of(loop->d, id);
  const int32_t a = loop->d->nodes[id].a, nodes = loop->d->node_count;
  ts_acc accs[TS_MOST_INTERLEAVED];
  ts_v result;
  for (int k = 0; k < t->members; k++) {
    ts_v number = ts_emit_const_int(loop->e, TS_S32, k);
    const ts_acc x = {value_of(loop, t, k, a), r.kind == TS_NODE_ARG ? number : NULL};
    TS_TRY(ts_reducer_step(loop->e, &r, ts_reducer_identity(loop->e, &r, number), x, NULL, &accs[k]));
  }
  TS_TRY(ts_reducer_few(loop->e, &r, accs, t->members, &result));
  for (int k = 0; k < t->members; k++) t->values[k * nodes + id] = result;
  return TS_SUCCESS;
}

static ts_status all_nodes(ts_loop *loop, interleaved *t) {
  int32_t last = 0;
  for (int32_t id = 0; id < loop->d->node_count; id++)
    if (loop->plan.needed[id] && loop->plan.stage[id] > last) last = loop->plan.stage[id];
  for (int32_t stage = 0; stage <= last; stage++) {
    for (int k = 0; k < t->members; k++) TS_TRY(member_nodes(loop, t, stage, k));
    for (int32_t id = 0; id < loop->d->node_count; id++)
      if (ts_kernel_node_reduces(&loop->d->nodes[id]) && loop->plan.needed[id] && loop->plan.stage[id] == stage + 1)
        TS_TRY(reduce_members(loop, t, id));
  }
  return TS_SUCCESS;
}

/* ---- blocks of groups ---- */

static ts_status some_groups(ts_loop *loop, interleaved *t) {
  t->outer[loop->d->rank - 2] = ts_loop_number(loop, 0);
  ts_loop_set_row(loop, t->outer, loop->d->rank - 1);
  place_lines(loop, t);
  for (int32_t i = 0; i < loop->d->input_count; i++)
    if (has_lines(loop, i) && t->of[i].packed) load_packed(loop, t, i);
  TS_TRY(all_nodes(loop, t));
  for (int32_t i = 0; i < loop->d->output_count; i++) store_output(loop, t, i);
  copy_rest(loop, t, loop->d->input_count, operands(loop), copy_out);
  return TS_SUCCESS;
}

/* The groups from `index` on, of which `to` is the end. */
static void place_groups(ts_loop *loop, interleaved *t, ts_v index, ts_v to) {
  LLVMBuilderRef b = loop->e->b;
  ts_v lanes = ts_loop_number(loop, loop->e->lanes);
  if (t->moves) {
    to = loop->extent[loop->d->rank - 1];
    index = ts_emit_intrinsic(loop->e, "llvm.smin", NULL, (ts_v[]){index, LLVMBuildSub(b, to, lanes, "")}, 2);
    index = ts_emit_intrinsic(loop->e, "llvm.smax", NULL, (ts_v[]){index, ts_loop_number(loop, 0)}, 2);
  }
  ts_v left = LLVMBuildSub(b, to, index, "");
  t->index = index;
  t->rest = ts_emit_intrinsic(loop->e, "llvm.smin", NULL, (ts_v[]){left, lanes}, 2);
  t->whole = LLVMBuildICmp(b, LLVMIntSGE, left, lanes, "");
}

/* Counters: of the outer dims, then the block. */
static ts_status block_body(void *context, ts_loop *loop, const ts_v *counters) {
  interleaved *t = context;
  LLVMBuilderRef b = loop->e->b;
  const int32_t rank = loop->d->rank;
  ts_v lanes = ts_loop_number(loop, loop->e->lanes), length = ts_loop_number(loop, TS_GROUPS_BLOCK);
  for (int32_t i = 0; i + 2 < rank; i++) t->outer[i] = counters[i];
  ts_v from = ts_loop_mul(loop, counters[rank - 2], length);
  ts_v to = ts_emit_intrinsic(loop->e, "llvm.smin", NULL,
                              (ts_v[]){ts_loop_add(loop, from, length), loop->extent[rank - 1]}, 2);
  ts_counter group = ts_loop_count_some(loop, from, to, lanes);
  place_groups(loop, t, group.index, to);
  t->cut = (ts_emit_cut){LLVMBuildICmp(b, LLVMIntNE, t->rest, ts_loop_number(loop, 0), ""), loop->leave};
  TS_TRY(some_groups(loop, t));
  ts_loop_count_end(loop, &group);
  return TS_SUCCESS;
}

static ts_status allocate(ts_loop *loop, interleaved *t) {
  const size_t nodes = (size_t)loop->d->node_count, members = (size_t)t->members;
  const size_t inputs = (size_t)loop->d->input_count;
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, nodes, &t->varies));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, nodes * members, &t->values));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, (size_t)operands(loop), &t->of));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, inputs, &t->loaded));
  return TS_ARENA_ARRAY(&loop->arena, inputs * members, &t->packed);
}

static bool only_moves(const ts_kernel_desc *d) {
  for (int32_t i = 0; i < d->node_count; i++)
    if (d->nodes[i].kind != TS_NODE_LOAD) return false;
  return true;
}

ts_status ts_loop_interleaved(ts_loop *loop) {
  const int32_t rank = loop->d->rank;
  interleaved t = {.members = loop->d->members, .per_member = loop->d->index_count > 0, .moves = only_moves(loop->d)};
  TS_TRY(allocate(loop, &t));
  loop->loaded = t.loaded;
  for (int32_t id = 0; id < loop->d->node_count; id++)
    t.varies[id] = ts_kernel_node_varies(loop->d, id, rank - 2, t.varies);
  for (int32_t i = 0; i < operands(loop); i++) {
    if (has_lines(loop, i)) describe_lines(loop, &t, i, &t.of[i]);
    t.per_member |= !has_lines(loop, i);
  }
  ts_v up = ts_loop_add(loop, loop->extent[rank - 1], ts_loop_number(loop, TS_GROUPS_BLOCK - 1));
  /* Units count blocks of groups where rows would be. */
  loop->extent[rank - 2] = LLVMBuildUDiv(loop->e->b, up, ts_loop_number(loop, TS_GROUPS_BLOCK), "");
  return ts_loop_rows(loop, rank - 1, block_body, &t);
}
