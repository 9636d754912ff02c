#include "jit/emit/emit.h"
#include "jit/emit/whole.h"

typedef struct writer {
  ts_emit *e;
  const ts_graph *g;
  ts_v args;
  ts_v *values; /* the vector of each value of the graph */
  ts_v control; /* address of the two flags: cancel, pause */
  int depth;    /* nesting depth of whiles; the outermost is 1, or 2 where the whole is not a while */
  int32_t first_constant, next_constant;
} writer;

static LLVMTypeRef pointer_type(ts_emit *e) { return LLVMPointerTypeInContext(e->context, 0); }

static ts_v arg_address(writer *w, int32_t word) {
  ts_v index = LLVMConstInt(LLVMInt64TypeInContext(w->e->context), (unsigned long long)word, 0);
  return LLVMBuildGEP2(w->e->b, LLVMInt64TypeInContext(w->e->context), w->args, &index, 1, "");
}

static ts_v arg_pointer(writer *w, int32_t word, const char *name) {
  return LLVMBuildLoad2(w->e->b, pointer_type(w->e), arg_address(w, word), name);
}

static LLVMBasicBlockRef new_block(writer *w, const char *name) {
  return LLVMAppendBasicBlockInContext(w->e->context, w->e->function, name);
}

static ts_v is_true(writer *w, ts_v vector) {
  LLVMTypeRef i8 = LLVMInt8TypeInContext(w->e->context), i32 = LLVMInt32TypeInContext(w->e->context);
  ts_v lane = LLVMBuildExtractElement(w->e->b, vector, LLVMConstInt(i32, 0, 0), "");
  return LLVMBuildICmp(w->e->b, LLVMIntNE, lane, LLVMConstInt(i8, 0, 0), "");
}

/* Only the outermost loop stops to pause: it can be resumed from its loop variables. If an inner one stopped, the code
 * around it would continue with unfinished values. */
static ts_v must_stop(writer *w) {
  bool outermost = w->depth == 1;
  LLVMTypeRef type = outermost ? LLVMInt16TypeInContext(w->e->context) : LLVMInt8TypeInContext(w->e->context);
  ts_v flags = LLVMBuildLoad2(w->e->b, type, w->control, "control");
  LLVMSetOrdering(flags, LLVMAtomicOrderingMonotonic);
  LLVMSetAlignment(flags, outermost ? 2 : 1);
  return LLVMBuildICmp(w->e->b, LLVMIntNE, flags, LLVMConstInt(type, 0, 0), "");
}

static ts_status write_region(writer *w, ts_region_id id);

static void bind(writer *w, const ts_region *region, const ts_v *operands) {
  for (size_t i = 0; i < region->params.count; i++) w->values[region->params.data[i]] = operands[i];
}

/* The loop variables are phis at the head, where the condition is evaluated. */
static ts_status write_while(writer *w, const ts_op *op, ts_v *scratch) {
  LLVMBuilderRef b = w->e->b;
  const ts_region *condition = ts_graph_region(w->g, op->attrs->regions.regions[0]);
  const ts_region *body = ts_graph_region(w->g, op->attrs->regions.regions[1]);
  LLVMBasicBlockRef head = new_block(w, "while.head"), inside = new_block(w, "while.body"),
                    exit = new_block(w, "while.exit");
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
  for (uint32_t i = 0; i < op->operand_count; i++) scratch[i] = w->values[op->operands[i]];
  w->depth++;
  LLVMBuildBr(b, head);
  LLVMPositionBuilderAtEnd(b, head);
  for (uint32_t i = 0; i < op->operand_count; i++) {
    ts_v phi = LLVMBuildPhi(b, LLVMTypeOf(scratch[i]), "");
    LLVMAddIncoming(phi, &scratch[i], &before, 1);
    scratch[i] = w->values[op->first_result + i] = phi;
  }
  bind(w, condition, scratch);
  TS_TRY(write_region(w, op->attrs->regions.regions[0]));
  ts_v stop = LLVMBuildOr(b, LLVMBuildNot(b, is_true(w, w->values[condition->results.data[0]]), ""), must_stop(w), "");
  LLVMBuildCondBr(b, stop, exit, inside);
  LLVMPositionBuilderAtEnd(b, inside);
  bind(w, body, scratch);
  TS_TRY(write_region(w, op->attrs->regions.regions[1]));
  LLVMBasicBlockRef last = LLVMGetInsertBlock(b);
  for (uint32_t i = 0; i < op->result_count; i++)
    LLVMAddIncoming(w->values[op->first_result + i], &w->values[body->results.data[i]], &last, 1);
  LLVMBuildBr(b, head);
  LLVMPositionBuilderAtEnd(b, exit);
  w->depth--;
  return TS_SUCCESS;
}

