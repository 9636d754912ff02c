#include "jit/flow/flow_cells.h"

typedef struct finder {
  const ts_flow *flow;
  ts_flow_cells *cells;
  int64_t most;
  bool *excluded;
  int64_t *bytes; /* of each slot, as far as steps use it */
  bool changed;
} finder;

static void visit_blocks(finder *f, const ts_flow_step *step, void (*visit)(finder *f, const ts_flow_step *step)) {
  if (step->kind != TS_FLOW_WHILE && step->kind != TS_FLOW_COND) return;
  for (int k = 0; k < 2; k++)
    for (int32_t i = 0; i < step->blocks[k].count; i++) visit(f, &step->blocks[k].steps[i]);
}

/* ---- sizes ---- */

static void exclude(finder *f, uint32_t slot) {
  if (slot == TS_NO_ID || f->excluded[slot]) return;
  f->excluded[slot] = f->changed = true;
}

static void uses(finder *f, uint32_t slot, int64_t bytes) {
  if (bytes > f->bytes[slot]) f->bytes[slot] = bytes;
}

/* An operand of a launch. */
typedef struct operand {
  const ts_kernel_operand *of;
  const int64_t *words; /* its address and strides */
} operand;

static operand operand_at(const ts_launch *l, int32_t word) {
  const ts_kernel_desc *d = &l->desc;
  int32_t number = (word - d->rank) / (d->rank + 1);
  const ts_kernel_operand *of =
      number < d->input_count ? &d->inputs[number] : &d->outputs[number - d->input_count].operand;
  return (operand){of, l->args + word};
}

static int64_t stride_of(const operand *o, int32_t dim) {
  if (o->of->stride[dim] == TS_STRIDE_ZERO) return 0;
  int64_t unit = (int64_t)ts_dtype_size(o->of->dtype);
  if (o->of->stride[dim] == TS_STRIDE_DOWN) return -unit;
  return o->of->stride[dim] == TS_STRIDE_UNIT ? unit : o->words[1 + dim];
}

/* Bytes up to the end of the last element. */
static int64_t reach(const ts_launch *l, const operand *o, int64_t offset) {
  for (int32_t i = 0; i < l->desc.rank; i++) {
    int64_t by = (l->args[i] - 1) * stride_of(o, i);
    if (o->of->stride[i] == TS_STRIDE_TURN) by = (l->desc.members - 1) * (int64_t)ts_dtype_size(o->of->dtype);
    if (by > 0) offset += by;
  }
  return offset + (int64_t)ts_dtype_size(o->of->dtype);
}

static void measure_launch(finder *f, const ts_flow_step *step) {
  const ts_launch *l = step->launch;
  exclude(f, step->scratch);
  for (int32_t i = 0; i < l->pointer_count; i++) {
    const ts_launch_pointer *p = &l->pointers[i];
    const operand o = operand_at(l, p->word);
    uint32_t slot = ts_flow_pointer_slot(step, p);
    uses(f, slot, reach(l, &o, p->offset));
    if (p->term_count > 0 || o.of->dtype == TS_C128) exclude(f, slot);
    for (int32_t t = 0; t < p->term_count; t++)
      uses(f, step->operands[p->terms[t].operand], (int64_t)ts_dtype_size(p->terms[t].dtype));
  }
}

static void measure_while(finder *f, const ts_flow_step *step) {
  for (int32_t i = 0; i < step->count; i++) {
    uses(f, step->operands[i], step->sizes[i]);
    uses(f, step->results[i], step->sizes[i]);
    uses(f, step->temps[i], step->sizes[i]);
  }
  uses(f, step->predicate, 1);
}

static int64_t scan_bytes(const ts_flow_step *step) {
  return step->scan->lines * step->scan->count * (int64_t)ts_dtype_size(step->scan->type);
}

/* The target is addressed by numbers that vary; so are the indices, unless there is one. */
static void measure_scatter(finder *f, const ts_flow_step *step) {
  const ts_flow_scatter *s = step->scatter;
  const int64_t size = (int64_t)ts_dtype_size(s->type);
  exclude(f, step->operands[0]);
  exclude(f, *step->results);
  if (ts_flow_has_one_index(s))
    uses(f, step->operands[1], (int64_t)ts_dtype_size(s->index));
  else
    exclude(f, step->operands[1]);
  uses(f, step->operands[2], s->rows * s->outer_count * s->columns * size);
}

