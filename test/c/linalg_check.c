#include "linalg_check.h"

#include "kernel/ref/ref.h"
#include "testing.h"
#include "tool/compare.h"
#include "tool/judge.h"

enum { MOST_RESULTS = 3 };

static void check_bits(const ts_graph *graph, ts_buffer *const *args, ts_buffer *const *results) {
  const ts_op *op = ts_graph_op(graph, 0);
  ts_buffer *expected[MOST_RESULTS];
  char message[TS_COMPARE_TEXT];
  ck_assert_ok(ts_ref_run(graph, args, op->operand_count, ts_pool_default(), expected));
  for (uint32_t i = 0; i < op->result_count; i++) {
    ck_assert_msg(ts_compare_buffers(results[i], expected[i], 0, message), "%s of %s, result %u: %s",
                  ts_op_name(op->code), TS_SHAPE_STR(args[0]->dtype, &args[0]->shape), i, message);
    ts_buffer_release(expected[i]);
  }
}

void check_linalg(const ts_graph *graph, ts_buffer *const *args, ts_buffer *const *results) {
  const ts_op *op = ts_graph_op(graph, 0);
  ck_assert_ok(ts_judge(op, args, results));
  if (ts_ref_defines_bits(op->code, args[0]->dtype)) check_bits(graph, args, results);
}
