/* Complex transforms of lines whose length has small factors only. A long line is n1 rows of n2 elements: transforms of
 * its columns, twiddles and a transposition, and transforms of columns again. So every step works on whole vectors, and
 * on blocks of columns that stay in the first caches. */
#include "base/cancel.h"
#include "kernel/fft/fft.h"

/* ---- workspace ---- */

/* The rows of a block, as `transpose_rows` reads whole tiles. Lanes have all elements of
 * an operand or result as well. */
static int64_t block_rows(const ts_fft *fft) {
  const ts_fft_core *core = &fft->core;
  int64_t rows =
      core->n1 ? ts_fft_max(core->n1, core->n2) : ts_fft_max(ts_fft_max(core->n, fft->request.n), fft->points + 1);
  return (rows + fft->columns - 1) / fft->columns * fft->columns;
}

int64_t ts_fft_block_elements(const ts_fft *fft) { return 4 * block_rows(fft) * fft->columns; }

int64_t ts_fft_scratch_elements(const ts_fft *fft) {
  return ts_fft_block_elements(fft) + 2 * fft->core.n2 * fft->core.turned_row;
}

ts_fft_scratch ts_fft_scratch_at(const ts_fft *fft, char *memory) {
  const int64_t block = 2 * block_rows(fft) * fft->columns, row = 2 * fft->columns;
  ts_fft_scratch s = {.cancel = NULL};
  for (int i = 0; i < 2; i++) {
    s.blocks[i].re = ts_fft_at(memory, i * block, fft->size);
    s.blocks[i].im = ts_fft_at(s.blocks[i].re, fft->columns, fft->size);
    s.blocks[i].row = row;
  }
  s.turned.re = ts_fft_at(memory, 2 * block, fft->size);
  s.turned.im = ts_fft_at(s.turned.re, fft->core.n2 * fft->core.turned_row, fft->size);
  s.turned.row = fft->core.turned_row;
  return s;
}

/* ---- memory ahead ---- */

int64_t ts_fft_core_steps(const ts_fft *fft) {
  const ts_fft_core *core = &fft->core;
  const int64_t width = fft->columns;
  if (ts_fft_by_lanes(core)) return core->first.passes;
  return (core->n2 + width - 1) / width * core->first.passes + (core->n1 + width - 1) / width * core->second.passes;
}

/* GCC 12 drops calls of a function that does nothing but ask. */
static void ask_for_some(const ts_fft_scratch *scratch) {
  ts_fft_ahead *a = scratch->ahead;
  if (!a) return;
  const int64_t results = ts_fft_min(a->share, a->result_end - a->result);
  const int64_t operands = ts_fft_min(a->share - results, a->operand_end - a->operand);
  for (int64_t i = 0; i < results; i += 64) __builtin_prefetch(a->result + i, 1, 2);
  for (int64_t i = 0; i < operands; i += 64) __builtin_prefetch(a->operand + i, 0, 2);
  a->result += results;
  a->operand += operands;
}

/* ---- transforms ---- */

static void run_pass(const ts_fft *fft, const ts_fft_pass *pass, const ts_fft_rows *in, const ts_fft_rows *out,
                     const ts_fft_scratch *scratch) {
  ask_for_some(scratch);
  fft->vector->pass(pass, in, out);
}

/* All passes, the last one to `last`. */
static void run_engine(const ts_fft *fft, const ts_fft_engine *engine, const ts_fft_rows *in, const ts_fft_rows *last,
                       const ts_fft_scratch *scratch) {
  for (int i = 0; i < engine->passes; i++) {
    const ts_fft_rows *out = i + 1 < engine->passes ? &scratch->blocks[i % 2] : last;
    run_pass(fft, &engine->pass[i], in, out, scratch);
    in = out;
  }
}

const ts_fft_rows *ts_fft_columns(const ts_fft *fft, const ts_fft_engine *engine, const ts_fft_rows *in,
                                  const ts_fft_scratch *scratch) {
  const ts_fft_rows *out = &scratch->blocks[(engine->passes + 1) % 2];
  run_engine(fft, engine, in, out, scratch);
  return out;
}

