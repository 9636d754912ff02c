#include "exec/run.h"
#include "jit/flow/flow.h"

/* The addresses of the step's memory are in the function's words, where loops may have exchanged them. */
static ts_status run_call(ts_run *run, const ts_native_call *call, const int64_t *words) {
  for (uint32_t i = 0; i < call->count; i++)
    if (call->slots[i] != TS_NO_ID)
      run->base[call->step->ids[i]] = (void *)(intptr_t)words[TS_FLOW_SLOTS + call->slots[i]];
  return ts_run_routine(run, call->step);
}

static bool help(void *context, int64_t call, void *to, const void *from, int64_t bytes) {
  ts_run *run = context;
  const ts_native *native = run->native;
  if (call == TS_FLOW_COPY_BYTES)
    ts_copy_bytes(to, from, bytes, run->control ? &run->control->cancel : NULL);
  else
    run->failure = run_call(run, &native->calls[call], run->words + native->words);
  return !run->failure;
}

static void fill(ts_run *run, const ts_native *native, int64_t *words) {
  static const ts_run_control never;
  static const uint8_t flags[2][2] = {{UINT8_MAX, 0}, {UINT8_MAX, UINT8_MAX}};
  uint16_t mask;
  memcpy(&mask, flags[run->may_pause], sizeof mask);
  words[TS_FLOW_CONTROL] = (int64_t)(intptr_t)(run->control ? run->control : &never);
  words[TS_FLOW_MASK] = mask;
  words[TS_FLOW_HELPER] = (int64_t)(intptr_t)help;
  words[TS_FLOW_CONTEXT] = (int64_t)(intptr_t)run;
  if (run->resumed) return;
  words[TS_FLOW_STATE] = 0;
  for (uint32_t i = 0; i < native->slot_count; i++)
    words[TS_FLOW_SLOTS + i] = (int64_t)(intptr_t)run->base[native->slots[i]];
}

ts_status ts_run_native(ts_run *run, const ts_step *step) {
  const ts_native *native = step->native;
  int64_t *words = run->words + native->words;
  fill(run, native, words);
  run->native = native;
  run->failure = TS_SUCCESS;
  native->entry(words, 0, 1, NULL);
  ts_status failure = run->failure;
  run->resumed = words[TS_FLOW_STATE] > 0;
  if (run->resumed) run->frames[run->depth - 1].next--;
  /* calls have left the addresses of some moment */
  for (uint32_t i = 0; i < native->slot_count; i++)
    run->base[native->slots[i]] = (void *)(intptr_t)words[TS_FLOW_SLOTS + i];
  return failure;
}
