/* Brings contractions into the form of a matrix product: the batch, free and contracted dims of each operand are one
 * strided dim each. A transpose of an operand is dropped where the product can read through its strides; an operand
 * whose dims do not collapse is transposed to [batch, free, contracted] first. A product that only a transpose reads
 * gets its operands exchanged instead, if nothing is left of the transpose then, or it moves whole rows; one that moves
 * rows may move the left operand's (dots_rows.h). The order of contraction does not change, so no bit does. The batch
 * dims of large products may be two strided dims in both operands (heads of a batch). A conversion of an operand to a
 * wider type is left to the product, which then reads fewer bytes, and multiplies integers of 8 bits faster; so is a
 * scale of such an operand. Where no sum of widened integers exceeds 32 bits, a product of 64 bits becomes a widened
 * product of 32 bits. Contractions without free dims stay (pass/vector_dot.h). */
#include "pass/dots_rows.h"
#include "pass/normalize.h"

typedef struct side {
  ts_value_id value;
  ts_dims batch, contract;
  /* The factor of the converted value: a number, or a value whose dims are along `axes` of it. */
  enum { UNSCALED, BY_NUMBER, BY_VALUE } scaled;
  ts_value_id scale;
  ts_scalar number;
  ts_dims axes;
} side;

static side side_of(ts_value_id value, const ts_dims *batch, const ts_dims *contract) {
  return (side){.value = value, .batch = *batch, .contract = *contract};
}

static bool contains(const ts_dims *dims, int64_t d) {
  for (int32_t i = 0; i < dims->rank; i++) {
    if (dims->dims[i] == d) return true;
  }
  return false;
}

static ts_dims free_dims(const ts_dims *batch, const ts_dims *contract, int32_t rank) {
  ts_dims out = {0};
  for (int32_t d = 0; d < rank; d++) {
    if (!contains(batch, d) && !contains(contract, d)) out.dims[out.rank++] = d;
  }
  return out;
}

static ts_dims apply(const ts_dims *axes, const ts_dims *dims) {
  ts_dims out = {.rank = dims->rank};
  for (int32_t i = 0; i < dims->rank; i++) out.dims[i] = axes->dims[dims->dims[i]];
  return out;
}

/* True when the result's free dims are in the operand's order (the result's order is fixed). */
static bool is_ascending(const ts_dims *dims) {
  for (int32_t i = 1; i < dims->rank; i++) {
    if (dims->dims[i] < dims->dims[i - 1]) return false;
  }
  return true;
}

static void read_through_transpose(const ts_graph *g, side *s) {
  const ts_value *v = ts_graph_value(g, s->value);
  if (v->op == TS_NO_ID || ts_graph_op(g, v->op)->code != TS_OP_TRANSPOSE) return;
  const ts_op *op = ts_graph_op(g, v->op);
  ts_dims free = free_dims(&s->batch, &s->contract, v->shape->rank), moved = apply(&op->attrs->axes, &free);
  if (!is_ascending(&moved)) return;
  s->value = op->operands[0];
  s->batch = apply(&op->attrs->axes, &s->batch);
  s->contract = apply(&op->attrs->axes, &s->contract);
  s->axes = apply(&op->attrs->axes, &s->axes);
}

static const ts_op *maker(const ts_graph *g, ts_value_id value, ts_opcode code) {
  ts_op_id op = ts_graph_value(g, value)->op;
  return op != TS_NO_ID && ts_graph_op(g, op)->code == code ? ts_graph_op(g, op) : NULL;
}

/* ---- unit dims behind a transpose ---- */

/* For each dim of the wider shape the dim of the other one, or -1: it has one element and was inserted. */
static bool match_units(const ts_shape *narrow, const ts_shape *wide, int64_t *out) {
  int32_t next = 0;
  for (int32_t d = 0; d < wide->rank; d++) {
    const bool same = next < narrow->rank && wide->dims[d] == narrow->dims[next];
    if (!same && wide->dims[d] != 1) return false;
    out[d] = same ? next++ : -1;
  }
  return next == narrow->rank;
}

