/* Meshes, shardings and collectives in StableHLO. A program that is to be partitioned has sdy's mesh and shardings. A
 * partitioned program is an SPMD module for the number of partitions, with StableHLO's collectives. */
#include "ir/combiner.h"
#include "ir/stablehlo/stablehlo_internal.h"
#include "ir/syntax.h"

#include <string.h>

/* ---- meshes and shardings ---- */

static void print_string(hlo *h, const char *text) {
  ts_text_append(h->out, "\"");
  for (const char *c = text; *c; c++) {
    if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
      ts_text_format(h->out, "\\%02X", (unsigned)(unsigned char)*c);
    else
      ts_text_append_n(h->out, c, 1);
  }
  ts_text_append(h->out, "\"");
}

/* A name that begins with a digit is in quotes, as others that are no identifiers. */
static void print_mesh_name(hlo *h) {
  const char *name = ts_mesh_name(&h->graph->mesh), *c = name;
  while (ts_syntax_is_name(*c)) c++;
  ts_text_append(h->out, "@");
  if (*c || (*name >= '0' && *name <= '9'))
    print_string(h, name);
  else
    ts_text_append(h->out, name);
}

static void print_axis(hlo *h, int32_t axis) {
  char room[TS_MESH_NAME];
  print_string(h, ts_mesh_axis_name(&h->graph->mesh, axis, room));
}

void hlo_print_module_begin(hlo *h) {
  const ts_mesh *mesh = &h->graph->mesh;
  ts_text_append(h->out, "module ");
  if (mesh->partitioned || h->replicas)
    ts_text_format(h->out, "attributes {mhlo.num_%s = %d : i32} ", h->replicas ? "replicas" : "partitions",
                   ts_mesh_partitions(mesh));
  ts_text_append(h->out, "{\n");
  if (mesh->rank == 0 || mesh->partitioned || h->replicas) return;
  ts_text_append(h->out, "  sdy.mesh ");
  print_mesh_name(h);
  ts_text_append(h->out, " = <[");
  for (int32_t i = 0; i < mesh->rank; i++) {
    if (i > 0) ts_text_append(h->out, ", ");
    print_axis(h, i);
    ts_text_format(h->out, "=%d", mesh->sizes[i]);
  }
  ts_text_append(h->out, "]>\n");
}

static void print_dims(hlo *h, const ts_sharding *sharding, int32_t rank) {
  ts_text_append(h->out, "#sdy.sharding<");
  print_mesh_name(h);
  ts_text_append(h->out, ", [");
  for (int32_t d = 0; d < rank; d++) {
    const char *before = "";
    ts_text_append(h->out, d ? ", {" : "{");
    for (int32_t i = 0; i < sharding->count; i++) {
      if (sharding->cuts[i].dim != d) continue;
      ts_text_append(h->out, before);
      print_axis(h, sharding->cuts[i].axis);
      before = ", ";
    }
    ts_text_append(h->out, "}");
  }
  ts_text_append(h->out, "]>");
}

void hlo_print_sharding(hlo *h, ts_root_side side, size_t index, int32_t rank) {
  const ts_sharding *sharding = ts_graph_sharding(h->graph, side, index);
  if (!sharding || h->graph->mesh.rank == 0 || h->graph->mesh.partitioned || h->replicas) return;
  ts_text_append(h->out, " {sdy.sharding = ");
  print_dims(h, sharding, rank);
  ts_text_append(h->out, "}");
}

static ts_status print_constraint(hlo *h, const ts_op *op) {
  hlo_value operand = hlo_get(h, op->operands[0]);
  ts_sharding sharding;
  TS_TRY(ts_sharding_make(&h->graph->mesh, &op->attrs->sharding.axes, &op->attrs->sharding.dims, &operand.shape,
                          &sharding));
  h->names[op->first_result] = hlo_begin(h, "sdy.sharding_constraint", 1, &operand, 1);
  ts_text_append(h->out, " <{sharding = ");
  print_dims(h, &sharding, operand.shape.rank);
  ts_text_append(h->out, "}>");
  hlo_end(h, &operand, 1, &operand, 1);
  return TS_SUCCESS;
}

/* ---- collectives ---- */

/* Prints each group of partitions once, at its member 0; `first` is the member that is printed first. */
static void print_groups(hlo *h, const ts_dims *axes, int32_t first) {
  const ts_mesh *mesh = &h->graph->mesh;
  int32_t size = ts_mesh_group_size(mesh, axes), groups = 0;
  ts_text_append(h->out, "replica_groups = dense<[");
  for (int32_t p = 0; p < ts_mesh_partitions(mesh); p++) {
    if (ts_mesh_index(mesh, axes, p) != 0) continue;
    ts_text_append(h->out, groups++ ? ", [" : "[");
    for (int32_t m = 0; m < size; m++) {
      int32_t which = m == 0 ? first : m <= first ? m - 1 : m;
      ts_text_format(h->out, m ? ", %d" : "%d", ts_mesh_member(mesh, axes, p, which));
    }
    ts_text_append(h->out, "]");
  }
  ts_text_format(h->out, "]> : tensor<%dx%dxi64>", groups, size);
}

