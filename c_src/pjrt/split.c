#include "pjrt/split.h"

/* ---- what is split */

bool pj_calls_back(const ts_graph *graph) {
  for (size_t i = 0; i < graph->ops.count; i++)
    if (graph->ops.data[i].code == TS_OP_CALLBACK) return true;
  return false;
}

static bool has_effect(const ts_graph *graph, ts_region_id region) {
  return region != TS_NO_ID && ts_graph_region(graph, region)->has_effect;
}

/* Whether the client does the op itself. */
static bool is_own(const ts_graph *graph, const ts_op *op) {
  if (op->code == TS_OP_CALLBACK) return true;
  bool has_regions = op->code == TS_OP_WHILE || op->code == TS_OP_COND || op->code == TS_OP_CALL;
  return has_regions &&
         (has_effect(graph, op->attrs->regions.regions[0]) || has_effect(graph, op->attrs->regions.regions[1]));
}

/* ---- the steps of a region */

#define AFTER_ALL UINT32_MAX

/* One region that is split. `needed` and `slots` are by the graph's values. */
typedef struct splitting {
  pj_split *split;
  pj_client *client;
  ts_precision precision;
  const ts_graph *graph;
  const ts_region *region;
  pj_steps *list;
  uint32_t *needed; /* the place in the region of the last op that uses the value; 0: no op after the first one */
  uint32_t *slots;
} splitting;

static ts_status split_region(pj_split *split, pj_client *client, ts_precision precision, const ts_graph *graph,
                              ts_region_id region, const pj_steps **out);

static const ts_op *op_at(const splitting *s, size_t place) {
  return ts_graph_op(s->graph, s->region->ops.data[place]);
}

static void find_needs(splitting *s) {
  for (size_t p = 0; p < s->region->ops.count; p++) {
    const ts_op *op = op_at(s, p);
    for (uint32_t i = 0; i < op->operand_count; i++) s->needed[op->operands[i]] = (uint32_t)p;
  }
  for (size_t i = 0; i < s->region->results.count; i++) s->needed[s->region->results.data[i]] = AFTER_ALL;
}

static uint32_t add_slot(splitting *s, ts_value_id value) {
  s->slots[value] = s->list->slot_count++;
  return s->slots[value];
}

static ts_status to_slots(splitting *s, const ts_value_id *values, size_t count, const uint32_t **out) {
  uint32_t *slots;
  TS_TRY(TS_ARENA_ARRAY(&s->split->arena, count, &slots));
  for (size_t i = 0; i < count; i++) slots[i] = s->slots[values[i]];
  *out = slots;
  return TS_SUCCESS;
}

static ts_status add_step(splitting *s, pj_step step, ts_values operands, ts_values results) {
  TS_TRY(to_slots(s, operands.data, operands.count, &step.operands));
  for (size_t i = 0; i < results.count; i++) (void)add_slot(s, results.data[i]);
  TS_TRY(to_slots(s, results.data, results.count, &step.results));
  step.operand_count = (uint32_t)operands.count;
  step.result_count = (uint32_t)results.count;
  return TS_VEC_PUSH(&s->list->steps, step);
}

/* ---- parts */

/* The ops from `first` to before `end` as a graph of its own. */
typedef struct part {
  ts_graph *graph;
  ts_value_id *map; /* by values of the whole graph; TS_NO_ID: not in the part */
  TS_VEC(ts_value_id) params, results, inner;
} part;

static ts_status add_operands(const splitting *s, const ts_op *op, part *p) {
  for (uint32_t i = 0; i < op->operand_count; i++) {
    ts_value_id value = op->operands[i];
    if (p->map[value] != TS_NO_ID) continue;
    TS_TRY(ts_graph_add_param_like(p->graph, TS_ROOT, s->graph, value, &p->map[value]));
    TS_TRY(TS_VEC_PUSH(&p->params, value));
  }
  return TS_SUCCESS;
}

static ts_status fill_part(const splitting *s, size_t first, size_t end, part *p) {
  for (size_t i = first; i < end; i++) {
    const ts_op *op = op_at(s, i);
    TS_TRY(add_operands(s, op, p));
    TS_TRY(ts_graph_copy_op(s->graph, s->region->ops.data[i], p->graph, TS_ROOT, p->map));
    for (uint32_t r = 0; r < op->result_count; r++) {
      ts_value_id value = op->first_result + r;
      if (s->needed[value] < end) continue;
      TS_TRY(TS_VEC_PUSH(&p->results, value));
      TS_TRY(TS_VEC_PUSH(&p->inner, p->map[value]));
    }
  }
  return ts_graph_set_results(p->graph, TS_ROOT, p->inner.data, p->inner.count);
}