/* True when the value is a transpose with dims of one element inserted behind it, which may as well be before it: in
 * `out_shape` of the transpose's operand, of which value dim d is `out_axes` of d. */
static bool has_units(const ts_graph *g, ts_value_id value, ts_shape *out_shape, ts_dims *out_axes) {
  const ts_op *reshape = maker(g, value, TS_OP_RESHAPE);
  const ts_op *transpose = reshape ? maker(g, reshape->operands[0], TS_OP_TRANSPOSE) : NULL;
  const ts_shape *wide = ts_graph_value(g, value)->shape;
  int64_t from[TS_MAX_RANK];
  if (!transpose || !match_units(ts_graph_value(g, reshape->operands[0])->shape, wide, from)) return false;
  const ts_shape *source = ts_graph_value(g, transpose->operands[0])->shape;
  *out_shape = (ts_shape){.rank = 0};
  *out_axes = (ts_dims){.rank = wide->rank};
  for (int32_t p = 0; p <= source->rank; p++) { /* the units before a dim stay before it */
    int32_t end = wide->rank, first;
    for (int32_t d = 0; d < wide->rank && p < source->rank; d++)
      if (from[d] >= 0 && transpose->attrs->axes.dims[from[d]] == p) end = d;
    for (first = end; first > 0 && from[first - 1] < 0; first--) continue;
    for (int32_t d = first; d < end || (d == end && p < source->rank); d++) {
      out_axes->dims[d] = out_shape->rank;
      out_shape->dims[out_shape->rank++] = wide->dims[d];
    }
  }
  return true;
}

/* Moves such dims before the transpose, which the product can read through then. */
static ts_status move_units(ts_rules *rules, ts_region_id target, side *s) {
  ts_attrs attrs = {0};
  ts_dims axes, free = free_dims(&s->batch, &s->contract, ts_graph_value(rules->to, s->value)->shape->rank), moved;
  if (!has_units(rules->to, s->value, &attrs.shape, &axes)) return TS_SUCCESS;
  moved = apply(&axes, &free);
  if (!is_ascending(&moved)) return TS_SUCCESS;
  const ts_op *reshape = maker(rules->to, s->value, TS_OP_RESHAPE);
  const ts_value_id source = maker(rules->to, reshape->operands[0], TS_OP_TRANSPOSE)->operands[0];
  s->batch = apply(&axes, &s->batch);
  s->contract = apply(&axes, &s->contract);
  return ts_rules_add(rules, target, TS_OP_RESHAPE, (ts_values){&source, 1}, &attrs, &s->value);
}

/* The value whose conversion this is, if a product of the conversion's type reads it as well. */
static ts_value_id before_widening(const ts_graph *g, ts_value_id value) {
  const ts_op *convert = maker(g, value, TS_OP_CONVERT);
  if (!convert) return TS_NO_ID;
  ts_dtype from = ts_graph_value(g, convert->operands[0])->dtype;
  return ts_dtype_widens_to(from, ts_graph_value(g, value)->dtype) ? convert->operands[0] : TS_NO_ID;
}

/* Reads through transposes and a conversion to `type`; a value of another type is converted by the product already. */
static void read_through(const ts_graph *g, ts_dtype type, side *s) {
  read_through_transpose(g, s);
  if (ts_graph_value(g, s->value)->dtype != type) return;
  ts_value_id narrow = before_widening(g, s->value);
  if (narrow == TS_NO_ID) return;
  s->value = narrow;
  read_through_transpose(g, s);
}

/* ---- products of 64 bits that fit 32 ---- */

/* The largest size of a number of an integer type of at most 16 bits; 0 for other types. */
static int64_t largest(ts_dtype type) {
  if (ts_dtype_is_small(type) || !ts_dtype_is_integer(type) || ts_dtype_size(type) > 2) return 0;
  const int bits = ts_dtype_bits(type);
  return ts_dtype_is_signed(type) ? INT64_C(1) << (bits - 1) : (INT64_C(1) << bits) - 1;
}

