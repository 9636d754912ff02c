/* One line at a time, by phases: each is a loop over ranges of points or blocks of columns that are independent of each
 * other, which one thread runs in turn, or all threads share where lines are long. Where nothing has to be done with
 * the numbers of operand or result, blocks of columns read and write them where they are. */
#include "kernel/fft/fft.h"

#include "base/cancel.h"

#include <string.h>

/* Points of a range: so many stay in the second cache. */
#define RANGE (INT64_C(1) << 14)
#define TASK_NS 20000

/* Lines with less bytes of a part stay in the first cache, where loops over all of the line are faster than those over
 * blocks of it. */
#define FUSED_BYTES (INT64_C(8) << 10)

typedef struct line_job line_job;
typedef void line_step(const line_job *job, int64_t from, int64_t to, const ts_fft_scratch *scratch);

struct line_job {
  const ts_fft *fft;
  const ts_fft_line *line;
  ts_fft_ends ends;
  line_step *step;            /* of the phase that runs */
  int64_t count, unit, units; /* what it has to do, in units of a task; the last one has all that is left */
};

/* ---- phases ---- */

/* The blocks of the worker are its own. */
static void run_unit(void *arg, int64_t unit, int worker) {
  const line_job *job = arg;
  const ts_fft_line *line = job->line;
  if (ts_cancelled(line->scratch->cancel)) return;
  ts_fft_scratch own = ts_fft_scratch_at(job->fft, ts_fft_aligned(line->workers + worker * job->fft->thread_bytes));
  own.turned = line->scratch->turned;
  own.cancel = line->scratch->cancel;
  job->step(job, unit * job->unit, unit + 1 < job->units ? (unit + 1) * job->unit : job->count, &own);
}

static void share(line_job *job, line_step *step, int64_t count, int64_t unit, int64_t units) {
  job->step = step;
  job->count = count;
  job->unit = unit;
  job->units = units;
  ts_parallel_run(job->line->parallel, units, run_unit, job);
}

static void run_ranges(line_job *job, line_step *step, int64_t points) {
  if (job->line->parallel)
    share(job, step, points, RANGE, (points + RANGE - 1) / RANGE);
  else
    for (int64_t i = 0; i < points; i += RANGE) step(job, i, ts_fft_min(points, i + RANGE), job->line->scratch);
}

/* The last two blocks share columns where these are no whole blocks: one task has both. */
static void share_blocks(line_job *job, line_step *step, int64_t columns, int64_t count) {
  const int64_t apart = columns % job->fft->columns ? ts_fft_max(1, count - 1) : count;
  const double ns = job->fft->group_ns / (double)(2 * count);
  const int64_t unit = ns > TASK_NS ? 1 : (int64_t)(TASK_NS / ns) + 1;
  share(job, step, count, unit, (apart + unit - 1) / unit);
}

static void run_blocks(line_job *job, line_step *step, int64_t columns) {
  const int64_t width = job->fft->columns, count = (columns + width - 1) / width;
  if (job->line->parallel)
    share_blocks(job, step, columns, count);
  else
    step(job, 0, count, job->line->scratch);
}

/* ---- loads ---- */

static void clear(const ts_fft *fft, const ts_fft_rows *line, int64_t from, int64_t to) {
  if (from >= to) return;
  memset(ts_fft_at(line->re, from, fft->size), 0, (size_t)((to - from) * fft->size));
  memset(ts_fft_at(line->im, from, fft->size), 0, (size_t)((to - from) * fft->size));
}

/* Interleaved numbers `from` to `to` - 1 to the line's parts; elements that the operand lacks are 0. */
static void split_range(const line_job *job, const ts_fft_rows *line, int64_t count, int64_t from, int64_t to) {
  const ts_fft *fft = job->fft;
  const int64_t end = ts_fft_min(to, count);
  const ts_fft_rows part = ts_fft_rows_at(line, from, fft->size);
  if (from < end) fft->vector->split(ts_fft_at(job->line->in, 2 * from, fft->size), 0, 1, end - from, &part);
  clear(fft, line, ts_fft_max(from, count), to);
}

/* Pairs of numbers are complex ones; of an odd count the last has no second part. */
static void load_pairs(const line_job *job, const ts_fft_rows *line, int64_t from, int64_t to) {
  const ts_fft *fft = job->fft;
  const int64_t count = ts_fft_min(fft->request.in_points, fft->request.n), pairs = count / 2;
  split_range(job, line, pairs, from, to);
  if (count % 2 && from <= pairs && pairs < to)
    memcpy(ts_fft_at(line->re, pairs, fft->size), ts_fft_at(job->line->in, count - 1, fft->size), (size_t)fft->size);
}

