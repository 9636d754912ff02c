/* Complex transforms of lines whose length has small factors only. A long line is n1 rows of n2 elements: transforms of
 * its columns, twiddles and a transposition, and transforms of columns again. So every step works on whole vectors, and
 * on blocks of columns that stay in the first caches. */
#include "base/cancel.h"
#include "kernel/fft.h"

static void *at(void *data, int64_t elements, int size) { return (char *)data + elements * size; }

static ts_fft_rows from_column(const ts_fft_rows *rows, int64_t column, int size) {
  return (ts_fft_rows){at(rows->re, column, size), at(rows->im, column, size), rows->row};
}

/* ---- workspace ---- */

/* The rows of a block, as `turn` reads and `turn_back` writes whole tiles. */
static int64_t block_rows(const ts_fft *fft) {
  const ts_fft_core *core = &fft->core;
  int64_t rows = core->n1 ? (core->n1 > core->n2 ? core->n1 : core->n2) : core->n;
  return (rows + fft->columns - 1) / fft->columns * fft->columns;
}

int64_t ts_fft_scratch_elements(const ts_fft *fft) {
  const ts_fft_core *core = &fft->core;
  return 4 * block_rows(fft) * fft->columns + 2 * core->n2 * core->turned_row;
}

ts_fft_scratch ts_fft_scratch_at(const ts_fft *fft, char *memory) {
  const int64_t block = 2 * block_rows(fft) * fft->columns, row = 2 * fft->columns;
  ts_fft_scratch s = {.cancel = NULL};
  for (int i = 0; i < 2; i++) {
    s.blocks[i].re = at(memory, i * block, fft->size);
    s.blocks[i].im = at(s.blocks[i].re, fft->columns, fft->size);
    s.blocks[i].row = row;
  }
  s.turned.re = at(memory, 2 * block, fft->size);
  s.turned.im = at(s.turned.re, fft->core.n2 * fft->core.turned_row, fft->size);
  s.turned.row = fft->core.turned_row;
  return s;
}

/* ---- transforms ---- */

/* All passes but the last; returns its input. */
static const ts_fft_rows *first_passes(const ts_fft *fft, const ts_fft_engine *engine, const ts_fft_rows *in,
                                       const ts_fft_scratch *scratch) {
  for (int i = 0; i + 1 < engine->passes; i++) {
    const ts_fft_rows *out = &scratch->blocks[i % 2];
    fft->vector->pass(&engine->pass[i], in, out);
    in = out;
  }
  return in;
}

static void last_pass(const ts_fft *fft, const ts_fft_engine *engine, const ts_fft_rows *in, const ts_fft_rows *out) {
  fft->vector->pass(&engine->pass[engine->passes - 1], in, out);
}

const ts_fft_rows *ts_fft_columns(const ts_fft *fft, const ts_fft_engine *engine, const ts_fft_rows *in,
                                  const ts_fft_scratch *scratch) {
  const ts_fft_rows *out = &scratch->blocks[(engine->passes + 1) % 2];
  last_pass(fft, engine, first_passes(fft, engine, in, scratch), out);
  return out;
}

/* A block of columns begins at most so far that it ends with the last column: the columns of two blocks are computed
 * twice, to the same bits. */
static int64_t block_column(int64_t columns, int64_t block, int width) {
  int64_t column = block * width;
  return column + width <= columns ? column : columns - width;
}

static void first_block(const ts_fft *fft, const ts_fft_scratch *scratch, const ts_fft_rows *line, int64_t block) {
  const ts_fft_core *core = &fft->core;
  const int64_t column = block_column(core->n2, block, fft->columns), row = core->turned_row;
  ts_fft_rows in = from_column(line, column, fft->size), out = from_column(&scratch->turned, column * row, fft->size);
  ts_fft_rows twiddles = from_column(&core->twiddles, 2 * block * fft->columns * block_rows(fft), fft->size);
  in.row = core->n2;
  const ts_fft_rows *done = ts_fft_columns(fft, &core->first, &in, scratch);
  fft->vector->turn(done, &twiddles, core->n1, &out);
}

static void second_block(const ts_fft *fft, const ts_fft_scratch *scratch, const ts_fft_rows *line, int64_t block) {
  const ts_fft_core *core = &fft->core;
  const int64_t column = block_column(core->n1, block, fft->columns);
  ts_fft_rows in = from_column(&scratch->turned, column, fft->size), out = from_column(line, column, fft->size);
  out.row = core->n1;
  last_pass(fft, &core->second, first_passes(fft, &core->second, &in, scratch), &out);
}

static void transform_line(const ts_fft *fft, const ts_fft_scratch *scratch, const ts_fft_rows *line) {
  const ts_fft_core *core = &fft->core;
  for (int64_t block = 0; block * fft->columns < core->n2 && !ts_cancelled(scratch->cancel); block++)
    first_block(fft, scratch, line, block);
  for (int64_t block = 0; block * fft->columns < core->n1 && !ts_cancelled(scratch->cancel); block++)
    second_block(fft, scratch, line, block);
}

/* The input is in the second block, to which the first pass does not write. */
static void transform_lanes(const ts_fft *fft, const ts_fft_scratch *scratch, const ts_fft_rows *lines) {
  const ts_fft_rows *in = &scratch->blocks[1];
  fft->vector->turn_back(lines, fft->core.n, in);
  fft->vector->turn(ts_fft_columns(fft, &fft->core.first, in, scratch), NULL, fft->core.n, lines);
}

void ts_fft_core_run(const ts_fft *fft, const ts_fft_scratch *scratch, const ts_fft_rows *lines) {
  if (fft->core.n == 1) return;
  if (ts_fft_by_lanes(&fft->core))
    transform_lanes(fft, scratch, lines);
  else
    transform_line(fft, scratch, lines);
}