static void measure(finder *f, const ts_flow_step *step) {
  switch (step->kind) {
  case TS_FLOW_LAUNCH: measure_launch(f, step); break;
  case TS_FLOW_COPY:
    uses(f, *step->operands, step->bytes);
    uses(f, *step->results, step->bytes);
    break;
  case TS_FLOW_CALL:
    for (int32_t i = 0; i < step->count; i++) exclude(f, step->operands[i]);
    break;
  case TS_FLOW_DOT:
    for (int i = 0; i < 2; i++) exclude(f, step->operands[i]);
    exclude(f, *step->results);
    break;
  case TS_FLOW_SCAN:
    uses(f, *step->operands, scan_bytes(step));
    uses(f, *step->results, scan_bytes(step));
    break;
  case TS_FLOW_SCATTER: measure_scatter(f, step); break;
  case TS_FLOW_WHILE: measure_while(f, step); break;
  case TS_FLOW_COND: uses(f, *step->operands, 1); break;
  }
  visit_blocks(f, step, measure);
}

static bool fits(const finder *f, uint32_t slot) {
  int64_t bytes = f->bytes[slot];
  return bytes > 0 && bytes <= f->most && (bytes % 4 == 0 || bytes < 64);
}

/* A cell is copied as a whole. */
static void copies(finder *f, uint32_t slot, int64_t bytes) {
  if (f->bytes[slot] != bytes) exclude(f, slot);
}

/* What changes places with memory is memory. */
static void exclude_pairs(finder *f, const ts_flow_step *step) {
  for (int32_t i = 0; step->kind == TS_FLOW_WHILE && i < step->count; i++) {
    uint32_t a = step->results[i], b = step->temps[i];
    copies(f, step->operands[i], step->sizes[i]);
    copies(f, a, step->sizes[i]);
    copies(f, b, step->sizes[i]);
    if (f->excluded[a] || f->excluded[b]) {
      exclude(f, a);
      exclude(f, b);
    }
  }
  int64_t bytes = step->kind == TS_FLOW_COPY ? step->bytes : step->kind == TS_FLOW_SCAN ? scan_bytes(step) : -1;
  if (bytes >= 0) {
    copies(f, *step->operands, bytes);
    copies(f, *step->results, bytes);
  }
  visit_blocks(f, step, exclude_pairs);
}

static void number_cells(finder *f) {
  ts_flow_cells *cells = f->cells;
  cells->count = 0;
  for (uint32_t i = 0; i < (uint32_t)f->flow->slot_count; i++) {
    cells->of_slot[i] = -1;
    if (f->excluded[i]) continue;
    if (cells->count == TS_FLOW_MOST_CELLS) {
      exclude(f, i);
      continue;
    }
    cells->slot[cells->count] = i;
    cells->bytes[cells->count] = f->bytes[i];
    cells->of_slot[i] = cells->count++;
  }
}

/* ---- which cells are live, backwards ---- */

static uint64_t cell(const finder *f, uint32_t slot) {
  int32_t number = f->cells->of_slot[slot];
  return number < 0 ? 0 : (uint64_t)1 << number;
}

/* True when the launch writes every byte of the slot. */
static bool writes_all(const finder *f, const ts_flow_step *step, const ts_launch_pointer *p) {
  const ts_launch *l = step->launch;
  const operand o = operand_at(l, p->word);
  int64_t bytes = (int64_t)ts_dtype_size(o.of->dtype);
  for (int32_t i = 0; i < l->desc.rank; i++)
    if (l->args[i] == 0 || stride_of(&o, i) != 0) bytes *= l->args[i];
  return bytes == f->bytes[ts_flow_pointer_slot(step, p)];
}

static bool is_output(const ts_launch *l, const ts_launch_pointer *p) {
  return (p->word - l->desc.rank) / (l->desc.rank + 1) >= l->desc.input_count;
}

