/* Fourier transforms against their defining sum, in long double: every kind, lengths of each factor and on both sides
 * of a change of algorithm, operands that are shorter or longer than the transform, axes with and without neighbours.
 * The same bits with every instruction set of one arithmetic, on any number of threads, and along any axis; one line's
 * NaN stays in that line; transforms back; Parseval. */
#include "exec/pool.h"
#include "jit/session/target.h"
#include "kernel/fft/fft.h"
#include "testing.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

typedef long double complex number;

/* ---- one transform with its memory ---- */

typedef struct transform {
  ts_arena arena;
  ts_fft fft;
  int in_parts, out_parts; /* of an element */
  int64_t in_count, out_count;
  double *values; /* of the operand, as the type has them */
  void *in, *out;
  char *workspace, *shared;
} transform;

static double random_value(void) { return (double)(rand() % 20001 - 10000) / 10000; }

static void put(const ts_fft *fft, void *data, int64_t i, double value) {
  if (fft->size == 4)
    ((float *)data)[i] = (float)value;
  else
    ((double *)data)[i] = value;
}

static double get(const ts_fft *fft, const void *data, int64_t i) {
  return fft->size == 4 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

static void *allocate(int64_t bytes) {
  void *data = malloc((size_t)bytes + 1);
  ck_assert_ptr_nonnull(data);
  return memset(data, 0xff, (size_t)bytes + 1); /* NaNs, to find reads of wrong elements */
}

static void begin(const ts_fft_request *request, transform *out) {
  const ts_fft_request *r = request;
  ts_arena_init(&out->arena);
  ck_assert_ok(ts_fft_plan(r, &out->arena, NULL, &out->fft));
  const int size = out->fft.size;
  out->in_parts = r->kind == TS_FFT_REAL || r->real ? 1 : 2;
  out->out_parts = r->kind == TS_FFT_REAL_INVERSE ? 1 : 2;
  out->in_count = r->outer * r->in_points * r->inner * out->in_parts;
  out->out_count = r->outer * out->fft.out_points * r->inner * out->out_parts;
  out->values = allocate(out->in_count * 8);
  out->in = allocate(out->in_count * size);
  out->out = allocate(out->out_count * size);
  out->workspace = allocate(out->fft.thread_bytes * ts_pool_parallel(0)->width);
  out->shared = allocate(out->fft.shared_bytes);
  for (int64_t i = 0; i < out->in_count; i++) {
    put(&out->fft, out->in, i, random_value());
    out->values[i] = get(&out->fft, out->in, i);
  }
}

static void end(transform *t) {
  free(t->values);
  free(t->in);
  free(t->out);
  free(t->workspace);
  free(t->shared);
  ts_arena_deinit(&t->arena);
}

static void execute(transform *t, const ts_parallel *parallel) {
  ts_fft_run run = {t->in, t->out, t->workspace, t->shared, parallel, NULL};
  ck_assert_ok(ts_fft_execute(&t->fft, &run));
}

/* ---- the meaning ---- */

static number operand_at(const transform *t, int64_t outer, int64_t point, int64_t inner) {
  const ts_fft_request *r = &t->fft.request;
  int64_t at = (outer * r->in_points + point) * r->inner + inner;
  if (point >= r->in_points) return 0;
  return t->in_parts == 1 ? (number)t->values[at] : t->values[2 * at] + (number)I * t->values[2 * at + 1];
}

/* The n numbers of a line: a half is completed by the conjugates. */
static number whole_at(const transform *t, int64_t outer, int64_t point, int64_t inner) {
  const int64_t n = t->fft.request.n;
  if (t->fft.request.kind != TS_FFT_REAL_INVERSE) return operand_at(t, outer, point, inner);
  if (point == 0 || 2 * point == n) return creall(operand_at(t, outer, point, inner));
  return 2 * point < n ? operand_at(t, outer, point, inner) : conjl(operand_at(t, outer, n - point, inner));
}

static number result_at(const transform *t, int64_t outer, int64_t point, int64_t inner) {
  int64_t at = (outer * t->fft.out_points + point) * t->fft.request.inner + inner;
  if (t->out_parts == 1) return get(&t->fft, t->out, at);
  return get(&t->fft, t->out, 2 * at) + (number)I * get(&t->fft, t->out, 2 * at + 1);
}

/* Of length n, for one n at a time. */
static const number *roots_of(int64_t n, bool inverse) {
  static number *roots;
  static int64_t count;
  const long double unit = (inverse ? 2 : -2) * 3.14159265358979323846264338327950288L / (long double)n;
  if (count == (inverse ? -n : n)) return roots;
  free(roots);
  roots = allocate(n * (int64_t)sizeof *roots);
  for (int64_t k = 0; k < n; k++) roots[k] = cosl(unit * (long double)k) + (number)I * sinl(unit * (long double)k);
  count = inverse ? -n : n;
  return roots;
}

/* The distance of a line from the definition, relative to its length, in units of the type's precision. */
static double line_error(const transform *t, int64_t outer, int64_t inner) {
  const ts_fft_request *r = &t->fft.request;
  const bool inverse = r->kind == TS_FFT_INVERSE || r->kind == TS_FFT_REAL_INVERSE;
  const number *roots = roots_of(r->n, inverse);
  long double distance = 0, length = 0;
  number *line = allocate(r->n * (int64_t)sizeof *line);
  for (int64_t i = 0; i < r->n; i++) line[i] = whole_at(t, outer, i, inner);
  for (int64_t k = 0; k < t->fft.out_points; k++) {
    /* By its parts: a complex product asks for NaNs, and that takes ten times as long. */
    long double re = 0, im = 0;
    for (int64_t i = 0, at = 0; i < r->n; i++, at = at + k < r->n ? at + k : at + k - r->n) {
      const long double x = creall(line[i]), y = cimagl(line[i]), u = creall(roots[at]), v = cimagl(roots[at]);
      re += x * u - y * v;
      im += x * v + y * u;
    }
    number sum = re + (number)I * im;
    if (inverse) sum /= (long double)r->n;
    long double off = cabsl(sum - result_at(t, outer, k, inner));
    distance += off * off;
    length += cabsl(sum) * cabsl(sum);
  }
  free(line);
  return distance == 0 ? 0 : (double)sqrtl(distance / length) / (t->fft.size == 4 ? 0x1p-23 : 0x1p-52);
}

static void check_lines(const transform *t) {
  const ts_fft_request *r = &t->fft.request;
  const double bound = 3 * log2(r->n < 2 ? 2 : (double)r->n);
  for (int64_t o = 0; o < r->outer; o++)
    for (int64_t i = 0; i < r->inner; i++) {
      if (TEST_IS_SANITIZED && (o > 0 || i > 0)) continue;
      double error = line_error(t, o, i);
      ck_assert_msg(error <= bound, "f%d kind %d, n = %lld of %lld, line %lld %lld of %lld: error %g", 8 * t->fft.size,
                    (int)r->kind, (long long)r->n, (long long)r->in_points, (long long)o, (long long)i,
                    (long long)r->inner, error);
    }
}

/* ---- tests ---- */

static const int64_t lengths[] = {1,   2,   3,   4,   5,   6,   7,   8,   9,   10,  11,  12,  13,   14,   15,  16,
                                  17,  19,  21,  22,  23,  26,  29,  31,  32,  33,  34,  37,  43,   49,   60,  61,
                                  62,  64,  68,  71,  97,  113, 119, 121, 127, 128, 131, 134, 144,  289,  361, 391,
                                  169, 200, 243, 250, 251, 256, 257, 320, 338, 500, 509, 512, 1000, 1009, 1331};
#define LENGTHS ((int)(sizeof lengths / sizeof *lengths))

static void check_case(const ts_fft_request *request) {
  transform t;
  begin(request, &t);
  execute(&t, &ts_parallel_serial);
  check_lines(&t);
  end(&t);
}

static void check_shapes(ts_fft_request r) {
  static const int64_t shapes[][2] = {{1, 1}, {17, 1}, {2, 3}, {1, 17}};
  const int64_t points = r.kind == TS_FFT_REAL_INVERSE ? r.n / 2 + 1 : r.n,
                counts[] = {points, points / 2 + 1, points + 3};
  int64_t taken = r.n + r.kind;
  for (int c = 0; c < 3; c++)
    for (int s = 0; s < 4; s++) {
      const int64_t part = testing_every_case() || r.n < 500 ? 3 : 6;
      if (r.n > 150 && c + s > 0 && (c + s + r.n) % part != 0) continue; /* the definition takes long */
      if (r.n > 50 && !testing_in_share(taken++)) continue;
      r.in_points = counts[c];
      r.outer = shapes[s][0];
      r.inner = shapes[s][1];
      check_case(&r);
    }
}

START_TEST(test_definition)
{
  for (int kind = 0; kind < 4; kind++)
    for (int real = 0; real < 2; real++) {
      if (real != (kind == TS_FFT_REAL) && kind >= TS_FFT_REAL) continue;
      ts_fft_request r = {.kind = (ts_fft_kind)kind, .real = real, .n = lengths[_i]};
      r.part = TS_F32;
      check_shapes(r);
      r.part = TS_F64;
      check_shapes(r);
    }
}
END_TEST

/* Vectors of each width that this machine has; the first ones may have no fused multiply-adds. */
static int instruction_sets(const ts_fft_vector **out) {
  int count = 0;
  out[count++] = ts_fft_vector_base;
#if defined(__x86_64__)
  if (ts_target_host()->isa >= TS_ISA_AVX2) out[count++] = ts_fft_vector_avx2;
  if (ts_target_host()->isa >= TS_ISA_AVX512) out[count++] = ts_fft_vector_avx512;
#endif
  return count;
}

/* The set whose bits set i must have. */
static int same_arithmetic(int i) {
#if defined(__FP_FAST_FMA)
  return 0 * i;
#else
  return i > 0 ? 1 : 0;
#endif
}

static void check_bits(const ts_fft_request *request) {
  const ts_fft_vector *sets[3];
  const int count = instruction_sets(sets);
  transform t;
  begin(request, &t);
  size_t bytes = (size_t)(t.out_count * t.fft.size);
  void *expected = allocate((int64_t)bytes);
  for (int i = 0; i < count; i++) {
    if (same_arithmetic(i) == i) {
      t.fft.vector = &sets[i][request->part == TS_F64];
      execute(&t, &ts_parallel_serial);
      memcpy(expected, t.out, bytes);
    }
    memset(t.out, 0xff, bytes);
    t.fft.vector = &sets[i][request->part == TS_F64];
    execute(&t, ts_pool_parallel(0));
    ck_assert_msg(memcmp(t.out, expected, bytes) == 0, "instruction set %d, kind %d, n = %lld", i, (int)request->kind,
                  (long long)request->n);
  }
  free(expected);
  end(&t);
}

START_TEST(test_same_bits)
{
  static const int64_t sizes[] = {2, 3, 15, 38, 64, 101, 127, 1000, 1001, 1024, 2197};
  for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
    for (int kind = 0; kind < 4; kind++)
      for (int inner = 1; inner < 40; inner += 19) {
        if (!testing_every_case() && ((int)n + kind + inner / 19) % 3 == 0) continue;
        if (!testing_takes((int64_t)n + kind, 3)) continue;
        ts_fft_request r = {.part = TS_F32, .kind = (ts_fft_kind)kind, .n = sizes[n], .outer = 35, .inner = inner};
        r.real = kind == TS_FFT_REAL;
        r.in_points = kind == TS_FFT_REAL_INVERSE ? r.n / 2 + 1 : r.n;
        check_bits(&r);
        r.part = TS_F64;
        check_bits(&r);
      }
}
END_TEST

/* Lines of another axis that are moved in bundles have the bits of the same lines along the last axis. */
static void check_axis(const ts_fft_request *request) {
  transform t, last;
  ts_fft_request r = *request;
  begin(&r, &t);
  r.outer *= r.inner;
  r.inner = 1;
  begin(&r, &last);
  const int64_t inner = request->inner, in_bytes = t.in_parts * t.fft.size, out_bytes = t.out_parts * t.fft.size;
  for (int64_t line = 0; line < r.outer; line++)
    for (int64_t i = 0; i < r.in_points; i++)
      memcpy((char *)last.in + (line * r.in_points + i) * in_bytes,
             (char *)t.in + ((line / inner * r.in_points + i) * inner + line % inner) * in_bytes, (size_t)in_bytes);
  execute(&t, ts_pool_parallel(0));
  execute(&last, &ts_parallel_serial);
  const int64_t points = t.fft.out_points;
  for (int64_t line = 0; line < r.outer; line++)
    for (int64_t i = 0; i < points; i++)
      ck_assert_msg(memcmp((char *)last.out + (line * points + i) * out_bytes,
                           (char *)t.out + ((line / inner * points + i) * inner + line % inner) * out_bytes,
                           (size_t)out_bytes) == 0,
                    "f%d kind %d, n = %lld, %lld beside each other: line %lld, point %lld", 8 * t.fft.size, (int)r.kind,
                    (long long)r.n, (long long)inner, (long long)line, (long long)i);
  end(&t);
  end(&last);
}

START_TEST(test_other_axis)
{
  static const int64_t sizes[] = {1, 2, 5, 31, 130, 256, 1000, 1021, 4100}, inners[] = {2, 3, 5, 8, 16, 17, 40};
  for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
    for (size_t i = 0; i < sizeof inners / sizeof *inners; i++)
      for (int kind = 0; kind < 4; kind++)
        for (int part = 0; part < 2; part++) {
          const bool bits_of_columns = kind < 2 && inners[i] >= 4; /* one engine takes all of a longer column */
          if ((bits_of_columns && sizes[n] > 128) || !testing_takes((int64_t)(n + i) + kind, 3)) continue;
          ts_fft_request r = {.part = part ? TS_F64 : TS_F32, .kind = (ts_fft_kind)kind, .n = sizes[n], .outer = 2};
          r.real = kind == TS_FFT_REAL;
          r.inner = inners[i];
          r.in_points = kind == TS_FFT_REAL_INVERSE ? r.n / 2 + 1 : r.n;
          check_axis(&r);
        }
  /* Bundles of fewer lines, since these are long. */
  check_axis(&(ts_fft_request){TS_F64, TS_FFT_FORWARD, false, 65536, 65536, 1, 5});
  check_axis(&(ts_fft_request){TS_F32, TS_FFT_REAL, true, 400000, 400000, 1, 3});
}
END_TEST

/* As many short lines as do not fit the second cache, so that the next ones are prefetched. */
START_TEST(test_many_lines)
{
  for (int64_t n = 2; n <= 8; n++) {
    transform t;
    begin(&(ts_fft_request){TS_F32, TS_FFT_FORWARD, false, n, n, 160001 / n, 1}, &t);
    execute(&t, ts_pool_parallel(0));
    for (int64_t line = 0; line < t.fft.request.outer; line += 1 + line / 50)
      ck_assert_double_le(line_error(&t, line, 0), 3 * log2((double)n));
    ck_assert_double_le(line_error(&t, t.fft.request.outer - 1, 0), 3 * log2((double)n));
    end(&t);
  }
}
END_TEST

/* Line 1 of three begins with a NaN or an infinity. */
START_TEST(test_lines_apart)
{
  for (int n = 30; n < 1100; n += 67) {
    transform t;
    begin(&(ts_fft_request){TS_F32, TS_FFT_REAL, true, n, n, 3, 1}, &t);
    ((float *)t.in)[n] = n % 2 ? NAN : INFINITY;
    execute(&t, &ts_parallel_serial);
    ck_assert_double_le(line_error(&t, 0, 0), 3 * log2(n));
    ck_assert_double_le(line_error(&t, 2, 0), 3 * log2(n));
    for (int64_t k = 0; k < t.fft.out_points; k++) {
      number x = result_at(&t, 1, k, 0);
      ck_assert(!isfinite(creall(x)) || !isfinite(cimagl(x)));
    }
    end(&t);
  }
}
END_TEST

static double square_sum(const ts_fft *fft, const void *data, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++) sum += get(fft, data, i) * get(fft, data, i);
  return sum;
}

