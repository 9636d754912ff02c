/* Buffer assignment: coalesces the storages of operands and results where an op may work in place, then numbers the
 * remaining storages and gives the temporaries offsets. */
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

/* ---- coalescing ---- */

/* The lowered op whose launch writes the step's results: the step's own or its epilogue's. NULL when there is none.
 * `out_first_operand` is the position of the launch's first operand in the step's list. */
static const ts_lowered *lowered_of(const ts_step *step, uint32_t *out_first_operand) {
  *out_first_operand = 0;
  if (step->kind == TS_STEP_LAUNCH) return &step->work->lowered;
  if (!ts_step_has_epilogue(step)) return NULL;
  *out_first_operand = step->routine.plan->operand_count;
  return &step->routine.epilogue->lowered;
}

/* True when the step may write result r over operand o as far as the op is concerned; live ranges are checked by the
 * caller. */
static bool is_inplace(const ts_step *step, uint32_t r, uint32_t o) {
  uint32_t first;
  const ts_lowered *lowered = lowered_of(step, &first);
  if (lowered) return lowered->inplace && o >= first && lowered->inplace[r * (step->operand_count - first) + o - first];
  if (step->kind != TS_STEP_ROUTINE) return o == r;
  const ts_routine_plan *plan = step->routine.plan;
  return plan->inplace && plan->inplace[r * plan->operand_count + o];
}

/* True when the step also reads the storage through an operand that the result must not overwrite. */
static bool read_otherwise(const ts_builder *b, const ts_step *step, uint32_t result, ts_storage_id root) {
  for (uint32_t o = 0; o < step->operand_count; o++) {
    const ts_storage *operand = ts_builder_storage(b, step->ids[o]);
    if (operand->kind == TS_MEMORY_VIEW && operand->viewed == root) return true;
    if (ts_builder_find(b, step->ids[o]) != root) continue;
    if (!is_inplace(step, result, o)) return true;
  }
  return false;
}

static bool is_result_of(const ts_builder *b, const ts_step *step, ts_storage_id root) {
  for (uint32_t r = 0; r < step->result_count; r++)
    if (ts_builder_find(b, ts_step_results(step)[r]) == root) return true;
  return false;
}

/* The result is the next value of the loop variable that the operand holds, and the live range of the old value within
 * the iteration ends at this step. */
static bool updates_carried(const ts_storage *operand, const ts_storage *result, int32_t position) {
  return operand->carried && result->next && operand->loop == result->loop &&
         operand->loop_index == result->loop_index && operand->last_in_loop == position;
}

/* Where the result is first written: the first write of a next value is after the loop's begin. */
static int32_t *made_at(ts_storage *result) { return result->next ? &result->first_in_loop : &result->first; }

/* Records that the result may take the argument's memory if the caller donates it. */
static void give(ts_storage *argument, ts_storage *result) {
  if (argument->given || result->donor >= 0) return;
  argument->given = true;
  result->donor = (int32_t)argument->index;
}

/* Result r of the step takes the memory of operand o if the operand's live range ends at this step. */
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
  if (updates_carried(operand, result, step->position) && *made_at(result) == step->position) {
    result->merged = operand_id;
    return;
  }
  if (operand->carried || operand->next || operand->last != step->position) return;
  if (*made_at(result) != step->position) return; /* it shares the memory of another operand already */
  operand->merged = result_id;
  if (operand->first < *made_at(result)) *made_at(result) = operand->first;
}

/* The order of trying operands: the result of a routine before its epilogue, then other temporaries, then arguments. A
 * result takes the memory of one operand only, and an argument's only when it is donated. */
static int preference(const ts_builder *b, const ts_step *step, uint32_t o) {
  ts_storage_id id = ts_builder_find(b, step->ids[o]);
  if (ts_builder_storage(b, id)->kind == TS_MEMORY_ARG) return 2;
  return ts_step_has_epilogue(step) && id == ts_builder_find(b, *ts_step_inner(step)) ? 0 : 1;
}

/* True when the step's result shares the memory of the routine's result. The routine writes its result while it reads
 * its other operands, so none of them may share this memory. */
static bool holds_inner(const ts_builder *b, const ts_step *step, uint32_t r) {
  if (!ts_step_has_epilogue(step)) return false;
  return ts_builder_find(b, ts_step_results(step)[r]) == ts_builder_find(b, *ts_step_inner(step));
}

static void merge_launch(ts_builder *b, const ts_step *step) {
  uint32_t first;
  const ts_lowered *lowered = lowered_of(step, &first);
  uint32_t count = step->operand_count - first;
  bool asked[3] = {false}; /* by preference, whether any operand may be overwritten: most launches have one at most */
  for (uint32_t i = 0; i < count * step->result_count; i++)
    if (lowered->inplace[i]) asked[preference(b, step, first + i % count)] = true;
  for (int wanted = 0; wanted < 3; wanted++)
    for (uint32_t r = 0; asked[wanted] && r < step->result_count; r++)
      for (uint32_t o = 0; o < count; o++)
        if (lowered->inplace[r * count + o] && preference(b, step, first + o) == wanted && !holds_inner(b, step, r))
          try_merge(b, step, r, first + o);
}

