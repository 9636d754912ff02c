/* Every number of the narrow types, converted, scaled and rounded on each class of machines as tensor/ does it. */
#include "jit/session/target.h"
#include "kernel/gemm/gemm_widen.h"
#include "testing.h"

#include <math.h>

static const ts_dtype types[] = {TS_S2, TS_S4,  TS_S8,  TS_S16,  TS_U2, TS_U4,
                                 TS_U8, TS_U16, TS_F16, TS_BF16, TS_F8, TS_F8E4M3FN};
enum { COUNT_OF_ALL = 1 << 16, ROWS = 64, COLUMNS = COUNT_OF_ALL / ROWS };

static const gemm_widen *class_of(int i) {
#if defined(__x86_64__)
  if (i > 0) return ts_target_host()->isa == TS_ISA_SSE4 ? NULL : &ts_gemm_widen_avx2;
#endif
  return i > 0 ? NULL : &ts_gemm_widen_base;
}

static bool same(float a, float b) { return ts_f32_bits(a) == ts_f32_bits(b) || (a != a && b != b); }

static char narrow[COUNT_OF_ALL * 2];
static float wide[COUNT_OF_ALL], scales[COLUMNS];

/* All patterns of 16 bits; for types of 8 bits, all their patterns again and again. */
static gemm_widen_rows make_rows(ts_dtype type, int step) {
  const int64_t size = (int64_t)ts_dtype_size(type);
  for (uint32_t i = 0; i < COUNT_OF_ALL; i++) {
    ts_scalar x =
        ts_dtype_is_integer(type) ? ts_scalar_from_u64(type, i) : (ts_scalar){.bits = size == 1 ? i & 255 : i};
    ts_scalar_store(type, x, narrow + i * size);
  }
  for (int i = 0; i < COLUMNS; i++) scales[i] = (float)(i % 37 - 18) * 0.37f;
  return (gemm_widen_rows){.type = type,
                           .from = narrow,
                           .from_row = COLUMNS * size,
                           .rows = ROWS,
                           .count = COLUMNS,
                           .out = (char *)wide,
                           .out_row = COLUMNS * 4,
                           .scales = scales,
                           .scale_step = step};
}

static float expected(ts_dtype type, int64_t i) {
  return (float)ts_scalar_to_f64(type, ts_scalar_load(type, narrow + i * (int64_t)ts_dtype_size(type)));
}

START_TEST(every_number)
{
  const ts_dtype type = types[_i / 2];
  const gemm_widen *with = class_of(_i % 2);
  for (int step = 0; with && step < 2; step++) {
    const gemm_widen_rows rows = make_rows(type, step);
    with->to_f32(&rows);
    for (int64_t i = 0; i < COUNT_OF_ALL; i++) {
      const float want = expected(type, i) * scales[step ? i % COLUMNS : i / COLUMNS];
      ck_assert_msg(same(wide[i], want), "%s, element %d: %g, expected %g", ts_dtype_name(type), (int)i,
                    (double)wide[i], (double)want);
    }
  }
}
END_TEST

/* Floats of all exponents, next to and on the middle between two numbers of the type. */
START_TEST(rounding)
{
  const ts_dtype type = _i / 2 ? TS_F16 : TS_BF16;
  const gemm_widen *with = class_of(_i % 2);
  gemm_widen_rows rows = make_rows(TS_S8, 0);
  static const uint32_t ends[] = {0, 1, 0xFFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001, 0xFFFF};
  for (size_t e = 0; with && e < sizeof ends / sizeof *ends; e++) {
    const uint32_t low = ends[e];
    for (uint32_t i = 0; i < COUNT_OF_ALL; i++) wide[i] = ts_f32_from_bits(i << 16 | low);
    with->round(&rows, type);
    for (uint32_t i = 0; i < COUNT_OF_ALL; i++) {
      const float x = ts_f32_from_bits(i << 16 | low);
      const float want = (float)ts_scalar_to_f64(type, ts_scalar_from_f64(type, (double)x));
      ck_assert_msg(same(wide[i], want), "%s of %a: %a, expected %a", ts_dtype_name(type), (double)x, (double)wide[i],
                    (double)want);
    }
  }
}
END_TEST

/* The same floats become numbers of the narrow types; integers lose their upper bits. */
START_TEST(narrowing)
{
  static const ts_dtype to[] = {TS_F16, TS_BF16, TS_S8, TS_U8, TS_S16, TS_U16};
  static const uint32_t ends[] = {0, 1, 0xFFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001, 0xFFFF};
  const ts_dtype type = to[_i / 2];
  const int64_t size = (int64_t)ts_dtype_size(type);
  const gemm_widen *with = class_of(_i % 2);
  for (size_t e = 0; with && e < sizeof ends / sizeof *ends; e++) {
    for (uint32_t i = 0; i < COUNT_OF_ALL; i++) wide[i] = ts_f32_from_bits(i << 16 | ends[e]);
    with->narrow(type, wide, COUNT_OF_ALL, narrow);
    for (uint32_t i = 0; i < COUNT_OF_ALL; i++) {
      const uint32_t bits = i << 16 | ends[e];
      const double x = (double)ts_f32_from_bits(bits);
      const ts_scalar want = ts_dtype_is_float(type) ? ts_scalar_from_f64(type, x) : ts_scalar_from_u64(type, bits);
      const ts_scalar got = ts_scalar_load(type, narrow + i * size);
      const bool is_nan = ts_dtype_is_float(type) && x != x && isnan(ts_scalar_to_f64(type, got));
      ck_assert_msg(is_nan || got.bits == want.bits, "%s of %x: %llx, expected %llx", ts_dtype_name(type), bits,
                    (unsigned long long)got.bits, (unsigned long long)want.bits);
    }
  }
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("gemm_widen");
  TCase *t = tcase_create("conversions");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, every_number, 0, 2 * (int)(sizeof types / sizeof *types));
  tcase_add_loop_test(t, rounding, 0, 4);
  tcase_add_loop_test(t, narrowing, 0, 12);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
