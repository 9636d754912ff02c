/* What the files of the fusion pass share: for each op of a region, whether it stands alone, is part of a group
 * that becomes one kernel, or is computed again in every group that reads it. Internal to pass/. */
#ifndef TS_PASS_FUSE_H
#define TS_PASS_FUSE_H

#include "base/map.h"
#include "ir/key.h"
#include "pass/program.h"

#define TS_NO_GROUP UINT32_MAX
#define TS_MANY_GROUPS (UINT32_MAX - 1)

typedef struct ts_fuse_op {
  uint32_t group;     /* that it is a member of, or TS_NO_GROUP */
  uint32_t users;     /* the group that reads it: TS_NO_GROUP, one, or TS_MANY_GROUPS */
  uint32_t second;    /* another one that does, until the op is placed */
  bool inlined;       /* computed again in each group that reads it */
  bool alone;         /* there as an op of its own, too or only */
  bool is_output;     /* of its group */
  bool for_op;        /* an op that is no group's reads it from memory */
  bool for_result;    /* it is a result of the region */
  uint8_t depth;      /* of ops that could be inlined together with it */
  uint8_t restraint;  /* raised when a group with it made no kernel: see fuse_plan.c */
  ts_op_id next;      /* member of the same group */
  ts_op_id reduction; /* that its elements come from, one from one; TS_NO_ID */
} ts_fuse_op;

/* What one kernel for all ops of a group would be, or of two groups. */
typedef struct ts_fuse_kernel {
  bool fits;
  int64_t bytes;        /* read from memory */
  int64_t accumulators; /* bytes of them that one row keeps */
} ts_fuse_kernel;

typedef struct ts_fuse_group {
  ts_op_id root;           /* its last op */
  ts_op_id place;          /* the op in whose place the kernel stands: the root, but for siblings that became one */
  ts_op_id first;          /* members in order, linked by `next` */
  ts_op_id reduction;      /* one of its reductions, TS_NO_ID */
  int64_t points;          /* elements of its iteration space */
  int64_t rows, row;       /* with a reduction: how many rows of how many elements */
  bool trailing;           /* rows are contiguous in the order of the elements */
  bool has_points;         /* an output has an element for each point, not each row */
  bool writes_parts;       /* the root is pad or concatenate */
  bool terminal;           /* no op reads its results, only the region's own results are */
  uint32_t merged;         /* the group that it became part of, or itself */
  bool composite;          /* more than elementwise ops: worth a check */
  int32_t members, inputs; /* inputs: no fewer than there are */
  bool measured;           /* as it is now: `kernel` */
  ts_fuse_kernel kernel;
} ts_fuse_group;

/* What was measured, by what it was measured from (fuse_memo.c). */
typedef struct ts_fuse_memo {
  ts_keys known;              /* the key at hand is that of the one that was looked for last */
  ts_arena arena;             /* of the kernels in it */
  uint32_t *numbers, *stamps; /* of values, in the key; valid where the stamp is that of the key */
  uint32_t stamp, next;
} ts_fuse_memo;

typedef struct ts_fuse_plan {
  const ts_graph *graph;
  ts_fuse_op *ops; /* one for each op of the graph */
  TS_VEC(ts_fuse_group) groups;
  bool check_all;      /* in the region at hand, also groups that are not composite */
  uint32_t *use_start; /* of each value: where its readers begin in `use_ops`; made when first wanted */
  ts_op_id *use_ops;
  uint32_t *candidates; /* of each value: see fuse_siblings.c */
  ts_fuse_memo memo;
} ts_fuse_plan;

ts_status ts_fuse_plan_init(ts_fuse_plan *plan, const ts_graph *graph);
void ts_fuse_plan_deinit(ts_fuse_plan *plan);

/* Decides for the ops of one region (fuse_plan.c). */
ts_status ts_fuse_plan_region(ts_fuse_plan *plan, ts_region_id region);
/* True when the group makes a kernel (fuse_check.c). */
ts_status ts_fuse_check_group(ts_fuse_plan *plan, uint32_t group, bool *out);

ts_status ts_fuse_measure(ts_fuse_plan *plan, uint32_t group, uint32_t other, ts_fuse_kernel *out);

/* `*out` is NULL when nothing alike was measured; then it can be added. */
ts_status ts_fuse_memo_find(ts_fuse_memo *memo, const ts_program_spec *spec, bool pair, const ts_fuse_kernel **out);
ts_status ts_fuse_memo_add(ts_fuse_memo *memo, const ts_fuse_kernel *kernel);
void ts_fuse_memo_deinit(ts_fuse_memo *memo);

/* Joins the region's reductions with what reads the same (fuse_siblings.c). `first`: of the region's groups. */
ts_status ts_fuse_join_siblings(ts_fuse_plan *plan, ts_region_id region, size_t first);

static inline uint32_t ts_fuse_find(const ts_fuse_plan *plan, uint32_t group) {
  while (plan->groups.data[group].merged != group) group = plan->groups.data[group].merged;
  return group;
}
/* The members of `from` become members of `into`, in order. */
void ts_fuse_merge(ts_fuse_plan *plan, uint32_t into, uint32_t from);

/* Work for one element, in additions. */
int32_t ts_fuse_weight(ts_opcode op);

#endif
