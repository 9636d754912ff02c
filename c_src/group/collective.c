#include "group/collective.h"

#include "base/cancel.h"
#include "ir/combiner.h"

#include <string.h>

/* Bytes of each member that a task moves, about. Less than twice that is not worth another thread. */
enum { PIECE_BYTES = 256 << 10 };

/* ---- parts of tensors ---- */

static int64_t product(const ts_shape *shape, int32_t first, int32_t last) {
  int64_t n = 1;
  for (int32_t d = first; d < last; d++) n *= shape->dims[d];
  return n;
}

/* The whole operand becomes the `index`-th of `parts` parts of a dim of the result. */
static ts_move join_part(const ts_shape *operand, int64_t size, int32_t dim, int32_t parts, int32_t index) {
  int64_t run = product(operand, dim, operand->rank) * size;
  return (ts_move){.run = run,
                   .count = {1, product(operand, 0, dim)},
                   .to = {0, run * parts},
                   .from = {0, run},
                   .to_at = run * index};
}

static ts_move cut_part(const ts_shape *operand, int64_t size, int32_t dim, int32_t parts, int32_t index) {
  int64_t run = product(operand, dim, operand->rank) * size / parts;
  return (ts_move){.run = run,
                   .count = {1, product(operand, 0, dim)},
                   .to = {0, run},
                   .from = {0, run * parts},
                   .from_at = run * index};
}

/* Part `own` of dim `split` becomes part `from` of dim `concat`. The dims behind the later one of both are contiguous;
 * the loops are over the dims before the earlier one, and over those between the two. */
static ts_move exchange_part(const ts_collective *c, const ts_shape *operand, int64_t size, int32_t own, int32_t from) {
  int32_t n = c->size, first = c->split < c->concat ? c->split : c->concat,
          last = c->split < c->concat ? c->concat : c->split;
  int64_t outer = product(operand, 0, first), all = product(operand, 0, operand->rank) * size,
          between = product(operand, first, last), run = product(operand, last, operand->rank) * size;
  if (outer == 0 || all == 0) return (ts_move){0};
  if (c->split == c->concat) {
    ts_move m = cut_part(operand, size, c->split, n, own);
    m.to[1] = m.from[1];
    m.to_at = m.run * from;
    return m;
  }
  if (c->split < c->concat) /* [outer, n x between/n, run] to [outer, between/n, n x run] */
    return (ts_move){.run = run,
                     .count = {outer, between / n},
                     .to = {all / outer, run * n},
                     .from = {all / outer, run},
                     .to_at = run * from,
                     .from_at = between / n * run * own};
  /* [outer, between, n x run/n] to [outer, n x between, run/n] */
  return (ts_move){.run = run / n,
                   .count = {outer, between},
                   .to = {all / outer, run / n},
                   .from = {all / outer, run},
                   .to_at = between * (run / n) * from,
                   .from_at = run / n * own};
}

ts_move ts_collective_move(const ts_collective *c, uint32_t operand, int32_t own, int32_t from) {
  const ts_shape *shape = &c->types[operand]->shape;
  int64_t size = (int64_t)ts_dtype_size(c->types[operand]->dtype);
  switch ((ts_ops_COLLECTIVE)c->code) {
  case TS_OP_ALL_GATHER: return join_part(shape, size, c->concat, c->size, from);
  case TS_OP_REDUCE_SCATTER: return cut_part(shape, size, c->split, c->size, own);
  case TS_OP_ALL_TO_ALL: return exchange_part(c, shape, size, own, from);
  case TS_OP_SHARDING_CONSTRAINT:
  case TS_OP_ALL_REDUCE_SUM:
  case TS_OP_ALL_REDUCE_PRODUCT:
  case TS_OP_ALL_REDUCE_MIN:
  case TS_OP_ALL_REDUCE_MAX:
  case TS_OP_ALL_REDUCE_AND:
  case TS_OP_ALL_REDUCE_OR:
  case TS_OP_COLLECTIVE_PERMUTE:
  case TS_OP_COLLECTIVE_BROADCAST:
  case TS_OP_BARRIER: break;
  }
  return c->senders[own] == from ? ts_move_whole(ts_shape_elements(shape) * size) : (ts_move){0};
}

