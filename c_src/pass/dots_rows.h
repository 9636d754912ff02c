/* Transposes of a product's rows, which become transposes of its left operand. Internal to pass/. */
#ifndef TS_PASS_DOTS_ROWS_H
#define TS_PASS_DOTS_ROWS_H

#include "pass/rules.h"

/* Elementwise ops between a product and a transpose of its rows. */
enum { TS_DOTS_ROWS_OPS = 4 };

typedef struct ts_dots_rows {
  const ts_op *dot, *ops[TS_DOTS_ROWS_OPS]; /* of the old graph; the last op first */
  int count;
  int32_t batch, rows; /* dims of the product: those of its batch, and the free ones of its left operand */
  ts_dims lhs_axes;    /* of the transpose of the left operand */
} ts_dots_rows;

/* True when a transpose is replaced; `uses` of values, or NULL: whether it may be, whatever else reads what it reads.
 */
bool ts_dots_rows_find(const ts_graph *graph, const uint32_t *uses, const ts_op *transpose, ts_dots_rows *out);
/* The ops with moved rows, after `product`, which has them, take the transpose's place. */
ts_status ts_dots_rows_finish(ts_rewrite *rw, ts_rules *rules, ts_op_id transpose, ts_region_id target,
                              const ts_dots_rows *rows, ts_value_id product);

#endif
