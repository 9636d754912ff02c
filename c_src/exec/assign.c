/* Where every storage lives: first merging, so that an op writes its result over an operand that dies with it; then
 * numbers and offsets for what remains. */
#include "base/alloc.h"
#include "exec/builder.h"
#include "exec/plan.h"

#include <pthread.h>

ts_status ts_block_walk(ts_block *block, ts_status (*visit)(void *context, ts_step *step), void *context) {
  for (size_t i = 0; i < block->steps.count; i++) {
    ts_step *step = &block->steps.data[i];
    TS_TRY(visit(context, step));
    if (step->kind == TS_STEP_WHILE) {
      TS_TRY(ts_block_walk(&step->loop->condition, visit, context));
      TS_TRY(ts_block_walk(&step->loop->body, visit, context));
    }
    for (int k = 0; k < 2 && step->kind == TS_STEP_COND; k++) TS_TRY(ts_block_walk(&step->branches[k], visit, context));
  }
  return TS_SUCCESS;
}

/* ---- merging ---- */

/* What the step's launch says of its operands; NULL when it has none, or several. */
static const ts_lowered *lowered_of(const ts_step *step, uint32_t *out_first_operand) {
  *out_first_operand = step->kind == TS_STEP_GEMM ? TS_PRODUCT_OPERANDS : 0;
  if (step->kind == TS_STEP_LAUNCH) return &step->work->lowered;
  return step->kind == TS_STEP_GEMM && step->gemm.epilogue ? &step->gemm.epilogue->lowered : NULL;
}

/* True when the launch may write result r over operand o. */
static bool is_inplace(const ts_step *step, uint32_t r, uint32_t o) {
  uint32_t first;
  const ts_lowered *lowered = lowered_of(step, &first);
  return lowered && lowered->inplace && o >= first && lowered->inplace[r * (step->operand_count - first) + o - first];
}

/* True when the step reads the storage through an operand that must stay whole. */
static bool read_otherwise(const ts_builder *b, const ts_step *step, uint32_t result, ts_storage_id root) {
  for (uint32_t o = 0; o < step->operand_count; o++) {
    if (ts_builder_find(b, step->ids[o]) != root) continue;
    bool is_launch = step->kind == TS_STEP_LAUNCH || step->kind == TS_STEP_GEMM;
    if (is_launch ? is_inplace(step, result, o) : o == result) continue;
    return true;
  }
  return false;
}

static bool is_result_of(const ts_builder *b, const ts_step *step, ts_storage_id root) {
  for (uint32_t r = 0; r < step->result_count; r++)
    if (ts_builder_find(b, ts_step_results(step)[r]) == root) return true;
  return false;
}

/* The result is the next value of the loop variable that the operand holds, and
 * this is the last that the iteration sees of the old one. */
static bool updates_carried(const ts_storage *operand, const ts_storage *result, int32_t position) {
  return operand->carried && result->next && operand->loop == result->loop &&
         operand->loop_index == result->loop_index && operand->last_in_loop == position;
}

/* Promises the argument's memory to the result, if it is donated. */
static void give(ts_storage *argument, ts_storage *result) {
  if (argument->given || result->donor >= 0) return;
  argument->given = true;
  result->donor = (int32_t)argument->index;
}

/* Lets result r of the step have the memory of operand o, when nobody needs the operand any more. */
static void try_merge(ts_builder *b, const ts_step *step, uint32_t r, uint32_t o) {
  ts_storage_id operand_id = ts_builder_find(b, step->ids[o]), result_id = ts_builder_find(b, ts_step_results(step)[r]);
  ts_storage *operand = ts_builder_storage(b, operand_id), *result = ts_builder_storage(b, result_id);
  if (operand_id == result_id || operand->bytes != result->bytes || operand->bytes == 0) return;
  if (is_result_of(b, step, operand_id) || read_otherwise(b, step, r, operand_id)) return;
  if (operand->kind == TS_MEMORY_ARG && result->kind == TS_MEMORY_RESULT && operand->last == step->position &&
      result->first == step->position) {
    give(operand, result);
    return;
  }
  if ((operand->kind != TS_MEMORY_TEMP && !operand->carried) || result->donor >= 0) return;
  if (updates_carried(operand, result, step->position) && result->first == step->position) {
    result->merged = operand_id;
    return;
  }
  if (operand->carried || operand->next || operand->last != step->position) return;
  if (result->first != step->position) return; /* has the memory of another operand already */
  operand->merged = result_id;
  if (operand->first < result->first) result->first = operand->first;
}

/* A product first, then other temporaries, then arguments: a result takes the memory of one of them, and an
 * argument's only if it is donated. */
static int preference(const ts_builder *b, const ts_step *step, uint32_t o) {
  ts_storage_id id = ts_builder_find(b, step->ids[o]);
  if (ts_builder_storage(b, id)->kind == TS_MEMORY_ARG) return 2;
  return step->kind == TS_STEP_GEMM && id == ts_builder_find(b, *ts_step_besides(step)) ? 0 : 1;
}