/* Members of all groups are exchanged alike. */
static void print_pairs(hlo *h, const ts_attrs *a) {
  const ts_mesh *mesh = &h->graph->mesh;
  const ts_dims *axes = &a->permute.axes;
  int32_t pairs = 0;
  if (a->permute.sources.rank == 0) { /* an empty list of pairs has no brackets in MLIR */
    ts_text_append(h->out, "source_target_pairs = dense<> : tensor<0x2xi64>");
    return;
  }
  ts_text_append(h->out, "source_target_pairs = dense<[");
  for (int32_t p = 0; p < ts_mesh_partitions(mesh); p++) {
    if (ts_mesh_index(mesh, axes, p) != 0) continue;
    for (int32_t i = 0; i < a->permute.sources.rank; i++)
      ts_text_format(h->out, "%s[%d, %d]", pairs++ ? ", " : "",
                     ts_mesh_member(mesh, axes, p, (int32_t)a->permute.sources.dims[i]),
                     ts_mesh_member(mesh, axes, p, (int32_t)a->permute.targets.dims[i]));
  }
  ts_text_format(h->out, "]> : tensor<%dx2xi64>", pairs);
}

static const char *combine_name(ts_opcode code);

/* Each collective of partitions has a channel of its own: the number of its result is as good as any. Without a channel
 * it is of replicas. */
static void print_channel(hlo *h, const ts_op *op) {
  if (h->replicas) return;
  ts_text_format(h->out, ", channel_handle = #stablehlo.channel_handle<handle = %u, type = 1>", h->next);
  if (combine_name(op->code) || op->code == TS_OP_ALL_GATHER) ts_text_append(h->out, ", use_global_device_ids");
}

/* NULL for collectives that move elements. */
static const char *combine_name(ts_opcode code) {
  switch (ts_collective_combines(code)) {
  case TS_OP_ADD: return "stablehlo.add";
  case TS_OP_MULTIPLY: return "stablehlo.multiply";
  case TS_OP_MIN: return "stablehlo.minimum";
  case TS_OP_MAX: return "stablehlo.maximum";
  case TS_OP_AND: return "stablehlo.and";
  case TS_OP_OR: return "stablehlo.or";
  default: return NULL;
  }
}

static void print_combiner(hlo *h, const char *name, hlo_element element) {
  hlo_value params[2];
  for (int i = 0; i < 2; i++) params[i] = hlo_new_value(h, element, &ts_shape_scalar);
  hlo_region_begin(h, true, params, 2);
  hlo_value result = hlo_binary(h, name, params[0], params[1]);
  hlo_region_end(h, true, &result, 1);
}

static const char *collective_name(ts_opcode code) {
  switch ((ts_ops_COLLECTIVE)code) {
  case TS_OP_ALL_REDUCE_SUM:
  case TS_OP_ALL_REDUCE_PRODUCT:
  case TS_OP_ALL_REDUCE_MIN:
  case TS_OP_ALL_REDUCE_MAX:
  case TS_OP_ALL_REDUCE_AND:
  case TS_OP_ALL_REDUCE_OR: return "stablehlo.all_reduce";
  case TS_OP_ALL_GATHER: return "stablehlo.all_gather";
  case TS_OP_REDUCE_SCATTER: return "stablehlo.reduce_scatter";
  case TS_OP_ALL_TO_ALL: return "stablehlo.all_to_all";
  case TS_OP_COLLECTIVE_PERMUTE: return "stablehlo.collective_permute";
  case TS_OP_COLLECTIVE_BROADCAST: return "stablehlo.collective_broadcast";
  case TS_OP_SHARDING_CONSTRAINT: /* see hlo_collective */
  case TS_OP_BARRIER: break;
  }
  return "";
}

/* Dims, groups and what else the op says. */
static void print_properties(hlo *h, const ts_op *op) {
  const ts_attrs *a = op->attrs;
  const ts_mesh *mesh = &h->graph->mesh;
  ts_text_append(h->out, " <{");
  switch ((int)op->code) {
  case TS_OP_ALL_GATHER: ts_text_format(h->out, "all_gather_dim = %d : i64, ", a->along.dim); break;
  case TS_OP_REDUCE_SCATTER: ts_text_format(h->out, "scatter_dimension = %d : i64, ", a->along.dim); break;
  case TS_OP_ALL_TO_ALL:
    ts_text_format(h->out, "split_dimension = %d : i64, concat_dimension = %d : i64, split_count = %d : i64, ",
                   a->exchange.split, a->exchange.concat, ts_mesh_group_size(mesh, &a->exchange.axes));
    break;
  default: break;
  }
  if (op->code == TS_OP_COLLECTIVE_PERMUTE)
    print_pairs(h, a);
  else
    print_groups(h, ts_op_mesh_axes(op), op->code == TS_OP_COLLECTIVE_BROADCAST ? a->rooted.root : 0);
  print_channel(h, op);
  ts_text_append(h->out, "}>");
}

