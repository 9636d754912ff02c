/* Cells: small pieces of memory that the code under construction keeps in registers. A cell has an address, so that the
 * emitters need not know of it: loads and stores of vectors at a constant distance from that address read and change
 * the cell's value instead (emit_memory.c). Where code uses the address in another way, the cell is *exposed*, and the
 * emission must be repeated with memory in its place. */
#ifndef TS_JIT_EMIT_CELL_H
#define TS_JIT_EMIT_CELL_H

#include "jit/emit/emit.h"

typedef struct ts_emit_cell {
  ts_v address; /* points to nothing that is used */
  int64_t bytes;
  ts_v value; /* a vector of i32; bytes behind the last are zero */
  bool exposed;
} ts_emit_cell;

typedef struct ts_emit_cells {
  ts_emit_cell *data;
  int32_t count;
  int32_t depth; /* of conditions and loops around the code under construction: no cell may change in there */
} ts_emit_cells;

/* Begins (1) or ends (-1) a condition or a loop. */
static inline void ts_emit_cells_enter(ts_emit *e, int32_t by) {
  if (e->cells) e->cells->depth += by;
}

/* Begins a cell of zeros; the function must have its entry block. */
void ts_emit_cell_begin(ts_emit *e, ts_emit_cell *cell, int64_t bytes);
/* The type of `value`. */
LLVMTypeRef ts_emit_cell_type(ts_emit *e, int64_t bytes);
/* Finds out whether the cell is exposed; else removes what the function has of its address. */
void ts_emit_cell_end(ts_emit_cell *cell);

/* The cell's bytes from or to memory, which need not be aligned. */
ts_v ts_emit_cell_read_memory(ts_emit *e, int64_t bytes, ts_v from);
void ts_emit_cell_write_memory(ts_emit *e, const ts_emit_cell *cell, ts_v to);
/* The first element. */
ts_v ts_emit_cell_first(ts_emit *e, const ts_emit_cell *cell, ts_dtype type);

/* Lanes of a vector in memory form: lane i is at address + i * stride. `part` is as in emit.h; NULL: all lanes. */
typedef struct ts_emit_access {
  ts_dtype type;
  ts_v address, part;
  ts_v stride; /* bytes; NULL: those of an element */
} ts_emit_access;

/* NULL, or false: it is no access to a cell. */
ts_v ts_emit_cell_load(ts_emit *e, const ts_emit_access *from);
bool ts_emit_cell_store(ts_emit *e, const ts_emit_access *to, ts_v memory);

#endif
