#include "group/shares.h"

#include "base/alloc.h"
#include "base/cancel.h"

#include <string.h>

/* Of combined terms at a time. On the caller's stack, which may be a scheduler's. */
enum { BLOCK_BYTES = 8 << 10 };

typedef ts_transfer transfer;

/* ---- a collective on a rank ---- */

static int32_t partitions_each(const ts_shares *s) { return s->collective->partitions / s->ranks; }
static int32_t group_of(const ts_shares *s, int32_t partition) {
  return s->collective->positions[partition] / s->collective->size;
}

bool ts_shares_are_local(const ts_collective *c, int32_t ranks) {
  for (int32_t p = 0; p < c->partitions; p++)
    if (ts_spread_rank_of(c, ranks, p) != ts_spread_rank_of(c, ranks, ts_collective_group(c, p)[0])) return false;
  return true;
}

static const ts_spread *find_spread(const ts_shares *s, int32_t partition) {
  for (int32_t i = 0; i < s->spread_count; i++)
    if (s->spreads[i].number == group_of(s, partition)) return &s->spreads[i];
  return NULL;
}

static ts_status find_spreads(ts_shares *s, const int32_t *hosts) {
  int32_t first = s->rank * partitions_each(s);
  TS_TRY(TS_NEW_ARRAY((size_t)partitions_each(s), &s->spreads));
  for (int32_t p = first; p < first + partitions_each(s); p++) {
    if (find_spread(s, p)) continue;
    ts_spread *on = &s->spreads[s->spread_count];
    TS_TRY(ts_spread_init(s->collective, group_of(s, p), s->ranks, hosts, on));
    on->own = on->holder[ts_collective_own(s->collective, p)];
    s->spread_count++;
  }
  return TS_SUCCESS;
}

static size_t partial_index(const ts_shares *s, uint32_t operand, const ts_spread *on) {
  return (size_t)operand * (size_t)s->spread_count + (size_t)(on - s->spreads);
}

/* Lays out the partial sums of all operands and groups, one after the other. */
static ts_status lay_out_partials(ts_shares *s) {
  const ts_collective *c = s->collective;
  TS_TRY(TS_NEW_ARRAY((size_t)c->count * (size_t)s->spread_count, &s->partial_at));
  for (uint32_t i = 0; i < c->count; i++)
    for (int32_t g = 0; g < s->spread_count; g++) {
      const ts_spread *on = &s->spreads[g];
      s->partial_at[partial_index(s, i, on)] = s->partial_bytes;
      s->partial_bytes += ts_algorithm_partial_bytes(c, on, i, on->own);
      s->partial_bytes = (s->partial_bytes + 63) / 64 * 64;
    }
  return TS_SUCCESS;
}

ts_status ts_shares_open(const ts_collective *c, const ts_carrier *carrier, const ts_algorithm *algorithm,
                         ts_shares *out) {
  *out = (ts_shares){.collective = c, .rank = carrier->rank, .ranks = carrier->ranks};
  out->algorithm = algorithm ? algorithm : ts_algorithm_select(c, carrier->ranks, carrier->hosts);
  TS_TRY(find_spreads(out, carrier->hosts));
  return out->algorithm->round[0] == TS_ROUND_PARTIAL ? lay_out_partials(out) : TS_SUCCESS;
}

void ts_shares_close(ts_shares *s) {
  for (int32_t i = 0; i < s->spread_count; i++) ts_spread_deinit(&s->spreads[i]);
  ts_free(s->spreads);
  ts_free(s->partial_at);
  *s = (ts_shares){0};
}

/* ---- the transfers of a round ---- */

typedef struct walk {
  const ts_shares *s;
  const ts_shares_round *round;
  const ts_spread *spread; /* of the found transfer's group */
  int64_t *bytes;          /* counted so far: for one rank, or from each */
  char **packed;           /* the end of the block for one rank */
  const char **given;      /* the blocks of the other ranks, from their unread bytes on */
  ts_term *terms;          /* of a sum, as far as found */
  char **outs;             /* `count` results of this rank's members, which get the same bytes */
  int32_t count;
  transfer own; /* this rank's term of the sum */
} walk;

