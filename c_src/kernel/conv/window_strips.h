/* Strips of a depthwise convolution (ts_window_strip_fn), for one instruction set: a part of kernel/conv/window_body.h,
 * whose functions are used here. No include guard: each instruction set has its own. */

/* Points whose sums are in registers together: they share the loads of weights. Of two rows of outputs as many as leave
 * registers for the weights of both. */
enum { STRIP_PLACES = 8, PAIR_PLACES = VECTOR_BYTES == 64 ? 8 : 4 };

/* The rows of a pair to whose sums a line belongs. */
enum { UPPER = 1, LOWER = 2 };

/* Whether the line has an element `at`. `inside`: the points have no taps in padding. */
INLINE bool strip_has(const ts_window_strip *s, const char *line, int64_t at, bool inside) {
  return inside || (line && (uint64_t)at < (uint64_t)s->n);
}

static bool strip_slides(const ts_window_strip *s) { return s->stride == 1 && s->dilation == 1 && s->line_taps == 3; }

/* The lower row of a pair. */
static ts_window_strip strip_lower(const ts_window_strip *s) {
  ts_window_strip lower = *s;
  lower.lines++;
  lower.pair = 0;
  return lower;
}

static bool strip_is_inside(const ts_window_strip *s, int64_t lines, int64_t first, int64_t points) {
  int64_t last = first + (points - 1) * s->stride + (s->line_taps - 1) * s->dilation;
  for (int64_t r = 0; r < lines; r++)
    if (!s->lines[r]) return false;
  return first >= 0 && last < s->n;
}

#define NAME(name) name##_f32
#define T float
#define V floats
#define A float
#include "kernel/conv/window_weights.h"

#define NAME(name) name##_f64
#define T double
#define V doubles
#define A double
#include "kernel/conv/window_weights.h"

INLINE floats fma_vector_f16(floats a, floats b, floats c) { return fma_vector_f32(a, b, c); }
INLINE float fma_f16(float a, float b, float c) { return fma_f32(a, b, c); }
#define NAME(name) name##_f16
#define T uint16_t
#define V floats
#define A float
#include "kernel/conv/window_weights.h"

INLINE floats fma_vector_bf16(floats a, floats b, floats c) { return fma_vector_f32(a, b, c); }
INLINE float fma_bf16(float a, float b, float c) { return fma_f32(a, b, c); }
#define NAME(name) name##_bf16
#define T uint16_t
#define V floats
#define A float
#include "kernel/conv/window_weights.h"
