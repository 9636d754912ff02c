/* Runs of Fourier transforms. A line is loaded as real and imaginary parts apart, transformed, and stored. An inverse
 * transform is a forward one with the parts exchanged, before and after. A real line of an even length is half as many
 * complex numbers, whose transform is unfolded: no line's value depends on another line. */
#include "kernel/fft/fft.h"

#include "base/cancel.h"

#include <string.h>

#define SLACK 16
#define TASK_NS 20000

/* See moves_of. */
typedef struct fft_moves {
  int bytes; /* of an element */
  int64_t tile, rows;
  const ts_fft_vector *vector; /* NULL: none of tiles */
} fft_moves;

typedef struct fft_job {
  const ts_fft *fft;
  const ts_fft_run *run;
  int in_parts, out_parts; /* numbers of an element */
  fft_moves in_moves, out_moves;
  int64_t lines;            /* all of them */
  int64_t bundle;           /* neighbouring lines of another axis that are moved at once; 1 of the last axis */
  int64_t groups, per_task; /* of lines, bundles or blocks of columns */
} fft_job;

/* The workspace of one thread. */
typedef struct fft_lines {
  ts_fft_rows group, other; /* lines, and one more */
  char *interleaved;        /* of another axis: the contiguous lines of a bundle, from the current line on */
  ts_fft_scratch scratch;
} fft_lines;

static fft_lines lines_at(const ts_fft *fft, char *memory) {
  const int64_t part = fft->group * fft->line;
  fft_lines w;
  memory = ts_fft_aligned(memory);
  if (fft->direct) return (fft_lines){.scratch = ts_fft_scratch_at(fft, memory)};
  w.group = (ts_fft_rows){ts_fft_at(memory, SLACK, fft->size), ts_fft_at(memory, part + SLACK, fft->size), fft->line};
  memory = ts_fft_at(memory, 2 * part, fft->size);
  w.other =
      (ts_fft_rows){ts_fft_at(memory, SLACK, fft->size), ts_fft_at(memory, fft->line + SLACK, fft->size), fft->line};
  w.interleaved = ts_fft_at(memory, 2 * fft->line, fft->size);
  w.scratch = ts_fft_scratch_at(fft, ts_fft_at(memory, (2 + 2 * fft->bundle) * fft->line, fft->size));
  return w;
}

/* ---- lines of another axis ---- */

#define DEFINE_MOVE(BITS, T)                                                                                  \
  static void move##BITS(const void *from, int64_t step, void *to, int64_t to_step, int64_t count) {          \
    for (int64_t i = 0; i < count; i++) memcpy((T *)to + i * to_step, (const T *)from + i * step, sizeof(T)); \
  }
typedef struct two_words {
  uint64_t word[2];
} two_words;
DEFINE_MOVE(32, uint32_t)
DEFINE_MOVE(64, uint64_t)
DEFINE_MOVE(128, two_words)

static void move(int bytes, const void *from, int64_t step, void *to, int64_t to_step, int64_t count) {
  if (bytes == 4)
    move32(from, step, to, to_step, count);
  else if (bytes == 8)
    move64(from, step, to, to_step, count);
  else
    move128(from, step, to, to_step, count);
}

/* The first of a line's elements, each of `bytes`, of `points` along the axis. */
static char *line_start(const fft_job *job, const void *data, int64_t line, int64_t points, int bytes) {
  const int64_t inner = job->fft->request.inner;
  return (char *)(uintptr_t)data + (line / inner * points * inner + line % inner) * bytes;
}

/* Points of the operand that a transform reads. */
static int64_t read_points(const ts_fft *fft) {
  const ts_fft_request *r = &fft->request;
  return ts_fft_min(r->kind == TS_FFT_REAL_INVERSE ? r->n / 2 + 1 : r->n, r->in_points);
}

/* How elements of neighbouring lines move: those of 4 or 8 bytes as numbers, which nothing is computed with, by tiles.
 * Else by so many rows at once that their cache lines stay in the first cache until all lines have taken part, even if
 * rows are a power of two apart. */