/* Reads through the conversion of the operand to 64 bits; returns the largest size of its elements, and 0 if it is not
 * such a conversion. */
static int64_t read_narrow(const ts_graph *g, side *s) {
  read_through_transpose(g, s);
  const ts_op *convert = maker(g, s->value, TS_OP_CONVERT);
  if (!convert) return 0;
  s->value = convert->operands[0];
  read_through_transpose(g, s);
  return largest(ts_graph_value(g, s->value)->dtype);
}

/* True when the product of two integers of 64 bits is exact in s32: the operands are conversions of narrow ones, and so
 * few terms are added that no sum overflows. Then both sides are read through the conversions. */
static bool read_as_s32(const ts_graph *g, side *lhs, side *rhs) {
  const ts_dtype type = ts_graph_value(g, lhs->value)->dtype;
  const ts_shape *shape = ts_graph_value(g, lhs->value)->shape;
  side l = *lhs, r = *rhs;
  int64_t terms = 1, largest_product = 0;
  if (type != TS_S64 && type != TS_U64) return false;
  for (int32_t i = 0; i < lhs->contract.rank; i++) terms *= shape->dims[lhs->contract.dims[i]];
  largest_product = read_narrow(g, &l) * read_narrow(g, &r);
  if (largest_product == 0 || terms > INT32_MAX / largest_product) return false;
  *lhs = l;
  *rhs = r;
  return true;
}

/* ---- strides ---- */

static bool is_one_dim(const ts_shape *shape, const int64_t *strides, const ts_dims *dims) {
  return ts_dims_are_one(shape, strides, dims, 0, dims->rank);
}

static bool is_strided(const ts_shape *shape, const ts_dims *batch, const ts_dims *contract) {
  ts_dims free = free_dims(batch, contract, shape->rank);
  int64_t strides[TS_MAX_RANK];
  ts_shape_strides(shape, strides);
  return is_one_dim(shape, strides, batch) && is_one_dim(shape, strides, &free) && is_one_dim(shape, strides, contract);
}

/* Smaller products of the inner batch dims are not worth a run of their own. */
#define INNER_PRODUCTS (256 << 10)

static int64_t extent_of(const ts_shape *shape, const ts_dims *dims, int32_t first) {
  int64_t extent = 1;
  for (int32_t i = first; i < dims->rank; i++) extent *= shape->dims[dims->dims[i]];
  return extent;
}

/* True when the product is one for each index of the outer batch dims, which are one strided dim in both operands, and
 * so are the inner ones. The routine finds the same dims (ts_batch_outer). */
static bool has_two_batches(const ts_graph *g, const side *lhs, const side *rhs) {
  const ts_shape *l = ts_graph_value(g, lhs->value)->shape, *r = ts_graph_value(g, rhs->value)->shape;
  int64_t ls[TS_MAX_RANK], rs[TS_MAX_RANK];
  ts_shape_strides(l, ls);
  ts_shape_strides(r, rs);
  const int32_t outer = ts_batch_outer(&(ts_batch_dims){l, ls, &lhs->batch}, &(ts_batch_dims){r, rs, &rhs->batch});
  const ts_dims lhs_free = free_dims(&lhs->batch, &lhs->contract, l->rank),
                rhs_free = free_dims(&rhs->batch, &rhs->contract, r->rank);
  if (outer <= 0 || ts_dtype_is_complex(ts_graph_value(g, lhs->value)->dtype)) return false;
  if (!is_one_dim(l, ls, &lhs_free) || !is_one_dim(l, ls, &lhs->contract) || !is_one_dim(r, rs, &rhs_free) ||
      !is_one_dim(r, rs, &rhs->contract))
    return false;
  const double products = (double)extent_of(l, &lhs->batch, outer) * (double)extent_of(l, &lhs_free, 0) *
                          (double)extent_of(l, &lhs->contract, 0) * (double)extent_of(r, &rhs_free, 0);
  return products >= INNER_PRODUCTS;
}

