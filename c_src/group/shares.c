#include "group/shares.h"

#include "base/cancel.h"
#include "group/carrier.h"

#include <string.h>

/* Up to here every rank sums for itself: a second round takes longer. */
enum { SHORT_BYTES = 8 << 10 };

/* Of combined terms at a time. On the caller's stack, which may be a scheduler's. */
enum { BLOCK_BYTES = 8 << 10 };

/* Bytes [first, last) of a part of an operand, from the partition `from`, the `member`-th of its group, for the
 * partition `to`; for the whole group if all members get the same bytes. In a sum they may be the terms of `count`
 * members of one rank, combined before they are sent. */
typedef struct transfer {
  uint32_t operand;
  int32_t from, member, count, to;
  int32_t block; /* the terms of all such transfers of the sum but the last; 1: terms are sent as they are */
  ts_move part;
  int64_t first, last;
} transfer;

typedef void (*visit_fn)(void *context, const transfer *t);

/* ---- ranks ---- */

static int32_t partitions_each(const ts_shares *s) { return s->collective->partitions / s->ranks; }
static int32_t rank_of(const ts_shares *s, int32_t partition) { return partition / partitions_each(s); }

/* The ranks of a group's members. Found once for all transfers of a group: a rank makes one transfer for each rank. */
typedef struct spread {
  int32_t count;                /* ranks that have members */
  int16_t first[TS_MAX_RANKS];  /* the first member on a rank; -1: none */
  int16_t before[TS_MAX_RANKS]; /* lower ranks that have members */
  int32_t block;                /* members per rank if each rank holds one aligned subtree of the tree over the members;
                                 * else 1 */
} spread;

static int64_t element_size(const ts_shares *s, uint32_t i) {
  return (int64_t)ts_dtype_size(s->collective->types[i]->dtype);
}

static int64_t partial_size(const ts_shares *s, uint32_t i) {
  return ts_reduction_partial_size(s->collective->code, s->collective->types[i]->dtype);
}

/* Blocks are a power of two of members, aligned, so that they are combined below all others. */
static int32_t find_block(const ts_shares *s, const uint16_t *group, const spread *on) {
  int32_t block = 1, size = s->collective->size;
  while (block < size && rank_of(s, group[block]) == rank_of(s, group[0])) block++;
  if (block == size || (block & (block - 1)) != 0) return 1;
  for (int32_t m = 0; m < size; m++)
    if (on->first[rank_of(s, group[m])] != m - m % block) return 1;
  return block;
}

static void find_spread(const ts_shares *s, const uint16_t *group, spread *out) {
  for (int32_t r = 0; r < s->ranks; r++) out->first[r] = -1;
  for (int32_t m = s->collective->size; m-- > 0;) out->first[rank_of(s, group[m])] = (int16_t)m;
  out->count = 0;
  for (int32_t r = 0; r < s->ranks; r++) {
    out->before[r] = (int16_t)out->count;
    out->count += out->first[r] >= 0;
  }
  out->block = find_block(s, group, out);
}

static bool is_shared_out(const ts_shares *s) {
  return ts_collective_is_all_reduce(s->collective->code) && s->collective->bytes > 2 * SHORT_BYTES;
}

bool ts_shares_are_local(const ts_shares *s) {
  const ts_collective *c = s->collective;
  for (int32_t p = 0; p < c->partitions; p++)
    if (rank_of(s, p) != rank_of(s, ts_collective_group(c, p)[0])) return false;
  return true;
}

int32_t ts_shares_rounds(const ts_shares *s) { return is_shared_out(s) ? 2 : 1; }

/* ---- the lists ---- */

/* The share of a rank of the elements of an all_reduce. */
static void set_share(const ts_shares *s, const spread *on, int32_t rank, transfer *t) {
  int64_t size = element_size(s, t->operand), elements = t->part.run / size;
  int64_t own = on->before[rank], ranks = on->count > 0 ? on->count : 1; /* 0 only of a group without members */
  t->first = elements * own / ranks * size;
  t->last = elements * (own + 1) / ranks * size;
}

static int64_t operand_bytes(const ts_collective *c, uint32_t i) {
  return ts_shape_elements(&c->types[i]->shape) * (int64_t)ts_dtype_size(c->types[i]->dtype);
}

