#include "jit/emit/emit_cell.h"
#include "jit/flow/flow_cells.h"
#include "jit/flow/flow_dot.h"
#include "jit/flow/flow_scan.h"
#include "jit/flow/flow_scatter.h"
#include "jit/flow/flow_turn.h"
#include "jit/loop/loop.h"

#include <string.h>

typedef struct writer {
  ts_emit *e;
  const ts_flow *flow;
  ts_v args;
  LLVMTypeRef i64, i8, pointer;
  LLVMBasicBlockRef leave; /* stores `state`, a phi, and returns */
  ts_v state;
  LLVMBasicBlockRef *heads; /* of each loop, by its number; heads[0]: the beginning */
  bool *moves;              /* of each slot: some while exchanges its address */
  ts_flow_cells cells;
  ts_emit_cell cell[TS_FLOW_MOST_CELLS];
  bool *excluded; /* of each slot: it is no cell */
} writer;

/* A cell has at most so many bytes, in vectors. */
#define CELL_VECTORS 2
/* How often the emission is tried with cells. */
#define ROUNDS 3

/* ---- small pieces ---- */

static ts_v number(writer *w, int64_t value) { return LLVMConstInt(w->i64, (unsigned long long)value, 1); }

static LLVMBasicBlockRef new_block(writer *w, const char *name) {
  return LLVMAppendBasicBlockInContext(w->e->context, w->e->function, name);
}

static ts_v word_address(writer *w, int32_t word) {
  ts_v index = number(w, word);
  return LLVMBuildGEP2(w->e->b, w->i64, w->args, &index, 1, "");
}

/* The word does not change while the function runs, so LLVM may read it before a loop. */
static ts_v fixed(writer *w, ts_v load) {
  LLVMMetadataRef none = LLVMMDNodeInContext2(w->e->context, NULL, 0);
  LLVMSetMetadata(load, LLVMGetMDKindIDInContext(w->e->context, "invariant.load", 14),
                  LLVMMetadataAsValue(w->e->context, none));
  return load;
}

static ts_v load_word(writer *w, LLVMTypeRef type, int32_t word) {
  return LLVMBuildLoad2(w->e->b, type, word_address(w, word), "");
}

static ts_v fixed_word(writer *w, LLVMTypeRef type, int32_t word) { return fixed(w, load_word(w, type, word)); }

/* The slot's cell; NULL: it is memory. */
static ts_emit_cell *cell_of(writer *w, uint32_t slot) {
  int32_t number = w->cells.of_slot[slot];
  return number < 0 ? NULL : &w->cell[number];
}

static ts_v memory_address(writer *w, uint32_t slot) {
  ts_v address = load_word(w, w->pointer, TS_FLOW_SLOTS + (int32_t)slot);
  return w->moves[slot] ? address : fixed(w, address);
}

static ts_v slot_address(writer *w, uint32_t slot) {
  ts_emit_cell *cell = cell_of(w, slot);
  return cell ? cell->address : memory_address(w, slot);
}

/* The first element of a slot. */
static ts_v load_first(writer *w, uint32_t slot, ts_dtype type) {
  ts_emit_cell *cell = cell_of(w, slot);
  if (cell) return ts_emit_cell_first(w->e, cell, type);
  ts_v value = LLVMBuildLoad2(w->e->b, ts_emit_memory_type(w->e, type), memory_address(w, slot), "");
  LLVMSetAlignment(value, (unsigned)ts_dtype_alignment(type));
  return value;
}

static void set_slot(writer *w, uint32_t slot, ts_v address) {
  LLVMBuildStore(w->e->b, address, word_address(w, TS_FLOW_SLOTS + (int32_t)slot));
}

/* Leaves the function with that state. */
static void leave_with(writer *w, int64_t state) {
  LLVMBasicBlockRef here = LLVMGetInsertBlock(w->e->b);
  ts_v value = number(w, state);
  LLVMAddIncoming(w->state, &value, &here, 1);
  LLVMBuildBr(w->e->b, w->leave);
}

