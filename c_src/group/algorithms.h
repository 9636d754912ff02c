/* The list of collective algorithms between ranks. For each of its rounds an algorithm lists the transfers between
 * ranks, and how received bytes become results. A round is one exchange of all ranks (group/carrier.h). Each algorithm
 * is one function in algorithms.c, under a drawing; selection.c chooses one; shares.c carries it out.
 *
 * No algorithm changes a bit: sums are combined in the tree over the members' indices, and a rank combines terms before
 * it sends them only where they are a subtree of that tree. So an algorithm may be chosen by speed alone. */
#ifndef TS_GROUP_ALGORITHMS_H
#define TS_GROUP_ALGORITHMS_H

#include "group/collective.h"
#include "group/spread.h"

enum { TS_MAX_ROUNDS = 4 };

/* The kind of bytes that a round transfers, and their use. */
typedef enum ts_round {
  TS_ROUND_MOVE,    /* Parts of operands: they become parts of results. */
  TS_ROUND_SUM,     /* Terms, or the partial sums of a TS_ROUND_PARTIAL before: they become results. */
  TS_ROUND_PARTIAL, /* Terms: their sums stay partial until the next round. */
  TS_ROUND_SPREAD,  /* Bytes of results: another rank puts them at the same place of its results. */
} ts_round;

/* Bytes [first, last) of a part of an operand, between two ranks or on one. In a sum they are the terms of `count`
 * members of the rank, from `member` on. */
typedef struct ts_transfer {
  uint32_t operand;
  int32_t from, to;      /* indices in the spread's ranks */
  int32_t partition;     /* the receiver; where all members get equal bytes, one member on `to` stands for the others */
  int32_t member, count; /* members of the group, on `from` */
  int32_t term, terms;   /* index of this term and number of terms; the last term completes the sum */
  int32_t piece;         /* number of the share of a partial sum */
  bool is_partial;       /* combined, not rounded yet */
  ts_move part;
  int64_t first, last;
} ts_transfer;

/* Asks for the transfers of one operand to one rank of a group, or to one partition of that rank. */
typedef struct ts_visit {
  const ts_collective *collective;
  const ts_spread *spread;
  uint32_t operand;
  int32_t partition, to; /* the receiving partition, and the index of its rank in the spread */
  int32_t from;          /* index of the only rank whose transfers are wanted; -1: all ranks */
  void (*found)(void *context, const ts_transfer *t);
  void *context;
} ts_visit;

typedef struct ts_algorithm {
  const char *name;
  int32_t rounds;
  ts_round round[TS_MAX_ROUNDS];
  /* Finds the transfers of a round, in the order of their bytes in a block: the sender and the receiver find the same
   * order. */
  void (*find)(const ts_visit *v, int32_t round);
} ts_algorithm;

typedef enum ts_algorithm_id {
  TS_ALGORITHM_MOVE,
  TS_ALGORITHM_SCATTER,
  TS_ALGORITHM_EVERYWHERE,
  TS_ALGORITHM_SHARES,
  TS_ALGORITHM_HOSTS,
  TS_ALGORITHM_COUNT
} ts_algorithm_id;

extern const ts_algorithm ts_algorithms[TS_ALGORITHM_COUNT];

/* Bytes of the partial sums that a rank keeps between two rounds, of one operand of one group. */
int64_t ts_algorithm_partial_bytes(const ts_collective *c, const ts_spread *s, uint32_t operand, int32_t rank);
/* The begin of the share t->piece in the partial sums of t->from; *out_first: its begin in the operand. */
int64_t ts_algorithm_partial_at(const ts_collective *c, const ts_spread *s, const ts_transfer *t, int64_t *out_first);

static inline int64_t ts_collective_element_size(const ts_collective *c, uint32_t operand) {
  return (int64_t)ts_dtype_size(c->types[operand]->dtype);
}
static inline int64_t ts_collective_partial_size(const ts_collective *c, uint32_t operand) {
  return ts_reduction_partial_size(c->code, c->types[operand]->dtype);
}
/* Bytes of the partial sums of a part of an operand that has `bytes` bytes. */
static inline int64_t ts_collective_partial_bytes(const ts_collective *c, uint32_t operand, int64_t bytes) {
  return bytes / ts_collective_element_size(c, operand) * ts_collective_partial_size(c, operand);
}
static inline int64_t ts_collective_operand_bytes(const ts_collective *c, uint32_t operand) {
  return ts_shape_elements(&c->types[operand]->shape) * ts_collective_element_size(c, operand);
}

/* ---- selection.c ---- */

/* The algorithm for a collective. All ranks choose the same. `hosts` as in ts_spread_init. */
const ts_algorithm *ts_algorithm_select(const ts_collective *c, int32_t ranks, const int32_t *hosts);

#endif