/* Long lines; their defining sum would take too long. */
START_TEST(test_long)
{
  static const int64_t sizes[] = {4096, 5000, 10007, 32768, 65537, 100000, 262144};
  const int64_t n = sizes[_i];
  transform there, back;
  begin(&(ts_fft_request){TS_F64, TS_FFT_FORWARD, false, n, n, 1, 1}, &there);
  begin(&(ts_fft_request){TS_F64, TS_FFT_INVERSE, false, n, n, 1, 1}, &back);
  execute(&there, &ts_parallel_serial);
  double sum = square_sum(&there.fft, there.in, 2 * n);
  ck_assert_double_eq_tol(square_sum(&there.fft, there.out, 2 * n) / (double)n, sum, 1e-13 * sum);
  memcpy(back.in, there.out, (size_t)n * 16);
  execute(&back, &ts_parallel_serial);
  double distance = 0;
  for (int64_t i = 0; i < 2 * n; i++) distance += pow(there.values[i] - get(&back.fft, back.out, i), 2);
  ck_assert_double_le(sqrt(distance / sum), 3 * log2((double)n) * 0x1p-52);
  end(&there);
  end(&back);
}
END_TEST

/* Lines that all threads share, of one range of points or several, and of blocks that overlap: with the bits of one
 * thread; real ones there and back, and as complex ones whose second half is the conjugate of the first. */