/* A block of columns begins at most so far that it ends with the last column: the columns of two blocks are computed
 * twice, to the same bits. */
static int64_t block_column(int64_t columns, int64_t block, int width) {
  int64_t column = block * width;
  return column + width <= columns ? column : columns - width;
}

/* The columns that the first passes read: those of the line, or a block that they do not write to. */
static ts_fft_rows columns_in(const ts_fft *fft, const ts_fft_scratch *scratch, const ts_fft_ends *ends,
                              int64_t column) {
  const ts_fft_core *core = &fft->core;
  ts_fft_rows in = ts_fft_rows_at(&ends->line, column, fft->size), block = scratch->blocks[1];
  in.row = core->n2;
  if (ends->in) {
    fft->vector->split((const char *)ends->in + 2 * column * fft->size, core->n2, core->n1, fft->columns, &block);
    return ends->swaps ? ts_fft_exchanged(&block) : block;
  }
  if (!ends->by) return in;
  ts_fft_rows by = ts_fft_rows_at(ends->by, column, fft->size);
  by.row = core->n2;
  in = ts_fft_exchanged(&in);
  fft->vector->multiply(&in, &by, core->n1, fft->columns, &block);
  return ts_fft_exchanged(&block);
}

static void first_block(const ts_fft *fft, const ts_fft_scratch *scratch, const ts_fft_ends *ends, int64_t block) {
  const ts_fft_core *core = &fft->core;
  const int64_t column = block_column(core->n2, block, fft->columns), row = core->turned_row;
  ts_fft_rows out = ts_fft_rows_at(&scratch->turned, column * row, fft->size);
  ts_fft_rows twiddles = ts_fft_rows_at(&core->twiddles, 2 * block * fft->columns * block_rows(fft), fft->size);
  const ts_fft_rows in = columns_in(fft, scratch, ends, column);
  const ts_fft_rows *done = ts_fft_columns(fft, &core->first, &in, scratch);
  fft->vector->transpose_rows(done, &twiddles, core->n1, &out);
}

static void second_block(const ts_fft *fft, const ts_fft_scratch *scratch, const ts_fft_ends *ends, int64_t block) {
  const ts_fft_core *core = &fft->core;
  const int64_t column = block_column(core->n1, block, fft->columns);
  ts_fft_rows in = ts_fft_rows_at(&scratch->turned, column, fft->size),
              out = ts_fft_rows_at(&ends->line, column, fft->size);
  out.row = core->n1;
  if (!ends->out) {
    run_engine(fft, &core->second, &in, &out, scratch);
    return;
  }
  out = *ts_fft_columns(fft, &core->second, &in, scratch);
  if (ends->swaps) out = ts_fft_exchanged(&out);
  fft->vector->join(&out, core->n2, fft->columns, fft->factors, (char *)ends->out + 2 * column * fft->size, core->n1);
}

void ts_fft_first_blocks(const ts_fft *fft, const ts_fft_scratch *scratch, const ts_fft_ends *ends, int64_t from,
                         int64_t to) {
  for (int64_t block = from; block < to && !ts_cancelled(scratch->cancel); block++)
    first_block(fft, scratch, ends, block);
}

void ts_fft_second_blocks(const ts_fft *fft, const ts_fft_scratch *scratch, const ts_fft_ends *ends, int64_t from,
                          int64_t to) {
  for (int64_t block = from; block < to && !ts_cancelled(scratch->cancel); block++)
    second_block(fft, scratch, ends, block);
}

void ts_fft_core_run(const ts_fft *fft, const ts_fft_scratch *scratch, const ts_fft_rows *line) {
  const ts_fft_ends ends = {.line = *line};
  const int64_t width = fft->columns;
  ts_fft_first_blocks(fft, scratch, &ends, 0, (fft->core.n2 + width - 1) / width);
  ts_fft_second_blocks(fft, scratch, &ends, 0, (fft->core.n1 + width - 1) / width);
}
