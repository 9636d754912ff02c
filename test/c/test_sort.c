/* Sorts, argsorts and top_k by their definition: the indices are a permutation, each element comes before the next one
 * by its key, and equal keys are in the order of their places. There is one such permutation, and the bits of every
 * element are those at its index. */
#include "exec/pool.h"
#include "kernel/sort/sort.h"
#include "kernel/sort/sort_first.h"
#include "kernel/sort/sort_top.h"
#include "lesser_isa.h"
#include "testing.h"

#include <float.h>
#include <math.h>
#include <stdint.h>

static const ts_dtype types[] = {TS_S8,  TS_S16, TS_S32,      TS_S64, TS_U8,   TS_U16, TS_U32,
                                 TS_U64, TS_F8,  TS_F8E4M3FN, TS_F16, TS_BF16, TS_F32, TS_F64};
#define TYPES ((int)(sizeof types / sizeof *types))

/* ---- the oracle */

/* Has every value of every type. */
typedef long double number;
_Static_assert(LDBL_MANT_DIG >= 64, "a wider type is needed");

static number number_at(ts_dtype type, const void *in, int64_t i) {
  ts_scalar x = ts_scalar_load(type, (const char *)in + (size_t)i * ts_dtype_size(type));
  if (ts_dtype_is_float(type)) return ts_scalar_to_f64(type, x);
  return type == TS_U64 ? (number)x.u64 : (number)ts_scalar_to_s64(type, x);
}

typedef struct line {
  ts_dtype type;
  const void *in;
  int64_t first, stride;
  bool descending;
  number *numbers;
} line;

/* NaN is the greatest, and equal to NaN. */
static bool after(const line *l, int64_t i, int64_t j) {
  number a = l->numbers[l->descending ? j : i], b = l->numbers[l->descending ? i : j];
  return isnan(b) ? false : isnan(a) || a > b;
}

/* In the stable order no two elements are equal. */
static bool before(const line *l, int64_t i, int64_t j) { return after(l, j, i) || (i < j && !after(l, i, j)); }

static void read_numbers(line *l, int64_t n) {
  l->numbers = malloc(sizeof(number) * (size_t)(n + 1));
  for (int64_t i = 0; i < n; i++) l->numbers[i] = number_at(l->type, l->in, l->first + i * l->stride);
}

/* ---- simulated threads: tasks in reverse order, each with another worker, and a flag that is set after some */

typedef struct backwards {
  ts_parallel parallel;
  int64_t left; /* tasks until `cancel` is set; negative: never */
  _Atomic bool cancel;
} backwards;

static void run_backwards(const ts_parallel *self, int64_t tasks, ts_task_fn fn, void *arg) {
  backwards *b = (backwards *)self->context;
  for (int64_t task = tasks; task-- > 0;) {
    if (b->left >= 0 && b->left-- == 0) b->cancel = true;
    fn(arg, task, (int)(task % self->width));
  }
}

static void backwards_init(backwards *b, int64_t left) {
  b->parallel = (ts_parallel){b, 3, run_backwards};
  b->left = left;
  b->cancel = false;
}

/* ---- a sort, with memory of exactly the sizes that were asked for */

static void *memory(int64_t bytes) {
  void *block = NULL;
  if (posix_memalign(&block, 64, (size_t)(bytes > 0 ? bytes : 1)) != 0) ck_abort_msg("no memory");
  if (bytes) memset(block, 0xa5, (size_t)bytes);
  return block;
}

static ts_status run_sort(const ts_sort_spec *spec, const void *in, void *out, const ts_parallel *parallel,
                          const _Atomic bool *cancel) {
  ts_sort_plan plan;
  TS_TRY(ts_sort_plan_make(spec, &plan));
  if (plan.thread_workspace % 64 != 0 || plan.cost_ns < 0) ck_abort_msg("the plan's sizes");
  ts_sort_resources with = {parallel, memory(plan.workspace), memory(plan.thread_workspace * parallel->width), cancel};
  ts_status status = ts_sort_run(&plan, &with, in, out);
  free(with.workspace);
  free(with.thread_workspace);
  return status;
}

static int64_t index_at(ts_dtype type, const void *indices, int64_t i) {
  return ts_scalar_to_s64(type, ts_scalar_load(type, (const char *)indices + (size_t)i * ts_dtype_size(type)));
}

