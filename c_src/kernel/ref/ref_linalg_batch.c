#include "base/alloc.h"
#include "kernel/ref/ref_linalg.h"

static int64_t batch_of(const ts_shape *shape) {
  int64_t batch = 1;
  for (int32_t d = 0; d < shape->rank - 2; d++) batch *= shape->dims[d];
  return batch;
}

ts_status ts_ref_each_matrix(const ts_ref_call *call, const ts_ref_method *methods, int64_t numbers, size_t size) {
  void *room;
  while (methods->run && methods->op != call->op->code) methods++;
  if (!methods->run) return ts_ref_unknown(call);
  TS_TRY(ts_alloc_array((size_t)numbers + 1, size, &room));
  for (int64_t i = 0; i < batch_of(&call->operands[0]->shape) && !ts_cancelled(call->cancel); i++)
    methods->run(call, i, room);
  ts_free(room);
  return TS_SUCCESS;
}