static void load_real(const line_job *job, const ts_fft_rows *line, int64_t from, int64_t to) {
  const ts_fft *fft = job->fft;
  const int64_t end = ts_fft_min(to, ts_fft_min(fft->request.in_points, fft->request.n));
  clear(fft, line, from, to);
  if (from < end)
    memcpy(ts_fft_at(line->re, from, fft->size), ts_fft_at(job->line->in, from, fft->size),
           (size_t)((end - from) * fft->size));
}

/* Of a half of a transform of real numbers, whose first number is real, and the last one of an even length, too. */
static void split_half(const line_job *job, const ts_fft_rows *line, int64_t from, int64_t to) {
  const ts_fft *fft = job->fft;
  const int64_t half = fft->request.n / 2;
  split_range(job, line, ts_fft_min(fft->request.in_points, half + 1), from, to);
  if (from == 0) memset(line->im, 0, (size_t)fft->size);
  if (fft->pairs && from <= half && half < to) memset(ts_fft_at(line->im, half, fft->size), 0, (size_t)fft->size);
}

#define DEFINE_MIRROR(NAME, T)                                                                                       \
  static void mirror_##NAME(const T *in, int64_t count, int64_t n, const ts_fft_rows *line, int64_t k, int64_t to) { \
    for (; k < to; k++) {                                                                                            \
      const int64_t other = n - k;                                                                                   \
      ((T *)line->re)[k] = other < count ? in[2 * other] : 0;                                                        \
      ((T *)line->im)[k] = -(other < count ? in[2 * other + 1] : 0);                                                 \
    }                                                                                                                \
  }
DEFINE_MIRROR(f32, float)
DEFINE_MIRROR(f64, double)

/* Numbers of an odd length: those after the middle are the conjugates of the others. */
static void load_whole(const line_job *job, const ts_fft_rows *line, int64_t from, int64_t to) {
  const ts_fft_request *r = &job->fft->request;
  const int64_t half = r->n / 2, end = ts_fft_min(to, r->n), count = ts_fft_min(r->in_points, half + 1);
  if (from <= half) split_half(job, line, from, ts_fft_min(to, half + 1));
  if (job->fft->size == 4)
    mirror_f32(job->line->in, count, r->n, line, ts_fft_max(from, half + 1), end);
  else
    mirror_f64(job->line->in, count, r->n, line, ts_fft_max(from, half + 1), end);
  clear(job->fft, line, ts_fft_max(from, r->n), to);
}

static void fold_range(const line_job *job, const ts_fft_rows *line, int64_t from, int64_t to) {
  const ts_fft *fft = job->fft;
  const int64_t half = fft->request.n / 2;
  if (from < half)
    fft->vector->fold(&(ts_fft_half){job->line->other, fft->half, *line, half}, from, ts_fft_min(to, half));
  clear(fft, line, ts_fft_max(from, half), to);
}

/* Before the convolution and after it. */
static void chirp_range(const line_job *job, int64_t from, int64_t to, const ts_fft_scratch *scratch) {
  (void)scratch;
  const ts_fft *fft = job->fft;
  const ts_fft_rows part = ts_fft_rows_at(&job->ends.line, from, fft->size),
                    chirp = ts_fft_rows_at(&fft->chirp, from, fft->size);
  fft->vector->multiply(&part, &chirp, 1, to - from, &part);
}

static void load_range(const line_job *job, int64_t from, int64_t to, const ts_fft_scratch *scratch) {
  const ts_fft *fft = job->fft;
  const ts_fft_request *r = &fft->request;
  const ts_fft_rows *line = &job->line->line;
  if (r->kind == TS_FFT_REAL_INVERSE)
    (fft->pairs ? fold_range : load_whole)(job, line, from, to);
  else if (r->real)
    (fft->pairs ? load_pairs : load_real)(job, line, from, to);
  else
    split_range(job, line, ts_fft_min(r->in_points, fft->points), from, to);
  const int64_t end = ts_fft_min(to, fft->points);
  if (fft->chirp.re && from < end) chirp_range(job, from, end, scratch);
}

static void other_range(const line_job *job, int64_t from, int64_t to, const ts_fft_scratch *scratch) {
  (void)scratch;
  split_half(job, &job->line->other, from, to);
}

/* ---- transforms ---- */

static void first_blocks(const line_job *job, int64_t from, int64_t to, const ts_fft_scratch *scratch) {
  ts_fft_first_blocks(job->fft, scratch, &job->ends, from, to);
}

static void second_blocks(const line_job *job, int64_t from, int64_t to, const ts_fft_scratch *scratch) {
  ts_fft_second_blocks(job->fft, scratch, &job->ends, from, to);
}

