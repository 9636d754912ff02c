#include "tensor/buffer.h"
#include "tensor/mapping.h"
#include "tensor/pages.h"
#include "testing.h"

#include <math.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define MB ((int64_t)1 << 20)

/* ---- types */

START_TEST(dtype_table)
{
  ck_assert_int_eq(TS_DTYPE_COUNT, 20);
  for (int t = 0; t < TS_DTYPE_COUNT; t++) {
    const char *name = ts_dtype_name((ts_dtype)t);
    ck_assert_int_eq(ts_dtype_from_name(name, strlen(name)), t);
  }
  ck_assert_int_eq(ts_dtype_from_name("f3", 2), TS_DTYPE_NONE);
  ck_assert_int_eq(ts_dtype_from_name("", 0), TS_DTYPE_NONE);
  ck_assert_str_eq(ts_dtype_name(TS_DTYPE_NONE), "?");
  ck_assert_uint_eq(ts_dtype_size(TS_S2), 1);
  ck_assert_uint_eq(ts_dtype_size(TS_C128), 16);
  ck_assert(ts_dtype_supported(TS_BF16) && ts_dtype_supported(TS_C64) && !ts_dtype_supported(TS_DTYPE_NONE));
}
END_TEST

START_TEST(dtype_promotion)
{
  static const struct {
    ts_dtype a, b, merged;
  } cases[] = {
      {TS_U8, TS_U32, TS_U32},    {TS_S8, TS_S64, TS_S64},    {TS_U8, TS_S8, TS_S16},    {TS_U8, TS_S32, TS_S32},
      {TS_U32, TS_S8, TS_S64},    {TS_U64, TS_S8, TS_S64},    {TS_U2, TS_S2, TS_S4},     {TS_S64, TS_F16, TS_F16},
      {TS_U64, TS_BF16, TS_BF16}, {TS_BF16, TS_F16, TS_F16},  {TS_BF16, TS_F32, TS_F32}, {TS_BF16, TS_F8, TS_F8},
      {TS_F32, TS_F64, TS_F64},   {TS_F32, TS_C64, TS_C64},   {TS_F64, TS_C64, TS_C128}, {TS_S64, TS_C64, TS_C64},
      {TS_BF16, TS_C64, TS_C64},  {TS_C64, TS_C128, TS_C128},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    ck_assert_int_eq(ts_dtype_merge(cases[i].a, cases[i].b), cases[i].merged);
    ck_assert_int_eq(ts_dtype_merge(cases[i].b, cases[i].a), cases[i].merged);
  }
  ck_assert_int_eq(ts_dtype_to_float(TS_U8), TS_F32);
  ck_assert_int_eq(ts_dtype_to_float(TS_BF16), TS_BF16);
  ck_assert_int_eq(ts_dtype_aggregate(TS_U8), TS_U32);
  ck_assert_int_eq(ts_dtype_aggregate(TS_S16), TS_S32);
  ck_assert_int_eq(ts_dtype_aggregate(TS_U64), TS_S64);
  ck_assert_int_eq(ts_dtype_aggregate(TS_S64), TS_S64);
  ck_assert_int_eq(ts_dtype_aggregate(TS_F16), TS_F16);
}
END_TEST

/* ---- half precision */

/* Every finite half is its own nearest, and a number between two neighbours is rounded to the nearer
 * or, in the middle, to the even one. `to_f32` widens; `narrow` is under test. */
static void check_rounding(uint16_t infinity, float (*to_f32)(uint16_t), uint16_t (*narrow)(double)) {
  for (uint16_t bits = 0; bits < infinity; bits++) {
    double low = (double)to_f32(bits);
    ck_assert_uint_eq(narrow(low), bits);
    ck_assert_uint_eq(narrow(-low), bits | 0x8000);
    if (bits + 1 == infinity) break;
    double middle = (low + (double)to_f32((uint16_t)(bits + 1))) / 2;
    ck_assert_uint_eq(narrow(middle), bits & 1 ? bits + 1 : bits);
    ck_assert_uint_eq(narrow(nextafter(middle, 0)), bits);
    ck_assert_uint_eq(narrow(nextafter(middle, INFINITY)), bits + 1); /* lost if first rounded to f32 */
    ck_assert_uint_eq(narrow(-middle), (bits & 1 ? bits + 1 : bits) | 0x8000);
  }
}

START_TEST(half_rounds_once)
{
  check_rounding(0x7C00, ts_f16_to_f32, ts_f64_to_f16);
  check_rounding(0x7F80, ts_bf16_to_f32, ts_f64_to_bf16);
}
END_TEST