static fft_moves moves_of(const ts_fft *fft, int parts) {
  const int bytes = parts * fft->size;
  const int64_t rows = 4096 / (bytes * ts_fft_max(fft->request.inner, 1));
  return (fft_moves){.bytes = bytes,
                     .tile = 64 / bytes,
                     .rows = rows < 8 ? 8 : ts_fft_min(rows, 64),
                     .vector = bytes > 8 ? NULL : ts_fft_vector_of(bytes == 4 ? TS_F32 : TS_F64)};
}

static bool by_tiles(const fft_moves *moves, int64_t lines) { return moves->vector && lines * moves->bytes >= 16; }

/* Neighbouring lines to contiguous ones, each `step` bytes after the one before, and back. */
static void move_in(const fft_job *job, int64_t line, int64_t count, char *to, int64_t step) {
  const ts_fft *fft = job->fft;
  const fft_moves *moves = &job->in_moves;
  const int bytes = moves->bytes;
  const int64_t points = read_points(fft), inner = fft->request.inner, rows = moves->rows;
  const char *from = line_start(job, job->run->in, line, fft->request.in_points, bytes);
  int64_t row = 0;
  for (; by_tiles(moves, count) && row + moves->tile <= points; row += moves->tile)
    moves->vector->load_lines(from + row * inner * bytes, inner, count, to + row * bytes, step / bytes);
  for (; row < points; row += rows)
    for (int64_t i = 0; i < count; i++)
      move(bytes, from + (row * inner + i) * bytes, inner, to + i * step + row * bytes, 1,
           ts_fft_min(rows, points - row));
}

static void move_out(const fft_job *job, int64_t line, int64_t count, const char *from, int64_t step) {
  const ts_fft *fft = job->fft;
  const fft_moves *moves = &job->out_moves;
  const int bytes = moves->bytes;
  const int64_t points = fft->out_points, inner = fft->request.inner, rows = moves->rows;
  char *to = line_start(job, job->run->out, line, points, bytes);
  int64_t first = 0;
  for (; by_tiles(moves, count) && first + moves->tile <= count; first += moves->tile)
    moves->vector->load_lines(from + first * step, step / bytes, points, to + first * bytes, inner);
  for (int64_t row = 0; first < count && row < points; row += rows)
    for (int64_t i = first; i < count; i++)
      move(bytes, from + i * step + row * bytes, 1, to + (row * inner + i) * bytes, inner,
           ts_fft_min(rows, points - row));
}

/* ---- memory ahead ---- */

/* The results of this group, since stores to them would wait, and the next operands. */
static void look_ahead(const fft_job *job, int64_t line, ts_fft_ahead *out) {
  const ts_fft *fft = job->fft;
  const int64_t next = line + fft->group, bytes = (job->lines - next) * fft->in_bytes;
  out->result = (const char *)job->run->out + line * fft->out_bytes;
  out->result_end = out->result + ts_fft_min(fft->out_ahead, (job->lines - line) * fft->out_bytes);
  out->operand = (const char *)job->run->in + next * fft->in_bytes;
  out->operand_end = out->operand + (bytes > 0 ? ts_fft_min(fft->in_ahead, bytes) : 0);
}

/* A line of another axis is in the workspace, and its result is put there. */
static void run_line(const fft_job *job, int64_t line, const fft_lines *w) {
  const ts_fft *fft = job->fft;
  const bool moved = fft->request.inner > 1;
  const ts_fft_line one = {
      .in = moved ? w->interleaved
                  : line_start(job, job->run->in, line, fft->request.in_points, job->in_parts * fft->size),
      .out = moved ? w->interleaved : line_start(job, job->run->out, line, fft->out_points, job->out_parts * fft->size),
      .line = w->group,
      .other = w->other,
      .scratch = &w->scratch,
      .parallel = fft->shared ? job->run->parallel : NULL,
      .workers = job->run->workspace};
  if (w->scratch.ahead) look_ahead(job, line, w->scratch.ahead);
  ts_fft_line_run(fft, &one);
}

