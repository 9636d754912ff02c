/* Prints the text form. It is canonical: values are numbered in the order of the text, and every attribute has one
 * spelling. Also prints invalid graphs as far as possible, for debugging. */
#include "base/deep.h"
#include "ir/attrs.h"
#include "ir/syntax.h"

typedef struct printer {
  const ts_graph *graph;
  ts_text *out;
  uint32_t *numbers; /* by value id; TS_NO_ID until the value was printed as a result */
  uint32_t next;
} printer;

static void print_region(printer *p, ts_region_id id, int depth);

static void indent(printer *p, int depth) {
  for (int i = 0; i < depth; i++) ts_text_append(p->out, "  ");
}

static void print_dims(printer *p, const ts_dims *dims) {
  ts_text_append(p->out, "[");
  for (int32_t i = 0; i < dims->rank; i++) {
    if (i) ts_text_append_n(p->out, ",", 1);
    ts_text_int(p->out, dims->dims[i]);
  }
  ts_text_append(p->out, "]");
}

static void print_type(printer *p, ts_dtype dtype, const ts_shape *shape) {
  ts_text_append(p->out, ts_dtype_name(dtype));
  print_dims(p, shape);
}

static void print_value_type(printer *p, ts_value_id id) {
  if (id >= p->graph->values.count) {
    ts_text_append(p->out, "?");
    return;
  }
  const ts_value *value = ts_graph_value(p->graph, id);
  print_type(p, value->dtype, value->shape);
}

static void print_number(printer *p, uint32_t number) {
  ts_text_append_n(p->out, "%", 1);
  ts_text_uint(p->out, number);
}

static void define_value(printer *p, ts_value_id id) {
  if (id < p->graph->values.count) p->numbers[id] = p->next;
  print_number(p, p->next++);
}

static void print_use(printer *p, ts_value_id id) {
  if (id < p->graph->values.count && p->numbers[id] != TS_NO_ID) {
    print_number(p, p->numbers[id]);
  } else {
    ts_text_append(p->out, "%?");
  }
}

static void print_uses(printer *p, const ts_value_id *ids, size_t count) {
  for (size_t i = 0; i < count; i++) {
    ts_text_append(p->out, i ? ", " : " ");
    print_use(p, ids[i]);
  }
}

/* ---- attributes ---- */

static void print_bytes(printer *p, const ts_buffer *buffer) {
  ts_text_append(p->out, " \"");
  ts_syntax_print_hex(p->out, buffer->data, (size_t)buffer->bytes);
  ts_text_append(p->out, "\"");
}

/* Inference has checked that it has no quotation marks. */
static void print_call_text(printer *p, const ts_buffer *call) {
  ts_text_append(p->out, " \"");
  if (call) ts_text_append_n(p->out, call->data, (size_t)call->bytes);
  ts_text_append(p->out, "\"");
}

static void print_field(printer *p, const ts_attr_field *field, const ts_attrs *attrs) {
  const void *at = ts_attr_in(attrs, field);
  ts_text_append(p->out, field->name);
  ts_text_append_n(p->out, " = ", 3);
  switch (field->type) {
  case TS_FIELD_INT: ts_text_int(p->out, *(const int32_t *)at); return;
  case TS_FIELD_UINT: ts_text_uint(p->out, *(const uint32_t *)at); return;
  case TS_FIELD_BOOL: ts_text_append(p->out, *(const bool *)at ? "true" : "false"); return;
  case TS_FIELD_SHAPE:
  case TS_FIELD_DIMS:
  case TS_FIELD_AXES: print_dims(p, at); return;
  case TS_FIELD_DTYPE:
  case TS_FIELD_RESULT_SHAPE:
  case TS_FIELD_SCALAR:
  case TS_FIELD_BUFFER:
  case TS_FIELD_REGION:
  case TS_FIELD_REGIONS: return; /* not in braces */
  }
}