static const int64_t shared_sizes[] = {16384, 17000, 19683, 20014, 32769, 70000, 78125, 65538};
#define SHARED_SIZES ((int)(sizeof shared_sizes / sizeof *shared_sizes))

START_TEST(test_shared_bits)
{
  for (int kind = 0; kind < 5; kind++)
    for (int part = 0; part < 2; part++)
      for (int less = -1; less < 2; less++) {
        if (!testing_takes(_i + kind + less + 1, 2)) continue;
        ts_fft_request r = {.part = part ? TS_F64 : TS_F32, .kind = (ts_fft_kind)(kind % 4), .n = shared_sizes[_i]};
        r.real = kind == TS_FFT_REAL || kind == 4;
        r.in_points = (kind == TS_FFT_REAL_INVERSE ? r.n / 2 + 1 : r.n) - less * 1001;
        r.outer = kind == 1 ? 3 : 1;
        r.inner = 1;
        check_bits(&r);
      }
}
END_TEST

static void check_mirrored(const transform *half, const transform *whole, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    const number x = result_at(half, 0, 2 * k <= n ? k : n - k, 0), y = result_at(whole, 0, k, 0);
    ck_assert_msg(x == (2 * k <= n ? y : conjl(y)), "n = %lld, point %lld", (long long)n, (long long)k);
  }
}