START_TEST(half_from_f32)
{
  /* The short ways agree with the f64 ones on a sample of all bit patterns. */
  for (uint64_t i = 0; i <= UINT32_MAX; i += 9973) {
    ts_scalar s = {.bits = i};
    if (isnan(s.f32)) {
      ck_assert(isnan(ts_f16_to_f32(ts_f32_to_f16(s.f32))) && isnan(ts_bf16_to_f32(ts_f32_to_bf16(s.f32))));
    } else {
      ck_assert_uint_eq(ts_f32_to_f16(s.f32), ts_f64_to_f16((double)s.f32));
      ck_assert_uint_eq(ts_f32_to_bf16(s.f32), ts_f64_to_bf16((double)s.f32));
    }
  }
}
END_TEST

START_TEST(half_special_values)
{
  ck_assert_uint_eq(ts_f64_to_f16(65504), 0x7BFF);
  ck_assert_uint_eq(ts_f64_to_f16(65519.99), 0x7BFF);
  ck_assert_uint_eq(ts_f64_to_f16(65520), 0x7C00);
  ck_assert_uint_eq(ts_f64_to_f16(1e300), 0x7C00);
  ck_assert_uint_eq(ts_f64_to_f16(-INFINITY), 0xFC00);
  ck_assert_uint_eq(ts_f64_to_f16(0x1p-24), 1);
  ck_assert_uint_eq(ts_f64_to_f16(0x1p-25), 0);
  ck_assert_uint_eq(ts_f64_to_f16(0x1.000001p-25), 1);
  ck_assert_uint_eq(ts_f64_to_f16(-5e-324), 0x8000);
  ck_assert_uint_eq(ts_f32_to_bf16(1.0f), 0x3F80);
  ck_assert_uint_eq(ts_f64_to_bf16((double)3.4e38f), 0x7F80);
  ck_assert(isnan(ts_f16_to_f32(ts_f64_to_f16(NAN))) && isnan(ts_bf16_to_f32(ts_f64_to_bf16(NAN))));
  ts_scalar low_payload = {.bits = 0x7F800001}; /* must not become an infinity */
  ck_assert(isnan(ts_bf16_to_f32(ts_f32_to_bf16(low_payload.f32))));
  ck_assert(isnan(ts_f16_to_f32(ts_f32_to_f16(low_payload.f32))));
}
END_TEST

/* ---- scalars */

START_TEST(scalar_float_to_integer)
{
  ck_assert_int_eq(ts_scalar_from_f64(TS_S8, 1e9).s64, 127);
  ck_assert_int_eq(ts_scalar_from_f64(TS_S8, -1e9).s64, 0x80);
  ck_assert_int_eq(ts_scalar_from_f64(TS_S8, -1.9).s64, 0xFF);
  ck_assert_int_eq(ts_scalar_from_f64(TS_S32, NAN).s64, 0);
  ck_assert_int_eq(ts_scalar_from_f64(TS_S64, INFINITY).s64, INT64_MAX);
  ck_assert_int_eq(ts_scalar_from_f64(TS_S64, 0x1p63).s64, INT64_MAX);
  ck_assert_int_eq(ts_scalar_from_f64(TS_S64, -INFINITY).s64, INT64_MIN);
  ck_assert_int_eq(ts_scalar_from_f64(TS_S64, -0x1p63).s64, INT64_MIN);
  ck_assert_uint_eq(ts_scalar_from_f64(TS_U8, -3).u64, 0);
  ck_assert_uint_eq(ts_scalar_from_f64(TS_U8, 255.9).u64, 255);
  ck_assert_uint_eq(ts_scalar_from_f64(TS_U8, 256).u64, 255);
  ck_assert_uint_eq(ts_scalar_from_f64(TS_U64, 0x1p64).u64, UINT64_MAX);
  ck_assert_uint_eq(ts_scalar_from_f64(TS_U64, 0x1.8p63).u64, UINT64_C(3) << 62);
  ck_assert_uint_eq(ts_scalar_from_f64(TS_U16, NAN).u64, 0);
}
END_TEST

START_TEST(scalar_integer_to_any)
{
  ck_assert_uint_eq(ts_scalar_from_s64(TS_U16, -1).u64, 0xFFFF);
  ck_assert_uint_eq(ts_scalar_from_s64(TS_S8, 300).u64, 44);
  ts_scalar minus_two = ts_scalar_from_s64(TS_S8, -2);
  ck_assert_int_eq(ts_scalar_to_s64(TS_S8, minus_two), -2);
  ck_assert_int_eq(ts_scalar_convert(TS_S8, minus_two, TS_S64).s64, -2);
  ck_assert_uint_eq(ts_scalar_convert(TS_S8, minus_two, TS_U32).u64, 0xFFFFFFFE);
  ck_assert_double_eq(ts_scalar_to_f64(TS_S8, minus_two), -2);
  ck_assert_double_eq(ts_scalar_convert(TS_U64, (ts_scalar){.u64 = UINT64_MAX}, TS_F64).f64, 0x1p64);
  /* 2^60 + 2^52 + 1 is just over the middle of two bf16: a detour by f64 would lose the 1. */
  ck_assert_uint_eq(ts_scalar_from_s64(TS_BF16, ((int64_t)1 << 60) + ((int64_t)1 << 52) + 1).bits, 0x5D81);
  ck_assert_uint_eq(ts_scalar_from_s64(TS_BF16, -((int64_t)1 << 60) - ((int64_t)1 << 52) - 1).bits, 0xDD81);
  ck_assert_uint_eq(ts_scalar_from_u64(TS_F16, 1 << 20).bits, 0x7C00);
  ck_assert_int_eq(ts_scalar_to_s64(TS_F32, ts_scalar_from_f64(TS_F32, -2.75)), -2);
}
END_TEST

