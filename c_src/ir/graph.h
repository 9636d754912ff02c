/* A graph: ops on typed, shaped values, in nested regions. Values, ops
 * and regions are ids into the graph's arrays. The graph's arena holds their
 * lists and is freed with the graph, which then releases literals' buffers. Not
 * thread-safe while it is built; many threads may read it.
 *
 * Every op belongs to one region and comes after the ops whose results it uses.
 * Regions are closed: an op uses only values of its own region (its parameters
 * and earlier results). Region 0 is the program itself, whose parameters are
 * its arguments. */
#ifndef TS_IR_GRAPH_H
#define TS_IR_GRAPH_H

#include "base/arena.h"
#include "base/places.h"
#include "base/text.h"
#include "base/vec.h"
#include "ir/mesh.h"
#include "ir/op.h"
#include "tensor/buffer.h"

typedef uint32_t ts_value_id;
typedef uint32_t ts_op_id;
typedef uint32_t ts_region_id;
#define TS_NO_ID UINT32_MAX

/* A list of values, such as an op's operands. */
typedef struct ts_values {
  const ts_value_id *data;
  size_t count;
} ts_values;
/* Levels of regions below the program that a front end may make, and that there may be with the loops and fusions of
 * passes. They bound every recursion over regions, which base/deep.h finds the stack for. */
#define TS_MAX_NESTING 1000
#define TS_MAX_LEVELS (TS_MAX_NESTING + 8)

/* Types of fields in attr.def, and of C. */
typedef enum ts_field_type {
  TS_FIELD_DTYPE,
  TS_FIELD_RESULT_SHAPE,
  TS_FIELD_SHAPE,
  TS_FIELD_DIMS,
  TS_FIELD_AXES,
  TS_FIELD_INT,
  TS_FIELD_UINT,
  TS_FIELD_BOOL,
  TS_FIELD_SCALAR,
  TS_FIELD_BUFFER,
  TS_FIELD_REGION,
  TS_FIELD_REGIONS
} ts_field_type;
typedef ts_region_id ts_region_pair[2];
#define TS_C_DTYPE ts_dtype
#define TS_C_RESULT_SHAPE ts_shape
#define TS_C_SHAPE ts_shape
#define TS_C_DIMS ts_dims
#define TS_C_AXES ts_dims
#define TS_C_INT int32_t
#define TS_C_UINT uint32_t
#define TS_C_BOOL bool
#define TS_C_SCALAR ts_scalar
#define TS_C_BUFFER ts_buffer *
#define TS_C_REGION ts_region_id
#define TS_C_REGIONS ts_region_pair

/* The member of ts_op_attr_kind(), as attr.def has it. A graph keeps ts_attrs_size() bytes and no more: copy them with
 * ts_op_copy_attrs(). There the axes of reverse and reductions are sorted, and a constant's bits above its width are
 * zero; ts_graph_add_op sees to that. */
typedef struct ts_attrs {
  union {
#define TS_ATTRS(kind) struct {
#define TS_ATTR(path, name, type) TS_C_##type name;
#define TS_ATTRS_END(kind, member) \
  }                                \
  member;
#include "ir/attr.def"
  };
} ts_attrs;

typedef struct ts_value {
  const ts_shape *shape; /* of the graph's; values of one graph with equal shapes mostly share it */
  ts_dtype dtype;
  ts_op_id op;    /* the op that defines it; TS_NO_ID for a region parameter */
  uint32_t index; /* which result or parameter it is */
  ts_region_id region;
} ts_value;

typedef struct ts_op {
  ts_opcode code;
  ts_region_id region;
  uint32_t operand_count;
  uint32_t result_count;    /* as op.def says, or as many as a region has */
  ts_value_id first_result; /* results have consecutive ids */
  ts_place place;           /* in the user's source; 0: not known */
  ts_value_id *operands;
  const ts_attrs *attrs; /* ts_attrs_size() bytes, shared by equal ops; NULL for TS_ATTR_NONE */
} ts_op;