static void append(ts_dims *to, const ts_dims *from, ts_dims *positions) {
  positions->rank = from->rank;
  for (int32_t i = 0; i < from->rank; i++) {
    positions->dims[i] = to->rank;
    to->dims[to->rank++] = from->dims[i];
  }
}

/* ---- scales ---- */

/* Takes a factor that is a number or a broadcast value. */
static bool take_scale(const ts_graph *g, ts_value_id factor, side *s) {
  const ts_op *broadcast = maker(g, factor, TS_OP_BROADCAST);
  s->scaled = BY_NUMBER;
  s->axes.rank = 0;
  if (ts_graph_is_constant(g, factor, &s->number)) return true;
  if (!broadcast) return false;
  s->scaled = BY_VALUE;
  s->scale = broadcast->operands[0];
  s->axes = broadcast->attrs->broadcast.axes;
  return true;
}

/* True when the scale is one strided dim along the batch and along the free dims, and does not change along others. */
static bool is_scale_strided(const ts_graph *g, const side *s) {
  const ts_shape *shape = ts_graph_value(g, s->value)->shape;
  const ts_dims free = free_dims(&s->batch, &s->contract, shape->rank);
  int64_t own[TS_MAX_RANK], strides[TS_MAX_RANK] = {0};
  if (s->scaled == BY_NUMBER) return true;
  const ts_shape *scale = ts_graph_value(g, s->scale)->shape;
  ts_shape_strides(scale, own);
  for (int32_t i = 0; i < scale->rank; i++) {
    if (scale->dims[i] == 1) continue;
    if (contains(&s->contract, s->axes.dims[i])) return false;
    strides[s->axes.dims[i]] = own[i];
  }
  return is_one_dim(shape, strides, &s->batch) && is_one_dim(shape, strides, &free);
}

/* Reads through the product of a widened value and a scale, whose elements are then computed while they are packed. */
static bool read_scaled(const ts_graph *g, side *inout) {
  side s = *inout;
  read_through_transpose(g, &s);
  const ts_dtype type = ts_graph_value(g, s.value)->dtype;
  const ts_op *multiply = maker(g, s.value, TS_OP_MULTIPLY);
  if (!multiply || (type != TS_F16 && type != TS_BF16 && type != TS_F32)) return false;
  for (int i = 0; i < 2; i++) {
    side narrow = s;
    narrow.value = multiply->operands[i];
    if (!take_scale(g, multiply->operands[1 - i], &narrow)) continue;
    read_through_transpose(g, &narrow);
    narrow.value = before_widening(g, narrow.value);
    if (narrow.value == TS_NO_ID) continue;
    read_through_transpose(g, &narrow);
    if (!is_scale_strided(g, &narrow)) continue;
    *inout = narrow;
    return true;
  }
  return false;
}

/* Reads through the scale of one side, of the larger one if both have one. */
static bool read_one_scaled(const ts_graph *g, side *lhs, side *rhs) {
  const bool lhs_first =
      ts_shape_elements(ts_graph_value(g, lhs->value)->shape) > ts_shape_elements(ts_graph_value(g, rhs->value)->shape);
  return read_scaled(g, lhs_first ? lhs : rhs) || read_scaled(g, lhs_first ? rhs : lhs);
}

static ts_status make_scale(ts_rules *rules, ts_region_id target, ts_dtype type, side *s) {
  if (s->scaled != BY_NUMBER) return TS_SUCCESS;
  return ts_rules_constant(rules, target, type, &ts_shape_scalar, s->number, &s->scale);
}

/* ---- the product ---- */