void ts_move_copy(const ts_move *m, char *to, const char *from, int64_t first, int64_t last) {
  for (int64_t at = first; at < last;) {
    int64_t index = at / m->run, in = at % m->run, n = m->run - in < last - at ? m->run - in : last - at;
    int64_t i = index / m->count[1], j = index % m->count[1];
    memcpy(to + m->to_at + i * m->to[0] + j * m->to[1] + in, from + m->from_at + i * m->from[0] + j * m->from[1] + in,
           (size_t)n);
    at += n;
  }
}

/* Strides of a block: it has the runs one after the other. */
static void set_packed(const ts_move *m, int64_t *at, int64_t strides[2]) {
  *at = 0;
  strides[0] = m->run * m->count[1];
  strides[1] = m->run;
}

ts_move ts_move_pack(const ts_move *m) {
  ts_move packed = *m;
  set_packed(m, &packed.to_at, packed.to);
  return packed;
}

ts_move ts_move_unpack(const ts_move *m) {
  ts_move packed = *m;
  set_packed(m, &packed.from_at, packed.from);
  return packed;
}

/* ---- one piece of one result ---- */

typedef struct call {
  const ts_collective *c;
  const ts_collective_memory *memory;
  const _Atomic bool *cancel;
  int64_t pieces; /* how many pieces each operand is moved in */
} call;

static char *operand_at(const call *k, int32_t partition, uint32_t i) {
  return ts_collective_operand(k->memory, partition, i);
}

static char *result_at(const call *k, int32_t partition, uint32_t i) {
  return ts_collective_result(k->memory, partition, i);
}

/* The piece's share of `total`, in multiples of `unit`. */
static int64_t share(const call *k, int64_t total, int64_t piece, int64_t unit) {
  return total / unit * piece / k->pieces * unit;
}

static void copy_parts(const call *k, uint32_t i, int32_t partition, int64_t piece) {
  const uint16_t *group = ts_collective_group(k->c, partition);
  int32_t own = ts_collective_own(k->c, partition);
  for (int32_t m = 0; m < k->c->size; m++) {
    ts_move move = ts_collective_move(k->c, i, own, m);
    int64_t bytes = ts_move_bytes(&move);
    ts_move_copy(&move, result_at(k, partition, i), operand_at(k, group[m], i), share(k, bytes, piece, 1),
                 share(k, bytes, piece + 1, 1));
  }
}

static int64_t operand_bytes(const call *k, uint32_t i) {
  const ts_type *type = k->c->types[i];
  return ts_shape_elements(&type->shape) * (int64_t)ts_dtype_size(type->dtype);
}

/* A permutation gives zeros to a member that is no target. */
static void copy_piece(const call *k, uint32_t i, int32_t partition, int64_t piece) {
  bool copies_whole = k->c->code != TS_OP_ALL_GATHER && k->c->code != TS_OP_ALL_TO_ALL;
  if (!copies_whole || k->c->senders[ts_collective_own(k->c, partition)] != TS_NO_MEMBER) {
    copy_parts(k, i, partition, piece);
    return;
  }
  int64_t bytes = operand_bytes(k, i), first = share(k, bytes, piece, 1);
  memset(result_at(k, partition, i) + first, 0, (size_t)(share(k, bytes, piece + 1, 1) - first));
}

/* The bytes that whole elements of `bytes` bytes take where they are partial, or are not. */
static int64_t bytes_of(const ts_reduction *r, bool is_partial, int64_t bytes) {
  return is_partial ? bytes / (int64_t)ts_dtype_size(r->type) * ts_reduction_partial_size(r->code, r->type) : bytes;
}

