/* MAP: every point is computed independently. */
#include "jit/loop/loop_body.h"

static ts_status map_point(void *context, ts_loop *loop, const ts_point *at, ts_v *carried) {
  (void)context, (void)carried;
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_POINT, at));
  ts_loop_store(loop, at, NULL, 0);
  return TS_SUCCESS;
}

static ts_status map_row(void *context, ts_loop *loop, const ts_v *counters) {
  ts_loop_set_row(loop, counters, loop->d->rank - 1);
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_ROW, NULL));
  return ts_loop_points(loop, context, NULL, 0, map_point, NULL);
}

static ts_status emit_map(ts_loop *loop) {
  int32_t last = loop->d->rank - 1;
  ts_span span = last == 0 ? ts_loop_span(loop, loop->begin, loop->end)
                           : ts_loop_span(loop, ts_loop_number(loop, 0), loop->extent[last]);
  if (last == 0) return ts_loop_points(loop, &span, NULL, 0, map_point, NULL);
  return ts_loop_rows(loop, last, map_row, &span);
}

ts_status ts_loop_emit_map(ts_emit *e, const char *name, const ts_kernel_desc *desc) {
  ts_loop loop;
  ts_status status = ts_loop_open(&loop, e, name, desc);
  if (!status) status = emit_map(&loop);
  return ts_loop_close(&loop, status);
}