static void run_bundle(const fft_job *job, int64_t bundle, const fft_lines *w) {
  const ts_fft *fft = job->fft;
  const int64_t inner = fft->request.inner, bundles = (inner + job->bundle - 1) / job->bundle;
  const int64_t first = bundle % bundles * job->bundle, line = bundle / bundles * inner + first;
  const int64_t count = ts_fft_min(job->bundle, inner - first), step = 2 * fft->line * fft->size;
  fft_lines one = *w;
  move_in(job, line, count, w->interleaved, step);
  for (int64_t i = 0; i < count && !ts_cancelled(job->run->cancel); i++) {
    one.interleaved = w->interleaved + i * step;
    run_line(job, line + i, &one);
  }
  move_out(job, line, count, w->interleaved, step);
}

/* ---- lanes ---- */

/* Of the lines from `first` on, those that are neighbours. */
static int64_t neighbours(const fft_job *job, int64_t first, int64_t count) {
  const int64_t inner = job->fft->request.inner;
  return ts_fft_min(count, inner - first % inner);
}

static void gather(const fft_job *job, int64_t first, int64_t count, char *to, int64_t numbers) {
  const ts_fft_request *r = &job->fft->request;
  const int size = job->fft->size;
  const int64_t step = numbers * size, missing = job->fft->columns - count;
  for (int64_t some; count > 0; first += some, count -= some, to += some * step) {
    some = r->inner > 1 ? neighbours(job, first, count) : 1;
    if (r->inner > 1)
      move_in(job, first, some, to, step);
    else
      memcpy(to, line_start(job, job->run->in, first, r->in_points, job->in_parts * size), (size_t)step);
  }
  memset(to, 0, (size_t)(missing * step));
}

static void spread(const fft_job *job, int64_t first, int64_t count, const char *from, int64_t numbers) {
  const int size = job->fft->size;
  const int64_t step = numbers * size;
  if (job->fft->request.inner == 1) {
    memcpy(line_start(job, job->run->out, first, job->fft->out_points, job->out_parts * size), from,
           (size_t)(count * step));
    return;
  }
  for (int64_t some; count > 0; first += some, count -= some, from += some * step) {
    some = neighbours(job, first, count);
    move_out(job, first, some, from, step);
  }
}

/* Lines that are not contiguous, and groups of too few lines, take a copy. */
static void run_lanes(const fft_job *job, int64_t group, const fft_lines *w) {
  const ts_fft *fft = job->fft;
  const ts_fft_request *r = &fft->request;
  const int64_t first = group * fft->group, count = ts_fft_min(fft->group, job->lines - first);
  const bool direct = r->inner == 1 && count == fft->columns;
  char *copy = w->group.re;
  ts_fft_lanes lanes = {.in_numbers = read_points(fft) * job->in_parts,
                        .in_line = r->in_points * job->in_parts,
                        .out_numbers = fft->out_points * job->out_parts};
  lanes.out_line = lanes.out_numbers;
  lanes.in = line_start(job, job->run->in, first, r->in_points, job->in_parts * fft->size);
  lanes.out = copy;
  if (!direct) {
    gather(job, first, count, copy, lanes.in_numbers);
    lanes.in = copy;
    lanes.in_line = lanes.in_numbers;
  }
  if (direct) lanes.out = line_start(job, job->run->out, first, fft->out_points, job->out_parts * fft->size);
  if (w->scratch.ahead) look_ahead(job, first, w->scratch.ahead);
  ts_fft_lanes_run(fft, &lanes, &w->scratch);
  if (!direct) spread(job, first, count, copy, lanes.out_numbers);
}

/* ---- columns where they are ---- */

static int64_t column_blocks(const ts_fft *fft) { return (fft->request.inner + fft->columns - 1) / fft->columns; }