static void leave_if(writer *w, ts_v when, int64_t state) {
  LLVMBasicBlockRef leave = new_block(w, "failed"), go_on = new_block(w, "go_on");
  LLVMBuildCondBr(w->e->b, when, leave, go_on);
  LLVMPositionBuilderAtEnd(w->e->b, leave);
  leave_with(w, state);
  LLVMPositionBuilderAtEnd(w->e->b, go_on);
}

/* ---- calls and copies ---- */

typedef struct helper_call {
  int64_t call;
  ts_v to, from;
  int64_t bytes;
} helper_call;

static void write_call(writer *w, const helper_call *c) {
  LLVMTypeRef types[] = {w->pointer, w->i64, w->pointer, w->pointer, w->i64};
  LLVMTypeRef i1 = LLVMInt1TypeInContext(w->e->context);
  LLVMTypeRef type = LLVMFunctionType(i1, types, 5, 0);
  ts_v none = LLVMConstNull(w->pointer);
  ts_v args[] = {fixed_word(w, w->pointer, TS_FLOW_CONTEXT), number(w, c->call), c->to ? c->to : none,
                 c->from ? c->from : none, number(w, c->bytes)};
  ts_v done = LLVMBuildCall2(w->e->b, type, fixed_word(w, w->pointer, TS_FLOW_HELPER), args, 5, "");
  LLVMAttributeRef zero = LLVMCreateEnumAttribute(w->e->context, LLVMGetEnumAttributeKindForName("zeroext", 7), 0);
  LLVMAddCallSiteAttribute(done, LLVMAttributeReturnIndex, zero);
  leave_if(w, LLVMBuildNot(w->e->b, done, ""), TS_FLOW_FAILED);
}

static void copy_bytes(writer *w, ts_v to, ts_v from, int64_t bytes) {
  if (bytes >= TS_FLOW_LARGE_COPY)
    write_call(w, &(helper_call){TS_FLOW_COPY_BYTES, to, from, bytes});
  else if (bytes > 0)
    LLVMBuildMemCpy(w->e->b, to, 1, from, 1, number(w, bytes));
}

static void copy_slot(writer *w, uint32_t to, uint32_t from, int64_t bytes) {
  ts_emit_cell *target = cell_of(w, to), *source = cell_of(w, from);
  if (to == from) return;
  if (target)
    target->value = source ? source->value : ts_emit_cell_read_memory(w->e, bytes, memory_address(w, from));
  else if (source)
    ts_emit_cell_write_memory(w->e, source, memory_address(w, to));
  else
    copy_bytes(w, memory_address(w, to), memory_address(w, from), bytes);
}

/* ---- cells ---- */

static bool has_cell(uint64_t set, int32_t number) { return set >> number & 1; }

static void load_cells(writer *w, uint64_t set) {
  for (int32_t i = 0; i < w->cells.count; i++)
    if (has_cell(set, i))
      w->cell[i].value = ts_emit_cell_read_memory(w->e, w->cells.bytes[i], memory_address(w, w->cells.slot[i]));
}

static void store_cells(writer *w, uint64_t set) {
  for (int32_t i = 0; i < w->cells.count; i++)
    if (has_cell(set, i)) ts_emit_cell_write_memory(w->e, &w->cell[i], memory_address(w, w->cells.slot[i]));
}

static void get_values(const writer *w, ts_v *values) {
  for (int32_t i = 0; i < w->cells.count; i++) values[i] = w->cell[i].value;
}

/* The values in a block with several blocks before it: phis, of which `from` comes with `values`. */
static void begin_phis(writer *w, uint64_t set, LLVMBasicBlockRef from) {
  for (int32_t i = 0; i < w->cells.count; i++) {
    if (!has_cell(set, i)) continue;
    ts_v phi = LLVMBuildPhi(w->e->b, LLVMTypeOf(w->cell[i].value), "cell");
    LLVMAddIncoming(phi, &w->cell[i].value, &from, 1);
    w->cell[i].value = phi;
  }
}

