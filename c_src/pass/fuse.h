/* The shared part of the fusion pass. For each op of a region: whether it stays an op of its own, is a member of a
 * group that becomes one kernel, or is inlined into every group that reads it. Internal to pass/. */
#ifndef TS_PASS_FUSE_H
#define TS_PASS_FUSE_H

#include "pass/nest.h"

#define TS_NO_GROUP UINT32_MAX
#define TS_MANY_GROUPS (UINT32_MAX - 1)

typedef struct ts_fuse_op {
  uint32_t group;     /* the group of the op; TS_NO_GROUP: none */
  uint32_t users;     /* the group that reads the op; TS_NO_GROUP or TS_MANY_GROUPS */
  uint32_t second;    /* a second group that reads the op, until the op is placed */
  bool inlined;       /* recomputed in each group that reads the op */
  bool alone;         /* kept outside of groups, in addition or instead */
  bool is_output;     /* a result of its group */
  bool for_op;        /* an op outside of all groups reads it from memory */
  bool for_result;    /* it is a result of the region */
  int64_t read_by;    /* the most points of a group, or of an inlined op, that reads it */
  uint8_t depth;      /* length of the chain of inlinable ops that ends in it */
  uint8_t restraint;  /* raised when its group made no kernel: see fuse_plan.c */
  ts_op_id next;      /* member of the same group */
  ts_op_id reduction; /* element i of the op is computed from result i of this op; TS_NO_ID: no reduction */
} ts_fuse_op;

/* The result of the analysis of one kernel for a group, or for two groups together. */
typedef struct ts_fuse_kernel {
  bool fits;
  int64_t bytes;        /* read from memory */
  int64_t accumulators; /* bytes of accumulators for one row */
} ts_fuse_kernel;

typedef struct ts_fuse_group {
  ts_op_id root;           /* its last op */
  ts_op_id position;       /* the op at whose position the kernel runs: the root, unless siblings were joined */
  ts_op_id first;          /* members in graph order, linked by `next` */
  ts_op_id reduction;      /* one of its reductions; TS_NO_ID: none */
  int64_t points;          /* size of its iteration space */
  int64_t rows, row;       /* with a reduction: the number of rows and of elements in each */
  bool trailing;           /* the reduced dims are the last ones, or few columns come after them */
  int64_t columns;         /* of such rows: as many columns take turns; otherwise 1 */
  bool has_points;         /* some output has an element for each point, not each row */
  bool writes_parts;       /* the root is pad or concatenate */
  bool terminal;           /* only the region's results use its outputs */
  uint32_t merged;         /* the group that it was merged into, or itself */
  bool composite;          /* not only elementwise ops: must be checked */
  int32_t members, inputs; /* `inputs` is an upper bound */
  bool measured;           /* `kernel` describes the current members */
  ts_fuse_kernel kernel;
} ts_fuse_group;

typedef struct ts_fuse_plan {
  const ts_graph *graph;
  ts_fuse_op *ops; /* one for each op of the graph */
  TS_VEC(ts_fuse_group) groups;
  bool check_all;      /* in the current region, groups that are not composite are checked, too */
  uint32_t *use_start; /* of each value: start of its readers in `use_ops`; built on first use */
  ts_op_id *use_ops;
  uint32_t *candidates; /* of each value: see fuse_siblings.c */
} ts_fuse_plan;

ts_status ts_fuse_plan_init(ts_fuse_plan *plan, const ts_graph *graph);
void ts_fuse_plan_deinit(ts_fuse_plan *plan);

/* Decides for the ops of one region (fuse_plan.c). */
ts_status ts_fuse_plan_region(ts_fuse_plan *plan, ts_region_id region);
/* *out is true when the group can be one kernel (fuse_check.c). */
ts_status ts_fuse_check_group(ts_fuse_plan *plan, uint32_t group, bool *out);
/* True when the op reads a view of memory. Only a check of its group tells where the elements are. */
bool ts_fuse_reads_view(const ts_graph *graph, const ts_op *op);

ts_status ts_fuse_measure(ts_fuse_plan *plan, uint32_t group, uint32_t other, ts_fuse_kernel *out);

/* Joins the region's reductions with groups that read the same values (fuse_siblings.c). `first` is the first of the
 * region's groups. */
ts_status ts_fuse_join_siblings(ts_fuse_plan *plan, ts_region_id region, size_t first);

static inline uint32_t ts_fuse_find(const ts_fuse_plan *plan, uint32_t group) {
  while (plan->groups.data[group].merged != group) group = plan->groups.data[group].merged;
  return group;
}
/* The members of `from` become members of `into`, in order. */
void ts_fuse_merge(ts_fuse_plan *plan, uint32_t into, uint32_t from);

/* Cost of computing the op for one element, in additions. */
int32_t ts_fuse_weight(ts_opcode op);

#endif