typedef void (*found_fn)(void *context, const transfer *t);

/* Whether no earlier member of the partition's group is on the same rank. */
static bool is_first_on_rank(const ts_shares *s, const ts_spread *on, int32_t partition) {
  int32_t own = ts_collective_own(s->collective, partition);
  return on->first[on->holder[own]] == own;
}

static void find_for(walk *w, ts_visit *v, int32_t partition) {
  const ts_shares *s = w->s;
  const ts_spread *on = find_spread(s, partition);
  if (!on) return; /* no member of its group is here */
  if (ts_collective_is_equal_in_all(s->collective->code) && !is_first_on_rank(s, on, partition)) return;
  w->spread = v->spread = on;
  v->partition = partition;
  v->to = on->holder[ts_collective_own(s->collective, partition)];
  if (v->from >= 0) v->from = on->own;
  s->algorithm->find(v, w->round->round);
}

/* Finds the transfers to a rank in a round: from all ranks, itself included, or only from this rank. The order is the
 * same on all ranks. Where all members get the same, a group is visited with its first member on the rank. */
static void find_all(walk *w, int32_t rank, bool from_here, found_fn found) {
  const ts_collective *c = w->s->collective;
  int32_t first = rank * partitions_each(w->s), last = first + partitions_each(w->s);
  ts_visit v = {.collective = c, .from = from_here ? 0 : -1, .found = found, .context = w};
  for (v.operand = 0; v.operand < c->count; v.operand++)
    for (int32_t p = first; p < last; p++) find_for(w, &v, p);
}

/* ---- counting and packing ---- */

static int64_t transfer_bytes(const walk *w, const transfer *t) {
  const ts_collective *c = w->s->collective;
  int64_t bytes = t->last - t->first;
  return t->is_partial ? ts_collective_partial_bytes(c, t->operand, bytes) : bytes;
}

static void count_one(void *context, const transfer *t) {
  walk *w = context;
  w->bytes[w->spread->ranks[t->from]] += transfer_bytes(w, t);
}

static void count_to(void *context, const transfer *t) {
  walk *w = context;
  *w->bytes += transfer_bytes(w, t);
}

void ts_shares_count(const ts_shares *s, int32_t round, int64_t *send, int64_t *receive) {
  walk w = {.s = s, .round = &(ts_shares_round){.round = round}, .bytes = receive};
  memset(receive, 0, (size_t)s->ranks * sizeof *receive);
  find_all(&w, s->rank, false, count_one);
  receive[s->rank] = 0;
  for (int32_t r = 0; r < s->ranks; r++) {
    send[r] = 0;
    w.bytes = &send[r];
    if (r != s->rank) find_all(&w, r, true, count_to);
  }
}

/* The partition that is a member of the visited group. */
static int32_t partition_of(const walk *w, int32_t member) {
  return ts_spread_members(w->s->collective, w->spread->number)[member];
}

static ts_term array_term(const void *context, int32_t m) { return ((const walk *)context)->terms[m]; }

static char *array_out(const void *context, int32_t i) { return ((const walk *)context)->outs[i]; }

/* A block of this rank's members, and the memory for its combination. */
typedef struct own_block {
  const walk *w;
  const transfer *t;
  char *out;
} own_block;

static ts_term operand_term(const void *context, int32_t m) {
  const own_block *b = context;
  return (ts_term){ts_collective_operand(b->w->round->memory, partition_of(b->w, b->t->member + m), b->t->operand), 0,
                   false};
}

static char *block_out(const void *context, int32_t i) {
  (void)i;
  return ((const own_block *)context)->out;
}