static void add_to_phis(const writer *w, uint64_t set, const ts_v *phis, const ts_v *values, LLVMBasicBlockRef from) {
  for (int32_t i = 0; i < w->cells.count; i++) {
    ts_v value = values[i];
    if (has_cell(set, i)) LLVMAddIncoming(phis[i], &value, &from, 1);
  }
}

/* ---- launches ---- */

/* min(max(index, 0), limit) * stride, as ts_dynamic_clamp has it. */
static ts_v dynamic_offset(writer *w, const ts_flow_step *step, const ts_dynamic_term *t) {
  LLVMBuilderRef b = w->e->b;
  bool is_unsigned = ts_dtype_is_unsigned(t->dtype);
  ts_v value = load_first(w, step->operands[t->operand], t->dtype);
  value = LLVMBuildIntCast2(b, value, w->i64, !is_unsigned, "");
  const char *least = is_unsigned ? "llvm.umin" : "llvm.smin";
  value = ts_emit_intrinsic(w->e, least, NULL, (ts_v[]){value, number(w, t->limit)}, 2);
  if (!is_unsigned) value = ts_emit_intrinsic(w->e, "llvm.smax", NULL, (ts_v[]){value, number(w, 0)}, 2);
  return LLVMBuildMul(b, value, number(w, t->stride), "");
}

static ts_v pointer_value(writer *w, const ts_flow_step *step, const ts_launch_pointer *p) {
  ts_v offset = number(w, p->offset), address = slot_address(w, ts_flow_pointer_slot(step, p));
  for (int32_t i = 0; i < p->term_count; i++)
    offset = LLVMBuildAdd(w->e->b, offset, dynamic_offset(w, step, &p->terms[i]), "");
  return LLVMBuildGEP2(w->e->b, w->i8, address, &offset, 1, "");
}

/* True when the bits of the op do not depend on the number of lanes: all except vector math. */
static bool is_exact(const ts_kernel_node *n) {
  if (n->kind != TS_NODE_OP) return true;
  ts_op_class class = ts_op_get_class(n->op);
  if (class == TS_CLASS_UNARY_FLOAT) return n->op == TS_OP_SQRT;
  if (class == TS_CLASS_BINARY_FLOAT) return n->op == TS_OP_DIVIDE;
  return n->op != TS_OP_POW;
}

/* Enough lanes for the last dim, and at least the 4 that the smallest machine has. */
static int lanes_of(const writer *w, const ts_kernel_desc *d, const int64_t *args) {
  int lanes = 4, most = w->e->target->lanes;
  int64_t extent = args[d->rank - 1];
  for (int32_t i = 0; i < d->node_count; i++)
    if (!is_exact(&d->nodes[i])) return most;
  while (lanes < most && lanes < extent) lanes *= 2;
  return lanes;
}

/* A tile is worth its code in large tensors only. */
static void make_map(ts_kernel_desc *d, ts_kernel_operand *inputs, const int64_t *args, int64_t *units) {
  for (int32_t i = 0; i < d->input_count; i++) {
    inputs[i] = d->inputs[i];
    if (inputs[i].stride[d->rank - 2] == TS_STRIDE_UNIT) inputs[i].stride[d->rank - 2] = TS_STRIDE_ANY;
  }
  d->inputs = inputs;
  d->kind = TS_KERNEL_MAP;
  *units = 1;
  for (int32_t i = 0; i + 1 < d->rank; i++) *units *= args[i];
}

static ts_status emit_desc(ts_emit *e, const ts_kernel_desc *d) {
  bool is_short = d->kind == TS_KERNEL_COL && ts_loop_is_short(d, e->site->args[d->rank - 2]);
  switch (d->kind) {
  case TS_KERNEL_MAP: return ts_loop_emit_map(e, NULL, d);
  case TS_KERNEL_ROW: return ts_loop_emit_row(e, NULL, d);
  case TS_KERNEL_COL: return is_short ? ts_loop_emit_short(e, d) : ts_loop_emit_col(e, NULL, d);
  case TS_KERNEL_TILE:
  case TS_KERNEL_JOINED:
  case TS_KERNEL_INTERLEAVED: break; /* ts_lower_options.in_place */
  }
  return ts_error(TS_UNIMPLEMENTED, "kernels of kind %d cannot be emitted in place", (int)d->kind);
}

