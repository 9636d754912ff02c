/* Plans of Fourier transforms: factors, constants and workspace. */
#include "base/alloc.h"
#include "base/cancel.h"
#include "jit/session/target.h"
#include "kernel/fft/fft.h"

#include <string.h>

const ts_fft_vector *ts_fft_vector_of(ts_dtype type) {
  int which = type == TS_F64;
  return &(*TS_TARGET_PICK(ts_fft_vector))[which];
}

/* Columns of another axis are transformed in place up to this number of points: a block of them is 512 KB. */
#define DIRECT_POINTS 4096
/* The largest prime where lines have a column each, which may be few. */
#define LANES_RADIX 113
/* A line of so few points shares vectors with other lines. */
#define LANES_POINTS 128
/* For a complex transform: its constants take 512 MB then, in c64, and no limit of the pool bounds them. */
#define MAX_POINTS (INT64_C(1) << 26)
/* Elements before each line in the workspace, and at least this number after it. */
#define SLACK 16

/* Up to this number of points of a line a plan takes less than a millisecond, and is made without a look at its cancel
 * flag. */
#define SHORT_POINTS 1024

typedef struct planner {
  ts_arena *arena;
  ts_fft *fft;
  const _Atomic bool *cancel;
  bool *stopped;
} planner;

/* Whether the loop over constants ends before constant `i`, and the plan with an error. */
static bool stopped(const planner *p, int64_t i) {
  if (i % SHORT_POINTS == SHORT_POINTS - 1 && ts_cancelled(p->cancel)) *p->stopped = true;
  return *p->stopped;
}

/* ---- factors ---- */

/* The smallest prime factor that a pass can take, of a number without factors up to 13; 0 without any. */
static int larger_prime(int64_t n) {
  for (int p = 17; p <= TS_FFT_MOST_RADIX && n > 1; p += 2)
    if (n % p == 0) return p;
  return 0;
}

/* Powers of 2 as 8s and up to two 4s; a 2 where that is all. */
static int power_of_two(int64_t n) {
  if (n % 4 != 0) return 2;
  return n % 8 != 0 || (n % 16 == 0 && n % 32 != 0) ? 4 : 8;
}

static int next_radix(int64_t n) {
  static const int primes[] = {5, 3, 7, 11, 13};
  if (n % 2 == 0) return power_of_two(n);
  for (size_t i = 0; i < sizeof primes / sizeof *primes; i++)
    if (n % primes[i] == 0) return primes[i];
  return larger_prime(n);
}

static bool is_smooth(int64_t n) {
  for (int radix; n > 1 && (radix = next_radix(n)) > 0 && radix <= LANES_RADIX;) n /= radix;
  return n == 1;
}

/* The smallest length that is at least `least`, a power of 2 times 1, 3, 5, 9 or 15. */
static int64_t good_length(int64_t least) {
  static const int64_t factors[] = {1, 3, 5, 9, 15};
  int64_t best = INT64_MAX;
  for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
    int64_t n = factors[i];
    while (n < least) n *= 2;
    if (n < best) best = n;
  }
  return best;
}

/* ---- two engines ---- */

/* Estimated time of a pass for each vector, in tenths of a cycle. */
static int64_t pass_cost(int radix) {
  static const int64_t costs[] = {[2] = 35, [3] = 50, [4] = 50, [5] = 70, [7] = 90, [8] = 75, [11] = 115, [13] = 130};
  return radix <= 13 ? costs[radix] : 60 + 5 * radix;
}

/* The same for columns of n rows; NO_COST if no passes take them. Blocks of many rows do not fit the first or the
 * second cache. */
#define NO_COST (INT64_MAX / 4)
static int64_t engine_cost(int64_t n) {
  const int64_t far = n > 4096 ? 100 : n > 192 ? 25 : 0;
  int64_t cost = 60;
  for (int radix; n > 1; n /= radix) {
    radix = next_radix(n);
    if (radix == 0) return NO_COST;
    cost += pass_cost(radix) + far;
  }
  return cost;
}

/* Blocks of columns that end with the last column compute some columns twice. */
static int64_t blocks_cost(int64_t n, int64_t columns, int width) {
  const int64_t cost = engine_cost(n), rows = (columns + width - 1) / width * n;
  return cost == NO_COST || cost > NO_COST / 2 / rows ? NO_COST / 2 : cost * rows;
}

