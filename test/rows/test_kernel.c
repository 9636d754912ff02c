/* Meaning and routine of the test class (TS_TEST_ROWS in c_src/ir/op.def). */
#include "kernel/ref/ref_internal.h"
#include "kernel/routine.h"

#include <string.h>

/* ---- meaning ---- */

static void exchange(const ts_ref_call *call) {
  const ts_buffer *a = call->operands[0], *b = call->operands[1];
  int64_t greater = 0;
  for (int64_t i = 0; ts_ref_goes_on(call, i, ts_shape_elements(&a->shape)); i++) {
    ts_scalar x = ts_ref_get(a, i), y = ts_ref_get(b, i);
    bool swap = ts_ref_compare(TS_OP_GREATER, a->dtype, x, y);
    ts_ref_set(call->results[0], i, swap ? y : x);
    ts_ref_set(call->results[1], i, swap ? x : y);
    greater += swap;
  }
  ts_ref_set(call->results[2], 0, (ts_scalar){.s64 = greater});
}

ts_status ts_ref_test(const ts_ref_call *call) {
  switch ((ts_ops_TEST)call->op->code) {
  case TS_OP_TEST_EXCHANGE: exchange(call); return TS_SUCCESS;
  case TS_OP_TEST_ORDERED:
    ts_copy_bytes(call->result->data, call->operands[0]->data, call->result->bytes, call->cancel);
    return TS_SUCCESS;
  }
  return ts_ref_unknown(call);
}

/* ---- routine: each result goes over an operand if that is not read any more ---- */

typedef struct state {
  ts_dtype type;
  int64_t elements, bytes;
} state;

static ts_status test_plan(const ts_routine_request *request, ts_routine_plan *out) {
  static const bool inplace[3][2] = {{true, false}, {false, true}, {false, false}};
  const ts_value *v = ts_graph_value(request->graph, ts_graph_op(request->graph, request->op)->operands[0]);
  state *s;
  TS_TRY(ts_arena_alloc(request->arena, sizeof *s, (void **)&s));
  *s = (state){v->dtype, ts_shape_elements(v->shape), (int64_t)ts_dtype_size(v->dtype)};
  out->state = s;
  out->inplace = inplace[0];
  out->cost_ns = 100 + 5 * s->elements;
  return TS_SUCCESS;
}

static ts_status test_run(const ts_routine_plan *plan, const ts_routine_run *run) {
  const state *s = plan->state;
  const char *a = ts_routine_operand(run, 0), *b = ts_routine_operand(run, 1);
  char *low = ts_routine_result(run, 0), *high = ts_routine_result(run, 1);
  int64_t greater = 0;
  for (int64_t i = 0; i < s->elements && !ts_cancelled(run->cancel); i++) {
    ts_scalar x = ts_scalar_load(s->type, a + i * s->bytes), y = ts_scalar_load(s->type, b + i * s->bytes);
    bool swap = ts_ref_compare(TS_OP_GREATER, s->type, x, y);
    ts_scalar_store(s->type, swap ? y : x, low + i * s->bytes);
    ts_scalar_store(s->type, swap ? x : y, high + i * s->bytes);
    greater += swap;
  }
  memcpy(ts_routine_result(run, 2), &greater, sizeof greater);
  return ts_check_cancelled(run->cancel, "test_exchange");
}

const ts_routine ts_test_routine = {"exchange", test_plan, NULL, test_run, NULL};