static ts_status emit_launch(writer *w, const ts_flow_step *step, ts_v *addresses) {
  const ts_launch *l = step->launch;
  int32_t scalars = ts_kernel_arg_scalar(&l->desc, 0), next = step->first;
  ts_kernel_desc desc = l->desc;
  ts_kernel_operand inputs[TS_KERNEL_MAX_OPERANDS];
  for (int32_t i = 0; i < l->pointer_count; i++)
    addresses[l->pointers[i].word] = pointer_value(w, step, &l->pointers[i]);
  for (int32_t i = 0; i < desc.scalar_count; i++) {
    if (!ts_flow_has_word(desc.scalars[i])) continue;
    addresses[scalars + i] = word_address(w, ts_flow_scalar_word(w->flow, next++));
  }
  ts_site site = {.args = l->args, .addresses = addresses, .units = l->units};
  site.scratch = step->scratch == TS_NO_ID ? LLVMConstNull(w->pointer) : slot_address(w, step->scratch);
  if (desc.kind == TS_KERNEL_TILE) make_map(&desc, inputs, l->args, &site.units);
  ts_flow_turned turned = {.args = NULL};
  if (ts_flow_may_turn(l)) {
    TS_TRY(ts_flow_turn(l, &turned));
    desc = turned.desc;
    site.args = turned.args;
  }
  w->e->lanes = lanes_of(w, &desc, site.args);
  w->e->site = &site;
  ts_status status = emit_desc(w->e, &desc);
  w->e->site = NULL;
  ts_free(turned.args);
  w->e->lanes = w->e->target->lanes;
  return status;
}

static ts_status write_launch(writer *w, const ts_flow_step *step) {
  const ts_launch *l = step->launch;
  ts_v *addresses;
  if (l->units <= 0 || (l->copies && *step->operands == *step->results)) return TS_SUCCESS;
  TS_TRY(TS_NEW_ARRAY((size_t)ts_kernel_arg_count(&l->desc), &addresses));
  ts_status status = emit_launch(w, step, addresses);
  ts_free(addresses);
  return status;
}

static void write_dot(writer *w, const ts_flow_step *step) {
  ts_v at[] = {slot_address(w, step->operands[0]), slot_address(w, step->operands[1]), slot_address(w, *step->results)};
  ts_flow_emit_dot(w->e, step->dot, at);
}

static ts_status write_scatter(writer *w, const ts_flow_step *step) {
  const ts_flow_scatter *s = step->scatter;
  ts_flow_scatter_sites at = {.updates = slot_address(w, step->operands[2])};
  copy_slot(w, *step->results, *step->operands, step->bytes);
  at.target = slot_address(w, *step->results);
  if (ts_flow_has_one_index(s))
    at.index = load_first(w, step->operands[1], s->index);
  else
    at.indices = slot_address(w, step->operands[1]);
  return ts_flow_emit_scatter(w->e, s, &at);
}

/* ---- control flow ---- */

static ts_status write_block(writer *w, const ts_flow_block *block);

static ts_v is_true(writer *w, uint32_t slot) {
  return LLVMBuildICmp(w->e->b, LLVMIntNE, load_first(w, slot, TS_U8), LLVMConstNull(w->i8), "");
}

static ts_v must_stop(writer *w) {
  LLVMBuilderRef b = w->e->b;
  LLVMTypeRef i16 = LLVMInt16TypeInContext(w->e->context);
  ts_v flags = LLVMBuildLoad2(b, i16, fixed_word(w, w->pointer, TS_FLOW_CONTROL), "control");
  LLVMSetOrdering(flags, LLVMAtomicOrderingMonotonic);
  LLVMSetAlignment(flags, 2);
  flags = LLVMBuildAnd(b, flags, LLVMBuildTrunc(b, fixed_word(w, w->i64, TS_FLOW_MASK), i16, ""), "");
  return LLVMBuildICmp(b, LLVMIntNE, flags, LLVMConstNull(i16), "");
}