/* The product is being made while other operands are still read: none may be in its place. */
static bool holds_product(const ts_builder *b, const ts_step *step, uint32_t r) {
  if (step->kind != TS_STEP_GEMM) return false;
  return ts_builder_find(b, ts_step_results(step)[r]) == ts_builder_find(b, *ts_step_besides(step));
}

static void merge_launch(ts_builder *b, const ts_step *step) {
  uint32_t first;
  const ts_lowered *lowered = lowered_of(step, &first);
  uint32_t count = step->operand_count - first;
  bool asked[3] = {false}; /* most launches may write over one operand, if any */
  for (uint32_t i = 0; i < count * step->result_count; i++)
    if (lowered->inplace[i]) asked[preference(b, step, first + i % count)] = true;
  for (int wanted = 0; wanted < 3; wanted++)
    for (uint32_t r = 0; asked[wanted] && r < step->result_count; r++)
      for (uint32_t o = 0; o < count; o++)
        if (lowered->inplace[r * count + o] && preference(b, step, first + o) == wanted && !holds_product(b, step, r))
          try_merge(b, step, r, first + o);
}

static ts_status merge_step(void *context, ts_step *step) {
  ts_builder *b = context;
  if (step->kind == TS_STEP_LAUNCH || (step->kind == TS_STEP_GEMM && step->gemm.epilogue)) {
    merge_launch(b, step);
  } else if (step->kind == TS_STEP_SCAN || step->kind == TS_STEP_COPY) {
    try_merge(b, step, 0, 0);
  } else if (step->kind == TS_STEP_WHILE) {
    for (uint32_t i = 0; i < step->result_count; i++) try_merge(b, step, i, i);
  }
  return TS_SUCCESS;
}

/* Arguments whose last reader is done before a result of their size is begun. */
static void find_donor(ts_builder *b, ts_storage *result) {
  for (size_t p = 0; p < b->exe->param_count && p < 64 && result->donor < 0; p++) {
    ts_storage *a = ts_builder_storage(b, (ts_storage_id)p);
    if (a->bytes == result->bytes && a->last < result->first) give(a, result);
  }
}

/* ---- numbers ---- */

/* What storages that are not merged into others become. */
static ts_status number(ts_builder *b) {
  ts_executable *exe = b->exe;
  const ts_memory_id first[] = {[TS_MEMORY_ARG] = 0,
                                [TS_MEMORY_CONST] = (ts_memory_id)exe->param_count,
                                [TS_MEMORY_RESULT] = ts_first_made(exe),
                                [TS_MEMORY_TEMP] = ts_first_temp(exe)};
  TS_TRY(TS_ARENA_ARRAY(&exe->arena, exe->made_count, &exe->donors));
  for (size_t i = 0; i < b->storages.count; i++) {
    ts_storage *s = &b->storages.data[i];
    if (s->merged != i) continue;
    if (s->kind == TS_MEMORY_TEMP) s->index = exe->temp_count++;
    s->memory = first[s->kind] + s->index;
    if (s->kind != TS_MEMORY_RESULT) continue;
    find_donor(b, s);
    exe->donors[s->index] = s->donor;
    exe->has_donors = exe->has_donors || s->donor >= 0;
  }
  return TS_SUCCESS;
}

static void resolve(const ts_builder *b, ts_memory_id *ids, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (ids[i] != TS_NO_ID) ids[i] = ts_builder_storage(b, ts_builder_find(b, ids[i]))->memory;
}

static size_t count_besides(const ts_step *step) {
  if (step->kind == TS_STEP_LAUNCH) return (size_t)step->work->lowered.temp_count + 1;
  return step->kind == TS_STEP_GEMM && step->gemm.epilogue ? 2 : 0;
}

static ts_status resolve_step(void *context, ts_step *step) {
  const ts_builder *b = context;
  resolve(b, step->ids, step->operand_count + step->result_count + count_besides(step));
  if (step->kind == TS_STEP_WHILE) {
    resolve(b, &step->loop->condition_result, 1);
    resolve(b, step->loop->next, step->result_count);
  }
  return TS_SUCCESS;
}

/* ---- places ---- */

/* When each temporary is used; those that nobody uses take no memory. */
static ts_usage usage_of(const ts_storage *s) {
  if (s->last < 0) return (ts_usage){0};
  return (ts_usage){.first = s->first, .last = s->last, .bytes = s->bytes};
}

/* Usages of temporaries, by their numbers, then of arguments and results. */
static size_t collect(const ts_builder *b, ts_usage *usages) {
  size_t others = b->exe->temp_count;
  for (size_t i = 0; i < b->storages.count; i++) {
    const ts_storage *s = &b->storages.data[i];
    if (s->merged != i || s->kind == TS_MEMORY_CONST) continue;
    ts_usage u = usage_of(s);
    if (s->kind == TS_MEMORY_ARG) u = (ts_usage){.last = b->position + 1, .bytes = s->bytes}; /* the caller holds it */
    usages[s->kind == TS_MEMORY_TEMP ? s->index : others++] = u;
  }
  return others;
}