/* Types that are combined in a wider one may have fewer bytes as they are. */
static void visit_blocks(const ts_shares *s, const spread *on, transfer *t, visit_fn visit, void *context) {
  const uint16_t *group = ts_collective_group(s->collective, t->to);
  bool is_less = on->block * element_size(s, t->operand) >= partial_size(s, t->operand);
  int32_t size = s->collective->size;
  t->block = is_less ? on->block : 1;
  for (t->member = 0; t->member < size; t->member += t->count) {
    t->count = size - t->member < t->block ? size - t->member : t->block;
    t->from = group[t->member];
    visit(context, t);
  }
}

/* The terms that a rank sums of one group: of all, or of its share. */
static void visit_terms(const ts_shares *s, int32_t rank, transfer *t, visit_fn visit, void *context) {
  spread on;
  find_spread(s, ts_collective_group(s->collective, t->to), &on);
  t->part = ts_move_whole(operand_bytes(s->collective, t->operand));
  t->first = 0;
  t->last = t->part.run;
  if (is_shared_out(s)) set_share(s, &on, rank, t);
  visit_blocks(s, &on, t, visit, context);
}

/* Visits the transfers of one member of a reduce_scatter. */
static void visit_scattered(const ts_shares *s, transfer *t, visit_fn visit, void *context) {
  const ts_collective *c = s->collective;
  spread on;
  find_spread(s, ts_collective_group(c, t->to), &on);
  t->part = ts_collective_move(c, t->operand, ts_collective_own(c, t->to), 0);
  t->first = 0;
  t->last = ts_move_bytes(&t->part);
  if (t->last > 0) visit_blocks(s, &on, t, visit, context);
}

/* The sums of the other ranks' shares. */
static void visit_shares(const ts_shares *s, int32_t rank, transfer *t, visit_fn visit, void *context) {
  const uint16_t *group = ts_collective_group(s->collective, t->to);
  spread on;
  t->part = ts_move_whole(operand_bytes(s->collective, t->operand));
  t->count = t->block = 1;
  find_spread(s, group, &on);
  for (int32_t r = 0; r < s->ranks; r++) {
    t->member = on.first[r];
    if (r == rank || t->member < 0) continue;
    t->from = group[t->member];
    set_share(s, &on, r, t);
    visit(context, t);
  }
}

/* Whether no earlier member of the partition's group is on the same rank. */
static bool is_first_on_rank(const ts_shares *s, const uint16_t *group, int32_t partition) {
  int32_t m = 0;
  while (rank_of(s, group[m]) != rank_of(s, partition)) m++;
  return group[m] == partition;
}

static void visit_parts(const ts_shares *s, transfer *t, visit_fn visit, void *context) {
  const ts_collective *c = s->collective;
  t->count = t->block = 1;
  for (t->member = 0; t->member < c->size; t->member++) {
    t->from = ts_collective_group(c, t->to)[t->member];
    t->part = ts_collective_move(c, t->operand, ts_collective_own(c, t->to), t->member);
    t->first = 0;
    t->last = ts_move_bytes(&t->part);
    if (t->last > 0) visit(context, t);
  }
}

static void visit_one(const ts_shares *s, int32_t round, transfer *t, visit_fn visit, void *context) {
  ts_opcode code = s->collective->code;
  int32_t rank = rank_of(s, t->to);
  if (code == TS_OP_REDUCE_SCATTER)
    visit_scattered(s, t, visit, context);
  else if (!ts_collective_is_all_reduce(code))
    visit_parts(s, t, visit, context);
  else if (operand_bytes(s->collective, t->operand) == 0)
    return;
  else if (round == 0)
    visit_terms(s, rank, t, visit, context);
  else
    visit_shares(s, rank, t, visit, context);
}

/* Visits every part that a rank reads, including parts of its own partitions. Each rank computes the same order, as
 * sender and receiver pack messages by it. Where all members get the same, a group is visited with its first member on
 * the rank.
 */
static void visit_all(const ts_shares *s, int32_t round, int32_t rank, visit_fn visit, void *context) {
  const ts_collective *c = s->collective;
  transfer t;
  int32_t first = rank * partitions_each(s), last = first + partitions_each(s);
  for (t.operand = 0; t.operand < c->count; t.operand++)
    for (t.to = first; t.to < last; t.to++)
      if (!ts_collective_is_equal_in_all(c->code) || is_first_on_rank(s, ts_collective_group(c, t.to), t.to))
        visit_one(s, round, &t, visit, context);
}