static void expect_line(const ts_sort_spec *spec, line *l, const void *values, const void *indices) {
  const int64_t n = spec->shape->dims[spec->axis];
  const size_t size = ts_dtype_size(spec->dtype);
  int64_t last = -1;
  read_numbers(l, n);
  for (int64_t i = 0; i < n; i++) {
    const int64_t to = l->first + i * l->stride, at = index_at(spec->index, indices, to);
    /* Each before the next, n of them: a permutation. */
    if (at < 0 || at >= n || (last >= 0 && !before(l, last, at)))
      ck_abort_msg("argsort of %s as %s, axis %d, %s: element %lld of the line at %lld",
                   TS_SHAPE_STR(spec->dtype, spec->shape), ts_dtype_name(spec->index), spec->axis,
                   l->descending ? "descending" : "ascending", (long long)i, (long long)l->first);
    const int64_t from = l->first + at * l->stride;
    if (memcmp((const char *)values + (size_t)to * size, (const char *)l->in + (size_t)from * size, size) != 0)
      ck_abort_msg("sort of %s, axis %d, %s: element %lld of the line at %lld", TS_SHAPE_STR(spec->dtype, spec->shape),
                   spec->axis, l->descending ? "descending" : "ascending", (long long)i, (long long)l->first);
    last = at;
  }
  free(l->numbers);
}

/* Both directions of sort and argsort of one operand. */
static void check_both(ts_dtype type, ts_dtype index, const ts_shape *shape, int axis, const void *in,
                       const ts_parallel *parallel) {
  int64_t elements = ts_shape_elements(shape), inner = 1;
  void *values = memory(elements * (int64_t)ts_dtype_size(type));
  void *indices = memory(elements * (int64_t)ts_dtype_size(index));
  for (int d = axis + 1; d < shape->rank; d++) inner *= shape->dims[d];
  for (int descending = 0; descending < 2; descending++) {
    ts_sort_spec spec = {type, shape, axis, descending, TS_DTYPE_NONE};
    ck_assert_ok(run_sort(&spec, in, values, parallel, NULL));
    spec.index = index;
    ck_assert_ok(run_sort(&spec, in, indices, parallel, NULL));
    int64_t n = shape->dims[axis], lines = elements ? elements / n : 0;
    for (int64_t i = 0; i < lines; i++) {
      if (TEST_IS_SANITIZED && (n > 2000 || (i > 0 && i < lines - 1))) continue;
      line l = {type, in, i / inner * n * inner + i % inner, inner, descending, NULL};
      expect_line(&spec, &l, values, indices);
    }
  }
  free(values);
  free(indices);
}

/* ---- operands */

static uint64_t random_state = 1;
static uint64_t next_random(void) {
  random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  uint64_t x = random_state ^ random_state >> 29;
  x *= UINT64_C(0xbf58476d1ce4e5b9);
  return x ^ x >> 32;
}

typedef enum pattern {
  RANDOM_BITS, /* of floats: NaNs of all kinds, infinities, denormals */
  UNIFORM,
  SPECIAL, /* limits, infinities, NaNs, both zeros */
  FEW,
  EQUAL,
  SORTED,
  REVERSED,
  ORGAN_PIPE,
  MOSTLY_ZERO,
  OUTLIER, /* all in a narrow range but one */
  PATTERNS
} pattern;

static ts_scalar special(ts_dtype type) {
  uint64_t all = ~UINT64_C(0) >> (64 - ts_dtype_bits(type)), sign = all / 2 + 1;
  uint64_t infinity = ts_dtype_is_float(type) ? ts_dtype_highest(type).bits : 1;
  const uint64_t values[] = {0,   sign,    infinity, infinity | sign, infinity + 1, (infinity + 1) | sign,
                             all, all / 2, 1,        sign + 1,        infinity - 1, all - 1};
  return (ts_scalar){.bits = values[next_random() % (sizeof values / sizeof *values)]};
}