static ts_status keep_lifetimes(ts_executable *exe, const ts_usage *usages) {
  if (!exe->has_donors) return TS_SUCCESS;
  TS_TRY(TS_ARENA_ARRAY(&exe->arena, exe->temp_count, &exe->lifetimes));
  for (uint32_t i = 0; i < exe->temp_count; i++)
    exe->lifetimes[i] = (ts_lifetime){.first = usages[i].first, .last = usages[i].last, .bytes = usages[i].bytes};
  return TS_SUCCESS;
}

/* The memory of results, and the numbers of those. */
static int32_t collect_rooms(ts_builder *b, ts_room *rooms, ts_memory_id *hosts) {
  int32_t n = 0;
  for (size_t i = 0; i < b->storages.count && (uint32_t)n < b->exe->made_count; i++) {
    const ts_storage *s = &b->storages.data[i];
    if (s->merged != i || s->kind != TS_MEMORY_RESULT) continue;
    b->exe->stats.result_bytes += s->bytes;
    rooms[n] = (ts_room){.until = s->first, .bytes = s->bytes};
    hosts[n++] = s->memory;
  }
  return n;
}

static ts_status place(ts_builder *b, ts_usage *usages, ts_room *rooms, ts_memory_id *hosts) {
  ts_executable *exe = b->exe;
  ts_executable_stats *stats = &exe->stats;
  size_t count = collect(b, usages);
  int32_t room_count = collect_rooms(b, rooms, hosts), temps = (int32_t)exe->temp_count;
  TS_TRY(ts_plan_live_peak(usages, (int32_t)count, &stats->live_peak_bytes));
  TS_TRY(keep_lifetimes(exe, usages));
  TS_TRY(ts_plan_rooms(usages, temps, rooms, room_count, &exe->block_bytes[TS_LAYOUT_HOSTED]));
  TS_TRY(TS_ARENA_ARRAY(&exe->arena, exe->temp_count, &exe->temps));
  for (int32_t i = 0; i < temps; i++) {
    int32_t room = usages[i].room;
    exe->temps[i] = (ts_temp){.offset = usages[i].offset, .host = room >= 0 ? hosts[room] : TS_NO_ID};
  }
  stats->temp_bytes = exe->block_bytes[TS_LAYOUT_HOSTED];
  stats->planned_peak_bytes = stats->temp_bytes + stats->result_bytes;
  for (size_t i = 0; i < exe->param_count; i++) stats->planned_peak_bytes += b->storages.data[i].bytes;
  return TS_SUCCESS;
}

static ts_status with_room(ts_builder *b) {
  ts_usage *usages = NULL;
  ts_room *rooms = NULL;
  ts_memory_id *hosts = NULL;
  ts_status status = ts_realloc_array(b->storages.count + 1, sizeof *usages, (void **)&usages);
  if (!status) status = ts_realloc_array((size_t)b->exe->made_count + 1, sizeof *rooms, (void **)&rooms);
  if (!status) status = ts_realloc_array((size_t)b->exe->made_count + 1, sizeof *hosts, (void **)&hosts);
  if (!status) status = place(b, usages, rooms, hosts);
  ts_free(usages);
  ts_free(rooms);
  ts_free(hosts);
  return status;
}

ts_status ts_assign(ts_builder *b) {
  TS_TRY(ts_block_walk(&b->exe->root, merge_step, b));
  TS_TRY(number(b));
  TS_TRY(ts_block_walk(&b->exe->root, resolve_step, b));
  resolve(b, b->exe->results, b->exe->result_count);
  return with_room(b);
}

/* ---- without the results' memory ---- */

static ts_status place_in_block(ts_executable *exe, ts_usage *usages, int64_t *offsets) {
  int32_t count = (int32_t)exe->temp_count;
  for (int32_t i = 0; i < count; i++) {
    const ts_lifetime *l = &exe->lifetimes[i];
    usages[i] = (ts_usage){.first = l->first, .last = l->last, .bytes = l->bytes};
  }
  TS_TRY(ts_plan_offsets(usages, count, &exe->block_bytes[TS_LAYOUT_BLOCK]));
  for (int32_t i = 0; i < count; i++) offsets[i] = usages[i].offset;
  return TS_SUCCESS;
}

static ts_status make_block(ts_executable *exe) {
  ts_usage *usages;
  int64_t *offsets = NULL;
  TS_TRY(TS_NEW_ARRAY((size_t)exe->temp_count + 1, &usages));
  ts_status status = TS_NEW_ARRAY((size_t)exe->temp_count + 1, &offsets);
  if (!status) status = place_in_block(exe, usages, offsets);
  ts_free(usages);
  if (status)
    ts_free(offsets);
  else
    exe->block_offsets = offsets;
  return status;
}

ts_status ts_assign_block(ts_executable *exe) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  ts_status status = TS_SUCCESS;
  if (atomic_load_explicit(&exe->has_block, memory_order_acquire)) return TS_SUCCESS;
  pthread_mutex_lock(&lock);
  if (!atomic_load_explicit(&exe->has_block, memory_order_relaxed)) {
    status = make_block(exe);
    atomic_store_explicit(&exe->has_block, !status, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
  return status;
}