static void run_columns(const fft_job *job, int64_t block, const fft_lines *w) {
  const ts_fft *fft = job->fft;
  const ts_fft_request *r = &fft->request;
  const int64_t blocks = column_blocks(fft), outer = block / blocks, column = block % blocks * fft->columns;
  const int64_t columns = ts_fft_min(fft->columns, r->inner - column), count = ts_fft_min(r->in_points, r->n);
  const double factor = r->kind == TS_FFT_INVERSE ? 1 / (double)r->n : 1, factors[2] = {factor, factor};
  ts_fft_rows in = w->scratch.blocks[1];
  fft->vector->split(ts_fft_at(job->run->in, outer * r->in_points * r->inner + column, 2 * fft->size), r->inner, count,
                     columns, &in);
  for (int64_t i = count; i < r->n; i++) memset(ts_fft_at(in.re, i * in.row, fft->size), 0, 128);
  if (ts_fft_swaps(fft)) in = ts_fft_exchanged(&in);
  ts_fft_rows out = *ts_fft_columns(fft, &fft->core.first, &in, &w->scratch);
  if (ts_fft_swaps(fft)) out = ts_fft_exchanged(&out);
  fft->vector->join(&out, r->n, columns, factors,
                    ts_fft_at(job->run->out, outer * r->n * r->inner + column, 2 * fft->size), r->inner);
}

/* ---- tasks ---- */

static void run_task(void *arg, int64_t task, int worker) {
  const fft_job *job = arg;
  const int64_t first = task * job->per_task, end = ts_fft_min(job->groups, first + job->per_task);
  fft_lines w = lines_at(job->fft, job->run->workspace + worker * job->fft->thread_bytes);
  ts_fft_ahead ahead = {.share = job->fft->share};
  w.scratch.cancel = job->run->cancel;
  if (ahead.share > 0) w.scratch.ahead = &ahead;
  for (int64_t i = first; i < end && !ts_cancelled(job->run->cancel); i++) {
    if (job->fft->direct)
      run_columns(job, i, &w);
    else if (ts_fft_by_lanes(&job->fft->core))
      run_lanes(job, i, &w);
    else if (job->fft->request.inner > 1)
      run_bundle(job, i, &w);
    else
      run_line(job, i, &w);
  }
}

/* All threads take part in each line. */
static void run_shared(const fft_job *job) {
  const ts_fft *fft = job->fft;
  fft_lines w = lines_at(fft, job->run->shared);
  w.scratch.cancel = job->run->cancel;
  for (int64_t line = 0; line < job->lines && !ts_cancelled(job->run->cancel); line++) run_line(job, line, &w);
}

/* As many lines in a bundle as leave one for each thread. */
static int64_t bundle_of(const ts_fft *fft, const ts_parallel *parallel) {
  const ts_fft_request *r = &fft->request;
  const int64_t threads = parallel->width > 1 ? parallel->width : 1, parts = (threads + r->outer - 1) / r->outer;
  return ts_fft_min(fft->bundle, (r->inner + parts - 1) / parts);
}

static int64_t groups_of(const fft_job *job) {
  const ts_fft *fft = job->fft;
  const ts_fft_request *r = &fft->request;
  if (fft->direct) return r->outer * column_blocks(fft);
  if (ts_fft_by_lanes(&fft->core)) return (job->lines + fft->group - 1) / fft->group;
  return r->outer * ((r->inner + job->bundle - 1) / job->bundle);
}

ts_status ts_fft_execute(const ts_fft *fft, const ts_fft_run *run) {
  const ts_fft_request *r = &fft->request;
  fft_job job = {.fft = fft, .run = run, .lines = r->outer * r->inner};
  if (job.lines > 0) {
    job.in_parts = r->real || r->kind == TS_FFT_REAL ? 1 : 2;
    job.out_parts = r->kind == TS_FFT_REAL_INVERSE ? 1 : 2;
    job.in_moves = moves_of(fft, job.in_parts);
    job.out_moves = moves_of(fft, job.out_parts);
    if (fft->shared) {
      run_shared(&job);
      return ts_check_cancelled(run->cancel, "a Fourier transform");
    }
    job.bundle = bundle_of(fft, run->parallel);
    job.groups = groups_of(&job);
    const double ns = fft->group_ns * (double)job.bundle;
    job.per_task = ns > TASK_NS ? 1 : (int64_t)(TASK_NS / ns) + 1;
    ts_parallel_run(run->parallel, (job.groups + job.per_task - 1) / job.per_task, run_task, &job);
  }
  return ts_check_cancelled(run->cancel, "a Fourier transform");
}