/* The first factor of the cheapest two, and what they cost; 0 if there are none with a vector of columns each. */
static int64_t best_divisor(int64_t n, int width, int64_t *cost) {
  int64_t best = 0;
  *cost = NO_COST / 2;
  for (int64_t d = width; d <= n / d; d++) {
    if (n % d) continue;
    const int64_t other = n / d, both = blocks_cost(d, other, width) + blocks_cost(other, d, width);
    if (both > *cost) continue;
    *cost = both;
    best = d;
  }
  return best;
}

/* ---- constants ---- */

static void put(const ts_fft *fft, void *data, int64_t i, long double value) {
  if (fft->size == 4)
    ((float *)data)[i] = (float)value;
  else
    ((double *)data)[i] = (double)value;
}

/* Aligned to a cache line, zeroed. */
static ts_status constants(const planner *p, int64_t elements, void **out) {
  size_t bytes;
  char *data;
  if (!ts_mul_size((size_t)elements, (size_t)p->fft->size, &bytes) || bytes > SIZE_MAX / 2)
    return ts_error(TS_RESOURCE_EXHAUSTED, "constants of a Fourier transform need too much memory");
  TS_TRY(ts_arena_alloc(p->arena, bytes + 64, (void **)&data));
  *out = data + (64 - (uintptr_t)data % 64) % 64;
  return TS_SUCCESS;
}

/* One line of a part, padded for vector over-read. */
static ts_status constant_line(const planner *p, int64_t count, ts_fft_rows *out) {
  const int64_t padded = (count + 2 * SLACK) / SLACK * SLACK;
  TS_TRY(constants(p, 2 * padded, &out->re));
  out->im = (char *)out->re + padded * p->fft->size;
  out->row = padded;
  return TS_SUCCESS;
}

static void put_root(const ts_fft *fft, const ts_fft_rows *line, int64_t i, const long double root[2]) {
  put(fft, line->re, i, root[0]);
  put(fft, line->im, i, root[1]);
}

static ts_status pass_twiddles(const planner *p, ts_fft_pass *pass) {
  const int64_t n = pass->radix * pass->length;
  ts_fft_roots roots;
  long double root[2];
  void *to;
  TS_TRY(constants(p, pass->length * (pass->radix - 1) * 2, &to));
  TS_TRY(ts_fft_roots_init(n, &roots));
  for (int64_t at = 0, i = 0; i < pass->length && !stopped(p, i); i++)
    for (int k = 1; k < pass->radix; k++) {
      ts_fft_root(&roots, i * k % n, root);
      put(p->fft, to, at++, root[0]);
      put(p->fft, to, at++, root[1]);
    }
  pass->twiddles = to;
  ts_fft_roots_deinit(&roots);
  return TS_SUCCESS;
}

/* Constants of a pass of a larger prime, in the order in which the pass reads the constants. */
static ts_status pass_roots(const planner *p, ts_fft_pass *pass) {
  const int pairs = pass->radix / 2;
  ts_fft_roots roots;
  long double root[2];
  void *to;
  TS_TRY(constants(p, (int64_t)2 * pairs * pairs, &to));
  TS_TRY(ts_fft_roots_init(pass->radix, &roots));
  for (int64_t j = 1, i = 0; j <= pairs; j += 2)
    for (int64_t k = 1; k <= pairs; k++)
      for (int64_t one = j; one <= j + 1 && one <= pairs; one++) {
        ts_fft_root(&roots, one * k % pass->radix, root);
        put(p->fft, to, i++, root[0]);
        put(p->fft, to, i++, -root[1]);
      }
  pass->roots = to;
  ts_fft_roots_deinit(&roots);
  return TS_SUCCESS;
}

static ts_status plan_engine(const planner *p, int64_t n, ts_fft_engine *out) {
  int64_t left = n, stride = 1;
  *out = (ts_fft_engine){.n = n};
  while (left > 1) {
    ts_fft_pass *pass = &out->pass[out->passes++];
    *pass = (ts_fft_pass){.radix = next_radix(left), .stride = stride};
    pass->length = left /= pass->radix;
    stride *= pass->radix;
    TS_TRY(pass_twiddles(p, pass));
    if (pass->radix > 13) TS_TRY(pass_roots(p, pass));
  }
  return TS_SUCCESS;
}

