/* Launches over a part of their points. The kernel is the same: it has no sizes but how many members a group has. */
#include "jit/lower/lower.h"

#include <string.h>

/* Launches with more argument words are rare and cannot be run in parts. */
#define MAX_WORDS 384

/* ---- which launches can run in parts ---- */

/* The members of a group lie one behind the other, inside of the dim that counts groups. */
static int32_t dim_from_inside(const ts_kernel_desc *d, int32_t k) {
  if (d->kind == TS_KERNEL_INTERLEAVED && k < 2) k = 1 - k;
  return d->rank - 1 - k;
}

/* Of an input, or behind the inputs an output. */
static bool is_in_order(const ts_launch *launch, int32_t operand) {
  const ts_kernel_desc *d = &launch->desc;
  const int64_t *stride = launch->args + ts_kernel_arg_operand(d, operand) + 1;
  const ts_kernel_operand *of =
      operand < d->input_count ? &d->inputs[operand] : &d->outputs[operand - d->input_count].operand;
  int64_t expected = (int64_t)ts_dtype_size(of->dtype);
  for (int32_t k = 0; k < d->rank; k++) {
    const int32_t l = dim_from_inside(d, k);
    if (launch->args[l] == 1) continue;
    if (stride[l] != expected) return false;
    expected *= launch->args[l];
  }
  return true;
}

static bool is_gathered(const ts_kernel_desc *d, int32_t input) {
  for (int32_t i = 0; i < d->node_count; i++)
    if (d->nodes[i].kind == TS_NODE_GATHER && d->nodes[i].slot == input) return true;
  return false;
}

static bool indexes_with(const ts_launch_pointer *p, uint32_t operand) {
  for (int32_t i = 0; i < p->term_count; i++)
    if (p->terms[i].operand == operand) return true;
  return false;
}

/* Parts of an INTERLEAVED are ranges of groups. */
static bool has_parts(const ts_kernel_desc *d) {
  const bool groups = d->kind == TS_KERNEL_INTERLEAVED && d->rank == 2;
  const bool rows = d->kind == TS_KERNEL_ROW && !ts_kernel_has_pieces(d);
  return (d->kind == TS_KERNEL_MAP || rows || groups) && ts_kernel_arg_count(d) <= MAX_WORDS;
}

bool ts_launch_follows(const ts_launch *launch, uint32_t operand) {
  const ts_kernel_desc *d = &launch->desc;
  bool found = false;
  if (!has_parts(d)) return false;
  for (int32_t i = 0; i < launch->pointer_count; i++) {
    const ts_launch_pointer *p = &launch->pointers[i];
    if (indexes_with(p, operand)) return false;
    if (p->role != TS_ROLE_OPERAND || p->index != operand) continue;
    if (p->offset != 0 || p->term_count > 0 || is_gathered(d, i) || !is_in_order(launch, i)) return false;
    found = true;
  }
  return found;
}

bool ts_launch_fills(const ts_launch *launch, uint32_t result) {
  const ts_kernel_desc *d = &launch->desc;
  int32_t found = 0;
  if (!has_parts(d)) return false;
  for (int32_t i = 0; i < launch->pointer_count; i++) {
    const ts_launch_pointer *p = &launch->pointers[i];
    if (p->role != TS_ROLE_RESULT || p->index != result) continue;
    if (p->offset != 0 || p->term_count > 0 || !is_in_order(launch, i)) return false;
    found++;
  }
  return found == 1;
}

bool ts_launch_has_pieces(const ts_launch *launch) {
  const ts_kernel_desc *d = &launch->desc;
  bool points = (d->kind == TS_KERNEL_MAP && d->rank > 1) || (d->kind == TS_KERNEL_TILE && d->joined == 0);
  return points && ts_kernel_arg_count(d) <= MAX_WORDS;
}

/* ---- runs of a part ---- */

typedef struct runner {
  const ts_launch *launch;
  ts_kernel_fn entry;
  const int64_t *words;
  void *scratch;
} runner;

/* Runs units [begin, end), in each only the inner points [first, first + count). */
static void run_inner(const runner *r, int64_t begin, int64_t end, int64_t first, int64_t count) {
  const ts_kernel_desc *d = &r->launch->desc;
  int32_t last = d->rank - 1, operands = d->input_count + d->output_count + d->index_count;
  int64_t words[MAX_WORDS];
  memcpy(words, r->words, (size_t)ts_kernel_arg_count(d) * sizeof(*words));
  words[last] = count;
  for (int32_t i = 0; i < operands; i++) {
    int64_t *operand = words + ts_kernel_arg_operand(d, i);
    operand[0] += first * operand[1 + last];
  }
  r->entry(words, begin, end, r->scratch);
}

/* Runs points [first, first + count) in order. */
static void run_points(const runner *r, int64_t first, int64_t count) {
  int32_t rank = r->launch->desc.rank;
  if (rank == 1 && r->launch->desc.kind == TS_KERNEL_MAP) {
    r->entry(r->words, first, first + count, r->scratch);
    return;
  }
  int64_t inner = r->words[rank - 1], end = first + count;
  if (first % inner) {
    int64_t rest = inner - first % inner, head = rest < count ? rest : count;
    run_inner(r, first / inner, first / inner + 1, first % inner, head);
    first += head;
  }
  if (end / inner > first / inner) r->entry(r->words, first / inner, end / inner, r->scratch);
  if (end > first && end % inner) run_inner(r, end / inner, end / inner + 1, 0, end % inner);
}

/* Runs groups [first, first + count). */
static void run_groups(const runner *r, int64_t first, int64_t count) {
  run_inner(r, 0, (count + TS_GROUPS_BLOCK - 1) / TS_GROUPS_BLOCK, first, count);
}

void ts_launch_run_piece(const ts_launch *launch, ts_kernel_fn entry, const int64_t *words,
                         const ts_launch_piece *piece, void *scratch) {
  runner r = {launch, entry, words, scratch};
  int64_t left = words[launch->desc.rank - 1] - piece->first;
  run_inner(&r, piece->begin, piece->end, piece->first, piece->count < left ? piece->count : left);
}

void ts_launch_run_part(const ts_launch *launch, ts_kernel_fn entry, const int64_t *words, const ts_launch_part *part,
                        void *scratch) {
  runner r = {launch, entry, words, scratch};
  int32_t rank = launch->desc.rank;
  const int64_t members = launch->desc.members;
  if (launch->desc.kind == TS_KERNEL_INTERLEAVED) {
    run_groups(&r, part->row * part->pitch / members, part->rows * part->pitch / members);
  } else if (part->cols == part->pitch) {
    run_points(&r, part->row * part->pitch, part->rows * part->pitch);
  } else if (rank > 1 && words[rank - 1] == part->pitch) {
    run_inner(&r, part->row, part->row + part->rows, part->col, part->cols);
  } else {
    for (int64_t row = part->row; row < part->row + part->rows; row++)
      run_points(&r, row * part->pitch + part->col, part->cols);
  }
}