static void print_attrs(printer *p, const ts_op *op) {
  const char *before = " {";
  if (!op->attrs) return;
  if (op->code == TS_OP_LITERAL && op->attrs->literal.buffer) print_bytes(p, op->attrs->literal.buffer);
  if (op->code == TS_OP_CUSTOM_CALL) print_call_text(p, op->attrs->custom.call);
  if (op->code == TS_OP_CONSTANT) {
    ts_text_append(p->out, " ");
    ts_scalar_print(p->out, op->attrs->constant.dtype, op->attrs->constant.value);
  }
  for (const ts_attr_field *field = ts_attr_fields(ts_op_attr_kind(op->code)); field->name; field++) {
    if (!ts_field_is_in_braces(field->type)) continue;
    ts_text_append(p->out, before);
    print_field(p, field, op->attrs);
    before = ", ";
  }
  if (*before == ',') ts_text_append(p->out, "}");
}

/* ---- regions and ops ---- */

static void print_sharding(printer *p, ts_root_side side, size_t index, ts_value_id id) {
  const ts_sharding *sharding = ts_graph_sharding(p->graph, side, index);
  if (!sharding || id >= p->graph->values.count) return;
  ts_text_append(p->out, " sharded ");
  ts_sharding_print(sharding, ts_graph_value(p->graph, id)->shape->rank, p->out);
}

static void print_params(printer *p, const ts_region *region, bool is_root) {
  ts_text_append(p->out, "(");
  for (size_t i = 0; i < region->params.count; i++) {
    if (i) ts_text_append(p->out, ", ");
    define_value(p, region->params.data[i]);
    ts_text_append(p->out, ": ");
    print_value_type(p, region->params.data[i]);
    if (is_root) print_sharding(p, TS_PARAMS, i, region->params.data[i]);
  }
  ts_text_append(p->out, ")");
}

static void print_op_regions(printer *p, const ts_op *op, int depth) {
  ts_region_id regions[2];
  const char *const *names = ts_op_region_names(op->code);
  size_t count = op->attrs ? ts_op_regions(op, regions) : 0;
  if (count == 0) return;
  ts_text_append(p->out, " {\n");
  for (size_t i = 0; i < count; i++) {
    indent(p, depth + 1);
    ts_text_append(p->out, names[i]);
    if (regions[i] < p->graph->regions.count && depth / 2 <= TS_MAX_LEVELS) {
      print_params(p, ts_graph_region(p->graph, regions[i]), false);
      ts_text_append(p->out, " ");
      print_region(p, regions[i], depth + 1);
    }
    ts_text_append(p->out, "\n");
  }
  indent(p, depth);
  ts_text_append(p->out, "}");
}

static void print_op(printer *p, ts_op_id id, int depth) {
  const ts_op *op = ts_graph_op(p->graph, id);
  indent(p, depth);
  for (uint32_t i = 0; i < op->result_count; i++) {
    if (i) ts_text_append(p->out, ", ");
    define_value(p, op->first_result + i);
  }
  ts_text_append_n(p->out, " = ", 3);
  ts_text_append(p->out, ts_op_name(op->code));
  print_uses(p, op->operands, op->operand_count);
  print_attrs(p, op);
  print_op_regions(p, op, depth);
  ts_text_append(p->out, " : ");
  for (uint32_t i = 0; i < op->result_count; i++) {
    if (i) ts_text_append(p->out, ", ");
    print_value_type(p, op->first_result + i);
  }
  ts_text_append(p->out, "\n");
}

static void print_inside(printer *p, ts_region_id id, int depth) {
  const ts_region *region = ts_graph_region(p->graph, id);
  ts_text_append(p->out, "{\n");
  for (size_t i = 0; i < region->ops.count; i++) {
    if (region->ops.data[i] < p->graph->ops.count) print_op(p, region->ops.data[i], depth + 1);
  }
  indent(p, depth + 1);
  ts_text_append(p->out, "return");
  print_uses(p, region->results.data, region->results.count);
  ts_text_append(p->out, "\n");
  indent(p, depth);
  ts_text_append(p->out, "}");
}