static ts_scalar element(ts_dtype type, pattern p, int64_t i, int64_t n) {
  switch (p) {
  case UNIFORM: return ts_scalar_from_f64(type, ((double)(next_random() >> 11) / 0x1p52 - 1) * 100);
  case SPECIAL: return special(type);
  case FEW: return ts_scalar_from_s64(type, (int64_t)(next_random() % 5));
  case EQUAL: return ts_scalar_from_s64(type, 7);
  case SORTED: return ts_scalar_from_s64(type, i);
  case REVERSED: return ts_scalar_from_s64(type, n - i);
  case ORGAN_PIPE: return ts_scalar_from_s64(type, i < n / 2 ? i : n - i);
  case MOSTLY_ZERO: return ts_scalar_from_f64(type, next_random() % 4 ? 0.0 : (double)(next_random() % 100));
  case OUTLIER: return i == n / 3 ? ts_dtype_highest(type) : ts_scalar_from_s64(type, (int64_t)(next_random() % 30000));
  default: return (ts_scalar){.bits = next_random()};
  }
}

static void *operand(ts_dtype type, pattern p, int64_t n) {
  char *in = memory(n * (int64_t)ts_dtype_size(type));
  for (int64_t i = 0; i < n; i++) ts_scalar_store(type, element(type, p, i, n), in + (size_t)i * ts_dtype_size(type));
  return in;
}

static void check_shape(ts_dtype type, ts_dtype index, const ts_shape *shape, pattern p, const ts_parallel *parallel) {
  void *in = operand(type, p, ts_shape_elements(shape));
  for (int axis = 0; axis < shape->rank; axis++) check_both(type, index, shape, axis, in, parallel);
  free(in);
}

/* ---- tests */

static const ts_shape shapes[] = {
    {.rank = 1, .dims = {0}},
    {.rank = 1, .dims = {1}},
    {.rank = 2, .dims = {0, 3}},
    {.rank = 2, .dims = {3, 0}},
    {.rank = 2, .dims = {1, 1}},
    {.rank = 2, .dims = {37, 5}},
    {.rank = 2, .dims = {33, 64}},
    {.rank = 3, .dims = {3, 41, 17}},
    {.rank = 3, .dims = {2, 1, 70}},
    {.rank = 4, .dims = {2, 3, 4, 5}},
    {.rank = 6, .dims = {2, 1, 3, 2, 5, 4}},
    {.rank = 16, .dims = {1, 2, 1, 2, 1, 3, 1, 1, 2, 1, 1, 2, 1, 1, 3, 1}},
};

START_TEST(test_shapes)
{
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int p = 0; p < PATTERNS; p++)
      check_shape(types[_i], types[(_i + p) % 8], &shapes[s], (pattern)p, &ts_parallel_serial);
}
END_TEST

/* Every length up to 300, in lines that fill a group and in some that do not; above 64 in turn, but all of single lines
 * by ranks. */
START_TEST(test_lengths)
{
  static const int64_t lines[] = {1, 5, 18};
  for (int64_t n = 0; n <= 300; n++)
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
      ts_shape shape = {.rank = 2, .dims = {lines[i], n}};
      pattern p = (pattern)(n % PATTERNS);
      if (n > (lines[i] == 1 ? 128 : 64) && n % 3 != (int64_t)i) continue;
      void *in = operand(types[_i], p, lines[i] * n);
      check_both(types[_i], TS_S32, &shape, 1, in, &ts_parallel_serial);
      shape.dims[0] = n, shape.dims[1] = lines[i];
      check_both(types[_i], TS_S64, &shape, 0, in, &ts_parallel_serial);
      free(in);
    }
}
END_TEST

/* Lines of all methods, and of lengths around the blocks of each. */
START_TEST(test_long_lines)
{
  static const int64_t lengths[] = {129,  136,  151,  255,  256,  257,  383,  511,   512,  513,
                                    1000, 1025, 2047, 4099, 8191, 8192, 8200, 20011, 33000};
  ts_dtype type = types[_i / PATTERNS];
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    if (!testing_takes((int64_t)i + _i, 2)) continue;
    ts_shape shape = {.rank = 1, .dims = {lengths[i]}};
    check_shape(type, TS_S32, &shape, (pattern)(_i % PATTERNS), ts_pool_parallel(0));
  }
  ts_shape columns = {.rank = 2, .dims = {9001, 2}};
  check_shape(type, TS_U64, &columns, (pattern)(_i % PATTERNS), ts_pool_parallel(0));
}
END_TEST

