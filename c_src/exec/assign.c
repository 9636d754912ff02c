/* Where every storage lives: first merging, so that an op writes its result
 * over an operand that dies with it; then offsets for what remains. */
#include "base/alloc.h"
#include "exec/plan.h"
#include "exec/steps.h"

#include <pthread.h>

/* What the step's launch says of its operands; NULL when it has none, or several. */
static const ts_lowered *lowered_of(const ts_step *step, uint32_t *out_first_operand) {
  *out_first_operand = step->kind == TS_STEP_GEMM ? TS_PRODUCT_OPERANDS : 0;
  if (step->kind == TS_STEP_LAUNCH) return step->launch.lowered;
  return step->kind == TS_STEP_GEMM && step->gemm.epilogue ? step->gemm.epilogue->lowered : NULL;
}

/* True when the launch may write result r over operand o. */
static bool is_inplace(const ts_step *step, uint32_t r, uint32_t o) {
  uint32_t first;
  const ts_lowered *lowered = lowered_of(step, &first);
  return lowered && lowered->inplace && o >= first && lowered->inplace[r * (step->operand_count - first) + o - first];
}

/* True when the step reads the storage through an operand that must stay whole. */
static bool read_otherwise(ts_executable *exe, const ts_step *step, uint32_t result, ts_storage_id root) {
  for (uint32_t o = 0; o < step->operand_count; o++) {
    if (ts_storage_find(exe, step->operands[o]) != root) continue;
    bool is_launch = step->kind == TS_STEP_LAUNCH || step->kind == TS_STEP_GEMM;
    if (is_launch ? is_inplace(step, result, o) : o == result) continue;
    return true;
  }
  return false;
}

