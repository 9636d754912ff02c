/* The kernel of a direct convolution, packed. Where the whole kernel does not stay in L2, tiles read panels of it: the
 * features of one tile's width, one step of k after the other. All points of a task are computed with some panels,
 * which stay in L2, before the next ones are read. */
#include "kernel/conv/conv_internal.h"
#include "kernel/gemm/gemm_internal.h"

/* Steps of k that a task packs. */
#define PACK_STEPS 512

static int64_t tile_width(const ts_gemm_geometry *g) { return (int64_t)g->vectors * g->lanes; }

bool ts_conv_panels_fit(const conv_state *s, const ts_gemm_geometry *g, int64_t taps) {
  return taps * s->channels * tile_width(g) * s->size <= ts_target_host()->l2_bytes / 2;
}

bool ts_conv_panels_gain(const conv_state *s, const ts_gemm_geometry *g, int64_t taps, int64_t features) {
  const int64_t k = taps * s->channels, points = s->direct.batch * s->direct.y.out * s->direct.x.out;
  if (k * tile_width(g) * s->size > ts_target_host()->l1_bytes / 2) return false;
  return points >= CONV_PANEL_POINTS && k > conv_rows_in_l1(features * s->size) / 2;
}

int64_t ts_conv_panel_bytes(const conv_state *s) { return s->shape.k * tile_width(&s->gemm->geometry) * s->size; }

int64_t ts_conv_count_panels(const conv_state *s) { return conv_ceil_div(s->shape.n, tile_width(&s->gemm->geometry)); }

int64_t ts_conv_group_panels(const conv_state *s) {
  const int64_t all = ts_conv_count_panels(s);
  if (!s->direct.panels) return all;
  const int64_t most = conv_max(1, ts_target_host()->l2_bytes / 2 / ts_conv_panel_bytes(s));
  return conv_ceil_div(all, conv_ceil_div(all, most));
}

typedef struct packing {
  const conv_run *run;
  char *out;
  int64_t chunks; /* of k */
} packing;

static void pack_task(void *arg, int64_t task, int worker) {
  const packing *p = arg;
  const conv_state *s = p->run->s;
  const int64_t width = tile_width(&s->gemm->geometry), panel = task / p->chunks, first = panel * width;
  const int64_t k = task % p->chunks * PACK_STEPS;
  const gemm_pack pack = {
      s->type, s->gemm->geometry.compute, 1, s->shape.n, (int)width, (int)width, GEMM_REAL, NULL, 0, TS_DTYPE_NONE};
  (void)worker;
  if (ts_cancelled(p->run->cancel)) return;
  ts_gemm_pack(&pack, p->run->kernel + (k * s->shape.n + first) * s->size, conv_min(width, s->shape.n - first),
               conv_min(PACK_STEPS, s->shape.k - k), p->out + (panel * s->shape.k + k) * width * s->size, 0);
}

void ts_conv_pack_panels(const conv_run *run, const ts_parallel *parallel, char *out) {
  packing p = {run, out, conv_ceil_div(run->s->shape.k, PACK_STEPS)};
  ts_parallel_run(parallel, ts_conv_count_panels(run->s) * p.chunks, pack_task, &p);
}

static ts_status prepare_panels(const ts_routine_plan *plan, const ts_routine_run *run, void *out) {
  const conv_run r = {.s = plan->state, .kernel = ts_routine_operand(run, 1), .cancel = run->cancel};
  ts_conv_pack_panels(&r, run->parallel, out);
  return ts_check_cancelled(run->cancel, "a convolution");
}

bool ts_conv_keeps_panels(const conv_state *s, ts_weights *out) {
  const ts_gemm_shape *shape = &s->shape;
  if (shape->m > TS_GEMM_WEIGHT_ROWS || shape->n * shape->k < TS_GEMM_WEIGHT_ELEMENTS) return false;
  /* The order of a product's packed rhs with a single block of k. */
  const ts_prepared_key key = {{s->gemm->geometry.compute | (int64_t)s->type << 8 | INT64_C(1) << 16, 1, shape->n,
                                shape->k, 0, shape->rhs_row, 1, shape->k}};
  *out = (ts_weights){1, key, ts_conv_count_panels(s) * ts_conv_panel_bytes(s), prepare_panels};
  return true;
}