/* The bytes [at, at + n) of the part, of one run of it, in terms. */
typedef struct segment {
  const ts_sum *sum;
  int64_t at, n;
} segment;

static int64_t elements_of(const segment *g) { return g->n / (int64_t)ts_dtype_size(g->sum->reduction.type); }

/* Combines some terms, at most TS_REDUCTION_TERMS. */
static void reduce_terms(const segment *g, int32_t first, int32_t count, bool to_partial, char *out) {
  const ts_sum *sum = g->sum;
  ts_reduction r = sum->reduction;
  const char *in[TS_REDUCTION_TERMS];
  int64_t whole = sum->part.from_at + g->at / sum->part.run * sum->part.from[1] + g->at % sum->part.run;
  for (int32_t m = 0; m < count; m++) {
    ts_term term = sum->term(sum->context, first + m);
    in[m] = term.at + (term.packed ? bytes_of(&r, r.from_partial, g->at - term.first) : whole);
  }
  r.count = count;
  r.to_partial = to_partial;
  ts_reduction_run(&r, in, out, elements_of(g));
}

/* Of the stack: partial sums of a segment of all blocks. */
enum { MANY_BYTES = 32 << 10, MANY_BLOCKS = (TS_MAX_PARTITIONS + TS_REDUCTION_TERMS - 1) / TS_REDUCTION_TERMS };

/* More terms: blocks of them first, which are subtrees of the tree, then the blocks' sums. */
static void reduce_many(const segment *g, char *out) {
  _Alignas(64) char scratch[MANY_BYTES];
  const char *in[MANY_BLOCKS];
  ts_reduction r = g->sum->reduction;
  int64_t size = bytes_of(&r, true, g->n);
  int32_t blocks = 0, all = r.count;
  for (int32_t first = 0; first < all; first += TS_REDUCTION_TERMS, blocks++) {
    int32_t count = all - first < TS_REDUCTION_TERMS ? all - first : TS_REDUCTION_TERMS;
    in[blocks] = scratch + blocks * size;
    reduce_terms(g, first, count, true, scratch + blocks * size);
  }
  r.count = blocks;
  r.from_partial = true;
  ts_reduction_run(&r, in, out, elements_of(g));
}

static void reduce_segment(const segment *g) {
  const ts_sum *sum = g->sum;
  const ts_reduction *r = &sum->reduction;
  int64_t at = bytes_of(r, r->to_partial, g->at - sum->out_first);
  char *first = sum->out(sum->context, 0) + at;
  if (r->count > TS_REDUCTION_TERMS)
    reduce_many(g, first);
  else
    reduce_terms(g, 0, r->count, r->to_partial, first);
  for (int32_t i = 1; i < sum->outs; i++) {
    char *out = sum->out(sum->context, i) + at;
    if (out != first) memcpy(out, first, (size_t)bytes_of(r, r->to_partial, g->n));
  }
}

/* Most bytes of a segment. */
static int64_t most_bytes(const ts_reduction *r) {
  int64_t size = (int64_t)ts_dtype_size(r->type), elements = ts_reduction_segment(r);
  if (r->count <= TS_REDUCTION_TERMS) return elements * size;
  int32_t blocks = (r->count + TS_REDUCTION_TERMS - 1) / TS_REDUCTION_TERMS;
  int64_t room = MANY_BYTES / blocks / ts_reduction_partial_size(r->code, r->type);
  return (room < elements ? room : elements) * size;
}

void ts_collective_reduce(const ts_sum *sum, const int64_t range[2], const _Atomic bool *cancel) {
  int64_t most = most_bytes(&sum->reduction);
  for (int64_t at = range[0]; at < range[1] && !ts_cancelled(cancel);) {
    int64_t n = sum->part.run - at % sum->part.run;
    n = n < range[1] - at ? n : range[1] - at;
    n = n < most ? n : most;
    reduce_segment(&(segment){sum, at, n});
    at += n;
  }
}

