/* The ops of a formula. */
#include "pass/complex/complex.h"

static bool failed(const ts_formula *f) { return f->status != TS_SUCCESS; }

ts_value_id ts_formula_add(ts_formula *f, ts_opcode code, const ts_value_id *operands, size_t count,
                           const ts_attrs *attrs) {
  static const ts_attrs none;
  ts_value_id out = TS_NO_ID;
  if (failed(f)) return TS_NO_ID;
  f->status =
      ts_rules_add(f->call->rules, f->call->target, code, (ts_values){operands, count}, attrs ? attrs : &none, &out);
  return out;
}

ts_value_id ts_formula_unary(ts_formula *f, ts_opcode code, ts_value_id x) {
  return ts_formula_add(f, code, &x, 1, NULL);
}

ts_value_id ts_formula_binary(ts_formula *f, ts_opcode code, ts_value_id x, ts_value_id y) {
  return ts_formula_add(f, code, (const ts_value_id[]){x, y}, 2, NULL);
}

ts_value_id ts_formula_select(ts_formula *f, ts_value_id predicate, ts_value_id x, ts_value_id y) {
  return ts_formula_add(f, TS_OP_SELECT, (const ts_value_id[]){predicate, x, y}, 3, NULL);
}

ts_value_id ts_formula_number(ts_formula *f, double number) {
  ts_value_id out = TS_NO_ID;
  if (failed(f)) return TS_NO_ID;
  f->status = ts_rules_constant(f->call->rules, f->call->target, f->dtype, f->shape,
                                ts_scalar_from_f64(f->dtype, number), &out);
  return out;
}

ts_value_id ts_formula_convert(ts_formula *f, ts_value_id x, ts_dtype dtype) {
  return ts_formula_add(f, TS_OP_CONVERT, &x, 1, &(ts_attrs){.dtype = dtype});
}