/* Several chunks, and parts of several groups. */
START_TEST(test_very_long_lines)
{
  static const ts_dtype some[] = {TS_F32, TS_F64, TS_S32, TS_U64, TS_BF16, TS_U8};
  static const pattern hard[] = {RANDOM_BITS, UNIFORM, SPECIAL, MOSTLY_ZERO, OUTLIER};
  for (size_t p = 0; p < sizeof hard / sizeof *hard; p++) {
    ts_shape shape = {.rank = 1, .dims = {140007}};
    backwards b;
    backwards_init(&b, -1);
    check_shape(some[_i], TS_S32, &shape, hard[p], &b.parallel);
  }
}
END_TEST

/* Lines that one thread splits in place: they are longer than the keys that it sets aside. */
START_TEST(test_many_very_long_lines)
{
  static const ts_dtype some[] = {TS_F32, TS_S64};
  static const pattern hard[] = {RANDOM_BITS, MOSTLY_ZERO};
  for (size_t p = 0; p < sizeof hard / sizeof *hard; p++) {
    const ts_shape shape = {.rank = 2, .dims = {17, 70007}};
    void *in = operand(some[_i], hard[p], ts_shape_elements(&shape));
    check_both(some[_i], TS_S32, &shape, 1, in, ts_pool_parallel(0));
    free(in);
  }
}
END_TEST

/* Few keys, sorted keys, and keys with a wide range because of one key. */
START_TEST(test_unfriendly_keys)
{
  const int64_t n = 300001;
  uint64_t *wide = memory(n * 8);
  uint32_t *narrow = memory(n * 4);
  for (int64_t i = 0; i < n; i++) {
    const uint64_t few = (uint64_t)(i * 40503 % 7), rising = (uint64_t)i, alike = i == n / 2 ? ~UINT64_C(0) : 5;
    const uint64_t powers = UINT64_C(1) << (i * 48271 % 64), most = i % 3 ? ~UINT64_C(0) : (uint64_t)(n - i);
    wide[i] = _i == 0 ? few : _i == 1 ? rising : _i == 2 ? alike : _i == 3 ? powers : most;
    narrow[i] = (uint32_t)wide[i];
  }
  const ts_shape shape = {.rank = 1, .dims = {n}};
  check_both(TS_U64, TS_S32, &shape, 0, wide, ts_pool_parallel(0));
  check_both(TS_U32, TS_S32, &shape, 0, narrow, ts_pool_parallel(0));
  free(wide), free(narrow);
}
END_TEST

START_TEST(test_all_half_values)
{
  ts_dtype type = _i ? TS_BF16 : TS_F16;
  uint16_t *in = memory(2 * 65536 * 2);
  for (int i = 0; i < 131072; i++) in[i] = (uint16_t)(i * 40503);
  check_both(type, TS_U32, &(ts_shape){.rank = 1, .dims = {131072}}, 0, in, ts_pool_parallel(0));
  check_both(type, TS_U16, &(ts_shape){.rank = 2, .dims = {1024, 128}}, 1, in, ts_pool_parallel(0));
  check_both(type, TS_U16, &(ts_shape){.rank = 2, .dims = {128, 1024}}, 0, in, ts_pool_parallel(0));
  free(in);
}
END_TEST

/* Any number of threads, and tasks in another order, give the same bits. */
START_TEST(test_threads)
{
  static const ts_shape some[] = {
      {.rank = 1, .dims = {200000}}, {.rank = 2, .dims = {400, 500}}, {.rank = 2, .dims = {20, 9000}}};
  for (size_t s = 0; s < sizeof some / sizeof *some; s++)
    for (int indices = 0; indices < 2; indices++) {
      ts_sort_spec spec = {types[_i], &some[s], some[s].rank - 1, s == 1, indices ? TS_S64 : TS_DTYPE_NONE};
      if (!testing_takes((int64_t)s + indices + _i, 2)) continue;
      int64_t bytes = ts_shape_bytes(&some[s], indices ? TS_S64 : types[_i]);
      void *in = operand(types[_i], RANDOM_BITS, ts_shape_elements(&some[s])), *one = memory(bytes),
           *other = memory(bytes);
      ck_assert_ok(run_sort(&spec, in, one, &ts_parallel_serial, NULL));
      backwards b;
      backwards_init(&b, -1);
      const ts_parallel *threads[] = {ts_pool_parallel(1), ts_pool_parallel(2), ts_pool_parallel(0), &b.parallel};
      for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        memset(other, 0x5a, (size_t)bytes);
        ck_assert_ok(run_sort(&spec, in, other, threads[t], NULL));
        ck_assert_msg(memcmp(one, other, (size_t)bytes) == 0, "%s: threads %d", TS_SHAPE_STR(types[_i], &some[s]),
                      (int)t);
      }
      free(in), free(one), free(other);
    }
}
END_TEST