/* ---- counting and packing ---- */

typedef struct walk {
  const ts_shares *s;
  const ts_collective_memory *memory;
  int32_t round;
  int64_t *bytes;     /* by rank of origin */
  char **packed;      /* the block for rank `to` */
  const char **given; /* the blocks of the other ranks */
  const _Atomic bool *cancel;
  ts_sum *sum;   /* the terms visited so far */
  ts_sum *block; /* terms that this rank combines first */
  transfer own;  /* this rank's own transfer in the sum */
} walk;

static int64_t transfer_bytes(const ts_shares *s, const transfer *t) {
  int64_t bytes = t->last - t->first;
  return t->block == 1 ? bytes : bytes / element_size(s, t->operand) * partial_size(s, t->operand);
}

static void count_one(void *context, const transfer *t) {
  walk *w = context;
  w->bytes[rank_of(w->s, t->from)] += transfer_bytes(w->s, t);
}

void ts_shares_count(const ts_shares *s, int32_t round, int64_t *send, int64_t *receive) {
  for (int32_t r = 0; r < s->ranks; r++) {
    int64_t bytes[TS_MAX_PARTITIONS] = {0};
    walk w = {.s = s, .bytes = bytes};
    visit_all(s, round, r, count_one, &w);
    send[r] = r == s->rank ? 0 : bytes[s->rank];
    if (r != s->rank) continue;
    bytes[r] = 0;
    memcpy(receive, bytes, (size_t)s->ranks * sizeof *receive);
  }
}

/* Combines the terms of a block of this rank's members: the bytes [range[0], range[1]) of the part. */
static void combine_block(walk *w, const transfer *t, const int64_t range[2], char *out) {
  const ts_collective *c = w->s->collective;
  const uint16_t *group = ts_collective_group(c, t->from);
  ts_sum *sum = w->block;
  sum->reduction = (ts_reduction){c->code, c->types[t->operand]->dtype, t->count, .to_partial = true};
  sum->part = t->part;
  sum->out_first = range[0];
  for (int32_t m = 0; m < t->count; m++) {
    sum->terms[m].at = ts_collective_operand(w->memory, group[t->member + m], t->operand);
    sum->terms[m].packed = false;
  }
  sum->outs[0] = out;
  sum->out_count = 1;
  ts_collective_reduce(sum, range, w->cancel);
}

static void pack_part(walk *w, const transfer *t) {
  const char *from = w->round == 0 ? ts_collective_operand(w->memory, t->from, t->operand)
                                   : ts_collective_result(w->memory, t->from, t->operand);
  ts_move pack = ts_move_pack(&t->part);
  ts_move_copy(&pack, *w->packed - t->first, from, t->first, t->last);
}

static void pack_one(void *context, const transfer *t) {
  walk *w = context;
  if (rank_of(w->s, t->from) != w->s->rank) return;
  if (t->block > 1)
    combine_block(w, t, (int64_t[]){t->first, t->last}, *w->packed);
  else
    pack_part(w, t);
  *w->packed += transfer_bytes(w->s, t);
}

void ts_shares_pack(const ts_shares *s, int32_t round, const ts_collective_memory *memory, char **blocks) {
  for (int32_t r = 0; r < s->ranks; r++) {
    ts_sum block;
    walk w = {.s = s, .memory = memory, .round = round, .packed = &blocks[r], .block = &block};
    if (r != s->rank) visit_all(s, round, r, pack_one, &w);
  }
}

/* ---- finishing ---- */

/* The bytes of a transfer: NULL where they are this rank's own. */
static const char *take_block(walk *w, const transfer *t) {
  int32_t rank = rank_of(w->s, t->from);
  if (rank == w->s->rank) return NULL;
  const char *block = w->given[rank];
  w->given[rank] += transfer_bytes(w->s, t);
  return block;
}