START_TEST(scalar_limits_and_memory)
{
  ck_assert_int_eq(ts_scalar_to_s64(TS_S16, ts_dtype_lowest(TS_S16)), INT16_MIN);
  ck_assert_int_eq(ts_dtype_highest(TS_S64).s64, INT64_MAX);
  ck_assert_int_eq(ts_dtype_lowest(TS_S64).s64, INT64_MIN);
  ck_assert_uint_eq(ts_dtype_lowest(TS_U32).u64, 0);
  ck_assert_uint_eq(ts_dtype_highest(TS_U32).u64, UINT32_MAX);
  ck_assert_uint_eq(ts_dtype_highest(TS_U64).u64, UINT64_MAX);
  ck_assert_uint_eq(ts_dtype_lowest(TS_F16).bits, 0xFC00);
  ck_assert_double_eq(ts_dtype_highest(TS_F64).f64, INFINITY);

  unsigned char bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  ck_assert_uint_eq(ts_scalar_load(TS_U16, bytes + 1).bits, 0x0302);
  ts_scalar_store(TS_U32, (ts_scalar){.bits = 0xAABBCCDD}, bytes + 1);
  ck_assert_uint_eq(bytes[0], 1);
  ck_assert_uint_eq(bytes[1], 0xDD);
  ck_assert_uint_eq(bytes[5], 6);
}
END_TEST

/* ---- shapes */

static ts_shape shape2(int64_t a, int64_t b) { return ts_shape_make(2, (int64_t[]){a, b}); }

START_TEST(shape_basics)
{
  ts_shape s = ts_shape_make(3, (int64_t[]){2, 3, 4}), scalar = ts_shape_make(0, NULL), empty = shape2(5, 0);
  int64_t strides[TS_MAX_RANK];
  ck_assert_int_eq(ts_shape_elements(&s), 24);
  ck_assert_int_eq(ts_shape_bytes(&s, TS_F64), 192);
  ck_assert_int_eq(ts_shape_elements(&scalar), 1);
  ck_assert_int_eq(ts_shape_elements(&empty), 0);
  ts_shape_strides(&s, strides);
  ck_assert(strides[0] == 12 && strides[1] == 4 && strides[2] == 1);
  ck_assert_str_eq(TS_SHAPE_STR(TS_F32, &s), "f32[2,3,4]");
  ck_assert_str_eq(TS_SHAPE_STR(TS_U8, &scalar), "u8[]");
  char small[7];
  ck_assert_str_eq(ts_shape_format(TS_F32, &s, small, sizeof(small)), "f32[2,");
  ck_assert(ts_shape_equal(&s, &s) && !ts_shape_equal(&s, &empty) && !ts_shape_equal(&scalar, &s));
}
END_TEST

START_TEST(shape_check)
{
  ts_shape s = shape2((int64_t)1 << 30, (int64_t)1 << 30);
  ck_assert_ok(ts_shape_check(&s, TS_F32));
  ck_assert_error(ts_shape_check(&s, TS_F64), TS_OUT_OF_RANGE, "f64[1073741824,1073741824]");
  s = shape2(3, -1);
  ck_assert_error(ts_shape_check(&s, TS_F32), TS_INVALID_ARGUMENT, "dimension 1 of f32[3,-1] is negative");
  s = ts_shape_make(3, (int64_t[]){INT64_MAX, 2, 0}); /* no elements, but no strides either */
  ck_assert_error(ts_shape_check(&s, TS_U8), TS_OUT_OF_RANGE, "64 bits");
  s.rank = TS_MAX_RANK + 1;
  ck_assert_error(ts_shape_check(&s, TS_F32), TS_INVALID_ARGUMENT, "rank 65");
  s.rank = -1;
  ck_assert_error(ts_shape_check(&s, TS_F32), TS_INVALID_ARGUMENT, "rank -1");
}
END_TEST