typedef struct ts_region {
  ts_op_id parent;      /* the op that holds it, or first did; TS_NO_ID for the program or while it is being built */
  bool finished;        /* its results were set */
  bool has_effect;      /* it has an op with an effect, or an op that holds such a region */
  uint32_t height;      /* levels of regions below it */
  TS_VEC(ts_op_id) ops; /* in order */
  TS_VEC(ts_value_id) params;
  TS_VEC(ts_value_id) results;
} ts_region;

/* How an argument or result of the program is cut. */
typedef struct ts_root_sharding {
  bool given;
  ts_sharding sharding;
} ts_root_sharding;
typedef enum ts_root_side { TS_PARAMS, TS_RESULTS } ts_root_side;

typedef struct ts_graph {
  ts_arena arena;           /* lists of ids, attributes with regions, the name */
  struct ts_intern *intern; /* shapes and other attributes */
  TS_VEC(ts_value) values;
  TS_VEC(ts_op) ops;
  TS_VEC(ts_region) regions;
  char *name; /* "main" unless set; in the arena */
  ts_mesh mesh;
  TS_VEC(ts_root_sharding) param_shardings, result_shardings; /* those without an entry are not given */
  ts_places *places; /* of the ops; NULL: places are not recorded. Graphs that are made from this one share it */
  ts_place place;    /* of ops that are added now */
} ts_graph;

#define TS_ROOT ((ts_region_id)0)

/* ---- creation ---- */
ts_status ts_graph_create(ts_graph **out);
/* An empty graph, to be made from another one: they share interned shapes and attributes. Either may be destroyed
 * first; nothing may be added to `from` while another thread adds to the new one. */
ts_status ts_graph_create_from(const ts_graph *from, ts_graph **out);
void ts_graph_destroy(ts_graph *graph); /* NULL is fine */
/* The graph has the other one's places, as a copied op has its own. */
void ts_graph_share_places(ts_graph *graph, const ts_graph *from);
ts_status ts_graph_set_name(ts_graph *graph, const char *name);

/* Sets the mesh, before there are collectives. A graph that is made from another one has that one's mesh and root
 * shardings. */
ts_status ts_graph_set_mesh(ts_graph *graph, const ts_mesh *mesh);
/* How the `index`-th argument or result is cut. Its axes are of the mesh; ts_graph_verify checks it against the shape.
 */
ts_status ts_graph_set_sharding(ts_graph *graph, ts_root_side side, size_t index, const ts_sharding *sharding);
/* NULL without one. */
const ts_sharding *ts_graph_sharding(const ts_graph *graph, ts_root_side side, size_t index);
/* Another graph's mesh and root shardings. */
ts_status ts_graph_copy_mesh(ts_graph *graph, const ts_graph *from);

/* Opens a region with no parameters; it is given to an op by that op's attributes. */
ts_status ts_graph_add_region(ts_graph *graph, ts_region_id *out);
/* Adds a parameter at the end of a region's parameters. For the root this is how arguments
 * come in (the parameter op is text sugar only and never in `ops`). */
ts_status ts_graph_add_param(ts_graph *graph, ts_region_id region, ts_dtype dtype, const ts_shape *shape,
                             ts_value_id *out);

/* The same for a value that another graph has. */
ts_status ts_graph_add_param_like(ts_graph *graph, ts_region_id region, const ts_graph *from, ts_value_id like,
                                  ts_value_id *out);

/* The same for all parameters of a region of another graph. `map` has one entry per value of that graph; the
 * parameters' entries are set. */
ts_status ts_graph_add_params_like(ts_graph *graph, ts_region_id region, const ts_graph *from, ts_region_id like,
                                   ts_value_id *map);

/* Adds an op at the end of a region: checks operands and attributes, infers
 * the results' types and shapes. `attrs` is copied and may be NULL for
 * TS_ATTR_NONE; a literal's buffer is retained. `out` gets the first result; the others follow it.
 * Regions in the attributes must be finished. Errors name the op, the operands' types and shapes, and the expected
 * ones; the graph is then as before. */
ts_status ts_graph_add_op(ts_graph *graph, ts_region_id region, ts_opcode code, ts_values operands,
                          const ts_attrs *attrs, ts_value_id *out);
/* Adds an op without regions that another graph has, on operands of the same types: so nothing is inferred
 * or checked again. `out` gets the first result. */
ts_status ts_graph_add_like(ts_graph *graph, ts_region_id region, const ts_graph *from, ts_op_id like,
                            const ts_value_id *operands, ts_value_id *out);
