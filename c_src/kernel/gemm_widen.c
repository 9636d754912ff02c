/* Packs operands of types that are narrower than that of the product, which are converted, and may be scaled.
 * Contiguous elements are converted together; those that are contiguous along k are transposed afterwards. */
#include "kernel/gemm_widen.h"

#include "kernel/gemm_internal.h"

#include <string.h>

#define ISA(name) name##_base
#include "kernel/gemm_widen_body.h"

/* ---- elements ---- */

static const gemm_widen *host(void) {
#if defined(__x86_64__)
  ts_isa isa = ts_target_host()->isa;
  if (isa == TS_ISA_AVX2 || isa == TS_ISA_AVX512) return &ts_gemm_widen_avx2;
#endif
  return &ts_gemm_widen_base;
}

/* A conversion of the elements of one panel. */
typedef struct widening {
  const gemm_widen *with;
  const gemm_pack *pack;
  float scales[TS_GEMM_MAX_UNITS]; /* of each unit, if the operand is scaled */
} widening;

static void set_scales(widening *w, int64_t first, int64_t units) {
  const gemm_pack *p = w->pack;
  const int64_t size = (int64_t)ts_dtype_size(p->scale_type);
  if (!p->scale) return;
  for (int64_t u = 0; u < units; u++) {
    const char *at = p->scale + (first + u) * p->scale_unit * size;
    if (p->scale_type == TS_F32)
      memcpy(&w->scales[u], at, sizeof(float));
    else
      w->with->to_f32(p->scale_type, at, 1, &w->scales[u]);
  }
}

/* Converts elements of neighbouring units, from `unit` on, or with step 0 of that one only. */
static void convert(const widening *w, const char *from, int64_t unit, int step, int64_t count, char *out) {
  if (w->pack->compute == TS_GEMM_F64) {
    w->with->to_f64(w->pack->dtype, from, count, out);
    return;
  }
  float *floats = (float *)(void *)out;
  w->with->to_f32(w->pack->dtype, from, count, floats);
  if (!w->pack->scale) return;
  w->with->scale(w->scales + unit, step, count, floats);
  w->with->round(w->pack->scale_type, count, floats);
}

/* ---- panels ---- */

/* Units are contiguous: a row of the panel is converted at a time. */
static void pack_units(const widening *w, const char *source, int64_t units, int64_t k, char *panel) {
  const gemm_pack *p = w->pack;
  const int64_t from = p->k_stride * (int64_t)ts_dtype_size(p->dtype), size = p->compute == TS_GEMM_F64 ? 8 : 4;
  for (int64_t i = 0; i < k; i++) {
    char *row = panel + i * p->width * size;
    convert(w, source + i * from, 0, 1, units, row);
    if (units < p->step) memset(row + units * size, 0, (size_t)((p->width - units) * size));
  }
}

/* Steps of k of which all rows of a panel are converted before they are transposed. */
#define BLOCK 64

/* The elements of a unit, next to each other. */
static const char *gather(const gemm_pack *p, const char *from, int64_t count, char *aside) {
  const int64_t size = (int64_t)ts_dtype_size(p->dtype);
  if (p->k_stride == 1) return from;
  for (int64_t i = 0; i < count; i++) memcpy(aside + i * size, from + i * p->k_stride * size, (size_t)size);
  return aside;
}

static void pack_block(const widening *w, const char *source, int64_t units, int64_t k, char *panel) {
  const gemm_pack *p = w->pack;
  _Alignas(64) char wide[TS_GEMM_MAX_UNITS * BLOCK * 8], aside[BLOCK * 4];
  const bool f64 = p->compute == TS_GEMM_F64;
  const char *rows[TS_GEMM_MAX_UNITS + 3];
  const int64_t line = BLOCK * (f64 ? 8 : 4), size = (int64_t)ts_dtype_size(p->dtype);
  gemm_pack packed = *p;
  for (int64_t u = 0; u < units; u++) {
    convert(w, gather(p, source + u * p->unit_stride * size, k, aside), u, 0, k, wide + u * line);
    rows[u] = wide + u * line;
  }
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
  widening w = {.with = host(), .pack = pack};
  const int64_t size = (int64_t)ts_dtype_size(pack->dtype);
  const bool by_units = pack->unit_stride == 1 && pack->k_stride != 1 && units >= 8;
  for (int64_t first = 0, panel = 0; first < units; first += pack->step, panel++) {
    const char *from = source + first * pack->unit_stride * size;
    const int64_t here = gemm_min(pack->step, units - first);
    set_scales(&w, first, here);
    (by_units ? pack_units : pack_steps)(&w, from, here, k, panels + panel * panel_bytes);
  }
}