START_TEST(shape_broadcast)
{
  ts_shape a = ts_shape_make(3, (int64_t[]){4, 1, 3}), b = shape2(5, 1), scalar = ts_shape_make(0, NULL), out;
  ts_shape wanted = ts_shape_make(3, (int64_t[]){4, 5, 3}), empty = shape2(0, 1);
  ck_assert_ok(ts_shape_broadcast(&a, &b, &out));
  ck_assert(ts_shape_equal(&out, &wanted));
  ck_assert_ok(ts_shape_broadcast(&scalar, &b, &out));
  ck_assert(ts_shape_equal(&out, &b));
  ck_assert_ok(ts_shape_broadcast(&a, &empty, &out));
  ck_assert_int_eq(ts_shape_elements(&out), 0);
  b = shape2(5, 2);
  ck_assert_error(ts_shape_broadcast(&a, &b, &out), TS_INVALID_ARGUMENT, "[4,1,3] and [5,2]");
}
END_TEST

/* ---- pool */

static ts_pool_stats stats_of(ts_pool *pool) {
  ts_pool_stats stats;
  ts_pool_get_stats(pool, &stats);
  return stats;
}

START_TEST(pool_sizes)
{
  static const int64_t around[] = {0, 64, 1024, 1280, 4096, 256 * 1024, 2 << 20, 3 << 20, 16 << 20, 33 << 20};
  ts_pool *pool;
  ck_assert_ok(ts_pool_create(1 << 30, &pool));
  for (size_t i = 0; i < sizeof(around) / sizeof(*around); i++) {
    for (int64_t size = around[i] ? around[i] - 1 : 0; size <= around[i] + 1; size++) {
      char *block;
      ck_assert_ok(ts_pool_alloc(pool, size, (void **)&block));
      ck_assert_uint_eq((uintptr_t)block % TS_POOL_ALIGNMENT, 0);
      int64_t usable = (size + 63) / 64 * 64, live = stats_of(pool).live;
      ck_assert_int_ge(live, usable);
      ck_assert_int_le(live, size < 1024 ? size + 64 : size < 2 * MB ? size / 4 * 5 + 64 : size + size / 8 + 2 * MB);
      memset(block, 1, (size_t)usable);
      ts_pool_free(pool, block, size);
      ck_assert_int_eq(stats_of(pool).live, 0);
    }
  }
  ts_pool_free(pool, NULL, 7);
  ts_pool_destroy(pool);
}
END_TEST

START_TEST(pool_reuses_blocks)
{
  ts_pool *pool;
  void *first, *second;
  ck_assert_ok(ts_pool_create(1 << 30, &pool));
  ck_assert_ok(ts_pool_alloc(pool, 5 * MB, &first));
  ts_pool_free(pool, first, 5 * MB);
  ck_assert_int_eq(stats_of(pool).pooled, 6 * MB);
  ck_assert_ok(ts_pool_alloc(pool, 5 * MB + 100, &second));
  ck_assert_ptr_eq(first, second);
  ck_assert_int_eq(stats_of(pool).pooled, 0);
  ck_assert_int_eq(stats_of(pool).live, 6 * MB);
  ck_assert_int_eq(stats_of(pool).allocations, 2);
  ts_pool_free(pool, second, 5 * MB + 100);
  ck_assert_int_eq(stats_of(pool).peak, 6 * MB);
  ts_pool_reset_peak(pool);
  ck_assert_int_eq(stats_of(pool).peak, 0);
  ts_pool_trim(pool, 60000);
  ck_assert_int_eq(stats_of(pool).pooled, 6 * MB);
  ts_pool_trim(pool, 0);
  ck_assert_int_eq(stats_of(pool).pooled, 0);
  ts_pool_destroy(pool);
}
END_TEST

/* A free block of 40 MB is split for requests of 6, 32 and 2 MB. */
START_TEST(pool_cuts_larger_blocks)
{
  static const int64_t sizes[] = {6 * MB, 32 * MB - 5, 2 * MB};
  enum { COUNT = sizeof(sizes) / sizeof(*sizes) };
  ts_pool *pool;
  char *whole, *parts[COUNT], *other;
  ck_assert_ok(ts_pool_create(1 << 30, &pool));
  ck_assert_ok(ts_pool_alloc(pool, 40 * MB, (void **)&whole));
  ts_pool_free(pool, whole, 40 * MB);
  for (int i = 0; i < COUNT; i++) {
    ck_assert_ok(ts_pool_alloc(pool, sizes[i], (void **)&parts[i]));
    ck_assert(parts[i] >= whole && parts[i] + sizes[i] <= whole + 40 * MB);
    memset(parts[i], i, (size_t)sizes[i]);
    ck_assert_int_eq(stats_of(pool).live + stats_of(pool).pooled, 40 * MB);
  }
  ck_assert_int_eq(stats_of(pool).pooled, 0);
  ck_assert_ok(ts_pool_alloc(pool, MB, (void **)&other));
  ck_assert(other < whole || other >= whole + 40 * MB);
  for (int i = 0; i < COUNT; i++)
    for (int64_t at = 0; at < sizes[i]; at += 4096) ck_assert_int_eq(parts[i][at], i);
  for (int i = 0; i < COUNT; i++) ts_pool_free(pool, parts[i], sizes[i]);
  ck_assert_int_eq(stats_of(pool).pooled, 40 * MB);
  ts_pool_free(pool, other, MB);
  ts_pool_trim(pool, 0);
  ck_assert_int_eq(stats_of(pool).pooled, 0);
  ts_pool_destroy(pool);
}
END_TEST

