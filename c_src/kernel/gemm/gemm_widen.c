/* Packs operands whose types are narrower than the product's: converts them, and may scale them. Contiguous elements
 * are converted together; elements that are contiguous along k are transposed afterwards. */
#include "kernel/gemm/gemm_widen.h"

#include "kernel/every_second.h"
#include "kernel/gemm/gemm_internal.h"

#include <string.h>

#define ISA(name) name##_base
#include "kernel/gemm/gemm_widen_body.h"

/* ---- elements ---- */

const gemm_widen *ts_gemm_widen_host(void) {
#if defined(__x86_64__)
  ts_isa isa = ts_target_host()->isa;
  if (isa == TS_ISA_AVX2 || isa == TS_ISA_AVX512) return &ts_gemm_widen_avx2;
#endif
  return &ts_gemm_widen_base;
}

void ts_gemm_narrow(ts_dtype dtype, const void *source, int64_t count, void *out) {
  ts_gemm_widen_host()->narrow(dtype, source, count, out);
}

/* A conversion of the elements of one panel. */
typedef struct widening {
  const gemm_widen *with;
  const gemm_pack *pack;
  float scales[TS_GEMM_MAX_UNITS]; /* of each unit: ones if the operand is not scaled, which change no bit */
} widening;

static void set_scales(widening *w, int64_t first, int64_t units) {
  const gemm_pack *p = w->pack;
  const int64_t size = (int64_t)ts_dtype_size(p->scale_type);
  for (int64_t u = 0; u < units; u++) {
    const char *at = p->scale ? p->scale + (first + u) * p->scale_unit * size : NULL;
    w->scales[u] = at ? (float)ts_scalar_to_f64(p->scale_type, ts_scalar_load(p->scale_type, at)) : 1;
  }
}

static void convert(const widening *w, const gemm_widen_rows *rows) {
  if (w->pack->compute == TS_GEMM_F64) {
    w->with->to_f64(rows);
    return;
  }
  w->with->to_f32(rows);
  if (w->pack->scale) w->with->round(rows, w->pack->scale_type);
}

/* ---- panels ---- */

/* Units are contiguous: a row of the panel is converted at a time. */
static void pack_units(const widening *w, const char *source, int64_t units, int64_t k, char *panel) {
  const gemm_pack *p = w->pack;
  const int64_t size = p->compute == TS_GEMM_F64 ? 8 : 4, row = p->width * size;
  convert(w, &(gemm_widen_rows){.type = p->dtype,
                                .from = source,
                                .from_row = p->k_stride * (int64_t)ts_dtype_size(p->dtype),
                                .rows = k,
                                .count = units,
                                .out = panel,
                                .out_row = row,
                                .scales = w->scales,
                                .scale_step = 1});
  for (int64_t i = 0; i < k && units < p->step; i++)
    memset(panel + i * row + units * size, 0, (size_t)(row - units * size));
}

/* Steps of k whose rows in a panel are all converted before they are transposed. */
#define BLOCK 64

/* Brings the elements of each unit next to each other, into rows of BLOCK. */
static void gather(const gemm_pack *p, const char *from, int64_t units, int64_t k, char *out) {
  const int64_t size = (int64_t)ts_dtype_size(p->dtype);
  for (int64_t u = 0; u < units; u++, from += p->unit_stride * size, out += BLOCK * size) {
    if (size == 2)
      copy_apart(from, p->k_stride, k, 2, out);
    else if (size == 4)
      copy_apart(from, p->k_stride, k, 4, out);
    else
      for (int64_t i = 0; i < k; i++) out[i] = from[i * p->k_stride];
  }
}

static void pack_block(const widening *w, const char *source, int64_t units, int64_t k, char *panel) {
  const gemm_pack *p = w->pack;
  _Alignas(64) char wide[TS_GEMM_MAX_UNITS * BLOCK * 8], aside[TS_GEMM_MAX_UNITS * BLOCK * 4];
  const bool f64 = p->compute == TS_GEMM_F64, contiguous = p->k_stride == 1;
  const char *rows[TS_GEMM_MAX_UNITS + 3];
  const int64_t line = BLOCK * (f64 ? 8 : 4), size = (int64_t)ts_dtype_size(p->dtype);
  if (!contiguous) gather(p, source, units, k, aside);
  convert(w, &(gemm_widen_rows){.type = p->dtype,
                                .from = contiguous ? source : aside,
                                .from_row = (contiguous ? p->unit_stride : BLOCK) * size,
                                .rows = units,
                                .count = k,
                                .out = wide,
                                .out_row = line,
                                .scales = w->scales});
  for (int64_t u = 0; u < units; u++) rows[u] = wide + u * line;
  gemm_pack packed = *p;
  packed.dtype = f64 ? TS_F64 : TS_F32;
  ts_gemm_pack_rows(&packed, rows, units, k, panel);
}

static void pack_steps(const widening *w, const char *source, int64_t units, int64_t k, char *panel) {
  const gemm_pack *p = w->pack;
  const int64_t size = (int64_t)ts_dtype_size(p->dtype), row = p->width * (p->compute == TS_GEMM_F64 ? 8 : 4);
  for (int64_t i = 0; i < k; i += BLOCK)
    pack_block(w, source + i * p->k_stride * size, units, gemm_min(BLOCK, k - i), panel + i * row);
}

void ts_gemm_pack_widened(const gemm_pack *pack, const char *source, int64_t units, int64_t k, char *panels,
                          int64_t panel_bytes) {
  widening w = {.with = ts_gemm_widen_host(), .pack = pack};
  const int64_t size = (int64_t)ts_dtype_size(pack->dtype);
  const bool by_units = pack->unit_stride == 1 && pack->k_stride != 1 && units >= 8;
  for (int64_t first = 0, panel = 0; first < units; first += pack->step, panel++) {
    const char *from = source + first * pack->unit_stride * size;
    const int64_t here = gemm_min(pack->step, units - first);
    set_scales(&w, first, here);
    (by_units ? pack_units : pack_steps)(&w, from, here, k, panels + panel * panel_bytes);
  }
}
