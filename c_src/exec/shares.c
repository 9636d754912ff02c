#include "exec/shares.h"

#include "base/cancel.h"
#include "exec/carrier.h"

#include <string.h>

/* Up to here every rank sums for itself: a second round takes longer. */
enum { SHORT_BYTES = 8 << 10 };

/* Bytes [first, last) of a part of an operand of partition `from`, which is the `member`-th of its group, for the
 * partition `to`; of an all_reduce, for the whole group. */
typedef struct transfer {
  uint32_t operand;
  int32_t from, member, to;
  ts_move part;
  int64_t first, last;
} transfer;

typedef void (*visit_fn)(void *context, const transfer *t);

/* ---- ranks ---- */

static int32_t partitions_each(const ts_shares *s) { return s->collective->partitions / s->ranks; }
static int32_t rank_of(const ts_shares *s, int32_t partition) { return partition / partitions_each(s); }

/* The ranks of a group's members. Found once for all transfers of a group, of which a rank makes one for each rank. */
typedef struct spread {
  int32_t count;                /* ranks that have members */
  int16_t first[TS_MAX_RANKS];  /* the first member on a rank; -1: none */
  int16_t before[TS_MAX_RANKS]; /* lower ranks that have members */
} spread;

static void find_spread(const ts_shares *s, const uint16_t *group, spread *out) {
  for (int32_t r = 0; r < s->ranks; r++) out->first[r] = -1;
  for (int32_t m = s->collective->size; m-- > 0;) out->first[rank_of(s, group[m])] = (int16_t)m;
  out->count = 0;
  for (int32_t r = 0; r < s->ranks; r++) {
    out->before[r] = (int16_t)out->count;
    out->count += out->first[r] >= 0;
  }
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
  int64_t size = (int64_t)ts_dtype_size(s->collective->types[t->operand]->dtype), elements = t->part.run / size;
  int64_t own = on->before[rank], ranks = on->count > 0 ? on->count : 1; /* 0 only of a group without members */
  t->first = elements * own / ranks * size;
  t->last = elements * (own + 1) / ranks * size;
}

static int64_t operand_bytes(const ts_collective *c, uint32_t i) {
  return ts_shape_elements(&c->types[i]->shape) * (int64_t)ts_dtype_size(c->types[i]->dtype);
}

/* The terms that a rank sums of one group: of all, or of its share. */
static void visit_terms(const ts_shares *s, int32_t rank, transfer *t, visit_fn visit, void *context) {
  const uint16_t *group = ts_collective_group(s->collective, t->to);
  spread on;
  t->part = ts_move_whole(operand_bytes(s->collective, t->operand));
  t->first = 0;
  t->last = t->part.run;
  if (is_shared_out(s)) {
    find_spread(s, group, &on);
    set_share(s, &on, rank, t);
  }
  for (t->member = 0; t->member < s->collective->size; t->member++) {
    t->from = group[t->member];
    visit(context, t);
  }
}

/* The sums of the other ranks' shares. */
static void visit_shares(const ts_shares *s, int32_t rank, transfer *t, visit_fn visit, void *context) {
  const uint16_t *group = ts_collective_group(s->collective, t->to);
  spread on;
  t->part = ts_move_whole(operand_bytes(s->collective, t->operand));
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
  for (t->member = 0; t->member < c->size; t->member++) {
    t->from = ts_collective_group(c, t->to)[t->member];
    t->part = ts_collective_move(c, t->operand, ts_collective_own(c, t->to), t->member);
    t->first = 0;
    t->last = ts_move_bytes(&t->part);
    if (t->last > 0) visit(context, t);
  }
}

/* Visits every part that a rank reads, of its own partitions, too. Each rank computes the same order, as sender and
 * receiver pack messages by it. */
static void visit_all(const ts_shares *s, int32_t round, int32_t rank, visit_fn visit, void *context) {
  const ts_collective *c = s->collective;
  transfer t;
  int32_t first = rank * partitions_each(s), last = first + partitions_each(s);
  for (t.operand = 0; t.operand < c->count; t.operand++) {
    for (int32_t p = first; p < last; p++) {
      const uint16_t *group = ts_collective_group(c, p);
      t.to = p;
      if (!ts_collective_is_all_reduce(c->code))
        visit_parts(s, &t, visit, context);
      else if (!is_first_on_rank(s, group, p) || operand_bytes(c, t.operand) == 0)
        continue; /* the group is visited with its first member on the rank */
      else if (round == 0)
        visit_terms(s, rank, &t, visit, context);
      else
        visit_shares(s, rank, &t, visit, context);
    }
  }
}

