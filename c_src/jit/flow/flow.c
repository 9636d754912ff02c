/* The canonical text of a flow. It has everything that the emitter reads. */
#include "jit/flow/flow.h"

#include <inttypes.h>
#include <string.h>

static void print_slots(ts_text *out, const char *name, const uint32_t *slots, int32_t count) {
  ts_text_append(out, name);
  for (int32_t i = 0; i < count; i++) ts_text_format(out, " %" PRIu32, slots[i]);
}

static void print_pointer(ts_text *out, const ts_flow_step *step, const ts_launch_pointer *p) {
  ts_text_format(out, "at %d: %" PRIu32 " + %" PRId64, p->word, ts_flow_pointer_slot(step, p), p->offset);
  for (int32_t i = 0; i < p->term_count; i++) {
    const ts_dynamic_term *t = &p->terms[i];
    ts_text_format(out, " + %s %" PRIu32 " to %" PRId64 " by %" PRId64, ts_dtype_name(t->dtype),
                   step->operands[t->operand], t->limit, t->stride);
  }
  ts_text_append(out, "\n");
}

static ts_status print_launch(ts_text *out, const ts_flow_step *step) {
  const ts_launch *l = step->launch;
  int32_t words = ts_kernel_arg_count(&l->desc), scalars = ts_kernel_arg_scalar(&l->desc, 0);
  ts_text_format(out, "launch %" PRId64 " scratch %" PRIu32 " scalars %d copies %d\n", l->units, step->scratch,
                 step->first, l->copies);
  TS_TRY(ts_kernel_print(&l->desc, out));
  ts_text_append(out, "args");
  for (int32_t i = 0; i < words; i++) {
    bool word = i >= scalars && ts_flow_has_word(l->desc.scalars[i - scalars]);
    ts_text_format(out, " %" PRId64, word ? 0 : l->args[i]);
  }
  ts_text_append(out, "\n");
  for (int32_t i = 0; i < l->pointer_count; i++) print_pointer(out, step, &l->pointers[i]);
  return TS_SUCCESS;
}

static void print_dot(ts_text *out, const ts_flow_step *step) {
  const ts_flow_dot *d = step->dot;
  print_slots(out, "dot", step->operands, 2);
  print_slots(out, " to", step->results, 1);
  ts_text_format(out, " %s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, ts_dtype_name(d->type), d->batch, d->rows,
                 d->columns, d->terms);
  ts_text_format(out, " by %" PRId64 " %" PRId64 " %" PRId64, d->lhs.batch, d->lhs.along, d->lhs.term);
  ts_text_format(out, " %" PRId64 " %" PRId64 " %" PRId64 "\n", d->rhs.batch, d->rhs.along, d->rhs.term);
}

static void print_scan(ts_text *out, const ts_flow_step *step) {
  const ts_flow_scan *s = step->scan;
  ts_text_format(out, "%s%s %s %" PRId64 " %" PRId64, ts_op_name(s->op), s->reverse ? " reverse" : "",
                 ts_dtype_name(s->type), s->lines, s->count);
  print_slots(out, " of", step->operands, 1);
  print_slots(out, " to", step->results, 1);
  ts_text_append(out, "\n");
}

static void print_numbers(ts_text *out, const char *name, const int64_t *numbers, int32_t count) {
  ts_text_append(out, name);
  for (int32_t i = 0; i < count; i++) ts_text_format(out, " %" PRId64, numbers[i]);
}

static void print_scatter(ts_text *out, const ts_flow_step *step) {
  const ts_flow_scatter *s = step->scatter;
  ts_text_format(out, "%s %s by %s bytes %" PRId64 " rows %" PRId64 " columns %" PRId64, ts_op_name(s->op),
                 ts_dtype_name(s->type), ts_dtype_name(s->index), step->bytes, s->rows, s->columns);
  print_numbers(out, " extents", s->extents, s->axis_count);
  print_numbers(out, " strides", s->strides, s->axis_count);
  print_numbers(out, " outer", s->outer, s->outer_count);
  print_slots(out, " of", step->operands, 3);
  print_slots(out, " to", step->results, 1);
  ts_text_append(out, "\n");
}

static ts_status print_step(ts_text *out, const ts_flow_step *step);

static ts_status print_block(ts_text *out, const ts_flow_block *block) {
  ts_text_append(out, "{\n");
  for (int32_t i = 0; i < block->count; i++) TS_TRY(print_step(out, &block->steps[i]));
  ts_text_append(out, "}\n");
  return TS_SUCCESS;
}

static void print_while(ts_text *out, const ts_flow_step *step) {
  ts_text_format(out, "while %d on %" PRIu32 " homes %d", step->number, step->predicate, step->first);
  print_slots(out, " from", step->operands, step->count);
  print_slots(out, " to", step->results, step->count);
  print_slots(out, " next", step->temps, step->count);
  ts_text_append(out, " bytes");
  for (int32_t i = 0; i < step->count; i++) ts_text_format(out, " %" PRId64, step->sizes[i]);
  ts_text_append(out, "\n");
}

static ts_status print_step(ts_text *out, const ts_flow_step *step) {
  switch (step->kind) {
  case TS_FLOW_LAUNCH: return print_launch(out, step);
  case TS_FLOW_COPY:
    ts_text_format(out, "copy %" PRId64 " from %" PRIu32 " to %" PRIu32 "\n", step->bytes, *step->operands,
                   *step->results);
    return TS_SUCCESS;
  case TS_FLOW_CALL:
    ts_text_format(out, "call %d", step->number);
    print_slots(out, " with", step->operands, step->count);
    ts_text_append(out, "\n");
    return TS_SUCCESS;
  case TS_FLOW_DOT: print_dot(out, step); return TS_SUCCESS;
  case TS_FLOW_SCAN: print_scan(out, step); return TS_SUCCESS;
  case TS_FLOW_SCATTER: print_scatter(out, step); return TS_SUCCESS;
  case TS_FLOW_WHILE: print_while(out, step); break;
  case TS_FLOW_COND: ts_text_format(out, "cond %" PRIu32 "\n", *step->operands); break;
  }
  for (int i = 0; i < 2; i++) TS_TRY(print_block(out, &step->blocks[i]));
  return TS_SUCCESS;
}

ts_status ts_flow_make_source(const ts_flow *flow, char **out_text, ts_kernel_source *out) {
  ts_text text = {0};
  ts_text_format(&text, "flow %d slots %d homes\n", flow->slot_count, flow->home_count);
  ts_status status = print_step(&text, flow->loop);
  if (!status) status = ts_text_finish(&text, out_text);
  ts_text_deinit(&text);
  if (status) return status;
  *out = (ts_kernel_source){.text = *out_text, .length = strlen(*out_text), .emit = ts_flow_emit, .description = flow};
  return TS_SUCCESS;
}