START_TEST(pool_keeps_a_bounded_amount)
{
  enum { COUNT = 400 };
  static void *blocks[COUNT];
  ts_pool *pool;
  ck_assert_ok(ts_pool_create((int64_t)4 << 30, &pool));
  for (int i = 0; i < COUNT; i++) ck_assert_ok(ts_pool_alloc(pool, MB, &blocks[i]));
  for (int i = 0; i < COUNT; i++) ts_pool_free(pool, blocks[i], MB);
  /* Another class cannot use these: as it grows, they must go. */
  for (int i = 0; i < COUNT / 2; i++) {
    ck_assert_ok(ts_pool_alloc(pool, 2 * MB, &blocks[i]));
    ts_pool_stats stats = stats_of(pool);
    int64_t bound = stats.live + 64 * MB > COUNT * MB ? stats.live + 64 * MB : COUNT * MB;
    ck_assert_int_le(stats.live + stats.pooled, bound);
    ck_assert_int_gt(stats.live + stats.pooled, COUNT * MB - 4 * MB); /* no more than needed */
  }
  for (int i = 0; i < COUNT / 2; i++) ts_pool_free(pool, blocks[i], 2 * MB);
  ts_pool_destroy(pool);
}
END_TEST

START_TEST(pool_limit)
{
  ts_pool *pool;
  void *a, *b;
  ck_assert_ok(ts_pool_create(8 * MB, &pool));
  ck_assert_ok(ts_pool_alloc(pool, 6 * MB, &a));
  ck_assert_error(ts_pool_alloc(pool, 4 * MB, &b), TS_RESOURCE_EXHAUSTED,
                  "4194304 bytes of tensor memory: 6291456 bytes are live and the limit is 8388608 bytes");
  ck_assert_ptr_null(b);
  ts_pool_free(pool, a, 6 * MB);
  ck_assert_ok(ts_pool_alloc(pool, 4 * MB, &b)); /* the 6 MB that were kept have to go */
  ck_assert_int_le(stats_of(pool).live + stats_of(pool).pooled, 8 * MB);
  ck_assert_error(ts_pool_alloc(pool, INT64_MAX, &a), TS_RESOURCE_EXHAUSTED,
                  "9223372036854775807 bytes (8589934592.0 GiB)");
  ck_assert_error(ts_pool_alloc(pool, (int64_t)3 << 29, &a), TS_RESOURCE_EXHAUSTED, "1610612736 bytes (1.5 GiB)");
  ck_assert_error(ts_pool_alloc(pool, -1, &a), TS_INVALID_ARGUMENT, "-1");
  ts_pool_set_limit(pool, MB);
  ck_assert_error(ts_pool_alloc(pool, 1, &a), TS_RESOURCE_EXHAUSTED, "limit");
  ts_pool_free(pool, b, 4 * MB);
  ck_assert_int_eq(stats_of(pool).pooled, 0);
  ck_assert_ok(ts_pool_alloc(pool, 1, &a));
  ts_pool_free(pool, a, 1);
  ts_pool_set_limit(pool, INT64_MAX); /* the system may still refuse an amount that the limit allows */
  ck_assert_error(ts_pool_alloc(pool, (int64_t)1 << 60, &a), TS_RESOURCE_EXHAUSTED, "1152921504606846976");
  ck_assert_int_eq(stats_of(pool).live, 0);
  ts_pool_destroy(pool);
}
END_TEST

START_TEST(pool_default_has_a_limit)
{
  ts_pool_stats stats = stats_of(ts_pool_default());
  ck_assert_ptr_eq(ts_pool_default(), ts_pool_default());
  ck_assert_int_gt(stats.limit, 16 * MB);
  ck_assert_int_lt(stats.limit, INT64_MAX / 2);
}
END_TEST

enum { THREADS = 4, ROUNDS = 20000, HELD = 32 };

