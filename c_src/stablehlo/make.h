/* Ops of a tree of MLIR as ops of a graph. Internal to stablehlo/. */
#ifndef TS_STABLEHLO_MAKE_H
#define TS_STABLEHLO_MAKE_H

#include "base/map.h"
#include "ir/graph.h"
#include "stablehlo/mlir_tree.h"
#include "stablehlo/read.h"

/* A value of the graph. StableHLO's i1 is u8, 0 or 1. A tuple has its parts' values; its own is a constant without use.
 */
typedef struct make_value {
  ts_value_id id;
  bool is_bool;
  const mlir_quant *quant;        /* of integers that stand for numbers; NULL */
  const struct make_value *parts; /* of a tuple; NULL */
  size_t part_count;
  ts_value_id part;            /* with `sharding`: this partition's part; `id` is the whole value */
  const ts_sharding *sharding; /* NULL: the value is not known in parts */
} make_value;

/* The names that ops of one region see: their own, and names of enclosing scopes in the same region of the graph.
 * Regions of a graph are closed, so a region's scope has all names that it uses as its own. */
typedef struct make_scope {
  ts_map names; /* to indices into `values` + 1 */
  TS_VEC(make_value) values;
} make_scope;

typedef ts_stablehlo_grid make_grid;
static inline int64_t make_count_processes(const make_grid *grid) { return grid->replicas * grid->partitions; }

/* An axis of a mesh of the module. Partitions that differ by one along it differ in their number by the stride. */
typedef struct make_axis {
  mlir_token mesh, name;
  int64_t stride, size;
} make_axis;

/* Functions and regions around an op: as many levels as a graph may have, and some for functions. */
#define MAKE_MOST_DEPTH (TS_MAX_LEVELS + 100)

typedef struct make_state {
  ts_arena arena; /* of the tree */
  mlir_module module;
  ts_graph *graph;
  size_t made;            /* number of ops. It has a limit: n functions that call each other twice make 2^n ops. */
  size_t depth;           /* functions and regions around the op */
  size_t nesting;         /* regions of the graph around the op */
  const ts_shape *lifted; /* the shape that a scalar stands for, in a region that is made of whole tensors */
  const ts_types *given;  /* the types of the arguments; NULL: the types in the module */
  bool is_symbolic;       /* a type of an argument has symbols: nothing was made */
  bool has_text;          /* the error is a text of the module */
  bool with_places;       /* ops have places: their locations */
  bool has_line;          /* the current place has a line of a file */
  const make_grid *grid;  /* NULL: there is one process */
  size_t process;         /* the process whose op is made */
  ts_mesh mesh;           /* the graph is the program of one of its partitions; of rank 0: there is one partition */
  bool keeps_shardings;   /* the graph is on whole values, and has the module's shardings of them */
  ts_mesh base;           /* that the axes of all meshes of the module are axes of; of rank 0: there is one partition */
  make_axis *axes;        /* of the meshes of the module, in the arena */
  size_t axis_count;
  bool has_other_groups; /* a collective has groups that are not along axes of the base */
  make_grid processes;   /* that the program is compiled for; zeros: those that the module says */
  ts_map known;          /* numbers of values, make_known.c: ts_dims in the arena */
  ts_map located;        /* places of locations, location/location_place.c */
  ts_map found_axes;     /* of collectives, by the op, mesh/make_mesh.c */
} make_state;

/* One op while it is made. */
typedef struct make_call {
  make_state *r;
  const mlir_op *op;
  ts_region_id region;
  make_scope *scope;
  const make_value *operands;
  make_value *results; /* room for as many as the op has types */
} make_call;

/* The same op among the names of another scope. With an empty one a called function sees no value of the op's scope. */
static inline make_call make_in_scope(const make_call *m, make_scope *scope) {
  make_call call = *m;
  call.scope = scope;
  return call;
}