START_TEST(test_shared_real)
{
  const int64_t n = shared_sizes[_i], half = n / 2 + 1;
  transform there, back, whole;
  begin(&(ts_fft_request){TS_F64, TS_FFT_REAL, true, n, n, 1, 1}, &there);
  begin(&(ts_fft_request){TS_F64, TS_FFT_REAL_INVERSE, false, n, half, 1, 1}, &back);
  begin(&(ts_fft_request){TS_F64, TS_FFT_FORWARD, true, n, n, 1, 1}, &whole);
  memcpy(whole.in, there.in, (size_t)n * 8);
  execute(&there, ts_pool_parallel(0));
  execute(&whole, ts_pool_parallel(0));
  if (n % 2 == 0) check_mirrored(&there, &whole, n);
  ck_assert(!memcmp(there.out, whole.out, (size_t)half * 16));
  memcpy(back.in, there.out, (size_t)half * 16);
  execute(&back, ts_pool_parallel(0));
  double distance = 0, sum = square_sum(&there.fft, there.in, n);
  for (int64_t i = 0; i < n; i++) distance += pow(there.values[i] - get(&back.fft, back.out, i), 2);
  ck_assert_double_le(sqrt(distance / sum), 3 * log2((double)n) * 0x1p-52);
  end(&there);
  end(&back);
  end(&whole);
}
END_TEST