static uint64_t before_launch(const finder *f, const ts_flow_step *step, uint64_t live) {
  const ts_launch *l = step->launch;
  for (int32_t i = 0; i < l->pointer_count; i++) {
    const ts_launch_pointer *p = &l->pointers[i];
    if (is_output(l, p) && writes_all(f, step, p)) live &= ~cell(f, ts_flow_pointer_slot(step, p));
  }
  for (int32_t i = 0; i < l->pointer_count; i++) {
    const ts_launch_pointer *p = &l->pointers[i];
    if (!is_output(l, p)) live |= cell(f, ts_flow_pointer_slot(step, p));
    for (int32_t t = 0; t < p->term_count; t++) live |= cell(f, step->operands[p->terms[t].operand]);
  }
  return live;
}

static uint64_t before_block(const finder *f, const ts_flow_block *block, uint64_t live);

/* The variables get their next values at the end of the body, and what they had is not read again. */
static uint64_t before_swap(const finder *f, const ts_flow_step *step, uint64_t live) {
  uint64_t before = live;
  for (int32_t i = 0; i < step->count; i++) before &= ~(cell(f, step->results[i]) | cell(f, step->temps[i]));
  for (int32_t i = 0; i < step->count; i++) {
    if (live & cell(f, step->results[i])) before |= cell(f, step->temps[i]);
    if (step->results[i] != step->temps[i] && (live & cell(f, step->temps[i]))) before |= cell(f, step->results[i]);
  }
  return before;
}

static uint64_t before_while(const finder *f, const ts_flow_step *step, uint64_t live) {
  uint64_t head, next = live;
  do {
    head = next;
    next = before_block(f, &step->blocks[1], before_swap(f, step, head)) | live | cell(f, step->predicate);
    next = before_block(f, &step->blocks[0], next) | head;
  } while (next != head);
  f->cells->live[step->number] = head;
  for (int32_t i = 0; i < step->count; i++) head &= ~cell(f, step->results[i]);
  for (int32_t i = 0; i < step->count; i++) head |= cell(f, step->operands[i]);
  return head;
}

static uint64_t before_step(const finder *f, const ts_flow_step *step, uint64_t live) {
  switch (step->kind) {
  case TS_FLOW_LAUNCH: return step->launch->units <= 0 ? live : before_launch(f, step, live);
  case TS_FLOW_SCAN:
  case TS_FLOW_COPY: return (live & ~cell(f, *step->results)) | cell(f, *step->operands);
  case TS_FLOW_CALL:
  case TS_FLOW_DOT: return live;
  case TS_FLOW_SCATTER: return live | cell(f, step->operands[1]) | cell(f, step->operands[2]);
  case TS_FLOW_WHILE: return before_while(f, step, live);
  case TS_FLOW_COND: break;
  }
  return before_block(f, &step->blocks[0], live) | before_block(f, &step->blocks[1], live) | cell(f, *step->operands);
}

static uint64_t before_block(const finder *f, const ts_flow_block *block, uint64_t live) {
  for (int32_t i = block->count; i-- > 0;) live = before_step(f, &block->steps[i], live);
  return live;
}

/* ---- all ---- */

ts_status ts_flow_find_cells(const ts_flow *flow, int64_t most, bool *excluded, ts_arena *arena, ts_flow_cells *out) {
  finder f = {.flow = flow, .cells = out, .most = most, .excluded = excluded};
  size_t slots = (size_t)flow->slot_count;
  *out = (ts_flow_cells){0};
  TS_TRY(TS_ARENA_ARRAY(arena, slots, &f.bytes));
  TS_TRY(TS_ARENA_ARRAY(arena, slots, &out->of_slot));
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)flow->loop_count + 1, &out->live));
  measure(&f, flow->loop);
  for (uint32_t i = 0; i < slots; i++)
    if (!fits(&f, i)) exclude(&f, i);
  do {
    number_cells(&f);
    f.changed = false;
    exclude_pairs(&f, flow->loop);
  } while (f.changed);
  for (int32_t i = 0; i < flow->loop->count; i++) out->results |= cell(&f, flow->loop->results[i]);
  out->live[0] = before_step(&f, flow->loop, out->results);
  return TS_SUCCESS;
}
