/* Where the ops of a module come from: MLIR's locations, such as loc("f"("model.py":12:4)). Internal to stablehlo/.
 *
 * Locations refer to one another, and they are foreign data: a location that is not understood is none, and no location
 * makes a program fail. */
#ifndef TS_STABLEHLO_LOCATION_H
#define TS_STABLEHLO_LOCATION_H

#include "stablehlo/bytecode.h"
#include "stablehlo/make.h"

/* A line of a file, or what refers to others: a name of one, a call, or several at once. */
typedef struct mlir_location {
  mlir_token file; /* length 0: this is no line */
  uint64_t line;
  mlir_token name;                    /* of a function, or of an op as "jit(f)/add"; length 0: none */
  const struct mlir_location *inner;  /* what has the name; the called place; NULL: none */
  const struct mlir_location *others; /* the place of the call, or the next of several; NULL: none */
} mlir_location;

/* ---- location_text.c */
/* loc(...) at the next token, where there is one; else NULL. `p` is unchanged: mlir_skip_location comes next. */
ts_status mlir_read_location(const mlir_parser *p, const mlir_location **out);
/* #name = loc(...), at "loc". It may have been used before. */
ts_status mlir_define_location(const mlir_parser *p, mlir_token name);

/* ---- location_bytecode.c */
/* Reads the locations among the attributes of a file, if they are wanted. */
ts_status bytecode_read_locations(bytecode *b);
/* NULL where the file has none of that number. */
const mlir_location *bytecode_location(const bytecode *b, uint64_t index);

/* ---- location_place.c */
/* Ops that are added from now on have the place of this op. An op without a location has the place of the op around it,
 * which calls its function or has its region. So has an op with a name only, if the op around it has a line. In a text
 * without locations an op is on its own line. */
ts_status make_set_place(make_state *r, const mlir_op *op);

#endif