static ts_dims where(const ts_dims *axes, const ts_dims *dims) {
  ts_dims out = {.rank = dims->rank};
  for (int32_t i = 0; i < dims->rank; i++)
    for (int32_t d = 0; d < axes->rank; d++)
      if (axes->dims[d] == dims->dims[i]) out.dims[i] = d;
  return out;
}

static ts_status make_strided(ts_rules *rules, ts_region_id target, side *s) {
  if (is_strided(ts_graph_value(rules->to, s->value)->shape, &s->batch, &s->contract)) return TS_SUCCESS;
  ts_dims free = free_dims(&s->batch, &s->contract, ts_graph_value(rules->to, s->value)->shape->rank), kept;
  side out = *s;
  ts_attrs attrs = {0};
  append(&attrs.axes, &s->batch, &out.batch);
  append(&attrs.axes, &free, &kept);
  append(&attrs.axes, &s->contract, &out.contract);
  TS_TRY(ts_rules_add(rules, target, TS_OP_TRANSPOSE, (ts_values){&s->value, 1}, &attrs, &out.value));
  out.axes = where(&attrs.axes, &s->axes);
  *s = out;
  return TS_SUCCESS;
}

static ts_status add_scaled_dot(ts_rules *rules, ts_region_id target, const side *lhs, const side *rhs,
                                ts_value_id *out) {
  const side *scaled = lhs->scaled ? lhs : rhs;
  ts_value_id operands[] = {lhs->value, rhs->value, scaled->scale};
  ts_attrs attrs = {.scaled_dot = {.lhs_contract = lhs->contract,
                                   .lhs_batch = lhs->batch,
                                   .rhs_contract = rhs->contract,
                                   .rhs_batch = rhs->batch,
                                   .operand = scaled == rhs,
                                   .axes = scaled->axes}};
  return ts_rules_add(rules, target, TS_OP_SCALED_DOT, (ts_values){operands, 3}, &attrs, out);
}

static ts_status add_dot(ts_rules *rules, ts_region_id target, side lhs, side rhs, ts_value_id *out) {
  const ts_dtype result = ts_graph_value(rules->to, lhs.value)->dtype;
  TS_TRY(move_units(rules, target, &lhs));
  TS_TRY(move_units(rules, target, &rhs));
  const bool is_scaled = read_one_scaled(rules->to, &lhs, &rhs);
  const ts_dtype type = !is_scaled && read_as_s32(rules->to, &lhs, &rhs) ? TS_S32 : result;
  TS_TRY(make_scale(rules, target, type, &lhs));
  TS_TRY(make_scale(rules, target, type, &rhs));
  read_through(rules->to, type, &lhs);
  read_through(rules->to, type, &rhs);
  if (is_scaled || !has_two_batches(rules->to, &lhs, &rhs)) {
    TS_TRY(make_strided(rules, target, &lhs));
    TS_TRY(make_strided(rules, target, &rhs));
  }
  if (is_scaled) return add_scaled_dot(rules, target, &lhs, &rhs, out);
  ts_value_id operands[] = {lhs.value, rhs.value};
  bool wide = false;
  for (int i = 0; i < 2; i++) wide |= ts_graph_value(rules->to, operands[i])->dtype != type;
  ts_attrs attrs = {.wide_dot = {lhs.contract, lhs.batch, rhs.contract, rhs.batch, wide ? type : 0}};
  TS_TRY(ts_rules_add(rules, target, wide ? TS_OP_WIDE_DOT : TS_OP_DOT, (ts_values){operands, 2}, &attrs, out));
  const ts_value_id product = *out;
  if (type == result) return TS_SUCCESS;
  return ts_rules_add(rules, target, TS_OP_CONVERT, (ts_values){&product, 1}, &(ts_attrs){.dtype = result}, out);
}

static side lhs_of(const ts_rewrite *rw, const ts_op *dot) {
  return side_of(ts_rewrite_operand(rw, dot, 0), &dot->attrs->dot.lhs_batch, &dot->attrs->dot.lhs_contract);
}