static void merge_routine(ts_builder *b, const ts_step *step) {
  for (uint32_t r = 0; step->routine.plan->inplace && r < step->result_count; r++)
    for (uint32_t o = 0; o < step->operand_count; o++)
      if (is_inplace(step, r, o)) try_merge(b, step, r, o);
}

static ts_status merge_step(void *context, ts_step *step) {
  ts_builder *b = context;
  if (step->kind == TS_STEP_LAUNCH || ts_step_has_epilogue(step)) {
    merge_launch(b, step);
  } else if (step->kind == TS_STEP_ROUTINE) {
    merge_routine(b, step);
  } else if (step->kind == TS_STEP_COPY) {
    try_merge(b, step, 0, 0);
  } else if (step->kind == TS_STEP_WHILE) {
    for (uint32_t i = 0; i < step->result_count; i++) try_merge(b, step, i, i);
  }
  return TS_SUCCESS;
}

/* Finds an argument of the result's size whose live range ends before the result's begins. */
static void find_donor(ts_builder *b, ts_storage *result) {
  for (size_t p = 0; p < b->exe->param_count && result->donor < 0; p++) {
    ts_storage *a = ts_builder_storage(b, (ts_storage_id)p);
    if (a->bytes == result->bytes && a->last < result->first) give(a, result);
  }
}

/* ---- numbers ---- */

/* Numbers the storages that are not merged into others. */
static ts_status number(ts_builder *b) {
  ts_executable *exe = b->exe;
  const ts_memory_id first[] = {[TS_MEMORY_ARG] = 0,
                                [TS_MEMORY_CONST] = (ts_memory_id)exe->param_count,
                                [TS_MEMORY_RESULT] = ts_first_made(exe),
                                [TS_MEMORY_VIEW] = ts_first_view(exe),
                                [TS_MEMORY_TEMP] = ts_first_temp(exe)};
  TS_TRY(TS_ARENA_ARRAY(&exe->arena, exe->made_count, &exe->donors));
  TS_TRY(TS_ARENA_ARRAY(&exe->arena, exe->view_count, &exe->views));
  for (size_t i = 0; i < b->storages.count; i++) {
    ts_storage *s = &b->storages.data[i];
    if (s->merged != i) continue;
    if (s->kind == TS_MEMORY_TEMP) s->index = exe->temp_count++;
    s->memory = first[s->kind] + s->index;
    if (s->kind == TS_MEMORY_VIEW) /* what it is a part of is an earlier storage */
      exe->views[s->index] = (ts_view){s->offset, ts_builder_storage(b, s->viewed)->memory};
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
  if (step->kind != TS_STEP_ROUTINE) return 0;
  return ts_step_has_epilogue(step) ? 3 : 1;
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

/* ---- offsets ---- */

/* The live range of a storage. A storage that no step uses takes no memory. */
static ts_usage usage_of(const ts_storage *s) {
  if (s->last < 0) return (ts_usage){0};
  return (ts_usage){.first = s->first, .last = s->last, .bytes = s->bytes};
}

/* Collects the live ranges of temporaries, indexed by their numbers, then of arguments and results; returns their
 * number. */
static size_t collect(const ts_builder *b, ts_usage *usages) {
  size_t others = b->exe->temp_count;
  for (size_t i = 0; i < b->storages.count; i++) {
    const ts_storage *s = &b->storages.data[i];
    if (s->merged != i || s->kind == TS_MEMORY_CONST || s->kind == TS_MEMORY_VIEW) continue;
    ts_usage u = usage_of(s);
    if (s->kind == TS_MEMORY_ARG)
      u = (ts_usage){.last = b->position + 1, .bytes = s->bytes}; /* the caller holds it during the whole run */
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

/* Collects the memory of results as rooms for temporaries, and in `hosts` the number of each. */
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
  TS_TRY(ts_plan_rooms(usages, temps, rooms, room_count, &exe->block_bytes[TS_TEMPS_HOSTED]));
  TS_TRY(TS_ARENA_ARRAY(&exe->arena, exe->temp_count, &exe->temps));
  for (int32_t i = 0; i < temps; i++) {
    int32_t room = usages[i].room;
    exe->temps[i] = (ts_temp){.offset = usages[i].offset, .host = room >= 0 ? hosts[room] : TS_NO_ID};
  }
  stats->temp_bytes = exe->block_bytes[TS_TEMPS_HOSTED];
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

/* ---- without rooms in results ---- */

static ts_status place_in_block(ts_executable *exe, ts_usage *usages, int64_t *offsets) {
  int32_t count = (int32_t)exe->temp_count;
  for (int32_t i = 0; i < count; i++) {
    const ts_lifetime *l = &exe->lifetimes[i];
    usages[i] = (ts_usage){.first = l->first, .last = l->last, .bytes = l->bytes};
  }
  TS_TRY(ts_plan_offsets(usages, count, &exe->block_bytes[TS_TEMPS_BLOCK]));
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