static ts_status write_cond(writer *w, const ts_op *op, ts_v *scratch) {
  LLVMBuilderRef b = w->e->b;
  LLVMBasicBlockRef starts[2] = {new_block(w, "cond.true"), new_block(w, "cond.false")}, ends[2],
                    join = new_block(w, "cond.join");
  LLVMBuildCondBr(b, is_true(w, w->values[op->operands[0]]), starts[0], starts[1]);
  for (uint32_t i = 1; i < op->operand_count; i++) scratch[i - 1] = w->values[op->operands[i]];
  for (int k = 0; k < 2; k++) {
    LLVMPositionBuilderAtEnd(b, starts[k]);
    bind(w, ts_graph_region(w->g, op->attrs->regions.regions[k]), scratch);
    TS_TRY(write_region(w, op->attrs->regions.regions[k]));
    ends[k] = LLVMGetInsertBlock(b);
    LLVMBuildBr(b, join);
  }
  LLVMPositionBuilderAtEnd(b, join);
  for (uint32_t i = 0; i < op->result_count; i++) {
    ts_v incoming[2];
    for (int k = 0; k < 2; k++)
      incoming[k] = w->values[ts_graph_region(w->g, op->attrs->regions.regions[k])->results.data[i]];
    ts_v phi = LLVMBuildPhi(b, LLVMTypeOf(incoming[0]), "");
    LLVMAddIncoming(phi, incoming, ends, 2);
    w->values[op->first_result + i] = phi;
  }
  return TS_SUCCESS;
}

static ts_status write_inlined(writer *w, const ts_op *op, ts_v *scratch) {
  ts_region_id regions[2];
  ts_op_regions(op, regions);
  const ts_region *region = ts_graph_region(w->g, regions[0]);
  for (uint32_t i = 0; i < op->operand_count; i++) scratch[i] = w->values[op->operands[i]];
  bind(w, region, scratch);
  TS_TRY(write_region(w, regions[0]));
  for (uint32_t i = 0; i < op->result_count; i++) w->values[op->first_result + i] = w->values[region->results.data[i]];
  return TS_SUCCESS;
}

static ts_status write_element(writer *w, const ts_op *op) {
  ts_v operands[3] = {NULL, NULL, NULL}, *out = &w->values[op->first_result];
  ts_dtype type = ts_graph_value(w->g, op->operands[op->operand_count - 1])->dtype;
  ts_dtype to = ts_graph_value(w->g, op->first_result)->dtype;
  for (uint32_t i = 0; i < op->operand_count && i < 3; i++) operands[i] = w->values[op->operands[i]];
  if (op->code == TS_OP_CONVERT)
    *out = ts_emit_convert(w->e, type, to, operands[0]);
  else if (op->code == TS_OP_BITCAST)
    *out = ts_emit_bitcast(w->e, type, to, operands[0]);
  else
    return ts_emit_op(w->e, op->code, type, operands, out);
  return TS_SUCCESS;
}

static ts_status write_op(writer *w, const ts_op *op) {
  if (op->code == TS_OP_CONSTANT) return TS_SUCCESS; /* loaded at the entry */
  if (ts_whole_is_identity(op->code)) {
    w->values[op->first_result] = w->values[op->operands[0]];
    return TS_SUCCESS;
  }
  bool control = op->code == TS_OP_WHILE || op->code == TS_OP_COND || ts_whole_is_inlined(op->code);
  if (!control) return write_element(w, op);
  ts_v *scratch;
  TS_TRY(TS_NEW_ARRAY(op->operand_count + 1, &scratch));
  ts_status status = op->code == TS_OP_WHILE  ? write_while(w, op, scratch)
                     : op->code == TS_OP_COND ? write_cond(w, op, scratch)
                                              : write_inlined(w, op, scratch);
  ts_free(scratch);
  return status;
}

static ts_status write_region(writer *w, ts_region_id id) {
  const ts_region *region = ts_graph_region(w->g, id);
  for (size_t i = 0; i < region->ops.count; i++) TS_TRY(write_op(w, ts_graph_op(w->g, region->ops.data[i])));
  return TS_SUCCESS;
}

/* Loads the constants of all regions below `op`, in the order of ts_whole_lower's list. */
static void load_constants(writer *w, const ts_op *op) {
  if (op->code == TS_OP_CONSTANT) {
    ts_v address = arg_address(w, w->first_constant + w->next_constant++);
    w->values[op->first_result] = ts_emit_load_splat(w->e, op->attrs->constant.dtype, address);
  }
  ts_region_id regions[2];
  size_t n = ts_op_regions(op, regions);
  for (size_t i = 0; i < n; i++) {
    const ts_region *region = ts_graph_region(w->g, regions[i]);
    for (size_t k = 0; k < region->ops.count; k++) load_constants(w, ts_graph_op(w->g, region->ops.data[k]));
  }
}