/* Combines the terms of a block of this rank's members: the bytes [range[0], range[1]) of the part. */
static void combine_block(const walk *w, const transfer *t, const int64_t range[2], char *out) {
  const ts_collective *c = w->s->collective;
  own_block block = {w, t, out};
  ts_sum sum = {.reduction = {c->code, c->types[t->operand]->dtype, t->count, .to_partial = true},
                .part = t->part,
                .out_first = range[0],
                .context = &block,
                .term = operand_term,
                .out = block_out,
                .outs = 1};
  ts_collective_reduce(&sum, range, w->round->cancel);
}

static ts_round round_of(const walk *w) { return w->s->algorithm->round[w->round->round]; }

/* The bytes of partial sums that this rank has from the round before. */
static char *own_partial(const walk *w, const transfer *t) {
  const ts_collective *c = w->s->collective;
  int64_t first, at = ts_algorithm_partial_at(c, w->spread, t, &first);
  at += ts_collective_partial_bytes(c, t->operand, t->first - first);
  return w->round->partial + w->s->partial_at[partial_index(w->s, t->operand, w->spread)] + at;
}

static bool sums_partials(const walk *w) {
  return w->round->round > 0 && w->s->algorithm->round[w->round->round - 1] == TS_ROUND_PARTIAL;
}

static void pack_part(const walk *w, const transfer *t) {
  const ts_collective_memory *m = w->round->memory;
  int32_t partition = partition_of(w, t->member);
  const char *from = round_of(w) == TS_ROUND_SPREAD ? ts_collective_result(m, partition, t->operand)
                                                    : ts_collective_operand(m, partition, t->operand);
  ts_move pack = ts_move_pack(&t->part);
  ts_move_copy(&pack, *w->packed - t->first, from, t->first, t->last);
}

static void pack_one(void *context, const transfer *t) {
  walk *w = context;
  if (sums_partials(w))
    memcpy(*w->packed, own_partial(w, t), (size_t)transfer_bytes(w, t));
  else if (t->is_partial)
    combine_block(w, t, (int64_t[]){t->first, t->last}, *w->packed);
  else
    pack_part(w, t);
  *w->packed += transfer_bytes(w, t);
}

void ts_shares_pack(const ts_shares *s, const ts_shares_round *round, char **blocks) {
  walk w = {.s = s, .round = round};
  for (int32_t r = 0; r < s->ranks; r++) {
    w.packed = &blocks[r];
    if (blocks[r]) find_all(&w, r, true, pack_one);
  }
}

/* ---- finishing ---- */

static bool is_own(const walk *w, const transfer *t) { return w->spread->ranks[t->from] == w->s->rank; }

/* The bytes of a transfer: NULL where they are this rank's own. */
static const char *take_block(walk *w, const transfer *t) {
  int32_t rank = w->spread->ranks[t->from];
  if (is_own(w, t)) return NULL;
  const char *block = w->given[rank];
  w->given[rank] += transfer_bytes(w, t);
  return block;
}

/* The results that a transfer is for, of the members that this rank has. They may be one memory. */
static void set_outs(walk *w, const transfer *t) {
  const ts_collective *c = w->s->collective;
  const ts_collective_memory *m = w->round->memory;
  int32_t number = w->spread->number;
  w->count = 0;
  for (int32_t p = m->first; p < m->first + m->count; p++) {
    if (ts_collective_is_equal_in_all(c->code) ? group_of(w->s, p) != number : p != t->partition) continue;
    char *out = ts_collective_result(m, p, t->operand);
    if (w->count == 0 || out != w->outs[0]) w->outs[w->count++] = out;
  }
}

static const char *own_operand(const walk *w, const transfer *t) {
  return ts_collective_operand(w->round->memory, partition_of(w, t->member), t->operand);
}

static void move_one(walk *w, const transfer *t) {
  const char *block = take_block(w, t);
  const char *from = block ? block : own_operand(w, t);
  ts_move move = block ? ts_move_unpack(&t->part) : t->part;
  set_outs(w, t);
  for (int32_t i = 0; i < w->count; i++) ts_move_copy(&move, w->outs[i], from, t->first, t->last);
}