/* The variable and its next value have memory each, and that changes places. */
static bool swaps(const writer *w, const ts_flow_step *step, int32_t i) {
  return step->results[i] != step->temps[i] && w->cells.of_slot[step->results[i]] < 0;
}

static void begin_while(writer *w, const ts_flow_step *step) {
  for (int32_t i = 0; i < step->count; i++) {
    copy_slot(w, step->results[i], step->operands[i], step->sizes[i]);
    if (!swaps(w, step, i)) continue;
    ts_v home = memory_address(w, step->results[i]);
    LLVMBuildStore(w->e->b, home, word_address(w, ts_flow_home_word(w->flow, step->first + i)));
  }
}

static void swap_carried(writer *w, const ts_flow_step *step) {
  for (int32_t i = 0; i < step->count; i++) {
    ts_emit_cell *variable = cell_of(w, step->results[i]), *other = cell_of(w, step->temps[i]);
    if (variable) {
      ts_v value = variable->value;
      variable->value = other->value;
      other->value = value;
    }
    if (!swaps(w, step, i)) continue;
    ts_v carried = memory_address(w, step->results[i]), next = memory_address(w, step->temps[i]);
    set_slot(w, step->results[i], next);
    set_slot(w, step->temps[i], carried);
  }
}

/* Moves every variable back to its original memory. */
static void settle(writer *w, const ts_flow_step *step) {
  LLVMBuilderRef b = w->e->b;
  for (int32_t i = 0; i < step->count; i++) {
    if (!swaps(w, step, i)) continue;
    LLVMBasicBlockRef move = new_block(w, "move"), settled = new_block(w, "settled");
    ts_v carried = memory_address(w, step->results[i]);
    ts_v home = load_word(w, w->pointer, ts_flow_home_word(w->flow, step->first + i));
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, carried, home, ""), settled, move);
    LLVMPositionBuilderAtEnd(b, move);
    copy_bytes(w, home, carried, step->sizes[i]);
    set_slot(w, step->results[i], home);
    set_slot(w, step->temps[i], carried);
    LLVMBuildBr(b, settled);
    LLVMPositionBuilderAtEnd(b, settled);
  }
}

/* Begins the head of a loop: the function stops there, and continues there in the block of heads[]. */
static void write_head(writer *w, const ts_flow_step *step, LLVMBasicBlockRef head, ts_v *phis) {
  LLVMBuilderRef b = w->e->b;
  uint64_t live = w->cells.live[step->number];
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b), stop = new_block(w, "stop"), go_on = new_block(w, "go_on");
  ts_v loaded[TS_FLOW_MOST_CELLS], first[TS_FLOW_MOST_CELLS];
  LLVMBuildBr(b, head);
  get_values(w, first);
  LLVMPositionBuilderAtEnd(b, w->heads[step->number]);
  load_cells(w, live);
  get_values(w, loaded);
  LLVMBasicBlockRef resumed = LLVMGetInsertBlock(b);
  LLVMBuildBr(b, head);
  for (int32_t i = 0; i < w->cells.count; i++)
    w->cell[i].value = has_cell(live, i) ? first[i] : LLVMConstNull(LLVMTypeOf(first[i]));
  LLVMPositionBuilderAtEnd(b, head);
  begin_phis(w, live, before);
  get_values(w, phis);
  add_to_phis(w, live, phis, loaded, resumed);
  LLVMBuildCondBr(b, must_stop(w), stop, go_on);
  LLVMPositionBuilderAtEnd(b, stop);
  store_cells(w, live);
  leave_with(w, step->number);
  LLVMPositionBuilderAtEnd(b, go_on);
}