static ts_status compile_part(splitting *s, part *p) {
  pj_code *code;
  TS_TRY(pj_compile_now(s->client, p->graph, s->precision, &code));
  pj_client_retain(s->client);
  ts_status status = TS_VEC_PUSH(&s->split->parts, code);
  if (status) {
    pj_release_program(code);
    return status;
  }
  const pj_step step = {.kind = PJ_STEP_PART, .part = code, .number = (uint32_t)s->split->parts.count};
  return add_step(s, step, (ts_values){p->params.data, p->params.count},
                  (ts_values){p->results.data, p->results.count});
}

static void deinit_part(part *p) {
  ts_graph_destroy(p->graph);
  ts_free(p->map);
  TS_VEC_FREE(&p->params);
  TS_VEC_FREE(&p->results);
  TS_VEC_FREE(&p->inner);
}

/* Ops whose results nothing later uses are left out. */
static ts_status add_part(splitting *s, size_t first, size_t end) {
  part p = {0};
  if (first == end) return TS_SUCCESS;
  ts_status status = TS_NEW_ARRAY(s->graph->values.count, &p.map);
  for (size_t i = 0; !status && i < s->graph->values.count; i++) p.map[i] = TS_NO_ID;
  if (!status) status = ts_graph_create_from(s->graph, &p.graph);
  if (!status) status = fill_part(s, first, end, &p);
  if (!status && p.results.count > 0) status = compile_part(s, &p);
  deinit_part(&p);
  return status;
}

/* ---- what the client does itself */

static ts_status call_types(splitting *s, const ts_op *op, pj_step *step) {
  const ts_type **types;
  size_t count = op->operand_count + op->result_count;
  TS_TRY(TS_ARENA_ARRAY(&s->split->arena, count + 1, &types));
  for (size_t i = 0; i < count; i++) {
    bool is_operand = i < op->operand_count;
    const ts_value *value =
        ts_graph_value(s->graph, is_operand ? op->operands[i] : op->first_result + (uint32_t)(i - op->operand_count));
    ts_type *type;
    TS_TRY(TS_ARENA_ARRAY(&s->split->arena, 1, &type));
    ts_type_set(type, value->dtype, value->shape);
    types[i] = type;
  }
  step->types = types;
  step->number = op->attrs->callback.index;
  return TS_SUCCESS;
}

static pj_step_kind kind_of(ts_opcode code) {
  return code == TS_OP_WHILE ? PJ_STEP_WHILE : code == TS_OP_COND ? PJ_STEP_COND : PJ_STEP_REGION;
}

static ts_status add_own(splitting *s, const ts_op *op) {
  pj_step step = {.kind = PJ_STEP_CALL};
  if (op->code == TS_OP_CALLBACK) {
    TS_TRY(call_types(s, op, &step));
  } else {
    step.kind = kind_of(op->code);
    for (int i = 0; i < 2; i++) {
      ts_region_id region = op->attrs->regions.regions[i];
      if (region != TS_NO_ID) TS_TRY(split_region(s->split, s->client, s->precision, s->graph, region, &step.lists[i]));
    }
  }
  ts_value_id *results;
  TS_TRY(TS_ARENA_ARRAY(&s->split->arena, op->result_count, &results));
  for (uint32_t i = 0; i < op->result_count; i++) results[i] = op->first_result + i;
  return add_step(s, step, (ts_values){op->operands, op->operand_count}, (ts_values){results, op->result_count});
}

/* ---- lists */

static ts_status add_steps(splitting *s) {
  size_t first = 0;
  for (size_t i = 0; i < s->region->params.count; i++) (void)add_slot(s, s->region->params.data[i]);
  for (size_t i = 0; i < s->region->ops.count; i++) {
    if (!is_own(s->graph, op_at(s, i))) continue;
    TS_TRY(add_part(s, first, i));
    TS_TRY(add_own(s, op_at(s, i)));
    first = i + 1;
  }
  return add_part(s, first, s->region->ops.count);
}

static ts_status find_last(splitting *s) {
  pj_steps *list = s->list;
  TS_TRY(TS_ARENA_ARRAY(&s->split->arena, list->slot_count, &list->last));
  for (uint32_t i = 0; i < list->slot_count; i++) list->last[i] = 0;
  for (size_t p = 0; p < list->steps.count; p++) {
    const pj_step *step = &list->steps.data[p];
    for (uint32_t i = 0; i < step->operand_count; i++) list->last[step->operands[i]] = (uint32_t)p;
    for (uint32_t i = 0; i < step->result_count; i++) list->last[step->results[i]] = (uint32_t)p;
  }
  for (uint32_t i = 0; i < list->result_count; i++) list->last[list->results[i]] = AFTER_ALL;
  return TS_SUCCESS;
}