/* Adds a fusion of a finished region, on operands that have the types of its parameters: not checked again either.
 * Fusions that do the same may share a region, whose parent is the first of them. */
ts_status ts_graph_add_fusion(ts_graph *graph, ts_region_id region, ts_region_id body, const ts_value_id *operands,
                              size_t operand_count, ts_value_id *out);
/* The attributes in their canonical form, as the graph's ops have them: at one address when they are equal. Not for ops
 * with regions. `*out` is NULL for ops without attributes. */
ts_status ts_graph_keep_attrs(ts_graph *graph, ts_opcode code, const ts_attrs *attrs, const ts_attrs **out);
/* Makes room for that many more values and ops, so that arrays do not grow step by step. */
ts_status ts_graph_reserve(ts_graph *graph, size_t values, size_t ops);
ts_status ts_graph_reserve_region(ts_graph *graph, ts_region_id region, size_t params, size_t ops);
/* Sets a region's results (values of that region) and finishes it. May be done again until an op holds the region; from
 * then on nothing can be added to it. */
ts_status ts_graph_set_results(ts_graph *graph, ts_region_id region, const ts_value_id *values, size_t count);

/* Shorthands over ts_graph_add_op, all in `region`. */
ts_status ts_graph_constant(ts_graph *graph, ts_region_id region, ts_dtype dtype, const ts_shape *shape,
                            ts_scalar value, ts_value_id *out);
/* Scalar or any broadcastable operand to `shape`, numpy rules; `value` itself when it has the shape. */
ts_status ts_graph_broadcast_to(ts_graph *graph, ts_region_id region, ts_value_id value, const ts_shape *shape,
                                ts_value_id *out);
ts_status ts_graph_convert(ts_graph *graph, ts_region_id region, ts_value_id value, ts_dtype dtype, ts_value_id *out);

/* Copies a region's ops into another graph or region. `map` has one entry per value of `from`; entries
 * of the region's parameters must be set, the others of that region are filled in. */
ts_status ts_graph_copy_ops(const ts_graph *from, ts_region_id source, ts_graph *to, ts_region_id target,
                            ts_value_id *map);
/* One op of that: its operands' entries must be set, its results' are filled in. */
ts_status ts_graph_copy_op(const ts_graph *from, ts_op_id op, ts_graph *to, ts_region_id target, ts_value_id *map);
ts_status ts_graph_clone(const ts_graph *graph, ts_graph **out);

/* ---- reading ---- */
static inline const ts_value *ts_graph_value(const ts_graph *g, ts_value_id v) { return &g->values.data[v]; }
static inline const ts_op *ts_graph_op(const ts_graph *g, ts_op_id o) { return &g->ops.data[o]; }
static inline ts_region *ts_graph_region(const ts_graph *g, ts_region_id r) { return &g->regions.data[r]; }
size_t ts_attrs_size(ts_attr_kind kind);
/* False for ops on types without kernels, and for arithmetic on small and complex types, which passes turn into ops on
 * other types (pass/widen.c, pass/complex/complex.c). */