static ts_status write_function(writer *w, const ts_op *op) {
  ts_emit *e = w->e;
  w->args = LLVMGetParam(e->function, 0);
  for (uint32_t i = 0; i < op->operand_count; i++) {
    ts_v address = arg_pointer(w, (int32_t)i, "operand");
    w->values[op->operands[i]] = ts_emit_load_splat(e, ts_graph_value(w->g, op->operands[i])->dtype, address);
  }
  w->control = arg_pointer(w, (int32_t)(op->operand_count + op->result_count), "control");
  w->depth = op->code == TS_OP_WHILE ? 0 : 1;
  w->first_constant = (int32_t)(op->operand_count + op->result_count) + 1;
  load_constants(w, op);
  TS_TRY(write_op(w, op));
  ts_v one = LLVMConstInt(LLVMInt64TypeInContext(e->context), 1, 0);
  for (uint32_t i = 0; i < op->result_count; i++) {
    ts_v address = arg_pointer(w, (int32_t)(op->operand_count + i), "result");
    ts_emit_store_tail(e, ts_graph_value(w->g, op->first_result + i)->dtype, w->values[op->first_result + i], address,
                       one);
  }
  LLVMBuildRetVoid(e->b);
  return TS_SUCCESS;
}

/* Ops whose bits do not depend on the number of lanes: all except vector math. */
static bool is_exact(const ts_graph *g, const ts_op *op) {
  switch (ts_op_get_class(op->code)) {
  case TS_CLASS_UNARY_FLOAT: return op->code == TS_OP_SQRT;
  case TS_CLASS_BINARY_FLOAT: return op->code == TS_OP_DIVIDE;
  case TS_CLASS_BINARY: return op->code != TS_OP_POW || ts_dtype_is_integer(ts_graph_value(g, op->first_result)->dtype);
  case TS_CLASS_SOURCE:
  case TS_CLASS_UNARY:
  case TS_CLASS_UNARY_INTEGER:
  case TS_CLASS_PREDICATE:
  case TS_CLASS_COMPLEX:
  case TS_CLASS_BINARY_INTEGER:
  case TS_CLASS_COMPARE:
  case TS_CLASS_CONVERT:
  case TS_CLASS_SELECT:
  case TS_CLASS_CLAMP:
  case TS_CLASS_SHAPE:
  case TS_CLASS_INDEXED:
  case TS_CLASS_REDUCE:
  case TS_CLASS_ARG_REDUCE:
  case TS_CLASS_SCAN:
  case TS_CLASS_SORT:
  case TS_CLASS_WINDOW:
  case TS_CLASS_DOT:
  case TS_CLASS_LINALG:
  case TS_CLASS_COLLECTIVE:
  case TS_CLASS_FFT:
  case TS_CLASS_CONTROL: break;
  }
  ts_region_id regions[2];
  size_t n = ts_op_regions(op, regions);
  for (size_t i = 0; i < n; i++) {
    const ts_region *region = ts_graph_region(g, regions[i]);
    for (size_t k = 0; k < region->ops.count; k++)
      if (!is_exact(g, ts_graph_op(g, region->ops.data[k]))) return false;
  }
  return true;
}

/* Full width is wasted on one element, and lowers the clock of some processors. */
#define EXACT_LANES 4

ts_status ts_whole_emit(ts_emit *e, const char *name, const void *description) {
  const ts_whole *whole = description;
  if (is_exact(whole->graph, ts_graph_op(whole->graph, whole->op))) e->lanes = EXACT_LANES;
  LLVMTypeRef i64 = LLVMInt64TypeInContext(e->context), params[] = {pointer_type(e), i64, i64, pointer_type(e)};
  e->function = LLVMAddFunction(e->module, name, LLVMFunctionType(LLVMVoidTypeInContext(e->context), params, 4, 0));
  LLVMPositionBuilderAtEnd(e->b, new_block(&(writer){.e = e}, "entry"));
  writer w = {.e = e, .g = whole->graph};
  TS_TRY(TS_NEW_ARRAY(whole->graph->values.count, &w.values));
  ts_status status = write_function(&w, ts_graph_op(whole->graph, whole->op));
  ts_free(w.values);
  return status;
}

bool ts_whole_is_identity(ts_opcode code) {
  switch (code) {
  case TS_OP_RESHAPE:
  case TS_OP_BROADCAST:
  case TS_OP_TRANSPOSE:
  case TS_OP_REVERSE: return true;
  default: return false;
  }
}
