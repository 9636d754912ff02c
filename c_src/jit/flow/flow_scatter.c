/* Scatters of a few rows inside of a native loop: row after row, as kernel/scatter.c has them, with a branch around
 * each row whose index is out of bounds. */
#include "jit/flow/flow_scatter.h"

#include "jit/emit/emit_cell.h"

typedef struct writer {
  ts_emit *e;
  const ts_flow_scatter *of;
  const ts_flow_scatter_sites *at;
  LLVMTypeRef i64;
  int64_t size; /* of an element */
} writer;

static ts_v number(const writer *w, int64_t value) { return LLVMConstInt(w->i64, (unsigned long long)value, 1); }

static ts_v moved(const writer *w, ts_v at, ts_v by) {
  return LLVMBuildGEP2(w->e->b, LLVMInt8TypeInContext(w->e->context), at, &by, 1, "");
}

static ts_v moved_by(const writer *w, ts_v at, int64_t bytes) {
  return bytes == 0 ? at : moved(w, at, number(w, bytes));
}

/* A number of the index of a row. */
static ts_v load_index(const writer *w, int64_t row, int32_t axis) {
  ts_v index = w->at->index;
  if (!index) {
    const int64_t at = (row * w->of->axis_count + axis) * (int64_t)ts_dtype_size(w->of->index);
    index = LLVMBuildLoad2(w->e->b, ts_emit_memory_type(w->e, w->of->index), moved_by(w, w->at->indices, at), "");
    LLVMSetAlignment(index, (unsigned)ts_dtype_alignment(w->of->index));
  }
  return LLVMBuildIntCast2(w->e->b, index, w->i64, !ts_dtype_is_unsigned(w->of->index), "");
}

/* Where the row begins in the target. As unsigned numbers, negative indices are also out of bounds. */
static ts_v row_offset(const writer *w, int64_t row, ts_v *inside) {
  LLVMBuilderRef b = w->e->b;
  ts_v offset = NULL;
  for (int32_t a = 0; a < w->of->axis_count; a++) {
    ts_v index = load_index(w, row, a);
    ts_v less = LLVMBuildICmp(b, LLVMIntULT, index, number(w, w->of->extents[a]), "");
    ts_v by = LLVMBuildMul(b, index, number(w, w->of->strides[a]), "");
    *inside = offset ? LLVMBuildAnd(b, *inside, less, "") : less;
    offset = offset ? LLVMBuildAdd(b, offset, by, "") : by;
  }
  return offset;
}

/* The first `count` lanes; 0: all. */
static ts_v load(const writer *w, ts_v at, int64_t count) {
  if (count == 0) return ts_emit_load(w->e, w->of->type, at);
  return ts_emit_load_tail(w->e, w->of->type, at, number(w, count));
}

static ts_status update(const writer *w, ts_v to, ts_v from, int64_t count) {
  ts_v value = load(w, from, count);
  if (w->of->op == TS_OP_INDEXED_ADD)
    TS_TRY(ts_emit_op(w->e, TS_OP_ADD, w->of->type, (ts_v[]){load(w, to, count), value}, &value));
  if (count == 0)
    ts_emit_store(w->e, w->of->type, value, to);
  else
    ts_emit_store_tail(w->e, w->of->type, value, to, number(w, count));
  return TS_SUCCESS;
}

static ts_status update_row(const writer *w, int64_t row, ts_v offset) {
  const int64_t columns = w->of->columns, lanes = w->e->lanes;
  for (int32_t o = 0; o < w->of->outer_count; o++) {
    ts_v to = moved_by(w, moved(w, w->at->target, offset), w->of->outer[o]);
    const int64_t first = (row * w->of->outer_count + o) * columns;
    for (int64_t c = 0; c < columns; c += lanes) {
      const int64_t rest = columns - c < lanes ? columns - c : 0;
      TS_TRY(update(w, moved_by(w, to, c * w->size), moved_by(w, w->at->updates, (first + c) * w->size), rest));
    }
  }
  return TS_SUCCESS;
}

static ts_status write_row(const writer *w, int64_t row) {
  LLVMBuilderRef b = w->e->b;
  LLVMBasicBlockRef change = LLVMAppendBasicBlockInContext(w->e->context, w->e->function, "row"),
                    next = LLVMAppendBasicBlockInContext(w->e->context, w->e->function, "row_done");
  ts_v inside = NULL, offset = row_offset(w, row, &inside);
  LLVMBuildCondBr(b, inside, change, next);
  LLVMPositionBuilderAtEnd(b, change);
  ts_emit_cells_enter(w->e, 1);
  ts_status status = update_row(w, row, offset);
  ts_emit_cells_enter(w->e, -1);
  LLVMBuildBr(b, next);
  LLVMPositionBuilderAtEnd(b, next);
  return status;
}

ts_status ts_flow_emit_scatter(ts_emit *e, const ts_flow_scatter *scatter, const ts_flow_scatter_sites *at) {
  const int machine = e->lanes;
  writer w = {.e = e, .of = scatter, .at = at, .size = (int64_t)ts_dtype_size(scatter->type)};
  ts_status status = TS_SUCCESS;
  w.i64 = LLVMInt64TypeInContext(e->context);
  for (e->lanes = 4; e->lanes < machine && e->lanes < scatter->columns;) e->lanes *= 2;
  for (int64_t row = 0; row < scatter->rows && !status; row++) status = write_row(&w, row);
  e->lanes = machine;
  return status;
}