/* Of block b, row k1 and column c: w^(k1 j2), where j2 is the line's column. */
static ts_status core_twiddles(const planner *p, ts_fft_core *core) {
  const int width = p->fft->columns;
  const int64_t larger = core->n1 > core->n2 ? core->n1 : core->n2, rows = (larger + width - 1) / width * width;
  const int64_t blocks = (core->n2 + width - 1) / width;
  ts_fft_roots roots;
  long double root[2];
  TS_TRY(constants(p, 2 * blocks * rows * width, &core->twiddles.re));
  core->twiddles.im = (char *)core->twiddles.re + width * p->fft->size;
  core->twiddles.row = 2 * width;
  TS_TRY(ts_fft_roots_init(core->n, &roots));
  for (int64_t b = 0; b < blocks; b++)
    for (int64_t k = 0; k < core->n1 && !stopped(p, b * core->n1 + k); k++)
      for (int64_t c = 0; c < width; c++) {
        int64_t column = b * width + width <= core->n2 ? b * width + c : core->n2 - width + c;
        ts_fft_root(&roots, k * column, root);
        put_root(p->fft, &core->twiddles, 2 * width * (b * rows + k) + c, root);
      }
  ts_fft_roots_deinit(&roots);
  return TS_SUCCESS;
}

static ts_status plan_core(const planner *p, int64_t n, bool one_engine) {
  if (n > MAX_POINTS)
    return ts_error(TS_RESOURCE_EXHAUSTED, "a Fourier transform of %lld points, expected at most %lld%s",
                    (long long)p->fft->request.n, (long long)MAX_POINTS,
                    n == p->fft->points ? "" : " with the padding that its prime factors take");
  ts_fft_core *core = &p->fft->core;
  const int width = p->fft->columns;
  int64_t cost, divisor = best_divisor(n, width, &cost);
  core->n = n;
  if (one_engine || n <= LANES_POINTS || divisor == 0) return plan_engine(p, n, &core->first);
  core->n1 = divisor;
  core->n2 = n / divisor;
  core->turned_row = (core->n1 + width - 1) / width * width + width;
  TS_TRY(plan_engine(p, core->n1, &core->first));
  TS_TRY(plan_engine(p, core->n2, &core->second));
  return core_twiddles(p, core);
}

/* ---- Bluestein ---- */

/* exp(-pi i k^2 / n), and its conjugate around 0 of a circle of the core's length, over that. */
static ts_status chirps(const planner *p, const ts_fft_rows *conjugate) {
  const int64_t n = p->fft->points, m = p->fft->core.n;
  ts_fft_roots roots;
  long double root[2];
  TS_TRY(ts_fft_roots_init(2 * n, &roots));
  for (int64_t k = 0, square = 0; k < n && !stopped(p, k); k++) {
    ts_fft_root(&roots, square, root);
    put_root(p->fft, &p->fft->chirp, k, root);
    root[0] /= (long double)m;
    root[1] /= -(long double)m;
    put_root(p->fft, conjugate, k, root);
    if (k > 0) put_root(p->fft, conjugate, m - k, root);
    square = (square + 2 * k + 1) % (2 * n);
  }
  ts_fft_roots_deinit(&roots);
  return TS_SUCCESS;
}

/* The transform of a constant line, as runs compute it. */
static ts_status transform_constant(const planner *p, const ts_fft_rows *line) {
  const ts_fft *fft = p->fft;
  char *memory;
  if (stopped(p, 0)) return TS_SUCCESS;
  const int64_t row = line->row;
  TS_TRY(ts_alloc_array((size_t)(ts_fft_scratch_elements(fft) + 2 * row), (size_t)fft->size, (void **)&memory));
  ts_fft_rows all = {memory, memory + row * fft->size, row};
  ts_fft_scratch scratch = ts_fft_scratch_at(fft, memory + 2 * row * fft->size);
  scratch.cancel = fft->points > SHORT_POINTS ? p->cancel : NULL;
  memcpy(all.re, line->re, (size_t)(row * fft->size));
  memcpy(all.im, line->im, (size_t)(row * fft->size));
  ts_fft_core_run(fft, &scratch, &all);
  if (ts_cancelled(scratch.cancel)) *p->stopped = true;
  memcpy(line->re, all.re, (size_t)(row * fft->size));
  memcpy(line->im, all.im, (size_t)(row * fft->size));
  ts_free(memory);
  return TS_SUCCESS;
}