/* The flag is set before each of the first tasks in turn, whichever phase they belong to. */
START_TEST(test_cancelled)
{
  static const ts_shape some[] = {{.rank = 1, .dims = {300000}},
                                  {.rank = 2, .dims = {4000, 30}},
                                  {.rank = 2, .dims = {30, 4000}},
                                  {.rank = 1, .dims = {1}}};
  const ts_shape *shape = &some[_i];
  float *in = operand(TS_F32, RANDOM_BITS, 300000), *out = memory(300000 * 4);
  for (int indices = 0; indices < 2; indices++) {
    ts_sort_spec spec = {TS_F32, shape, shape->rank - 1, false, indices ? TS_S32 : TS_DTYPE_NONE};
    int64_t tasks = 0;
    for (;; tasks++) {
      backwards b;
      backwards_init(&b, tasks);
      ts_status status = run_sort(&spec, in, out, &b.parallel, &b.cancel);
      if (!b.cancel) {
        ck_assert_ok(status);
        break;
      }
      ck_assert_error(status, TS_CANCELLED, indices ? "argsort was cancelled" : "sort was cancelled");
    }
    ck_assert_int_ge(tasks, _i == 3 ? 0 : 1);
    const _Atomic bool set = true;
    memset(out, 0, 300000 * 4);
    ck_assert_error(run_sort(&spec, in, out, &ts_parallel_serial, &set), TS_CANCELLED, "cancelled");
    for (int i = 0; _i != 3 && i < 300000; i++)
      if (out[i] != 0) ck_abort_msg("element %d was written", i);
  }
  free(in), free(out);
}
END_TEST

/* Runs allocate nothing, so none can fail. */
START_TEST(test_no_allocation)
{
  ts_shape shape = {.rank = 1, .dims = {100000}};
  void *in = operand(TS_F32, UNIFORM, 100000), *out = memory(400000);
  ts_alloc_fail_after(1, true);
  ck_assert_ok(run_sort(&(ts_sort_spec){TS_F32, &shape, 0, false, TS_DTYPE_NONE}, in, out, &ts_parallel_serial, NULL));
  ck_assert_int_eq(ts_alloc_failures(), 0);
  ts_alloc_fail_after(0, false);
  free(in), free(out);
}
END_TEST

START_TEST(test_errors)
{
  ts_sort_plan plan;
  ts_shape shape = {.rank = 2, .dims = {2, 3}}, scalar = {.rank = 0}, endless = {.rank = 1, .dims = {INT64_C(1) << 33}};
  ck_assert_error(ts_sort_plan_make(&(ts_sort_spec){TS_F32, &shape, 2, false, TS_DTYPE_NONE}, &plan),
                  TS_INVALID_ARGUMENT, "sort: axis 2 of f32[2,3]");
  ck_assert_error(ts_sort_plan_make(&(ts_sort_spec){TS_F32, &scalar, 0, false, TS_S32}, &plan), TS_INVALID_ARGUMENT,
                  "argsort: axis 0 of f32[]");
  ck_assert_error(ts_sort_plan_make(&(ts_sort_spec){TS_F32, &shape, -1, false, TS_S32}, &plan), TS_INVALID_ARGUMENT,
                  "axis -1");
  ck_assert_error(ts_sort_plan_make(&(ts_sort_spec){TS_C64, &shape, 0, false, TS_DTYPE_NONE}, &plan),
                  TS_INVALID_ARGUMENT, "c64");
  ck_assert_error(ts_sort_plan_make(&(ts_sort_spec){TS_F32, &shape, 0, false, TS_F32}, &plan), TS_INVALID_ARGUMENT,
                  "indices of type f32");
  ck_assert_error(ts_sort_plan_make(&(ts_sort_spec){TS_U8, &endless, 0, false, TS_S64}, &plan), TS_OUT_OF_RANGE,
                  "longer than 2^32 - 1");
  ts_top_k_plan top;
  ck_assert_error(ts_top_k_plan_make(TS_F32, &shape, 4, &top), TS_INVALID_ARGUMENT, "top_k: k = 4 of f32[2,3]");
  ck_assert_error(ts_top_k_plan_make(TS_F32, &shape, -1, &top), TS_INVALID_ARGUMENT, "k = -1");
  ck_assert_error(ts_top_k_plan_make(TS_F32, &scalar, 0, &top), TS_INVALID_ARGUMENT, "top_k");
  ck_assert_error(ts_top_k_plan_make(TS_U8, &endless, 1, &top), TS_OUT_OF_RANGE, "2^32");
}
END_TEST