static ts_status write_while(writer *w, const ts_flow_step *step) {
  LLVMBuilderRef b = w->e->b;
  LLVMBasicBlockRef head = new_block(w, "while.head"), body = new_block(w, "while.body"),
                    exit = new_block(w, "while.exit");
  ts_v phis[TS_FLOW_MOST_CELLS], last[TS_FLOW_MOST_CELLS], left[TS_FLOW_MOST_CELLS];
  begin_while(w, step);
  write_head(w, step, head, phis);
  TS_TRY(write_block(w, &step->blocks[0]));
  LLVMBuildCondBr(b, is_true(w, step->predicate), body, exit);
  get_values(w, left);
  LLVMPositionBuilderAtEnd(b, body);
  TS_TRY(write_block(w, &step->blocks[1]));
  swap_carried(w, step);
  get_values(w, last);
  add_to_phis(w, w->cells.live[step->number], phis, last, LLVMGetInsertBlock(b));
  LLVMBuildBr(b, head);
  LLVMPositionBuilderAtEnd(b, exit);
  for (int32_t i = 0; i < w->cells.count; i++) w->cell[i].value = left[i];
  settle(w, step);
  return TS_SUCCESS;
}

static ts_status write_cond(writer *w, const ts_flow_step *step) {
  LLVMBuilderRef b = w->e->b;
  LLVMBasicBlockRef starts[2] = {new_block(w, "cond.true"), new_block(w, "cond.false")}, join = new_block(w, "joined");
  LLVMBasicBlockRef ends[2];
  ts_v before[TS_FLOW_MOST_CELLS], after[2][TS_FLOW_MOST_CELLS];
  uint64_t different = 0;
  get_values(w, before);
  LLVMBuildCondBr(b, is_true(w, *step->operands), starts[0], starts[1]);
  for (int k = 0; k < 2; k++) {
    LLVMPositionBuilderAtEnd(b, starts[k]);
    for (int32_t i = 0; i < w->cells.count; i++) w->cell[i].value = before[i];
    TS_TRY(write_block(w, &step->blocks[k]));
    get_values(w, after[k]);
    ends[k] = LLVMGetInsertBlock(b);
    LLVMBuildBr(b, join);
  }
  LLVMPositionBuilderAtEnd(b, join);
  for (int32_t i = 0; i < w->cells.count; i++) different |= (uint64_t)(after[0][i] != after[1][i]) << i;
  for (int32_t i = 0; i < w->cells.count; i++) w->cell[i].value = after[0][i];
  begin_phis(w, different, ends[0]);
  get_values(w, before);
  add_to_phis(w, different, before, after[1], ends[1]);
  return TS_SUCCESS;
}

static ts_status write_step(writer *w, const ts_flow_step *step) {
  switch (step->kind) {
  case TS_FLOW_LAUNCH: return write_launch(w, step);
  case TS_FLOW_COPY: copy_slot(w, *step->results, *step->operands, step->bytes); return TS_SUCCESS;
  case TS_FLOW_CALL: write_call(w, &(helper_call){.call = step->number}); return TS_SUCCESS;
  case TS_FLOW_DOT: write_dot(w, step); return TS_SUCCESS;
  case TS_FLOW_SCAN:
    ts_flow_emit_scan(w->e, step->scan, slot_address(w, *step->operands), slot_address(w, *step->results));
    return TS_SUCCESS;
  case TS_FLOW_SCATTER: return write_scatter(w, step);
  case TS_FLOW_WHILE: return write_while(w, step);
  case TS_FLOW_COND: return write_cond(w, step);
  }
  return ts_error(TS_INTERNAL, "unknown step of a flow");
}

static ts_status write_block(writer *w, const ts_flow_block *block) {
  for (int32_t i = 0; i < block->count; i++) TS_TRY(write_step(w, &block->steps[i]));
  return TS_SUCCESS;
}

/* ---- the function ---- */

static void find_moves(writer *w, const ts_flow_step *step) {
  if (step->kind != TS_FLOW_WHILE && step->kind != TS_FLOW_COND) return;
  for (int32_t i = 0; step->kind == TS_FLOW_WHILE && i < step->count; i++)
    if (swaps(w, step, i)) w->moves[step->results[i]] = w->moves[step->temps[i]] = true;
  for (int k = 0; k < 2; k++)
    for (int32_t i = 0; i < step->blocks[k].count; i++) find_moves(w, &step->blocks[k].steps[i]);
}