/* The op has that name, as "stablehlo.add". */
static inline bool make_is(const make_call *m, const char *name) { return mlir_token_is(m->op->name, name); }

typedef ts_status (*make_fn)(const make_call *m);
/* The function that makes an op of that name; NULL when there is none. */
make_fn make_find(mlir_token name);

/* ---- read.c */
/* Reads a text or bytecode, and finds the function that the program is. */
ts_status make_read_tree(make_state *r, const char *text, size_t length, mlir_func **out_main);
void make_state_deinit(make_state *r); /* all but the graph */
/* Makes the ops of a region, except its return: its operands are looked up. */
ts_status make_block(make_state *r, const mlir_region *block, ts_region_id region, make_scope *scope,
                     make_value *out_results);
/* One op, which is not a return. */
ts_status make_op(make_state *r, const mlir_op *op, ts_region_id region, make_scope *scope);
/* The parts of it: the values of its operands, and names for its results. */
ts_status make_look_up_operands(const make_call *m, make_value *operands);
ts_status make_bind_results(const make_call *m);
/* An operand must be of the type of a function's argument. */
ts_status make_check_argument(const make_call *m, const mlir_func *func, size_t argument, size_t operand);
/* Binds a name of the text, or one of its `of` results. */
ts_status make_bind(make_scope *scope, mlir_token name, size_t index, size_t of, make_value value);
ts_status make_look_up(const make_scope *scope, mlir_token name, make_value *out);
void make_scope_deinit(make_scope *scope);
/* NULL when there is none. */
mlir_func *make_find_func(const make_state *r, mlir_token name);
/* call, composite: the ops of the function, here. */
ts_status make_inline(const make_call *m, mlir_token callee);

/* ---- make.c: pieces */
/* "line 3, column 7: stablehlo.add: message" */
ts_status make_error(const make_call *m, ts_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4), returns_nonnull));
#ifdef __clang_analyzer__
#define make_error(...) ts_error_assume((make_error)(__VA_ARGS__))
#endif
static inline const ts_value *make_value_of(const make_call *m, ts_value_id id) {
  return ts_graph_value(m->r->graph, id);
}
static inline const ts_value *make_operand_of(const make_call *m, size_t i) {
  return make_value_of(m, m->operands[i].id);
}
/* The op that makes a value; NULL: none, as of a parameter. */
static inline const ts_op *make_maker_of(const make_call *m, ts_value_id id) {
  const ts_op_id made = make_value_of(m, id)->op;
  return made == TS_NO_ID ? NULL : ts_graph_op(m->r->graph, made);
}
/* Whether each element of an operand is its place along the axis, which may be none of the operand's. */
static inline bool make_is_places(const make_call *m, size_t i, int64_t axis) {
  const ts_op *op = make_maker_of(m, m->operands[i].id);
  return op && op->code == TS_OP_IOTA && op->attrs->iota.axis == axis;
}
ts_status make_add(const make_call *m, ts_opcode code, ts_values operands, const ts_attrs *attrs, ts_value_id *out);
ts_status make_unary(const make_call *m, ts_opcode code, ts_value_id x, ts_value_id *out);
ts_status make_binary(const make_call *m, ts_opcode code, ts_value_id x, ts_value_id y, ts_value_id *out);
/* The elements of x at the places along the axis. */
ts_status make_take_along(const make_call *m, ts_value_id x, ts_value_id where, int32_t axis, ts_value_id *out);
ts_status make_bitcast(const make_call *m, ts_value_id x, ts_dtype type, ts_value_id *out);
/* x (op) a number of its type: of a float, or of an integer with all its bits. */
ts_status make_with(const make_call *m, ts_opcode code, ts_value_id x, double number, ts_value_id *out);
ts_status make_with_integer(const make_call *m, ts_opcode code, ts_value_id x, int64_t number, ts_value_id *out);
ts_status make_convert(const make_call *m, ts_value_id x, ts_dtype type, ts_value_id *out);
/* A value as another type: as i1, whether it is not zero. */
ts_status make_to_type(const make_call *m, const make_value *value, const mlir_type *type, ts_value_id *out);
/* An operand of a sum of products as the numbers that are multiplied. They have the result's type, but truth values are
 * f32, 0 or 1: such sums are quick, and 0 only where every product is, however many there are. */