/* ---- top_k */

static ts_status run_top(ts_dtype type, const ts_shape *shape, int64_t k, const void *in, void *values, void *indices,
                         const ts_parallel *parallel, const _Atomic bool *cancel, bool *out_selects) {
  ts_top_k_plan plan;
  TS_TRY(ts_top_k_plan_make(type, shape, k, &plan));
  ts_sort_resources with = {parallel, memory(plan.workspace), memory(plan.thread_workspace * parallel->width), cancel};
  ts_status status = ts_top_k_run(&plan, &with, in, values, indices);
  free(with.workspace), free(with.thread_workspace);
  *out_selects = plan.select;
  return status;
}

/* Each before the next, and the last one before all others. */
static void expect_top(const line *l, int64_t n, int64_t k, const int32_t *indices) {
  int64_t others = 0;
  for (int64_t i = 0; i < k; i++)
    if (indices[i] < 0 || indices[i] >= n || (i > 0 && !before(l, indices[i - 1], indices[i])))
      ck_abort_msg("top %lld of %lld: index %lld", (long long)k, (long long)n, (long long)i);
  for (int64_t i = 0; k > 0 && i < n; i++) others += before(l, indices[k - 1], i);
  if (k > 0 && others != n - k) ck_abort_msg("top %lld of %lld leaves out a greater one", (long long)k, (long long)n);
}

static ts_status run_first(ts_dtype type, const ts_shape *shape, int64_t k, const void *in, void *values,
                           const ts_parallel *parallel, const _Atomic bool *cancel) {
  ts_sort_first_plan plan;
  TS_TRY(ts_sort_first_plan_make(type, shape, k, &plan));
  ts_sort_resources with = {parallel, memory(plan.workspace), memory(plan.thread_workspace * parallel->width), cancel};
  ts_status status = ts_sort_first_run(&plan, &with, in, values);
  free(with.workspace), free(with.thread_workspace);
  return status;
}

/* The values without the positions. */
static void check_first(ts_dtype type, const ts_shape *shape, int64_t k, const void *in, const void *expected) {
  const int64_t bytes = shape->dims[0] * k * (int64_t)ts_dtype_size(type);
  const ts_parallel *const ways[] = {ts_pool_parallel(0), &ts_parallel_serial};
  for (int i = 0; bytes > 0 && i < 2; i++) {
    char *values = memory(bytes);
    ck_assert_ok(run_first(type, shape, k, in, values, ways[i], NULL));
    if (memcmp(values, expected, (size_t)bytes) != 0)
      ck_abort_msg("first %lld of %s: other values than with positions", (long long)k, TS_SHAPE_STR(type, shape));
    free(values);
  }
}

static bool check_top(ts_dtype type, int64_t lines, int64_t n, int64_t k, pattern p) {
  ts_shape shape = {.rank = 2, .dims = {lines, n}};
  size_t size = ts_dtype_size(type);
  char *in = operand(type, p, lines * n), *values = memory(lines * k * (int64_t)size);
  int32_t *indices = memory(lines * k * 4);
  bool selects;
  ck_assert_ok(run_top(type, &shape, k, in, values, indices, ts_pool_parallel(0), NULL, &selects));
  for (int64_t row = 0; row < lines; row++) {
    line l = {type, in, row * n, 1, true, NULL};
    read_numbers(&l, n);
    expect_top(&l, n, k, indices + row * k);
    free(l.numbers);
    for (int64_t i = 0; i < k; i++)
      if (memcmp(values + (size_t)(row * k + i) * size, in + (size_t)(row * n + indices[row * k + i]) * size, size) !=
          0)
        ck_abort_msg("top %lld of %s: value %lld of row %lld", (long long)k, TS_SHAPE_STR(type, &shape), (long long)i,
                     (long long)row);
  }
  check_first(type, &shape, k, in, values);
  free(in), free(values), free(indices);
  return selects;
}