static void run_core(line_job *job) {
  run_blocks(job, first_blocks, job->fft->core.n2);
  run_blocks(job, second_blocks, job->fft->core.n1);
}

/* The convolution with a chirp, by transforms of the core's length. Loads have multiplied the line with the chirp
 * before; stores multiply it once more. */
static void run_chirped(line_job *job) {
  const ts_fft_rows line = job->ends.line;
  run_core(job);
  job->ends.line = ts_fft_exchanged(&line);
  job->ends.by = &job->fft->spectrum;
  run_core(job);
  job->ends.line = line;
}

/* ---- stores ---- */

#define DEFINE_SCALE(NAME, T)                                                            \
  static void scale_##NAME(const void *from, int64_t count, double factor, void *to) {   \
    for (int64_t i = 0; i < count; i++) ((T *)to)[i] = ((const T *)from)[i] * (T)factor; \
  }
DEFINE_SCALE(f32, float)
DEFINE_SCALE(f64, double)

/* Real numbers that no pairs made: the line's real parts. */
static void scale_range(const line_job *job, int64_t from, int64_t to, const ts_fft_scratch *scratch) {
  const ts_fft *fft = job->fft;
  const void *re = ts_fft_at(job->line->line.re, from, fft->size);
  char *out = ts_fft_at(job->line->out, from, fft->size);
  if (fft->chirp.re) chirp_range(job, from, to, scratch);
  if (fft->size == 4)
    scale_f32(re, to - from, fft->factors[0], out);
  else
    scale_f64(re, to - from, fft->factors[0], out);
}

static void join_range(const line_job *job, int64_t from, int64_t to, const ts_fft_scratch *scratch) {
  const ts_fft *fft = job->fft;
  const ts_fft_rows part = ts_fft_rows_at(&job->line->line, from, fft->size);
  if (fft->chirp.re) chirp_range(job, from, to, scratch);
  fft->vector->join(&part, 1, to - from, fft->factors, ts_fft_at(job->line->out, 2 * from, fft->size), 0);
}

static void unfold_range(const line_job *job, int64_t from, int64_t to, const ts_fft_scratch *scratch) {
  (void)scratch;
  const ts_fft *fft = job->fft;
  const ts_fft_half half = {.z = job->line->line, .w = fft->half, .half = fft->points};
  const ts_fft_joined joined = {job->line->out, fft->factors, fft->request.kind != TS_FFT_REAL};
  fft->vector->unfold(&half, &joined, from, to);
}

/* ---- the line ---- */

static bool unfolds(const ts_fft *fft) { return fft->pairs && fft->request.kind != TS_FFT_REAL_INVERSE; }

/* Whether the first blocks read the operand: it has all numbers, by two. */
static bool reads_operand(const ts_fft *fft) {
  const ts_fft_request *r = &fft->request;
  if (fft->chirp.re || r->kind == TS_FFT_REAL_INVERSE || (r->real && !fft->pairs)) return false;
  return r->in_points >= r->n && fft->points * fft->size >= FUSED_BYTES;
}

/* Whether the last blocks write the result: all numbers of the transform are numbers of the result, by two. */
static bool writes_result(const ts_fft *fft) {
  if (fft->chirp.re || unfolds(fft) || fft->points * fft->size < FUSED_BYTES) return false;
  return fft->request.kind == TS_FFT_REAL_INVERSE ? fft->pairs : fft->out_points == fft->points;
}

static void store(line_job *job) {
  const ts_fft *fft = job->fft;
  if (unfolds(fft)) {
    if (fft->chirp.re) run_ranges(job, chirp_range, fft->points);
    run_ranges(job, unfold_range, fft->points / 2 + 1);
  } else if (fft->request.kind == TS_FFT_REAL_INVERSE && !fft->pairs) {
    run_ranges(job, scale_range, fft->points);
  } else {
    run_ranges(job, join_range, ts_fft_min(fft->out_points, fft->points));
  }
}

void ts_fft_line_run(const ts_fft *fft, const ts_fft_line *line) {
  const bool reads = reads_operand(fft), writes = writes_result(fft);
  line_job job = {.fft = fft, .line = line};
  job.ends = (ts_fft_ends){.line = ts_fft_swaps(fft) ? ts_fft_exchanged(&line->line) : line->line,
                           .in = reads ? line->in : NULL,
                           .out = writes ? line->out : NULL,
                           .swaps = ts_fft_swaps(fft)};
  if (fft->pairs && fft->request.kind == TS_FFT_REAL_INVERSE) run_ranges(&job, other_range, fft->points + 1);
  if (!reads) run_ranges(&job, load_range, fft->core.n);
  if (fft->chirp.re)
    run_chirped(&job);
  else
    run_core(&job);
  if (!writes) store(&job);
}