ts_status make_factor(const make_call *m, size_t i, ts_value_id *out);
/* The sum of such products as the result's type: of truth values whether any product is true. */
ts_status make_sum_of_products(const make_call *m, ts_value_id *inout);
ts_status make_select(const make_call *m, ts_value_id predicate, ts_value_id x, ts_value_id y, ts_value_id *out);
/* The numbers of that type (TS_DTYPE_NONE: of any type) that a boolean says not to be 0: predicates may be numbers. The
 * boolean itself if it is made otherwise. */
ts_value_id make_truth_of(const make_call *m, const make_value *value, ts_dtype type);
/* A number of the type and the shape of another value. */
ts_status make_number(const make_call *m, ts_value_id like, double number, ts_value_id *out);
ts_status make_integer(const make_call *m, ts_value_id like, int64_t number, ts_value_id *out);
ts_status make_round_even(const make_call *m, ts_value_id x, ts_value_id *out);
/* x with the sign of its imaginary part changed; a real one is itself. */
ts_status make_conjugate(const make_call *m, ts_value_id x, ts_value_id *out);
/* Matrices with rows and columns exchanged, of conjugates. */
ts_status make_adjoint(const make_call *m, ts_value_id x, ts_value_id *out);
ts_status make_integer_of(const make_call *m, ts_dtype dtype, const ts_shape *shape, int64_t number, ts_value_id *out);
ts_status make_reshape(const make_call *m, ts_value_id x, const ts_shape *shape, ts_value_id *out);
ts_status make_transpose(const make_call *m, ts_value_id x, const ts_dims *axes, ts_value_id *out);
/* By the rules of numpy: trailing dims agree. */
ts_status make_broadcast_to(const make_call *m, ts_value_id x, const ts_shape *shape, ts_value_id *out);
ts_status make_broadcast(const make_call *m, ts_value_id x, const ts_shape *shape, const ts_dims *axes,
                         ts_value_id *out);
/* Elements start, start + stride, ... before the limit. */
typedef struct make_range {
  int64_t start, limit, stride;
} make_range;
/* A range of one axis. */
ts_status make_slice(const make_call *m, ts_value_id x, int32_t axis, make_range range, ts_value_id *out);
ts_status make_iota(const make_call *m, ts_dtype dtype, const ts_shape *shape, int32_t axis, ts_value_id *out);
/* Required attributes; `name` may be of a pretty form and of the generic one, as "dims|permutation". */
ts_status make_attr_int(const make_call *m, const char *name, int64_t *out);
ts_status make_attr_ints(const make_call *m, const char *name, ts_dims *out);
const mlir_attr *make_attr(const make_call *m, const char *names);
/* The i-th attribute without a name; NULL when there are fewer. */
const mlir_attr *make_positional(const mlir_op *op, size_t i);
/* A list of `rank` integers; without the attribute all are `otherwise`. */
ts_status make_ints_or(const mlir_attr *attr, int32_t rank, int64_t otherwise, ts_dims *out);
/* The integers of an item of a dictionary; none without it. */
ts_status make_dict_ints(const mlir_attr *dict, const char *name, ts_dims *out);
/* The dims of a product of matrices, by the names that all its ops have. */
ts_status make_dot_numbers(const mlir_attr *numbers, ts_attrs *attrs);
/* The product of the first two operands, of the result's type. */
ts_status make_dot(const make_call *m, const ts_attrs *attrs, ts_value_id *out);
/* Pairs of low and high; without the attribute zeros. */
ts_status make_attr_padding(const mlir_attr *attr, int32_t rank, ts_dims out[2]);
/* Checks that the op has `count` operands, and a result. */
ts_status make_count_operands(const make_call *m, size_t count);
static inline bool make_has_type(const ts_value *value, const mlir_type *type) {
  return value->dtype == type->dtype && mlir_shape_admits(type->shape, value->shape);
}
/* The same, in a region that may be lifted. */
static inline bool make_fits(const make_state *r, const ts_value *value, const mlir_type *type) {
  if (make_has_type(value, type)) return true;
  return r->lifted && type->shape->rank == 0 && value->dtype == type->dtype && ts_shape_equal(value->shape, r->lifted);
}
/* Sets a result. */
static inline void make_result(const make_call *m, size_t i, ts_value_id id) {
  m->results[i] = (make_value){.id = id, .is_bool = m->op->types.data[i].is_bool};
}