/* The result over the operand. */
START_TEST(test_shared_in_place)
{
  const int64_t n = shared_sizes[_i];
  transform t;
  begin(&(ts_fft_request){TS_F32, TS_FFT_INVERSE, false, n, n, 2, 1}, &t);
  execute(&t, ts_pool_parallel(0));
  void *out = t.out;
  t.out = t.in;
  execute(&t, ts_pool_parallel(0));
  ck_assert(!memcmp(out, t.in, (size_t)(t.out_count * t.fft.size)));
  t.out = out;
  end(&t);
}
END_TEST

/* Roots are exact where they can be, otherwise as near as long double has them. */
START_TEST(test_roots)
{
  static const int64_t sizes[] = {1, 2, 3, 4, 7, 8, 12, 1000, 1024, 10007};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    const int64_t n = sizes[s];
    ts_fft_roots roots;
    ck_assert_ok(ts_fft_roots_init(n, &roots));
    for (int64_t k = 0; k < n; k++) {
      long double root[2], angle = 2 * 3.14159265358979323846264338327950288L * (long double)k / (long double)n;
      ts_fft_root(&roots, k, root);
      ck_assert(fabsl(root[0] - cosl(angle)) < 1e-18L && fabsl(root[1] + sinl(angle)) < 1e-18L);
      if (4 * k % n == 0) ck_assert(fabsl(root[0]) + fabsl(root[1]) == 1);
    }
    ts_fft_roots_deinit(&roots);
  }
}
END_TEST