/* ---- counting and packing ---- */

typedef struct walk {
  const ts_shares *s;
  const ts_collective_memory *memory;
  int32_t round;
  int64_t *bytes;     /* by rank from which they come */
  char **packed;      /* the block for rank `to` */
  const char **given; /* the blocks of the other ranks */
  const _Atomic bool *cancel;
  ts_sum sum; /* the terms visited so far */
} walk;

static void count_one(void *context, const transfer *t) {
  walk *w = context;
  w->bytes[rank_of(w->s, t->from)] += t->last - t->first;
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

static void pack_one(void *context, const transfer *t) {
  walk *w = context;
  if (rank_of(w->s, t->from) != w->s->rank) return;
  const char *from = w->round == 0 ? ts_collective_operand(w->memory, t->from, t->operand)
                                   : ts_collective_result(w->memory, t->from, t->operand);
  ts_move pack = ts_move_pack(&t->part);
  ts_move_copy(&pack, *w->packed - t->first, from, t->first, t->last);
  *w->packed += t->last - t->first;
}

void ts_shares_pack(const ts_shares *s, int32_t round, const ts_collective_memory *memory, char **blocks) {
  for (int32_t r = 0; r < s->ranks; r++) {
    walk w = {.s = s, .memory = memory, .round = round, .packed = &blocks[r]};
    if (r != s->rank) visit_all(s, round, r, pack_one, &w);
  }
}

/* ---- finishing ---- */

/* The bytes of a transfer: NULL where they are this rank's own. */
static const char *take_block(walk *w, const transfer *t) {
  int32_t rank = rank_of(w->s, t->from);
  if (rank == w->s->rank) return NULL;
  const char *block = w->given[rank];
  w->given[rank] += t->last - t->first;
  return block;
}

static void copy_one(walk *w, const transfer *t) {
  const char *block = take_block(w, t);
  char *to = ts_collective_result(w->memory, t->to, t->operand);
  ts_move unpack = ts_move_unpack(&t->part);
  if (block)
    ts_move_copy(&unpack, to, block, t->first, t->last);
  else
    ts_move_copy(&t->part, to, ts_collective_operand(w->memory, t->from, t->operand), t->first, t->last);
}

/* The results of the members that this rank has. */
static void set_outs(walk *w, const transfer *t) {
  const ts_collective *c = w->s->collective;
  const uint16_t *group = ts_collective_group(c, t->to);
  w->sum.out_count = 0;
  for (int32_t m = 0; m < c->size; m++)
    if (c->code == TS_OP_REDUCE_SCATTER ? group[m] == t->to : rank_of(w->s, group[m]) == w->s->rank)
      w->sum.outs[w->sum.out_count++] = ts_collective_result(w->memory, group[m], t->operand);
}

/* Collects the terms of a sum, and computes it with the last one. */
static void sum_one(walk *w, const transfer *t) {
  const ts_collective *c = w->s->collective;
  const char *block = take_block(w, t);
  w->sum.terms[t->member].packed = block;
  w->sum.terms[t->member].at = block ? block : ts_collective_operand(w->memory, t->from, t->operand);
  if (t->member < c->size - 1) return;
  w->sum.reduction = (ts_reduction){c->code, c->types[t->operand]->dtype, c->size};
  w->sum.part = t->part;
  w->sum.first = t->first;
  set_outs(w, t);
  ts_collective_reduce(&w->sum, (int64_t[]){t->first, t->last}, w->cancel);
}

static void spread_one(walk *w, const transfer *t) {
  const char *block = take_block(w, t);
  set_outs(w, t);
  for (int32_t m = 0; m < w->sum.out_count; m++) memcpy(w->sum.outs[m] + t->first, block, (size_t)(t->last - t->first));
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
  walk w = {.s = s, .memory = memory, .round = round, .given = blocks, .cancel = cancel};
  if (s->collective->code == TS_OP_COLLECTIVE_PERMUTE) clear_others(s, memory);
  visit_all(s, round, s->rank, finish_one, &w);
}