/* The computation of a region with a return, in a form that is equal for equal regions: "GT 0 1;return 2". Parameters
 * come first in the numbers, constants of the scopes around it are their values. Empty if an op is not simple. */
ts_status make_signature(const make_call *m, const mlir_region *region, ts_text *out);

/* The op's only region, which combines two numbers. */
ts_status make_find_pair(const make_call *m, const mlir_region **out);
/* A region of the graph, which combines two numbers of operand 0's type into one, as that region of the text does. */
ts_status make_combine(const make_call *m, ts_region_id *out);

/* Integers that are in order where floats are in the total order. Other types are themselves. */
ts_status make_total_key(const make_call *m, ts_value_id x, ts_value_id *out);

/* A region of scalars, made of whole tensors: the operands are of one shape, and so are the results. */
ts_status make_lifted(const make_call *m, const mlir_region *block, const ts_value_id *operands, make_value *results);
/* A sort by any comparator, which keeps the order of equals. */
ts_status make_any_sort(const make_call *m, int32_t axis);

/* ---- reductions and windows by any region */
typedef struct make_window {
  ts_dims sizes, strides, dilation, base, low, high; /* `base`: the dilation of the operand */
} make_window;
ts_status make_any_reduce(const make_call *m, const ts_dims *axes);
ts_status make_any_window(const make_call *m, const make_window *window);
/* Puts the initial value around and between the elements of a window's operand. It counts as an element does. */
ts_status make_pad_window(const make_call *m, ts_value_id init, const make_window *window, ts_value_id *x);

/* ---- make_dynamic.c */
/* Appends bytes of a token without the escapes of a text: \n, \t, \", \\, and two hexadecimal digits. */
void make_append_plain(mlir_token token, size_t from, size_t to, ts_text *out);

/* ---- make_region.c */
/* Checks that the parameters of an op's regions have the types that its operands say. */
ts_status make_check_regions(const make_call *m);

/* ---- make_known.c */
/* The numbers of an integer tensor of at most TS_MAX_RANK elements in order; NULL when they are not known. */
ts_status make_find_known(const make_call *m, ts_value_id id, const ts_dims **out);
/* The same for an operand; an error when they are not known. */
ts_status make_known(const make_call *m, size_t operand, ts_dims *out);

/* ---- make_quant.c */
/* Whether an operand or a result has quantised numbers, and the op is not one that hands values on. */
bool make_is_quantized(const make_call *m);
/* The op by the function that makes it of numbers, or of integers if it only moves them. */
ts_status make_quantized(const make_call *m, make_fn make);

/* ---- make_custom.c */
/* A call of a target, by its text (kernel/custom.h), on the first operands. Its results are the op's. */
ts_status make_custom(const make_call *m, const char *text, size_t operands);
/* An item of the target's configuration; NULL without it. */
const mlir_attr *make_config_item(const make_call *m, const char *name);
/* The function that a custom call names; NULL when it names none, or several. */
const mlir_func *make_find_called(const make_call *m);
ts_status make_in_plugin(const make_call *m, mlir_token target);
ts_status make_in_approx_top_k(const make_call *m);

