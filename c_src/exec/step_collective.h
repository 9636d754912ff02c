/* The work of a COLLECTIVE step of an executable, and the members and groups of partitions that do it. group/ runs such
 * steps. */
#ifndef TS_EXEC_STEP_COLLECTIVE_H
#define TS_EXEC_STEP_COLLECTIVE_H

#include "ir/combiner.h"
#include "ir/graph.h"

enum { TS_NO_MEMBER = UINT16_MAX };
_Static_assert(TS_MAX_PARTITIONS < TS_NO_MEMBER, "16 bits number the partitions");

/* A collective of a program. In the executable's arena. */
typedef struct ts_collective {
  ts_opcode code;
  uint32_t count;           /* of operands, and of results */
  int32_t partitions, size; /* of the mesh; of each group */
  int32_t split, concat;    /* the dims that are cut and joined, for ops that have them */
  uint16_t *members;        /* partitions of the first group by their index, then of the second, ... */
  uint16_t *positions;      /* where each partition is in `members` */
  uint16_t *senders;        /* ops that copy whole operands: of each member the one whose it gets, or none */
  const ts_type **types;    /* of operands */
  bool *shared;             /* of each result: all members may have it at one address; NULL: none */
  int64_t bytes;            /* of all operands and results of one partition */
} ts_collective;

static inline const uint16_t *ts_collective_group(const ts_collective *c, int32_t partition) {
  return c->members + c->positions[partition] / c->size * c->size;
}
/* A partition's index in its group. */
static inline int32_t ts_collective_own(const ts_collective *c, int32_t partition) {
  return c->positions[partition] % c->size;
}

/* True for ops that combine elements. */
static inline bool ts_collective_reduces(ts_opcode code) { return ts_collective_combines(code) != TS_OP_COUNT; }
static inline bool ts_collective_is_all_reduce(ts_opcode code) {
  return ts_collective_reduces(code) && code != TS_OP_REDUCE_SCATTER;
}
/* True for ops whose results are the same on all members of a group. */
static inline bool ts_collective_is_equal_in_all(ts_opcode code) {
  return code == TS_OP_ALL_GATHER || code == TS_OP_COLLECTIVE_BROADCAST || ts_collective_is_all_reduce(code);
}

#endif