bool ts_graph_has_kernel_types(const ts_graph *graph, const ts_op *op);
/* True when the op, or one in its regions, must happen once and in order: no pass may drop, share or reorder it. */
bool ts_graph_has_effect(const ts_graph *graph, const ts_op *op);
static inline void ts_attrs_set_constant(ts_attrs *attrs, ts_dtype dtype, const ts_shape *shape, ts_scalar value) {
  attrs->constant.dtype = dtype;
  attrs->constant.value = value;
  ts_shape_copy(&attrs->constant.shape, shape);
}
/* All of an op's attributes; zeros without any. */
ts_attrs ts_op_copy_attrs(const ts_op *op);
/* The mesh axes of a collective. */
const ts_dims *ts_op_mesh_axes(const ts_op *op);
/* True of a permutation without pairs: no member is a target, so the results are zeros. */
static inline bool ts_op_permutes_nothing(const ts_op *op) {
  return op->code == TS_OP_COLLECTIVE_PERMUTE && op->attrs->permute.targets.rank == 0;
}
/* True when the results are the operands: of a constraint, and of a collective of one partition. */
bool ts_op_is_identity(const ts_graph *graph, const ts_op *op);
/* Levels of regions that an op of the graph holds. */
uint32_t ts_op_height(const ts_graph *graph, const ts_op *op);
/* Writes the regions an op holds (at most 2), returns how many. */
size_t ts_op_regions(const ts_op *op, ts_region_id out[2]);
/* Puts other regions into a copy of an op's attributes, in that order. */
void ts_attrs_set_regions(ts_opcode code, ts_attrs *attrs, const ts_region_id regions[2]);
/* One entry per value: how many ops and region results use it. Caller frees with ts_free. */
ts_status ts_graph_count_uses(const ts_graph *graph, uint32_t **out);
/* True when the value is a constant op; then *out is its scalar. */
static inline bool ts_graph_is_constant(const ts_graph *graph, ts_value_id value, ts_scalar *out) {
  ts_op_id id = ts_graph_value(graph, value)->op;
  if (id == TS_NO_ID || ts_graph_op(graph, id)->code != TS_OP_CONSTANT) return false;
  *out = ts_graph_op(graph, id)->attrs->constant.value;
  return true;
}
/* True for a contraction without free dims, by the ranks of its operands. Its sums have their own order
 * (tensor/dot_order.h). Dims of one element count, so parts of operands are summed like whole operands. */
static inline bool ts_graph_is_vector_dot(const ts_graph *graph, const ts_op *op) {
  if (op->code != TS_OP_DOT) return false;
  return ts_graph_value(graph, op->operands[0])->shape->rank ==
             op->attrs->dot.lhs_batch.rank + op->attrs->dot.lhs_contract.rank &&
         ts_graph_value(graph, op->operands[1])->shape->rank ==
             op->attrs->dot.rhs_batch.rank + op->attrs->dot.rhs_contract.rank;
}
/* True for a convolution of one group and one tap, where each point reads the same point of the operand. It is a
 * product of points and channels by channels and features, and has its order of sums (tensor/contract_order.h). */
static inline bool ts_conv_is_point(const ts_attrs *attrs, const ts_shape *kernel) {
  if (attrs->conv.groups != 1) return false;
  for (int32_t d = 0; d < kernel->rank - 2; d++)
    if (kernel->dims[d] != 1 || attrs->conv.strides.dims[d] != 1 || attrs->conv.low.dims[d] != 0 ||
        attrs->conv.high.dims[d] != 0 || attrs->conv.input_dilation.dims[d] != 1)
      return false;
  return true;
}
static inline bool ts_graph_is_point_conv(const ts_graph *graph, const ts_op *op) {
  return op->code == TS_OP_CONV && ts_conv_is_point(op->attrs, ts_graph_value(graph, op->operands[1])->shape);
}

/* ---- infer.c: what ts_graph_add_op uses ---- */
typedef struct ts_type {
  ts_dtype dtype;
  ts_shape shape;
} ts_type;
typedef struct ts_types {
  const ts_type *data;
  size_t count;
} ts_types;
static inline void ts_type_set(ts_type *out, ts_dtype dtype, const ts_shape *shape) {
  out->dtype = dtype;
  ts_shape_copy(&out->shape, shape);
}
/* The types of an op's results: `count` of `room`. */
typedef struct ts_result_types {
  ts_type *data;
  size_t room, count;
} ts_result_types;
/* An error when there is too little room. */
ts_status ts_infer(const ts_graph *graph, ts_opcode code, ts_values operands, const ts_attrs *attrs,
                   ts_result_types *out);

/* ---- verify.c ---- */
/* Everything the other parts rely on: ids in range, order, closedness, types
 * as inferred. Safe on any graph that the parser or a pass can make. */
ts_status ts_graph_verify(const ts_graph *graph);

/* ---- print.c, parse.c ---- */
ts_status ts_graph_print(const ts_graph *graph, ts_text *out);
/* Prints a closed region as a program. */
ts_status ts_graph_print_region(const ts_graph *graph, ts_region_id region, ts_text *out);
/* Parses what ts_graph_print writes. Errors give line and column. Input need not be NUL-terminated. */
ts_status ts_graph_parse(const char *text, size_t length, ts_graph **out);

#endif