static side rhs_of(const ts_rewrite *rw, const ts_op *dot) {
  return side_of(ts_rewrite_operand(rw, dot, 1), &dot->attrs->dot.rhs_batch, &dot->attrs->dot.rhs_contract);
}

/* Moves a transpose of the product's rows to its left operand. */
static ts_status move_rows(ts_rewrite *rw, ts_rules *rules, ts_op_id id, ts_region_id target, bool *out_done) {
  ts_dots_rows rows;
  *out_done = ts_dots_rows_find(rw->from, rw->uses, ts_graph_op(rw->from, id), &rows);
  if (!*out_done) return TS_SUCCESS;
  const ts_attrs attrs = {.axes = rows.lhs_axes};
  const ts_value_id lhs = ts_rewrite_operand(rw, rows.dot, 0);
  ts_value_id moved, product;
  TS_TRY(ts_rules_add(rules, target, TS_OP_TRANSPOSE, (ts_values){&lhs, 1}, &attrs, &moved));
  const side left = side_of(moved, &rows.dot->attrs->dot.lhs_batch, &rows.dot->attrs->dot.lhs_contract);
  TS_TRY(add_dot(rules, target, left, rhs_of(rw, rows.dot), &product));
  return ts_dots_rows_finish(rw, rules, id, target, &rows, product);
}

/* Rows of so many elements are worth a product with exchanged operands. */
enum { EXCHANGED_ROW = 16 };

/* The axes of the transpose if the operands of its product are exchanged. */
static ts_dims exchanged_axes(const ts_dims *axes, int32_t batch, int32_t lhs_free) {
  const int32_t rhs_free = axes->rank - batch - lhs_free;
  ts_dims out = *axes;
  for (int32_t i = 0; i < axes->rank; i++) {
    if (axes->dims[i] < batch) continue;
    out.dims[i] += axes->dims[i] < batch + lhs_free ? rhs_free : -lhs_free;
  }
  return out;
}

static bool is_identity(const ts_dims *axes) {
  for (int32_t i = 0; i < axes->rank; i++)
    if (axes->dims[i] != i) return false;
  return true;
}

/* True when nothing is left of the transpose after an exchange, or it moves whole rows: its last dim is one of lhs. */
static bool exchanges(const ts_shape *product, const ts_dims *axes, int32_t batch, int32_t lhs_free) {
  const int64_t last = axes->dims[axes->rank - 1];
  const ts_dims left = exchanged_axes(axes, batch, lhs_free);
  if (lhs_free == 0 || lhs_free + batch == axes->rank) return false;
  return is_identity(&left) || (last >= batch && last < batch + lhs_free && product->dims[last] >= EXCHANGED_ROW);
}

/* The product in the old graph that only `transpose` reads, and the axes that are left of it; NULL when its operands
 * are not exchanged. */
static const ts_op *find_exchanged(const ts_rewrite *rw, const ts_op *transpose, ts_dims *out_axes) {
  const ts_value *product = ts_graph_value(rw->from, transpose->operands[0]);
  if (product->op == TS_NO_ID || rw->uses[transpose->operands[0]] != 1) return NULL;
  const ts_op *dot = ts_graph_op(rw->from, product->op);
  if (dot->code != TS_OP_DOT || ts_dtype_is_complex(product->dtype)) return NULL; /* im adds products in an order */
  int32_t batch = dot->attrs->dot.lhs_batch.rank;
  int32_t lhs_free =
      ts_graph_value(rw->from, dot->operands[0])->shape->rank - batch - dot->attrs->dot.lhs_contract.rank;
  *out_axes = exchanged_axes(&transpose->attrs->axes, batch, lhs_free);
  return exchanges(product->shape, &transpose->attrs->axes, batch, lhs_free) ? dot : NULL;
}

static bool is_read_through(const ts_graph *g, ts_value_id value) {
  ts_shape shape;
  ts_dims axes;
  return maker(g, value, TS_OP_TRANSPOSE) || before_widening(g, value) != TS_NO_ID ||
         has_units(g, value, &shape, &axes);
}