/* ---- make_collective.c */
/* What the numbers of a collective's groups name: replicas of the own partition, partitions of the own replica, all
 * partitions of replicas, or processes. */
typedef enum make_grouping { MAKE_REPLICAS, MAKE_PARTITIONS, MAKE_BOTH, MAKE_PROCESSES } make_grouping;
/* The groups of a collective, or the pairs of a permutation, each a row. */
typedef struct make_groups {
  make_grid grid;
  make_grouping grouping;
  bool is_pairs;
  int64_t *numbers; /* of all rows */
  size_t *starts;   /* where a row begins in `numbers`, and the end of the last one */
  int32_t *row_of;  /* of each number, from 1; 0: none. Of pairs it is the row of a target; those of sources follow. */
} make_groups;
/* One of them, of processes. */
typedef struct make_group {
  const int64_t *numbers; /* of the groups */
  size_t count;
  int64_t scale, first; /* number i is process first + i * scale */
} make_group;
static inline size_t make_member(const make_group *group, size_t i) {
  return (size_t)(group->first + group->numbers[i] * group->scale);
}
/* The attribute with the number of an op's channel; NULL without it. */
const mlir_attr *make_find_channel(const make_call *m, const char *names);
/* Reads the groups of a collective once, for all processes. */
ts_status make_read_groups(const make_call *m, const make_grid *grid, make_groups *out);
void make_groups_deinit(make_groups *groups);
/* The group of a process; of a permutation its source and itself. Empty: it is in none. */
make_group make_find_group(const make_groups *groups, size_t own);
/* The members in ascending order; `out` has room for all of them. */
void make_sort_members(const make_group *group, size_t *out);
/* Sets the results of one member, at a place among all. Without members they are zeros. */
ts_status make_collective(const make_call *m, const make_call *const *members, size_t count, size_t place);

/* ---- mesh/make_axes.c: the meshes of a module as one */
/* Finds the base: the mesh of the module, if all are the same; a mesh that has the axes of all of them. */
ts_status make_find_mesh(make_state *r);
/* Cuts the axes of the base where groups of collectives and replicas begin and end. */
ts_status make_refine_mesh(make_state *r);
/* A bit for each axis of the base in a list of axes of a mesh. */
ts_status make_read_axes(const make_state *r, mlir_token mesh, const mlir_attr *list, unsigned *out);
/* A sharding of a value of that shape; axes that are not allowed cut nothing. */
ts_status make_read_sharding(const make_state *r, const mlir_attr *attr, const ts_shape *shape, unsigned allowed,
                             ts_sharding *out);

/* ---- mesh/make_mesh.c: a module for the partitions of a mesh */
#define MAKE_MOST_PARTITIONS 4096
/* The number of partitions that the module says. */
ts_status make_find_partitions(const make_state *r, int64_t *out);
/* All processes that run the program. */
make_grid make_processes(const make_state *r);
/* Sets the mesh, if @main has a part that is written for one partition, or the program is compiled for several. */
ts_status make_begin_local(make_state *r, mlir_func *main);
/* The function that an op calls; NULL if it calls none. */
mlir_func *make_find_callee(const make_state *r, const mlir_op *op);
/* True for an op that needs to know its partition. */
bool make_is_placed(const make_state *r, const mlir_op *op);
/* The sharding in the attributes of an argument or a result; NULL without it. */
const mlir_attr *make_find_sharding(const mlir_attr *attrs);
/* How a result of @main is cut in the program of one partition. */
ts_status make_result_sharding(const make_state *r, const mlir_func *main, size_t result, ts_root_sharding *out);
/* The axes of the base along which the groups of a collective are, if there are such. With `out_root` a group begins
 * with its root: the root's place. */