/* The members of a partition's group, as terms and results of a sum. */
typedef struct members {
  const call *k;
  uint32_t operand;
  int32_t partition;
  bool has_one; /* only this partition has the result */
} members;

static ts_term member_term(const void *context, int32_t m) {
  const members *g = context;
  return (ts_term){operand_at(g->k, ts_collective_group(g->k->c, g->partition)[m], g->operand), 0, false};
}

static char *member_out(const void *context, int32_t i) {
  const members *g = context;
  return result_at(g->k, g->has_one ? g->partition : ts_collective_group(g->k->c, g->partition)[i], g->operand);
}

/* The sum of a part of all members' operands. */
static ts_sum sum_of(const members *g, const ts_move *part) {
  const ts_collective *c = g->k->c;
  return (ts_sum){.reduction = {.code = c->code, .type = c->types[g->operand]->dtype, .count = c->size},
                  .part = *part,
                  .context = g,
                  .term = member_term,
                  .out = member_out,
                  .outs = g->has_one ? 1 : c->size};
}

static void reduce_piece(const call *k, const ts_sum *sum, int64_t piece) {
  int64_t bytes = ts_move_bytes(&sum->part), size = (int64_t)ts_dtype_size(sum->reduction.type);
  ts_collective_reduce(sum, (int64_t[]){share(k, bytes, piece, size), share(k, bytes, piece + 1, size)}, k->cancel);
}

/* The group of the partition has one result, which its first member computes for all. */
static void all_reduce_piece(const call *k, uint32_t i, int32_t partition, int64_t piece) {
  ts_move all = ts_move_whole(operand_bytes(k, i));
  members g = {k, i, partition, false};
  if (ts_collective_group(k->c, partition)[0] != partition || all.run == 0) return;
  ts_sum sum = sum_of(&g, &all);
  reduce_piece(k, &sum, piece);
}

static void reduce_scatter_piece(const call *k, uint32_t i, int32_t partition, int64_t piece) {
  ts_move part = ts_collective_move(k->c, i, ts_collective_own(k->c, partition), 0);
  members g = {k, i, partition, true};
  if (ts_move_bytes(&part) == 0) return;
  ts_sum sum = sum_of(&g, &part);
  reduce_piece(k, &sum, piece);
}

/* A result that the group has in one memory is the first member's to compute. */
static bool is_others(const call *k, uint32_t i, int32_t partition) {
  int32_t first = ts_collective_group(k->c, partition)[0];
  return partition != first && result_at(k, partition, i) == result_at(k, first, i);
}

static void run_piece(const call *k, uint32_t i, int32_t partition, int64_t piece) {
  if (k->c->shared && is_others(k, i, partition)) return;
  if (!ts_collective_reduces(k->c->code))
    copy_piece(k, i, partition, piece);
  else if (k->c->code == TS_OP_REDUCE_SCATTER)
    reduce_scatter_piece(k, i, partition, piece);
  else
    all_reduce_piece(k, i, partition, piece);
}

/* A task is one piece of every operand of one partition. */
static void run_task(void *context, int64_t task, int worker) {
  const call *k = context;
  (void)worker;
  for (uint32_t i = 0; i < k->c->count && !ts_cancelled(k->cancel); i++)
    run_piece(k, i, k->memory->first + (int32_t)(task / k->pieces), task % k->pieces);
}

void ts_collective_run(const ts_collective *c, const ts_collective_memory *memory, const ts_parallel *parallel,
                       const _Atomic bool *cancel) {
  call k = {c, memory, cancel, c->bytes / PIECE_BYTES + 1};
  bool small = c->bytes < 2 * PIECE_BYTES / memory->count;
  ts_parallel_run(small ? &ts_parallel_serial : parallel, memory->count * k.pieces, run_task, &k);
}