/* A sum of blocks. This rank's own is combined first, a segment at a time. */
static void sum_blocks(walk *w, const transfer *t, ts_sum *sum) {
  const ts_collective *c = w->s->collective;
  _Alignas(64) char scratch[BLOCK_BYTES];
  ts_term *own = &w->terms[w->own.term];
  int64_t most = BLOCK_BYTES / ts_collective_partial_size(c, t->operand) * ts_collective_element_size(c, t->operand);
  own->at = scratch;
  own->packed = true;
  for (int64_t at = t->first; at < t->last; at += most) {
    int64_t range[2] = {at, at + most < t->last ? at + most : t->last};
    own->first = at;
    combine_block(w, &w->own, range, scratch);
    ts_collective_reduce(sum, range, w->round->cancel);
  }
}

static const char *own_term(const walk *w, const transfer *t) {
  return sums_partials(w) ? own_partial(w, t) : own_operand(w, t);
}

/* The results of a sum, or the memory of its partial sums. */
static void set_sum_outs(walk *w, const transfer *t) {
  transfer here = *t;
  if (round_of(w) != TS_ROUND_PARTIAL) {
    set_outs(w, t);
    return;
  }
  here.from = t->to;
  w->outs[0] = own_partial(w, &here);
  w->count = 1;
}

/* Collects the terms of a sum, and computes it with the last one. */
static void sum_one(walk *w, const transfer *t) {
  const ts_collective *c = w->s->collective;
  const char *block = take_block(w, t);
  bool has_own_block = t->is_partial && !sums_partials(w);
  w->terms[t->term] = (ts_term){block ? block : own_term(w, t), t->first, block || sums_partials(w)};
  if (is_own(w, t)) w->own = *t;
  if (t->term + 1 < t->terms) return;
  set_sum_outs(w, t);
  ts_sum sum = {
      .reduction = {c->code, c->types[t->operand]->dtype, t->terms, t->is_partial, round_of(w) == TS_ROUND_PARTIAL},
      .part = t->part,
      .out_first = round_of(w) == TS_ROUND_PARTIAL ? t->first : 0,
      .context = w,
      .term = array_term,
      .out = array_out,
      .outs = w->count};
  if (has_own_block)
    sum_blocks(w, t, &sum);
  else
    ts_collective_reduce(&sum, (int64_t[]){t->first, t->last}, w->round->cancel);
}

static void spread_one(walk *w, const transfer *t) {
  const char *block = take_block(w, t);
  set_outs(w, t);
  for (int32_t i = 0; i < w->count; i++) memcpy(w->outs[i] + t->first, block, (size_t)(t->last - t->first));
}

static void finish_one(void *context, const transfer *t) {
  walk *w = context;
  if (ts_cancelled(w->round->cancel)) return;
  switch (round_of(w)) {
  case TS_ROUND_MOVE: move_one(w, t); return;
  case TS_ROUND_SUM:
  case TS_ROUND_PARTIAL: sum_one(w, t); return;
  case TS_ROUND_SPREAD: spread_one(w, t); return;
  }
}

/* A permutation gives zeros to a member that is no target. */
static void clear_others(const ts_shares *s, const ts_collective_memory *memory) {
  const ts_collective *c = s->collective;
  for (int32_t p = memory->first; p < memory->first + memory->count; p++)
    for (uint32_t i = 0; i < c->count && c->senders[ts_collective_own(c, p)] == TS_NO_MEMBER; i++)
      memset(ts_collective_result(memory, p, i), 0, (size_t)ts_collective_operand_bytes(c, i));
}

ts_status ts_shares_finish(const ts_shares *s, const ts_shares_round *round, const char **blocks) {
  walk w = {.s = s, .round = round, .given = blocks};
  if (s->collective->code == TS_OP_COLLECTIVE_PERMUTE) clear_others(s, round->memory);
  ts_status status = TS_NEW_ARRAY((size_t)s->collective->size, &w.terms);
  if (!status) status = TS_NEW_ARRAY((size_t)partitions_each(s), &w.outs);
  if (!status) find_all(&w, s->rank, false, finish_one);
  ts_free(w.terms);
  ts_free(w.outs);
  return status;
}