ts_status make_find_axes(const make_call *m, size_t *out_root, ts_dims *out, bool *out_found);
ts_status make_find_permutation(const make_call *m, ts_attrs *out);

/* ---- mesh/make_local.c: the program of one partition */
/* Adds the coordinates of the partition as the last argument. */
ts_status make_add_coordinates(make_state *r, make_scope *scope);
/* The name of the coordinates, for an op that uses them without naming them; false for another op. */
bool make_find_hidden(const make_state *r, const mlir_op *op, mlir_token *out);
/* Binds them in the scope of a function that needs them. */
ts_status make_pass_coordinates(const make_call *m, const mlir_func *func, make_scope *inner);
/* The own part of a value. */
ts_status make_part(const make_call *m, const make_value *value, const ts_sharding *sharding, ts_value_id *out);
/* Sets a value by its part. */
ts_status make_whole(const make_call *m, const ts_sharding *sharding, ts_value_id part, make_value *out);
ts_status make_gather_parts(const make_call *m, const ts_sharding *sharding, ts_value_id part, ts_value_id *out);
/* s32[]: the number of the process. */
ts_status make_own_number(const make_call *m, ts_value_id *out);
/* replica_id, partition_id */
ts_status make_process_id(const make_call *m, bool of_replica);
/* A value, with the sharding that the text says for it. */
ts_status make_in_constraint(const make_call *m);
ts_status make_local_collective(const make_call *m);
/* The dim of that shape that an attribute names. */
ts_status make_find_dim(const make_call *m, const char *name, const ts_shape *shape, int32_t *out);
/* The values of the members along the axes, as rows. */
ts_status make_gather_rows(const make_call *m, const ts_dims *axes, ts_value_id x, ts_value_id *out);
/* Row i of them. */
ts_status make_take_row(const make_call *m, ts_value_id rows, int64_t i, ts_value_id *out);
ts_status make_in_manual(const make_call *m);

/* ---- mesh/make_members.c: a collective of groups that are not along axes */
ts_status make_of_members(const make_call *m);

/* make_reduce.c: the op that the op's region is: TS_OP_ADD, MULTIPLY, MAX, MIN, AND or OR; TS_OP_COUNT: another one. */
ts_status make_find_combine(const make_call *m, bool is_bool, ts_opcode *out);

/* ---- files of ops */
ts_status make_in_collective(const make_call *m);
ts_status make_in_process_id(const make_call *m);
ts_status make_in_parallel(const make_call *m);
ts_status make_in_random(const make_call *m);
ts_status make_in_norm(const make_call *m);
ts_status make_in_tuple(const make_call *m);
ts_status make_in_token(const make_call *m);
/* Sets a result that is a token. */
ts_status make_token(const make_call *m, size_t result);
ts_status make_in_map(const make_call *m);
ts_status make_in_quantize(const make_call *m);
ts_status make_in_chlo(const make_call *m);
ts_status make_in_dynamic(const make_call *m);
ts_status make_in_dynamic_window(const make_call *m);
ts_status make_in_dynamic_top_k(const make_call *m);
ts_status make_in_assertion(const make_call *m);
/* A custom call's target is a routine of LAPACK. */
bool make_is_lapack(mlir_token target);
ts_status make_in_lapack(const make_call *m, mlir_token target);
/* Tridiagonal systems whose pivots are moved away from 0. */
ts_status make_in_perturbed(const make_call *m);
ts_status make_in_csr_dense(const make_call *m);
ts_status make_in_special(const make_call *m);
ts_status make_in_control(const make_call *m);
ts_status make_in_reduce(const make_call *m);
ts_status make_in_window(const make_call *m);
ts_status make_in_select_scatter(const make_call *m);
ts_status make_in_conv(const make_call *m);
ts_status make_in_gather(const make_call *m);
ts_status make_in_scatter(const make_call *m);
ts_status make_in_sort(const make_call *m);
ts_status make_in_top_k(const make_call *m);

#endif