/* Each block is filled with its thread's mark; a block that two threads hold at once shows. */
static void *hammer(void *arg) {
  ts_pool *pool = ((void **)arg)[0];
  unsigned char mark = (unsigned char)(uintptr_t)((void **)arg)[1];
  unsigned char *held[HELD] = {NULL};
  int64_t sizes[HELD] = {0};
  uint32_t random = mark;
  uintptr_t wrong = 0;
  for (int i = 0; i < ROUNDS; i++) {
    random = random * 1664525 + 1013904223;
    unsigned slot = random >> 27;
    for (int64_t k = 0; held[slot] && k < sizes[slot]; k += 61) wrong += held[slot][k] != mark;
    ts_pool_free(pool, held[slot], sizes[slot]);
    sizes[slot] = random >> 8 & (i % 256 ? 0x7FF : 0xFFFFF);
    if (!ts_status_consume_ok(ts_pool_alloc(pool, sizes[slot], (void **)&held[slot])))
      wrong++;
    else
      memset(held[slot], mark, (size_t)sizes[slot]);
    if (i % 5000 == 0) ts_pool_trim(pool, 0);
  }
  for (int i = 0; i < HELD; i++) ts_pool_free(pool, held[i], sizes[i]);
  return (void *)wrong;
}

START_TEST(pool_threads)
{
  ts_pool *pool;
  pthread_t threads[THREADS];
  void *args[THREADS][2];
  ck_assert_ok(ts_pool_create(1 << 30, &pool));
  for (int i = 0; i < THREADS; i++) {
    args[i][0] = pool;
    args[i][1] = (void *)(uintptr_t)(i + 1);
    ck_assert_int_eq(pthread_create(&threads[i], NULL, hammer, args[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *wrong;
    pthread_join(threads[i], &wrong);
    ck_assert_ptr_null(wrong);
  }
  ck_assert_int_eq(stats_of(pool).live, 0);
  ck_assert_int_eq(stats_of(pool).allocations, THREADS * ROUNDS);
  ts_pool_destroy(pool);
}
END_TEST

enum { SMALL = 16 << 10, SMALLS = 300 };

static void *free_smalls(void *arg) {
  void **args = arg;
  for (int i = 0; i < SMALLS; i++) ts_pool_free(args[SMALLS], args[i], SMALL);
  return NULL;
}

/* Blocks in other threads' caches do not make an allocation fail. */
START_TEST(pool_takes_what_other_threads_keep)
{
  void *blocks[SMALLS + 1], *large;
  int64_t all = (int64_t)SMALLS * SMALL;
  ts_pool *pool;
  pthread_t thread;
  ck_assert_ok(ts_pool_create(all, &pool));
  for (int i = 0; i < SMALLS; i++) ck_assert_ok(ts_pool_alloc(pool, SMALL, &blocks[i]));
  ck_assert_error(ts_pool_alloc(pool, 1, &large), TS_RESOURCE_EXHAUSTED, "4915200 bytes are live");
  blocks[SMALLS] = pool;
  ck_assert_int_eq(pthread_create(&thread, NULL, free_smalls, blocks), 0);
  pthread_join(thread, NULL);
  ts_pool_stats stats = stats_of(pool);
  ck_assert_int_eq(stats.live, 0);
  ck_assert_int_eq(stats.peak, all);
  ck_assert_int_eq(stats.allocations, SMALLS);
  ck_assert_int_eq(stats.pooled, all);
  ck_assert_ok(ts_pool_alloc(pool, 2 * MB, &large));
  ck_assert_int_le(stats_of(pool).live + stats_of(pool).pooled, all);
  ts_pool_free(pool, large, 2 * MB);
  ts_pool_trim(pool, 0);
  ck_assert_int_eq(stats_of(pool).pooled, 0);
  ts_pool_destroy(pool);
}
END_TEST

/* A peak between two readings is seen, also of small blocks. */
START_TEST(pool_peak_of_small_blocks)
{
  void *blocks[SMALLS], *one;
  ts_pool *pool;
  ck_assert_ok(ts_pool_create(1 << 30, &pool));
  for (int round = 1; round <= 3; round++) {
    for (int i = 0; i < 100 * round; i++) ck_assert_ok(ts_pool_alloc(pool, SMALL, &blocks[i]));
    for (int i = 0; i < 100 * round; i++) ts_pool_free(pool, blocks[i], SMALL);
    ck_assert_int_eq(stats_of(pool).peak, (int64_t)100 * round * SMALL);
  }
  ts_pool_reset_peak(pool);
  ck_assert_ok(ts_pool_alloc(pool, SMALL, &one));
  ts_pool_free(pool, one, SMALL);
  ck_assert_int_eq(stats_of(pool).peak, SMALL);
  ck_assert_int_eq(stats_of(pool).live, 0);
  ts_pool_destroy(pool);
}
END_TEST

/* ---- buffers */

static int released;
static void count_release(void *context) { released += *(int *)context; }

static ts_status use_buffers(ts_pool *pool) {
  static char bytes[24];
  int weight = 1;
  ts_shape s = shape2(2, 3), flat = ts_shape_make(1, (int64_t[]){24});
  ts_buffer *owned = NULL, *wrapped = NULL, *alias = NULL;
  ts_status status;
  released = 0;
  TS_GOTO(done, status, ts_buffer_create(pool, TS_F32, &s, &owned));
  ck_assert(ts_buffer_is_unique(owned));
  TS_GOTO(done, status, ts_buffer_wrap(TS_F32, &s, bytes, count_release, &weight, &wrapped));
  ck_assert(!ts_buffer_is_unique(wrapped));
  TS_GOTO(done, status, ts_buffer_alias(owned, TS_U8, &flat, &alias));
  ck_assert_ptr_eq(alias->data, owned->data);
  ck_assert(!ts_buffer_is_unique(owned) && !ts_buffer_is_unique(alias));
  ts_buffer_release(owned);
  owned = NULL;
  memset(alias->data, 1, 24); /* kept alive by the alias */
done:
  ts_buffer_release(alias);
  ts_buffer_release(owned);
  bool was_wrapped = wrapped;
  ts_buffer_release(wrapped);
  ck_assert_int_eq(released, was_wrapped);
  ck_assert_int_eq(stats_of(pool).live, 0);
  return status;
}

START_TEST(buffer_lifetimes)
{
  ts_pool *pool;
  ck_assert_ok(ts_pool_create(MB, &pool));
  ck_assert_ok(use_buffers(pool));
  CK_FAIL_EACH_ALLOCATION(ts_status_free(use_buffers(pool)));
  ts_buffer_release(NULL);
  ts_pool_destroy(pool);
}
END_TEST

/* Small ones take one allocation, header and bytes; large ones keep the bytes in a class of their own. */
START_TEST(buffer_blocks)
{
  static const int64_t sizes[] = {0, 1, 63, 64, 4096, (16 << 10) - 1, 16 << 10, (16 << 10) + 1, 128 << 10};
  ts_pool *pool;
  ck_assert_ok(ts_pool_create(MB, &pool));
  int64_t blocks = ts_alloc_live();
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    ts_shape shape = ts_shape_make(1, &sizes[i]);
    ts_buffer *buffer;
    int64_t before = stats_of(pool).allocations;
    ck_assert_ok(ts_buffer_create(pool, TS_U8, &shape, &buffer));
    ck_assert_int_eq(buffer->bytes, sizes[i]);
    ck_assert_uint_eq((uintptr_t)buffer->data % TS_POOL_ALIGNMENT, 0);
    ck_assert_int_eq(stats_of(pool).allocations - before, 1);
    ck_assert_int_eq(ts_alloc_live() - blocks, sizes[i] > 16 << 10);
    ck_assert_int_ge(stats_of(pool).live, sizes[i]);
    memset(buffer->data, 0xFF, (size_t)sizes[i]);
    ck_assert(buffer->dtype == TS_U8 && ts_shape_equal(&buffer->shape, &shape) && ts_buffer_is_unique(buffer));
    ts_buffer_release(buffer);
    ck_assert_int_eq(stats_of(pool).live, 0);
  }
  ts_pool_destroy(pool);
}
END_TEST

START_TEST(buffer_errors)
{
  ts_pool *pool;
  ts_buffer *buffer, *alias;
  ck_assert_ok(ts_pool_create(MB, &pool));
  ts_shape huge = shape2((int64_t)1 << 30, (int64_t)1 << 30), large = shape2(1024, 1024), small = shape2(2, 2);
  ck_assert_error(ts_buffer_create(pool, TS_F64, &huge, &buffer), TS_OUT_OF_RANGE, "64 bits");
  ck_assert_ptr_null(buffer);
  ck_assert_error(ts_buffer_create(pool, TS_F32, &large, &buffer), TS_RESOURCE_EXHAUSTED, "f32[1024,1024]: cannot");
  ck_assert_ptr_null(buffer);
  ck_assert_ok(ts_buffer_create(pool, TS_F32, &small, &buffer));
  ck_assert_error(ts_buffer_alias(buffer, TS_F64, &small, &alias), TS_INVALID_ARGUMENT,
                  "f32[2,2] cannot be viewed as f64[2,2]");
  ck_assert(ts_buffer_is_unique(buffer));
  ts_buffer_release(buffer);
  ts_pool_destroy(pool);
}
END_TEST

/* ---- memory that has a name */

START_TEST(mapping_is_shared)
{
  static const int32_t numbers[] = {1, 2, 3};
  ts_mapping *made, *again, *seen;
  ck_assert_ok(ts_mapping_create(numbers, sizeof numbers, 0600, &made));
  ck_assert_ok(ts_mapping_create(numbers, sizeof numbers, 0600, &again));
  ck_assert_str_ne(made->name, again->name);
  ck_assert_ok(ts_mapping_open(made->name, sizeof numbers, &seen));
  ck_assert_int_eq(memcmp(seen->data, numbers, sizeof numbers), 0);
  ((int32_t *)seen->data)[1] = 99;
  ck_assert_int_eq(((int32_t *)made->data)[1], 99);
  char name[TS_MAPPING_NAME_BYTES];
  snprintf(name, sizeof name, "%s", made->name);
  ts_mapping_release(made);
  ck_assert_int_eq(((int32_t *)seen->data)[2], 3); /* the memory outlives its name */
  ts_mapping_release(seen);
  ts_mapping_release(again);
  ck_assert_error(ts_mapping_open(name, 12, &seen), TS_INVALID_ARGUMENT, "cannot open shared memory");
  ts_mapping_release(NULL);
}
END_TEST

START_TEST(mapping_refuses)
{
  ts_mapping *made, *seen;
  char name[TS_MAPPING_NAME_BYTES + 40];
  ck_assert_error(ts_mapping_create("", 0, 0400, &made), TS_INVALID_ARGUMENT, "cannot share 0 bytes");
  ck_assert_error(ts_mapping_create("", INT64_MAX, 0400, &made), TS_RESOURCE_EXHAUSTED, "cannot fill");
  ck_assert_ok(ts_mapping_create("abcd", 4, 0400, &made));
  ck_assert_error(ts_mapping_open(made->name, 5, &seen), TS_INVALID_ARGUMENT, "has 4 bytes, expected at least 5");
  ck_assert_error(ts_mapping_open(made->name, 0, &seen), TS_INVALID_ARGUMENT, "expected at least 0");
  ck_assert_error(ts_mapping_open("", 1, &seen), TS_INVALID_ARGUMENT, "no name of shared memory");
  ck_assert_error(ts_mapping_open("../etc/passwd", 1, &seen), TS_INVALID_ARGUMENT, "no name of shared memory");
  memset(name, 'x', sizeof name);
  name[sizeof name - 1] = 0;
  ck_assert_error(ts_mapping_open(name, 1, &seen), TS_INVALID_ARGUMENT, "no name of shared memory");
  ts_mapping_release(made);
}
END_TEST

START_TEST(mapping_fails_without_leaks)
{
  ts_mapping *made = NULL;
  for (int64_t n = 1; !made; n++) {
    ts_alloc_fail_after(n, false);
    ts_status status = ts_mapping_create("abcd", 4, 0600, &made);
    ts_alloc_fail_after(0, false);
    ck_assert(!status == !!made);
    ts_status_free(status);
  }
  ts_mapping_release(made);
}
END_TEST

/* The memory that a pool keeps, also under AddressSanitizer. */
static TCase *kept(void) {
  TCase *tests = tcase_create("kept");
  tcase_set_timeout(tests, 60);
  tcase_add_checked_fixture(tests, ts_pages_keep, NULL);
  tcase_add_test(tests, pool_reuses_blocks);
  tcase_add_test(tests, pool_cuts_larger_blocks);
  tcase_add_test(tests, pool_keeps_a_bounded_amount);
  tcase_add_test(tests, pool_threads);
  tcase_add_test(tests, pool_takes_what_other_threads_keep);
  tcase_add_test(tests, pool_peak_of_small_blocks);
  return tests;
}

int main(void) {
  Suite *suite = suite_create("tensor");
  TCase *tests = tcase_create("tensor");
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, dtype_table);
  tcase_add_test(tests, dtype_promotion);
  tcase_add_test(tests, half_rounds_once);
  tcase_add_test(tests, half_from_f32);
  tcase_add_test(tests, half_special_values);
  tcase_add_test(tests, scalar_float_to_integer);
  tcase_add_test(tests, scalar_integer_to_any);
  tcase_add_test(tests, scalar_limits_and_memory);
  tcase_add_test(tests, shape_basics);
  tcase_add_test(tests, shape_check);
  tcase_add_test(tests, shape_broadcast);
  tcase_add_test(tests, pool_sizes);
  tcase_add_test(tests, pool_limit);
  tcase_add_test(tests, pool_default_has_a_limit);
  tcase_add_test(tests, pool_threads);
  tcase_add_test(tests, buffer_lifetimes);
  tcase_add_test(tests, buffer_blocks);
  tcase_add_test(tests, buffer_errors);
  tcase_add_test(tests, mapping_is_shared);
  tcase_add_test(tests, mapping_refuses);
  tcase_add_test(tests, mapping_fails_without_leaks);
  suite_add_tcase(suite, tests);
  suite_add_tcase(suite, kept());
  return testing_run(suite);
}