static bool is_result_of(ts_executable *exe, const ts_step *step, ts_storage_id root) {
  for (uint32_t r = 0; r < step->result_count; r++)
    if (ts_storage_find(exe, step->results[r]) == root) return true;
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
static void try_merge(ts_executable *exe, const ts_step *step, uint32_t r, uint32_t o) {
  ts_storage_id operand_id = ts_storage_find(exe, step->operands[o]),
                result_id = ts_storage_find(exe, step->results[r]);
  ts_storage *operand = &exe->storages.data[operand_id], *result = &exe->storages.data[result_id];
  if (operand_id == result_id || operand->bytes != result->bytes || operand->bytes == 0) return;
  if (is_result_of(exe, step, operand_id) || read_otherwise(exe, step, r, operand_id)) return;
  if (operand->kind == TS_STORAGE_ARG && result->kind == TS_STORAGE_RESULT && operand->last == step->position &&
      result->first == step->position) {
    give(operand, result);
    return;
  }
  if ((operand->kind != TS_STORAGE_TEMP && !operand->carried) || result->donor >= 0) return;
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
static int preference(ts_executable *exe, const ts_step *step, uint32_t o) {
  ts_storage_id id = ts_storage_find(exe, step->operands[o]);
  if (exe->storages.data[id].kind == TS_STORAGE_ARG) return 2;
  return step->kind == TS_STEP_GEMM && id == ts_storage_find(exe, step->gemm.epilogue->product) ? 0 : 1;
}

/* The product is being made while other operands are still read: none may be in its place. */
static bool holds_product(ts_executable *exe, const ts_step *step, uint32_t r) {
  if (step->kind != TS_STEP_GEMM) return false;
  return ts_storage_find(exe, step->results[r]) == ts_storage_find(exe, step->gemm.epilogue->product);
}

static void merge_launch(ts_executable *exe, const ts_step *step) {
  uint32_t first;
  const ts_lowered *lowered = lowered_of(step, &first);
  uint32_t count = step->operand_count - first;
  for (int wanted = 0; wanted < 3; wanted++)
    for (uint32_t r = 0; r < step->result_count; r++)
      for (uint32_t o = 0; o < count; o++)
        if (lowered->inplace[r * count + o] && preference(exe, step, first + o) == wanted &&
            !holds_product(exe, step, r))
          try_merge(exe, step, r, first + o);
}

static ts_status merge_step(void *context, ts_step *step) {
  ts_executable *exe = context;
  if (step->kind == TS_STEP_LAUNCH || (step->kind == TS_STEP_GEMM && step->gemm.epilogue)) {
    merge_launch(exe, step);
  } else if (step->kind == TS_STEP_SCAN || step->kind == TS_STEP_COPY) {
    try_merge(exe, step, 0, 0);
  } else if (step->kind == TS_STEP_WHILE) {
    for (uint32_t i = 0; i < step->result_count; i++) try_merge(exe, step, i, i);
  }
  return TS_SUCCESS;
}

/* Arguments whose last reader is done before a result of their size is begun. */
static void find_donors(ts_executable *exe) {
  for (size_t i = 0; i < exe->storages.count; i++) {
    ts_storage *r = &exe->storages.data[i];
    if (r->kind != TS_STORAGE_RESULT || r->merged != i) continue;
    for (size_t p = 0; p < exe->param_count && p < 64 && r->donor < 0; p++) {
      ts_storage *a = &exe->storages.data[exe->param_storages[p]];
      if (a->bytes == r->bytes && a->last < r->first) give(a, r);
    }
    exe->has_donors = exe->has_donors || r->donor >= 0;
  }
}

static void resolve(ts_executable *exe, ts_storage_id *ids, size_t count) {
  for (size_t i = 0; i < count; i++) ids[i] = ts_storage_find(exe, ids[i]);
}

static ts_status resolve_step(void *context, ts_step *step) {
  ts_executable *exe = context;
  resolve(exe, step->operands, step->operand_count);
  resolve(exe, step->results, step->result_count);
  if (step->kind == TS_STEP_LAUNCH) {
    resolve(exe, step->launch.temps, (size_t)step->launch.lowered->temp_count);
    resolve(exe, &step->launch.scratch, 1);
  } else if (step->kind == TS_STEP_GEMM && step->gemm.epilogue) {
    resolve(exe, &step->gemm.epilogue->product, 1);
    resolve(exe, &step->gemm.epilogue->scratch, 1);
  } else if (step->kind == TS_STEP_WHILE) {
    resolve(exe, &step->loop.condition_result, 1);
    resolve(exe, step->loop.next, step->result_count);
  }
  return TS_SUCCESS;
}

/* Usages of storages that live in memory of the run's own; `all` adds arguments and results. */
static int32_t collect(ts_executable *exe, bool all, ts_usage *usages, ts_storage_id *ids) {
  int32_t n = 0;
  for (size_t i = 0; i < exe->storages.count; i++) {
    const ts_storage *s = &exe->storages.data[i];
    if (s->merged != i || s->last < 0 || s->kind == TS_STORAGE_CONST) continue;
    if (s->kind != TS_STORAGE_TEMP && !all) continue;
    bool arg = s->kind == TS_STORAGE_ARG; /* the caller holds it all the time */
    usages[n] = (ts_usage){.first = arg ? 0 : s->first, .last = arg ? exe->positions : s->last, .bytes = s->bytes};
    ids[n++] = (ts_storage_id)i;
  }
  return n;
}

/* The memory of results, and which they are. */
static int32_t collect_rooms(const ts_executable *exe, ts_room *rooms, ts_storage_id *ids) {
  int32_t n = 0;
  for (size_t i = 0; i < exe->storages.count; i++) {
    const ts_storage *s = &exe->storages.data[i];
    if (s->merged != i || s->kind != TS_STORAGE_RESULT) continue;
    rooms[n] = (ts_room){.until = s->first, .bytes = s->bytes};
    ids[n++] = (ts_storage_id)i;
  }
  return n;
}

static ts_status place_temps(ts_executable *exe, ts_usage *usages, ts_storage_id *ids) {
  int32_t n = collect(exe, false, usages, ids);
  ts_room *rooms = NULL;
  ts_storage_id *hosts = NULL;
  ts_status status = TS_NEW_ARRAY((size_t)exe->result_buffers + 1, &rooms);
  if (!status) status = TS_NEW_ARRAY((size_t)exe->result_buffers + 1, &hosts);
  if (!status) {
    int32_t room_count = collect_rooms(exe, rooms, hosts);
    status = ts_plan_rooms(usages, n, rooms, room_count, &exe->block_bytes[TS_LAYOUT_HOSTED]);
  }
  for (int32_t i = 0; i < n && !status; i++) {
    ts_storage *s = &exe->storages.data[ids[i]];
    s->offset[TS_LAYOUT_HOSTED] = usages[i].offset;
    s->host = usages[i].room >= 0 ? hosts[usages[i].room] : ids[i];
  }
  ts_free(rooms);
  ts_free(hosts);
  return status;
}

/* ---- without the results' memory ---- */

static ts_status place_in_block(ts_executable *exe, ts_usage *usages, ts_storage_id *ids) {
  int32_t n = collect(exe, false, usages, ids);
  TS_TRY(ts_plan_offsets(usages, n, &exe->block_bytes[TS_LAYOUT_BLOCK]));
  for (int32_t i = 0; i < n; i++) exe->storages.data[ids[i]].offset[TS_LAYOUT_BLOCK] = usages[i].offset;
  return TS_SUCCESS;
}

/* Calls `plan` with room for a usage of each storage. */
static ts_status with_usages(ts_executable *exe,
                             ts_status (*plan)(ts_executable *exe, ts_usage *usages, ts_storage_id *ids)) {
  ts_usage *usages = NULL;
  ts_storage_id *ids = NULL;
  ts_status status = ts_realloc_array(exe->storages.count + 1, sizeof *usages, (void **)&usages);
  if (!status) status = ts_realloc_array(exe->storages.count + 1, sizeof *ids, (void **)&ids);
  if (!status) status = plan(exe, usages, ids);
  ts_free(usages);
  ts_free(ids);
  return status;
}

ts_status ts_assign_block(ts_executable *exe) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  ts_status status = TS_SUCCESS;
  if (atomic_load_explicit(&exe->has_block, memory_order_acquire)) return TS_SUCCESS;
  pthread_mutex_lock(&lock);
  if (!atomic_load_explicit(&exe->has_block, memory_order_relaxed)) {
    status = with_usages(exe, place_in_block);
    atomic_store_explicit(&exe->has_block, !status, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
  return status;
}

/* ---- the whole ---- */

static ts_status place(ts_executable *exe, ts_usage *usages, ts_storage_id *ids) {
  int32_t n = collect(exe, true, usages, ids);
  TS_TRY(ts_plan_live_peak(usages, n, &exe->stats.live_peak_bytes));
  TS_TRY(place_temps(exe, usages, ids));
  exe->stats.temp_bytes = exe->block_bytes[TS_LAYOUT_HOSTED];
  exe->stats.planned_peak_bytes = exe->stats.temp_bytes;
  for (size_t i = 0; i < exe->storages.count; i++) {
    const ts_storage *s = &exe->storages.data[i];
    if (s->merged != i || (s->kind != TS_STORAGE_ARG && s->kind != TS_STORAGE_RESULT)) continue;
    exe->stats.planned_peak_bytes += s->bytes;
    if (s->kind == TS_STORAGE_RESULT) exe->stats.result_bytes += s->bytes;
  }
  return TS_SUCCESS;
}

ts_status ts_assign(ts_executable *exe) {
  TS_TRY(ts_block_walk(&exe->root, merge_step, exe));
  find_donors(exe);
  TS_TRY(ts_block_walk(&exe->root, resolve_step, exe));
  resolve(exe, exe->result_storages, exe->result_count);
  return with_usages(exe, place);
}