static hlo_value reshape(hlo *h, hlo_value x, const ts_shape *shape) {
  return hlo_op(h, "stablehlo.reshape", x.element, shape, &x, 1);
}

/* XLA's CPUs have no broadcast of replicas: the part of the root out of all parts. */
static hlo_value print_broadcast(hlo *h, const ts_op *op, hlo_value x) {
  const ts_attrs *a = op->attrs;
  const int64_t count = ts_shape_elements(&x.shape), size = ts_mesh_group_size(&h->graph->mesh, &a->rooted.axes);
  const ts_shape shape = x.shape, one = ts_shape_make(1, &count), all = ts_shape_make(1, &(int64_t){count * size});
  const ts_shape start = ts_shape_make(1, &(int64_t){a->rooted.root * count}),
                 limit = ts_shape_make(1, &(int64_t){(a->rooted.root + 1) * count});
  x = reshape(h, x, &one);
  hlo_value gathered = {.element = x.element, .shape = all};
  gathered.name = hlo_begin(h, "stablehlo.all_gather", 1, &x, 1);
  ts_text_append(h->out, " <{all_gather_dim = 0 : i64, ");
  print_groups(h, &a->rooted.axes, 0);
  ts_text_append(h->out, "}>");
  hlo_end(h, &x, 1, &gathered, 1);
  x = hlo_op_with(h, "stablehlo.slice", (hlo_type){x.element, &one}, (hlo_values){&gathered, 1},
                  "start_indices = %s, limit_indices = %s, strides = array<i64: 1>", HLO_ARRAY(&start),
                  HLO_ARRAY(&limit));
  return reshape(h, x, &shape);
}

/* MLIR refuses to gather along a dim without elements. */
static bool gathers_nothing(const ts_op *op, const ts_shape *shape) {
  return op->code == TS_OP_ALL_GATHER && shape->dims[op->attrs->along.dim] == 0;
}

static hlo_value print_one(hlo *h, const ts_op *op, hlo_value x, const ts_shape *shape) {
  if (gathers_nothing(op, shape)) return hlo_integer(h, (ts_dtype)x.element, shape, 0);
  if (h->replicas && op->code == TS_OP_COLLECTIVE_BROADCAST) return print_broadcast(h, op, x);
  hlo_value result = {.element = x.element, .shape = *shape};
  result.name = hlo_begin(h, collective_name(op->code), 1, &x, 1);
  print_properties(h, op);
  if (combine_name(op->code)) print_combiner(h, combine_name(op->code), x.element);
  hlo_end(h, &x, 1, &result, 1);
  return result;
}

static bool is_on_bits(const ts_op *op) { return op->code == TS_OP_ALL_REDUCE_AND || op->code == TS_OP_ALL_REDUCE_OR; }

/* The type for combining or moving an operand: half types are summed in f32, ops on bits use integers. XLA's CPUs move
 * too few bytes of integers of less than a byte, so replicas exchange these in a byte each. */
static ts_dtype combined_type(const hlo *h, const ts_op *op, ts_dtype dtype) {
  if (h->replicas && ts_dtype_is_integer(dtype)) return ts_dtype_carrier(dtype);
  if (!combine_name(op->code)) return dtype;
  if (is_on_bits(op))
    return ts_dtype_is_integer(dtype) ? dtype : ts_dtype_of_bits(TS_KIND_UNSIGNED, ts_dtype_bits(dtype));
  return ts_dtype_is_float(dtype) ? ts_dtype_accumulator(dtype) : dtype;
}

static hlo_value recast(hlo *h, const ts_op *op, hlo_value x, ts_dtype to) {
  bool is_integer = ts_dtype_is_integer((ts_dtype)x.element) && ts_dtype_is_integer(to);
  if (is_integer || x.element == (hlo_element)to || !is_on_bits(op)) return hlo_convert(h, x, to);
  return hlo_op(h, "stablehlo.bitcast_convert", to, &x.shape, &x, 1);
}

static ts_status print_collective(hlo *h, const ts_op *op, uint32_t i) {
  hlo_value x = hlo_get(h, op->operands[i]);
  ts_dtype dtype = (ts_dtype)x.element, combined = combined_type(h, op, dtype);
  if (combined == TS_DTYPE_NONE) return hlo_no_form(&(hlo_call){.h = h, .op = op});
  x = print_one(h, op, recast(h, op, x, combined), ts_graph_value(h->graph, op->first_result + i)->shape);
  h->names[op->first_result + i] = recast(h, op, x, dtype).name;
  return TS_SUCCESS;
}

/* A barrier has no form; it changes no value. Nor does a constraint where the program is cut already. */
ts_status hlo_collective(hlo *h, const ts_op *op) {
  bool is_constraint = op->code == TS_OP_SHARDING_CONSTRAINT;
  if (is_constraint && !h->replicas) return print_constraint(h, op);
  for (uint32_t i = 0; i < op->operand_count; i++) {
    if (op->code == TS_OP_BARRIER || is_constraint)
      h->names[op->first_result + i] = h->names[op->operands[i]];
    else
      TS_TRY(print_collective(h, op, i));
  }
  return TS_SUCCESS;
}