static void write_entry(writer *w) {
  LLVMBuilderRef b = w->e->b;
  ts_v state = load_word(w, w->i64, TS_FLOW_STATE);
  ts_v branch = LLVMBuildSwitch(b, state, w->heads[0], (unsigned)w->flow->loop_count);
  for (int32_t i = 1; i <= w->flow->loop_count; i++) LLVMAddCase(branch, number(w, i), w->heads[i]);
  LLVMPositionBuilderAtEnd(b, w->leave);
  w->state = LLVMBuildPhi(b, w->i64, "state");
  LLVMBuildStore(b, w->state, word_address(w, TS_FLOW_STATE));
  LLVMBuildRetVoid(b);
  LLVMPositionBuilderAtEnd(b, w->heads[0]);
}

static void begin_cells(writer *w) {
  for (int32_t i = 0; i < w->cells.count; i++) ts_emit_cell_begin(w->e, &w->cell[i], w->cells.bytes[i]);
  *w->e->cells = (ts_emit_cells){w->cell, w->cells.count, 0};
}

static ts_status write_function(writer *w, const char *name) {
  ts_emit *e = w->e;
  LLVMTypeRef params[] = {w->pointer, w->i64, w->i64, w->pointer};
  e->function = LLVMAddFunction(e->module, name, LLVMFunctionType(LLVMVoidTypeInContext(e->context), params, 4, 0));
  w->args = LLVMGetParam(e->function, 0);
  LLVMPositionBuilderAtEnd(e->b, new_block(w, "entry"));
  for (int32_t i = 0; i <= w->flow->loop_count; i++) w->heads[i] = new_block(w, i == 0 ? "begin" : "resume");
  w->leave = new_block(w, "leave");
  memset(w->moves, 0, (size_t)w->flow->slot_count);
  find_moves(w, w->flow->loop);
  begin_cells(w);
  write_entry(w);
  load_cells(w, w->cells.live[0]);
  TS_TRY(write_step(w, w->flow->loop));
  store_cells(w, w->cells.results);
  leave_with(w, 0);
  return TS_SUCCESS;
}

/* Excludes the slots of the cells that are exposed. */
static bool find_exposed(writer *w) {
  bool found = false;
  for (int32_t i = 0; i < w->cells.count; i++) {
    ts_emit_cell_end(&w->cell[i]);
    if (w->cell[i].exposed) w->excluded[w->cells.slot[i]] = found = true;
  }
  return found;
}

/* Repeats the emission with fewer cells, and in the end without any, until none is exposed. */
static ts_status write_with_cells(writer *w, const char *name, ts_arena *arena) {
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)w->flow->slot_count, &w->excluded));
  for (int round = 0;; round++) {
    int64_t most = round < ROUNDS ? CELL_VECTORS * 4 * w->e->target->lanes : 0;
    TS_TRY(ts_flow_find_cells(w->flow, most, w->excluded, arena, &w->cells));
    TS_TRY(write_function(w, name));
    if (!find_exposed(w)) return TS_SUCCESS;
    LLVMDeleteFunction(w->e->function);
  }
}

ts_status ts_flow_emit(ts_emit *e, const char *name, const void *description) {
  writer w = {.e = e, .flow = description};
  ts_emit_cells cells;
  ts_arena arena;
  ts_arena_init(&arena);
  e->cells = &cells;
  w.i64 = LLVMInt64TypeInContext(e->context);
  w.i8 = LLVMInt8TypeInContext(e->context);
  w.pointer = LLVMPointerTypeInContext(e->context, 0);
  ts_status status = TS_ARENA_ARRAY(&arena, (size_t)w.flow->loop_count + 1, &w.heads);
  if (!status) status = TS_ARENA_ARRAY(&arena, (size_t)w.flow->slot_count, &w.moves);
  if (!status) status = write_with_cells(&w, name, &arena);
  e->cells = NULL;
  ts_arena_deinit(&arena);
  return status;
}