typedef struct region_call {
  printer *p;
  ts_region_id id;
  int depth;
} region_call;

static ts_status region_on_stack(void *context) {
  const region_call *c = context;
  print_inside(c->p, c->id, c->depth);
  return TS_SUCCESS;
}

/* Each level of regions indents by two levels. */
static void print_region(printer *p, ts_region_id id, int depth) {
  region_call call = {p, id, depth};
  ts_status status = ts_deep_call((size_t)depth / 2, region_on_stack, &call);
  if (status) p->out->failed = true;
  ts_status_free(status);
}

/* ---- the graph ---- */

static void print_string(printer *p, const char *text) {
  ts_text_append(p->out, "\"");
  for (const char *c = text; *c; c++) {
    if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\') {
      ts_text_format(p->out, "\\%02x", (unsigned)(unsigned char)*c);
    } else {
      ts_text_append_n(p->out, c, 1);
    }
  }
  ts_text_append(p->out, "\"");
}

static void print_name(printer *p, const char *name) {
  const char *c = name;
  while (ts_syntax_is_name(*c)) c++;
  if (*name && !*c)
    ts_text_append(p->out, name);
  else
    print_string(p, name);
}

static void print_mesh_axis(printer *p, int32_t axis) {
  const ts_mesh *mesh = &p->graph->mesh;
  if (axis > 0) ts_text_append(p->out, ",");
  if (*mesh->axis_names[axis]) {
    print_string(p, mesh->axis_names[axis]);
    ts_text_append(p->out, "=");
  }
  ts_text_format(p->out, "%d", mesh->sizes[axis]);
}

static void print_mesh(printer *p) {
  const ts_mesh *mesh = &p->graph->mesh;
  ts_text_append(p->out, " mesh ");
  if (*mesh->name) {
    ts_text_append(p->out, "@");
    print_name(p, mesh->name);
    ts_text_append(p->out, " ");
  }
  ts_text_append(p->out, "[");
  for (int32_t i = 0; i < mesh->rank; i++) print_mesh_axis(p, i);
  ts_text_append(p->out, "]");
  if (mesh->partitioned) ts_text_append(p->out, " partitioned");
  if (mesh->coordinates) ts_text_append(p->out, " coordinates");
  ts_text_append(p->out, " ");
}

static void print_results(printer *p, const ts_region *region, bool is_root) {
  for (size_t i = 0; i < region->results.count; i++) {
    if (i) ts_text_append(p->out, ", ");
    print_value_type(p, region->results.data[i]);
    if (is_root) print_sharding(p, TS_RESULTS, i, region->results.data[i]);
  }
}

ts_status ts_graph_print_region(const ts_graph *graph, ts_region_id id, ts_text *out) {
  printer p = {.graph = graph, .out = out};
  const ts_region *region = ts_graph_region(graph, id);
  TS_TRY(TS_NEW_ARRAY(graph->values.count, &p.numbers));
  for (size_t i = 0; i < graph->values.count; i++) p.numbers[i] = TS_NO_ID;
  ts_text_reserve(out, 64 * region->ops.count + 20 * region->params.count);
  ts_text_append(out, "graph @");
  print_name(&p, graph->name);
  if (graph->mesh.rank > 0) print_mesh(&p);
  print_params(&p, region, id == TS_ROOT);
  ts_text_append(out, " -> (");
  print_results(&p, region, id == TS_ROOT);
  ts_text_append(out, ") ");
  print_region(&p, id, 0);
  ts_text_append(out, "\n");
  ts_free(p.numbers);
  return out->failed ? ts_error_no_memory() : TS_SUCCESS;
}

ts_status ts_graph_print(const ts_graph *graph, ts_text *out) { return ts_graph_print_region(graph, TS_ROOT, out); }
