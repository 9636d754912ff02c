#include "base/deep.h"

#include "base/slots.h"
#include "base/thread.h"

#include <pthread.h>

/* Enough for a thousand levels; untouched pages cost nothing. */
#define STACK_BYTES ((size_t)64 << 20)

static _Thread_local bool is_deep;

typedef struct deep_call {
  ts_deep_fn fn;
  void *context;
  ts_status status;
  int slot;
} deep_call;

/* The other thread uses the caller's slot, since the caller waits. */
static void *run(void *argument) {
  deep_call *call = argument;
  is_deep = true;
  ts_slot_mark = call->slot + 1;
  call->status = call->fn(call->context);
  return NULL;
}

ts_status ts_deep_call(size_t levels, ts_deep_fn fn, void *context) {
  if (levels <= TS_DEEP_LEVELS || is_deep) return fn(context);
  deep_call call = {.fn = fn, .context = context, .slot = ts_slot()};
  if (!ts_thread_run("tessera_deep", run, &call, STACK_BYTES))
    return ts_error(TS_RESOURCE_EXHAUSTED, "the system refuses a thread with the stack for %zu levels of nesting",
                    levels);
  return call.status;
}
