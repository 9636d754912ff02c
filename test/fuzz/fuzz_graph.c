/* Any bytes as calls of the graph builder, with ids and attributes from
 * anywhere: each call is an error or leaves a graph that verifies, clones, and
 * prints to a text that parses to itself. */
#include "fuzz.h"
#include "ir/attrs.h"

typedef struct input {
  const uint8_t *at, *end;
} input;

static uint8_t take(input *in) { return in->at < in->end ? *in->at++ : 0; }

/* Mostly small numbers, and a few that have no business there. */
static int64_t take_number(input *in) {
  static const int64_t odd[] = {-1, -2, INT64_MIN, INT64_MAX, INT64_C(1) << 33, 17, 100, INT32_MAX};
  uint8_t byte = take(in);
  return byte < 0xf8 ? byte & 7 : odd[byte - 0xf8];
}

static void take_dims(input *in, ts_dims *out) {
  uint8_t rank = take(in);
  out->rank = rank < 0xf0 ? rank % 5 : (int32_t)(int8_t)rank;
  for (int i = 0; i < TS_MAX_RANK && i < out->rank; i++) out->dims[i] = take_number(in);
}

static ts_dtype take_dtype(input *in) {
  uint8_t byte = take(in);
  return byte & 0x80 ? (ts_dtype)(byte & 0x7f) : byte & 0x40 ? TS_U8 : byte & 0x20 ? TS_S32 : TS_F32;
}

static void take_field(input *in, ts_field_type type, void *out) {
  switch (type) {
  case TS_FIELD_DTYPE: *(ts_dtype *)out = take_dtype(in); break;
  case TS_FIELD_RESULT_SHAPE:
  case TS_FIELD_SHAPE:
  case TS_FIELD_DIMS:
  case TS_FIELD_AXES: take_dims(in, out); break;
  case TS_FIELD_INT: *(int32_t *)out = (int32_t)take_number(in); break;
  case TS_FIELD_UINT: *(uint32_t *)out = take(in); break;
  case TS_FIELD_BOOL: *(bool *)out = take(in) & 1; break;
  case TS_FIELD_SCALAR: ((ts_scalar *)out)->s64 = take_number(in); break;
  case TS_FIELD_BUFFER: *(ts_buffer **)out = NULL; break;
  case TS_FIELD_REGIONS: ((ts_region_id *)out)[1] = (ts_region_id)take_number(in); /* fall through */
  case TS_FIELD_REGION: *(ts_region_id *)out = (ts_region_id)take_number(in); break;
  }
}

static void take_attrs(input *in, ts_opcode code, ts_attrs *out) {
  memset(out, take(in) & 1 ? 0xa5 : 0, sizeof *out); /* padding may be anything */
  for (const ts_attr_field *field = ts_attr_fields(ts_op_attr_kind(code)); field->name; field++)
    take_field(in, field->type, ts_attr_at(out, field));
}

static ts_status step(input *in, ts_graph *graph) {
  ts_value_id values[4], value;
  ts_region_id region = take(in) % 4 ? TS_ROOT : (ts_region_id)take_number(in);
  uint8_t what = take(in);
  size_t count = take(in) % 5;
  ts_attrs attrs;
  for (size_t i = 0; i < 4; i++) values[i] = (ts_value_id)(take(in) - 2);
  if (what < 0x18) return ts_graph_add_region(graph, &region);
  if (what < 0x40) {
    take_dims(in, &(*(ts_attrs *)memset(&attrs, 0, sizeof attrs)).shape);
    return ts_graph_add_param(graph, region, take_dtype(in), &attrs.shape, &value);
  }
  if (what < 0x60) return ts_graph_set_results(graph, region, values, count < 4 ? count : 4);
  ts_opcode code = (ts_opcode)(take(in) % (TS_OP_COUNT + 2));
  take_attrs(in, code, &attrs);
  return ts_graph_add_op(graph, region, code, (ts_values){values, count < 4 ? count : 4}, what & 1 ? &attrs : NULL,
                         &value);
}

static void check(const ts_graph *graph) {
  ts_graph *copy, *parsed;
  must(ts_graph_verify(graph), "verify");
  must(ts_graph_clone(graph, &copy), "clone");
  must(ts_graph_verify(copy), "verify the clone");
  char *text = print(graph), *copied = print(copy);
  must(ts_graph_parse(text, strlen(text), &parsed), "parse");
  char *again = print(parsed);
  if (strcmp(text, copied) != 0 || strcmp(text, again) != 0) abort();
  ts_free(text);
  ts_free(copied);
  ts_free(again);
  ts_graph_destroy(copy);
  ts_graph_destroy(parsed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input in = {data, data + size};
  ts_graph *graph;
  int64_t live = ts_alloc_live();
  must(ts_graph_create(&graph), "create");
  if (size % 2) must(ts_graph_set_mesh(graph, &(ts_mesh){.rank = 2, .sizes = {2, 2}}), "set the mesh");
  while (in.at < in.end) ts_status_free(step(&in, graph));
  if (!ts_graph_region(graph, TS_ROOT)->finished) must(ts_graph_set_results(graph, TS_ROOT, NULL, 0), "finish");
  check(graph);
  ts_graph_destroy(graph);
  if (ts_alloc_live() != live) abort();
  return 0;
}