static ts_status fill_list(splitting *s) {
  s->list->param_count = (uint32_t)s->region->params.count;
  find_needs(s);
  TS_TRY(add_steps(s));
  s->list->result_count = (uint32_t)s->region->results.count;
  TS_TRY(to_slots(s, s->region->results.data, s->region->results.count, &s->list->results));
  return find_last(s);
}

static ts_status new_list(pj_split *split, pj_steps **out) {
  TS_TRY(TS_NEW(out));
  ts_status status = TS_VEC_PUSH(&split->lists, *out);
  if (status) ts_free(*out);
  return status;
}

static ts_status split_region(pj_split *split, pj_client *client, ts_precision precision, const ts_graph *graph,
                              ts_region_id region, const pj_steps **out) {
  splitting s = {.split = split,
                 .client = client,
                 .precision = precision,
                 .graph = graph,
                 .region = ts_graph_region(graph, region)};
  size_t count = graph->values.count;
  TS_TRY(new_list(split, &s.list));
  *out = s.list;
  TS_TRY(TS_NEW_ARRAY(2 * count, &s.needed));
  s.slots = s.needed + count;
  ts_status status = fill_list(&s);
  ts_free(s.needed);
  return status;
}

void pj_split_destroy(pj_split *split) {
  if (!split) return;
  for (size_t i = 0; i < split->parts.count; i++) pj_release_program(split->parts.data[i]);
  for (size_t i = 0; i < split->lists.count; i++) {
    TS_VEC_FREE(&split->lists.data[i]->steps);
    ts_free(split->lists.data[i]);
  }
  TS_VEC_FREE(&split->parts);
  TS_VEC_FREE(&split->lists);
  ts_arena_deinit(&split->arena);
  ts_free(split);
}

ts_status pj_split_create(pj_client *client, const ts_graph *graph, ts_precision precision, pj_split **out) {
  pj_split *split;
  TS_TRY(TS_NEW(&split));
  ts_arena_init(&split->arena);
  ts_status status = split_region(split, client, precision, graph, TS_ROOT, &split->root);
  if (status)
    pj_split_destroy(split);
  else
    *out = split;
  return status;
}

/* ---- explain */

static void explain_list(const pj_steps *list, int depth, ts_text *out);

static void explain_slots(const pj_step *step, ts_text *out) {
  for (uint32_t i = 0; i < step->operand_count; i++) ts_text_format(out, "%s%%%u", i ? ", " : " ", step->operands[i]);
  for (uint32_t i = 0; i < step->result_count; i++) ts_text_format(out, "%s%%%u", i ? ", " : " -> ", step->results[i]);
  ts_text_append(out, "\n");
}

static void explain_step(const pj_step *step, int depth, ts_text *out) {
  static const char *const names[][2] = {
      [PJ_STEP_WHILE] = {"condition", "body"}, [PJ_STEP_COND] = {"true", "false"}, [PJ_STEP_REGION] = {"body", NULL}};
  static const char *const kinds[] = {[PJ_STEP_PART] = "part",
                                      [PJ_STEP_CALL] = "callback",
                                      [PJ_STEP_WHILE] = "while",
                                      [PJ_STEP_COND] = "cond",
                                      [PJ_STEP_REGION] = "call"};
  ts_text_format(out, "%*s%s", 2 * depth, "", kinds[step->kind]);
  if (step->kind == PJ_STEP_PART || step->kind == PJ_STEP_CALL) ts_text_format(out, " %u:", step->number);
  explain_slots(step, out);
  for (int i = 0; i < 2; i++) {
    if (!step->lists[i]) continue;
    ts_text_format(out, "%*s%s:\n", 2 * depth + 2, "", names[step->kind][i]);
    explain_list(step->lists[i], depth + 2, out);
  }
}

static void explain_list(const pj_steps *list, int depth, ts_text *out) {
  for (size_t i = 0; i < list->steps.count; i++) explain_step(&list->steps.data[i], depth, out);
}

void pj_split_explain(const pj_split *split, ts_text *out) {
  ts_text_format(out, "The program is split at its callbacks into %zu parts, which the plugin runs:\n\n",
                 split->parts.count);
  explain_list(split->root, 1, out);
}