START_TEST(test_cancelled)
{
  const _Atomic bool cancel = true;
  transform t;
  begin(&(ts_fft_request){TS_F32, TS_FFT_FORWARD, false, 100, 100, 100, 1}, &t);
  memset(t.out, 0, 80000);
  ts_fft_run run = {t.in, t.out, t.workspace, t.shared, ts_pool_parallel(0), &cancel};
  ck_assert_error(ts_fft_execute(&t.fft, &run), TS_CANCELLED, "Fourier");
  ck_assert(square_sum(&t.fft, t.out, t.out_count) == 0);
  end(&t);
}
END_TEST

/* Constants of long lines take long: a compile that must not, or whose caller has ended, makes none. */
START_TEST(test_cancelled_plan)
{
  static const struct {
    int64_t n;
    bool is_short;
  } cases[] = {{1, true}, {1024, true}, {1021, true}, {1025, false}, {4096, false}, {1 << 20, false}, {1000003, false}};
  const _Atomic bool cancel = true;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ts_arena arena;
    ts_fft fft;
    ts_arena_init(&arena);
    ts_fft_request r = {TS_F32, TS_FFT_FORWARD, false, cases[i].n, cases[i].n, 1, 1};
    if (cases[i].is_short)
      ck_assert_ok(ts_fft_plan(&r, &arena, &cancel, &fft));
    else
      ck_assert_error(ts_fft_plan(&r, &arena, &cancel, &fft), TS_CANCELLED, "plan of a Fourier transform");
    ts_arena_deinit(&arena);
  }
}
END_TEST

START_TEST(test_too_long)
{
  ts_arena arena;
  ts_fft fft;
  ts_arena_init(&arena);
  ts_fft_request r = {TS_F32, TS_FFT_FORWARD, false, INT64_MAX / 2, 1, 1, 1};
  ck_assert_error(ts_fft_plan(&r, &arena, NULL, &fft), TS_RESOURCE_EXHAUSTED, "Fourier");
  ts_arena_deinit(&arena);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("fft");
  TCase *tests = tcase_create("fft");
  tcase_set_timeout(tests, 120);
  tcase_add_loop_test(tests, test_definition, 0, LENGTHS);
  tcase_add_test(tests, test_same_bits);
  tcase_add_test(tests, test_other_axis);
  tcase_add_test(tests, test_many_lines);
  tcase_add_test(tests, test_lines_apart);
  tcase_add_loop_test(tests, test_long, 0, 7);
  tcase_add_loop_test(tests, test_shared_bits, 0, SHARED_SIZES);
  tcase_add_loop_test(tests, test_shared_real, 0, SHARED_SIZES);
  tcase_add_loop_test(tests, test_shared_in_place, 0, SHARED_SIZES);
  tcase_add_test(tests, test_roots);
  tcase_add_test(tests, test_cancelled);
  tcase_add_test(tests, test_cancelled_plan);
  tcase_add_test(tests, test_too_long);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failures = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