/* True when both sides fit 32 bits, or one is scaled. */
static bool reads_operands(const ts_graph *g, ts_value_id lhs, ts_value_id rhs, const ts_attrs *attrs) {
  side l = side_of(lhs, &attrs->dot.lhs_batch, &attrs->dot.lhs_contract);
  side r = side_of(rhs, &attrs->dot.rhs_batch, &attrs->dot.rhs_contract);
  return read_as_s32(g, &l, &r) || read_one_scaled(g, &l, &r);
}

/* True when a product of two values has the form already. */
static bool has_form(const ts_graph *g, ts_value_id lhs, ts_value_id rhs, const ts_attrs *attrs) {
  const side l = side_of(lhs, &attrs->dot.lhs_batch, &attrs->dot.lhs_contract);
  const side r = side_of(rhs, &attrs->dot.rhs_batch, &attrs->dot.rhs_contract);
  if (is_read_through(g, lhs) || is_read_through(g, rhs) || reads_operands(g, lhs, rhs, attrs)) return false;
  return has_two_batches(g, &l, &r) || (is_strided(ts_graph_value(g, lhs)->shape, &l.batch, &l.contract) &&
                                        is_strided(ts_graph_value(g, rhs)->shape, &r.batch, &r.contract));
}

ts_status ts_dots_visit(ts_rewrite *rw, ts_rules *rules, ts_op_id id, ts_region_id target, bool *out_done) {
  const ts_op *op = ts_graph_op(rw->from, id);
  ts_attrs left = {0};
  const ts_op *dot = op->code == TS_OP_TRANSPOSE ? find_exchanged(rw, op, &left.axes) : NULL;
  ts_value_id *out = &rw->map[op->first_result];
  bool is_dot = op->code == TS_OP_DOT && !ts_graph_is_vector_dot(rw->from, op) &&
                !has_form(rules->to, ts_rewrite_operand(rw, op, 0), ts_rewrite_operand(rw, op, 1), op->attrs);
  *out_done = dot || is_dot;
  if (dot) {
    ts_value_id product;
    TS_TRY(add_dot(rules, target, rhs_of(rw, dot), lhs_of(rw, dot), is_identity(&left.axes) ? out : &product));
    if (is_identity(&left.axes)) return TS_SUCCESS;
    return ts_rules_add(rules, target, TS_OP_TRANSPOSE, (ts_values){&product, 1}, &left, out);
  }
  if (op->code == TS_OP_TRANSPOSE) return move_rows(rw, rules, id, target, out_done);
  return is_dot ? add_dot(rules, target, lhs_of(rw, op), rhs_of(rw, op), out) : TS_SUCCESS;
}

static bool is_alike(const ts_graph *g, const ts_op *a, const ts_op *b) {
  if (a->attrs != b->attrs) return false;
  for (int i = 0; i < 2; i++) {
    if (ts_graph_value(g, a->operands[i])->shape != ts_graph_value(g, b->operands[i])->shape) return false;
  }
  return true;
}

bool ts_dots_applies(const ts_graph *g) {
  const ts_op *last = NULL;
  for (size_t i = 0; i < g->ops.count; i++) {
    const ts_op *op = &g->ops.data[i];
    ts_dots_rows rows;
    if (op->code == TS_OP_TRANSPOSE && (maker(g, op->operands[0], TS_OP_DOT) || ts_dots_rows_find(g, NULL, op, &rows)))
      return true;
    if (op->code != TS_OP_DOT || ts_graph_is_vector_dot(g, op)) continue;
    if (is_read_through(g, op->operands[0]) || is_read_through(g, op->operands[1])) return true;
    if (reads_operands(g, op->operands[0], op->operands[1], op->attrs)) return true;
    if ((!last || !is_alike(g, last, op)) && !has_form(g, op->operands[0], op->operands[1], op->attrs)) return true;
    last = op;
  }
  return false;
}