/* Primes above TS_FFT_MOST_RADIX take lengths that are not by lanes. */
static ts_status plan_bluestein(const planner *p) {
  ts_fft *fft = p->fft;
  TS_TRY(plan_core(p, good_length(2 * fft->points - 1), false));
  TS_TRY(constant_line(p, fft->points, &fft->chirp));
  TS_TRY(constant_line(p, fft->core.n, &fft->spectrum));
  TS_TRY(chirps(p, &fft->spectrum));
  return transform_constant(p, &fft->spectrum);
}

static ts_status plan_half(const planner *p) {
  const int64_t half = p->fft->points;
  ts_fft_roots roots;
  long double root[2];
  TS_TRY(constant_line(p, half + 1, &p->fft->half));
  TS_TRY(ts_fft_roots_init(2 * half, &roots));
  for (int64_t k = 0; k <= half && !stopped(p, k); k++) {
    ts_fft_root(&roots, k, root);
    put_root(p->fft, &p->fft->half, k, root);
  }
  ts_fft_roots_deinit(&roots);
  return TS_SUCCESS;
}

/* ---- the plan ---- */

/* Neighbouring lines share cache lines: a bundle of them is moved at once, up to this size. */
#define BUNDLE_LINES 16
#define BUNDLE_BYTES (INT64_C(4) << 20)

/* Lines with so many bytes of a part are shared by all threads: several of them, since they would push each other out
 * of the second cache, and a single one, that other threads have no work besides. */
#define SHARED_BYTES (INT64_C(256) << 10)
#define SHARED_ONE_BYTES (INT64_C(64) << 10)

/* Workspace: the lines of a group, one line for transforms that are not in place, lines of interleaved parts for a
 * bundle, and the scratch memory of the core transform. */
static ts_status plan_workspace(ts_fft *fft) {
  const ts_fft_request *r = &fft->request;
  int64_t longest = ts_fft_max(ts_fft_max(fft->core.n, r->n), fft->points + 1), bytes;
  if (longest > INT64_MAX / 4096)
    return ts_error(TS_RESOURCE_EXHAUSTED, "a Fourier transform needs too much workspace");
  const bool single = !fft->direct && !ts_fft_by_lanes(&fft->core);
  fft->group = fft->direct || single ? 1 : fft->columns;
  fft->line = (longest + 4 * SLACK) / SLACK * SLACK;
  fft->bundle = single ? ts_fft_min(r->inner, BUNDLE_LINES) : 1;
  fft->bundle = ts_fft_max(1, ts_fft_min(fft->bundle, BUNDLE_BYTES / (2 * fft->line * fft->size)));
  int64_t elements = fft->direct ? 0 : (fft->group + 1 + fft->bundle) * 2 * fft->line;
  if (!ts_mul_i64(elements + ts_fft_scratch_elements(fft), fft->size, &bytes))
    return ts_error(TS_RESOURCE_EXHAUSTED, "a Fourier transform needs too much workspace");
  fft->thread_bytes = (bytes + 127) / 64 * 64;
  fft->shared = single && r->inner == 1 && fft->core.n * fft->size >= (r->outer == 1 ? SHARED_ONE_BYTES : SHARED_BYTES);
  if (!fft->shared) return TS_SUCCESS;
  fft->shared_bytes = fft->thread_bytes;
  fft->thread_bytes = (ts_fft_block_elements(fft) * fft->size + 127) / 64 * 64;
  return TS_SUCCESS;
}

/* Bytes of a result, or an operand, that are prefetched. */
#define AHEAD_BYTES (INT64_C(16) << 10)

/* Short lines read and write memory in its order, which needs a prefetch only where it is not in the second cache. */
#define AHEAD_SHORT_BYTES (INT64_C(2) << 20)