/* The results that a transfer is for, of the members that this rank has. They may be one memory. */
static void set_outs(walk *w, const transfer *t) {
  const ts_collective *c = w->s->collective;
  const uint16_t *group = ts_collective_group(c, t->to);
  w->sum->out_count = 0;
  for (int32_t m = 0; m < c->size; m++) {
    bool is_out = ts_collective_is_equal_in_all(c->code) ? rank_of(w->s, group[m]) == w->s->rank : group[m] == t->to;
    char *out = is_out ? ts_collective_result(w->memory, group[m], t->operand) : NULL;
    if (is_out && (w->sum->out_count == 0 || out != w->sum->outs[0])) w->sum->outs[w->sum->out_count++] = out;
  }
}

static void copy_one(walk *w, const transfer *t) {
  const char *block = take_block(w, t);
  const char *from = block ? block : ts_collective_operand(w->memory, t->from, t->operand);
  ts_move move = block ? ts_move_unpack(&t->part) : t->part;
  set_outs(w, t);
  for (int32_t m = 0; m < w->sum->out_count; m++) ts_move_copy(&move, w->sum->outs[m], from, t->first, t->last);
}

/* A sum of blocks. This rank's own is combined first, a segment at a time. */
static void sum_blocks(walk *w, const transfer *t) {
  _Alignas(64) char scratch[BLOCK_BYTES];
  int32_t own = w->own.member / t->block;
  int64_t most = BLOCK_BYTES / partial_size(w->s, t->operand) * element_size(w->s, t->operand);
  w->sum->terms[own].at = scratch;
  w->sum->terms[own].packed = true;
  for (int64_t at = t->first; at < t->last; at += most) {
    int64_t range[2] = {at, at + most < t->last ? at + most : t->last};
    w->sum->terms[own].first = at;
    combine_block(w, &w->own, range, scratch);
    ts_collective_reduce(w->sum, range, w->cancel);
  }
}

/* Collects the terms of a sum, and computes it with the last one. */
static void sum_one(walk *w, const transfer *t) {
  const ts_collective *c = w->s->collective;
  const char *block = take_block(w, t);
  int32_t term = t->member / t->block;
  w->sum->terms[term].packed = block;
  w->sum->terms[term].first = t->first;
  w->sum->terms[term].at = block ? block : ts_collective_operand(w->memory, t->from, t->operand);
  if (!block) w->own = *t;
  if (t->member + t->count < c->size) return;
  w->sum->reduction = (ts_reduction){c->code, c->types[t->operand]->dtype, term + 1, .from_partial = t->block > 1};
  w->sum->part = t->part;
  w->sum->out_first = 0;
  set_outs(w, t);
  if (t->block > 1)
    sum_blocks(w, t);
  else
    ts_collective_reduce(w->sum, (int64_t[]){t->first, t->last}, w->cancel);
}

static void spread_one(walk *w, const transfer *t) {
  const char *block = take_block(w, t);
  set_outs(w, t);
  for (int32_t m = 0; m < w->sum->out_count; m++)
    memcpy(w->sum->outs[m] + t->first, block, (size_t)(t->last - t->first));
}

static void finish_one(void *context, const transfer *t) {
  walk *w = context;
  if (ts_cancelled(w->cancel)) return;
  if (w->round == 1)
    spread_one(w, t);
  else if (ts_collective_reduces(w->s->collective->code))
    sum_one(w, t);
  else
    copy_one(w, t);
}

/* A permutation gives zeros to a member that is no target. */
static void clear_others(const ts_shares *s, const ts_collective_memory *memory) {
  const ts_collective *c = s->collective;
  for (int32_t p = memory->first; p < memory->first + memory->count; p++)
    for (uint32_t i = 0; i < c->count && c->senders[ts_collective_own(c, p)] == TS_NO_MEMBER; i++)
      memset(ts_collective_result(memory, p, i), 0, (size_t)operand_bytes(c, i));
}

void ts_shares_finish(const ts_shares *s, int32_t round, const ts_collective_memory *memory, const char **blocks,
                      const _Atomic bool *cancel) {
  ts_sum sum, block;
  walk w = {s, memory, round, .given = blocks, .cancel = cancel, .sum = &sum, .block = &block};
  if (s->collective->code == TS_OP_COLLECTIVE_PERMUTE) clear_others(s, memory);
  visit_all(s, round, s->rank, finish_one, &w);
}