START_TEST(test_top_k)
{
  static const int64_t lengths[][2] = {{1, 1},       {3, 1},      {40, 1},     {40, 40},      {100, 7},
                                       {1000, 10},   {1000, 999}, {5000, 3},   {5000, 1200},  {70000, 50},
                                       {1500, 60},   {1025, 17},  {6000, 300}, {70000, 5000}, {70000, 60000},
                                       {4096, 4000}, {9000, 4000}};
  int ways[2] = {0};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
    for (int p = 0; p < PATTERNS; p++) {
      if (!testing_takes((int64_t)i + p + _i, 3)) continue;
      ways[check_top(types[_i], lengths[i][0] > 10000 ? 1 : 19, lengths[i][0], lengths[i][1], (pattern)p)]++;
    }
  ck_assert(TEST_IS_SANITIZED || (ways[0] && ways[1])); /* both ways were taken, but of few cases */
  check_top(types[_i], 5, 4, 0, UNIFORM);
  check_top(types[_i], 0, 4, 2, UNIFORM);
}
END_TEST

START_TEST(test_top_k_cancelled)
{
  ts_shape shape = {.rank = 2, .dims = {3, 70000}};
  float *in = operand(TS_F32, UNIFORM, 210000), *values = memory(210000 * 4);
  int32_t *indices = memory(210000 * 4);
  for (int64_t k = 10; k <= 70000; k += 69990) {
    backwards b;
    backwards_init(&b, 0);
    bool selects = false;
    ck_assert_error(run_top(TS_F32, &shape, k, in, values, indices, &b.parallel, &b.cancel, &selects), TS_CANCELLED,
                    "top_k");
    ck_assert(selects == (k == 10));
  }
  free(in), free(values), free(indices);
}
END_TEST

/* At each task in turn, until none is left. */
START_TEST(test_first_cancelled)
{
  const ts_shape lines[] = {{.rank = 2, .dims = {2, 70000}}, {.rank = 2, .dims = {40, 4096}}};
  for (int s = 0; s < 2; s++) {
    float *in = operand(TS_F32, UNIFORM, 164000), *values = memory(164000 * 4);
    for (int64_t tasks = 0, done = 0; !done; tasks += 3) {
      backwards b;
      backwards_init(&b, tasks);
      ts_status status = run_first(TS_F32, &lines[s], 3000, in, values, &b.parallel, &b.cancel);
      done = !b.cancel;
      if (done)
        ck_assert_ok(status);
      else
        ck_assert_error(status, TS_CANCELLED, "top_k");
    }
    free(in), free(values);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("sort");
  TCase *tests = tcase_create("sort");
  tcase_set_timeout(tests, 600);
  tcase_add_loop_test(tests, test_shapes, 0, TYPES);
  tcase_add_loop_test(tests, test_lengths, 0, TYPES);
  tcase_add_loop_test(tests, test_long_lines, 0, TYPES * PATTERNS);
  tcase_add_loop_test(tests, test_very_long_lines, 0, 6);
  tcase_add_loop_test(tests, test_many_very_long_lines, 0, 2);
  tcase_add_loop_test(tests, test_unfriendly_keys, 0, 5);
  tcase_add_loop_test(tests, test_all_half_values, 0, 2);
  tcase_add_loop_test(tests, test_threads, 0, TYPES);
  tcase_add_loop_test(tests, test_cancelled, 0, 4);
  tcase_add_test(tests, test_no_allocation);
  tcase_add_test(tests, test_errors);
  tcase_add_loop_test(tests, test_top_k, 0, TYPES);
  tcase_add_test(tests, test_top_k_cancelled);
  tcase_add_test(tests, test_first_cancelled);
  test_add_lesser_isas(tests);
  suite_add_tcase(suite, tests);
  return testing_run(suite);
}