/* Lines of another axis have no memory of their own, and groups of them read it in its order: they need no prefetch. */
static void plan_ahead(ts_fft *fft) {
  const ts_fft_request *r = &fft->request;
  fft->in_bytes = r->in_points * fft->size * (r->real ? 1 : 2);
  fft->out_bytes = fft->out_points * fft->size * (r->kind == TS_FFT_REAL_INVERSE ? 1 : 2);
  const int64_t steps = ts_fft_core_steps(fft) * (fft->chirp.re ? 2 : 1);
  if (r->inner > 1 || steps == 0) return;
  if (ts_fft_by_lanes(&fft->core) && r->outer < AHEAD_SHORT_BYTES / (fft->in_bytes + fft->out_bytes)) return;
  fft->in_ahead = ts_fft_min(AHEAD_BYTES, fft->group * fft->in_bytes);
  fft->out_ahead = ts_fft_min(AHEAD_BYTES, fft->group * fft->out_bytes);
  fft->share = ((fft->in_ahead + fft->out_ahead) / steps + 127) / 64 * 64;
}

static double estimate_ns(const ts_fft *fft) {
  const int64_t n = fft->core.n, lines = fft->direct ? fft->columns : fft->group;
  int64_t log2 = 1;
  for (int64_t x = n; x > 2; x /= 2) log2++;
  return 50 + (double)(lines * n * log2) * (fft->size == 8 ? 0.24 : 0.12) * (fft->chirp.re ? 2.5 : 1);
}

/* A product with 1 and a sum with -0 change nothing; a sum with +0 only turns -0. */
static void fill_factors(ts_fft *fft) {
  const ts_fft_request *r = &fft->request;
  const bool inverse = r->kind == TS_FFT_REAL_INVERSE;
  fft->factors[0] = inverse || r->kind == TS_FFT_INVERSE ? 1 / (double)r->n : 1;
  fft->factors[1] = r->kind == TS_FFT_INVERSE && r->real ? -fft->factors[0] : fft->factors[0];
  fft->factors[2] = -0.0;
  fft->factors[3] = inverse && !fft->pairs ? -0.0 : 0.0;
}

/* Whether passes take less time than Bluestein's convolution, although a prime is large: in two engines, whose columns
 * are neighbours. */
static bool takes_passes(const ts_fft *fft) {
  const int64_t n = fft->points;
  int64_t cost, other;
  if (is_smooth(n)) return true;
  if (n <= LANES_POINTS || !best_divisor(n, fft->columns, &cost)) return false;
  best_divisor(good_length(2 * n - 1), fft->columns, &other);
  return cost < 2 * other;
}

static void fill(const ts_fft_request *request, ts_fft *fft) {
  const bool inverse = request->kind == TS_FFT_REAL_INVERSE;
  *fft = (ts_fft){.request = *request, .vector = ts_fft_vector_of(request->part)};
  fft->size = request->part == TS_F64 ? 8 : 4;
  fft->columns = request->part == TS_F64 ? TS_FFT_F64_COLUMNS : TS_FFT_F32_COLUMNS;
  fft->pairs = (request->real || inverse) && request->n % 2 == 0;
  fft->points = fft->pairs ? request->n / 2 : request->n;
  fill_factors(fft);
  fft->out_points = request->kind == TS_FFT_REAL ? request->n / 2 + 1 : request->n;
  fft->direct = !request->real && !inverse && request->n > 1 && request->inner >= fft->columns / 2 &&
                is_smooth(request->n) && request->n <= DIRECT_POINTS;
}

ts_status ts_fft_plan(const ts_fft_request *request, ts_arena *arena, const _Atomic bool *cancel, ts_fft *out) {
  bool stopped = false;
  const planner p = {arena, out, cancel, &stopped};
  if (request->n > INT64_MAX / 16) return ts_error(TS_RESOURCE_EXHAUSTED, "a Fourier transform of too many points");
  fill(request, out);
  if (out->points > SHORT_POINTS) TS_TRY(ts_check_cancelled(cancel, "the plan of a Fourier transform"));
  if (takes_passes(out))
    TS_TRY(plan_core(&p, out->points, out->direct));
  else
    TS_TRY(plan_bluestein(&p));
  if (out->pairs) TS_TRY(plan_half(&p));
  if (stopped) return ts_error(TS_CANCELLED, "the plan of a Fourier transform was cancelled");
  TS_TRY(plan_workspace(out));
  plan_ahead(out);
  out->group_ns = estimate_ns(out);
  return TS_SUCCESS;
}
