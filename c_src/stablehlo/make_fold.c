/* Reductions and windows by any region, of any number of operands. The region is made of whole tensors: each of its
 * scalars stands for a tensor of one shape, the state's `lifted` one. So n elements are combined in about log2(n)
 * steps, in their order, neighbours first: the specification leaves the order of a region's calls open. */
#include "stablehlo/make.h"

#include <string.h>

/* A list of equal shapes. */
typedef struct fold {
  const make_call *m;
  size_t count;
  ts_value_id *values, *others; /* in one block with the next ones */
  make_value *results;
} fold;

static const ts_shape *shape_of(const fold *f) { return make_value_of(f->m, f->values[0])->shape; }

static ts_status bind_lifted(const make_call *m, const mlir_region *block, const ts_value_id *operands,
                             make_scope *scope) {
  for (size_t i = 0; i < block->param_count; i++) {
    make_value value = {.id = operands[i], .is_bool = block->param_types.data[i].is_bool};
    if (block->param_types.data[i].dtype != make_value_of(m, value.id)->dtype)
      return make_error(m, TS_INVALID_ARGUMENT, "its region has parameters of other types than its operands");
    TS_TRY(make_bind(scope, block->params[i], 0, 1, value));
  }
  return TS_SUCCESS;
}

/* A value of the scope around the region. It is a scalar in the text. */
static ts_status bind_captured(const make_call *m, mlir_token name, const ts_shape *shape, make_scope *scope) {
  make_value value;
  const bool is_part = memchr(name.text, '#', name.length);
  if (ts_map_get(&scope->names, name.text, name.length) || !ts_map_get(&m->scope->names, name.text, name.length))
    return TS_SUCCESS;
  TS_TRY(make_look_up(m->scope, name, &value));
  if (make_value_of(m, value.id)->shape->rank == 0) TS_TRY(make_broadcast_to(m, value.id, shape, &value.id));
  TS_TRY(make_bind(scope, name, 0, is_part ? 2 : 1, value));
  if (!is_part) return TS_SUCCESS;
  return ts_map_put(&scope->names, name.text, name.length, (void *)(uintptr_t)scope->values.count);
}

static ts_status call_lifted(const make_call *m, const mlir_region *block, make_scope *scope, make_value *results) {
  const ts_shape *outer = m->r->lifted;
  ts_shape shape;
  ts_shape_copy(&shape, make_value_of(m, scope->values.data[0].id)->shape);
  for (size_t i = 0; i < block->op_count; i++)
    for (size_t j = 0; j < block->ops[i].operand_count; j++)
      TS_TRY(bind_captured(m, block->ops[i].operands[j], &shape, scope));
  m->r->lifted = &shape;
  ts_status status = make_block(m->r, block, m->region, scope, results);
  m->r->lifted = outer;
  TS_TRY(status);
  const size_t count = block->ops[block->op_count - 1].operand_count;
  for (size_t i = 0; i < count; i++) TS_TRY(make_broadcast_to(m, results[i].id, &shape, &results[i].id));
  return TS_SUCCESS;
}

ts_status make_lifted(const make_call *m, const mlir_region *block, const ts_value_id *operands, make_value *results) {
  make_scope scope = {0};
  if (block->param_count == 0 || block->op_count == 0)
    return make_error(m, TS_INVALID_ARGUMENT, "its region takes nothing");
  ts_status status = bind_lifted(m, block, operands, &scope);
  if (!status) status = call_lifted(m, block, &scope, results);
  make_scope_deinit(&scope);
  return status;
}

/* values = region(values, others): `others` lies behind `values`. */
static ts_status combine(fold *f) {
  const mlir_region *block = &f->m->op->regions[0];
  if (block->param_count != 2 * f->count || block->op_count == 0 ||
      block->ops[block->op_count - 1].operand_count != f->count)
    return make_error(f->m, TS_INVALID_ARGUMENT, "its region does not take %zu and give %zu values", 2 * f->count,
                      f->count);
  TS_TRY(make_lifted(f->m, block, f->values, f->results));
  for (size_t i = 0; i < f->count; i++) {
    f->values[i] = f->results[i].id;
    if (make_value_of(f->m, f->values[i])->dtype != make_value_of(f->m, f->others[i])->dtype)
      return make_error(f->m, TS_INVALID_ARGUMENT, "its region gives another type than it takes");
  }
  return TS_SUCCESS;
}

/* Elements from `start` on of one axis. */
static ts_status cut(const fold *f, int32_t axis, make_range range, ts_value_id *inout) {
  return make_slice(f->m, *inout, axis, range, inout);
}

static ts_status append(const fold *f, int32_t axis, ts_value_id last, ts_value_id *inout) {
  ts_attrs attrs = {.axis = axis};
  return make_add(f->m, TS_OP_CONCATENATE, (ts_values){(ts_value_id[]){*inout, last}, 2}, &attrs, inout);
}

/* Pairs of neighbours become one, and a last one without a neighbour stays. */
static ts_status halve(fold *f, int32_t axis, ts_value_id *whole) {
  const int64_t length = shape_of(f)->dims[axis], pairs = length / 2;
  memcpy(whole, f->values, f->count * sizeof *whole);
  for (size_t i = 0; i < f->count; i++) {
    f->others[i] = whole[i];
    TS_TRY(cut(f, axis, (make_range){0, 2 * pairs, 2}, &f->values[i]));
    TS_TRY(cut(f, axis, (make_range){1, 2 * pairs, 2}, &f->others[i]));
  }
  TS_TRY(combine(f));
  if (length % 2 == 0) return TS_SUCCESS;
  for (size_t i = 0; i < f->count; i++) {
    TS_TRY(cut(f, axis, (make_range){length - 1, length, 1}, &whole[i]));
    TS_TRY(append(f, axis, whole[i], &f->values[i]));
  }
  return TS_SUCCESS;
}

/* Windows of `size` elements, `dilation` apart, along one axis. Windows of 1, 2, 4, ... elements are made first. The
 * binary digits of `size` say which are combined. `sums` are of the elements so far, `f->values` of the next power of
 * two. */
static ts_status slide(fold *f, int32_t axis, int64_t size, int64_t dilation, ts_value_id *sums) {
  int64_t have = 0, length = shape_of(f)->dims[axis], step = 1;
  ts_value_id *powers = sums + f->count;
  for (; size >= step; step *= 2) {
    memcpy(powers, f->values, f->count * sizeof *powers);
    int64_t room = length - (step - 1) * dilation; /* places of windows of `step` elements */
    if (size & step) {
      const int64_t left = length - (have + step - 1) * dilation;
      for (size_t i = 0; i < f->count; i++) {
        f->others[i] = powers[i];
        f->values[i] = have ? sums[i] : powers[i];
        TS_TRY(cut(f, axis, (make_range){0, left, 1}, &f->values[i]));
        TS_TRY(cut(f, axis, (make_range){have * dilation, have * dilation + left, 1}, &f->others[i]));
      }
      if (have) TS_TRY(combine(f));
      memcpy(sums, f->values, f->count * sizeof *sums);
      have += step;
    }
    if (size < 2 * step) break;
    const int64_t next = room - step * dilation;
    for (size_t i = 0; i < f->count; i++) {
      f->values[i] = f->others[i] = powers[i];
      TS_TRY(cut(f, axis, (make_range){0, next, 1}, &f->values[i]));
      TS_TRY(cut(f, axis, (make_range){step * dilation, step * dilation + next, 1}, &f->others[i]));
    }
    TS_TRY(combine(f));
  }
  memcpy(f->values, sums, f->count * sizeof *sums);
  return TS_SUCCESS;
}

static ts_status fill_with_init(fold *f, const ts_shape *shape) {
  for (size_t i = 0; i < f->count; i++)
    TS_TRY(make_broadcast_to(f->m, f->m->operands[f->count + i].id, shape, &f->values[i]));
  return TS_SUCCESS;
}

/* values = region(init, values): the specification begins with the initial values. */
static ts_status begin_with_init(fold *f) {
  memcpy(f->others, f->values, f->count * sizeof *f->others);
  TS_TRY(fill_with_init(f, shape_of(f)));
  return combine(f);
}

static ts_status check_operands(const make_call *m, size_t *out_count) {
  const size_t count = m->op->operand_count / 2;
  if (count == 0 || m->op->operand_count % 2 || m->op->types.count != count)
    return make_error(m, TS_INVALID_ARGUMENT, "it has %zu operands and %zu results", m->op->operand_count,
                      m->op->types.count);
  if (m->op->region_count != 1) return make_error(m, TS_UNIMPLEMENTED, "its region is not known");
  for (size_t i = 0; i < count; i++)
    if (!ts_shape_equal(make_operand_of(m, i)->shape, make_operand_of(m, 0)->shape) ||
        make_operand_of(m, count + i)->shape->rank != 0)
      return make_error(m, TS_INVALID_ARGUMENT, "its operands differ in shape, or an initial value is no scalar");
  *out_count = count;
  return TS_SUCCESS;
}

static ts_status with_fold(const make_call *m, ts_status (*body)(fold *f, const void *context), const void *context) {
  fold f = {.m = m};
  TS_TRY(check_operands(m, &f.count));
  TS_TRY(TS_NEW_ARRAY(4 * f.count, &f.values));
  ts_status status = TS_NEW_ARRAY(f.count, &f.results);
  f.others = f.values + f.count;
  for (size_t i = 0; i < f.count; i++) f.values[i] = m->operands[i].id;
  if (!status) status = body(&f, context);
  for (size_t i = 0; i < f.count && !status; i++) make_result(m, i, f.values[i]);
  ts_free(f.values);
  ts_free(f.results);
  return status;
}

static ts_status reduce_axes(fold *f, const void *context) {
  const ts_dims *axes = context;
  ts_shape left = {0};
  bool is_empty = false;
  for (int32_t i = 0; i < axes->rank; i++)
    if (axes->dims[i] < 0 || axes->dims[i] >= shape_of(f)->rank)
      return make_error(f->m, TS_INVALID_ARGUMENT, "there is no dim %lld", (long long)axes->dims[i]);
  const uint64_t mask = ts_dims_mask(axes);
  for (int32_t d = 0; d < shape_of(f)->rank; d++) {
    if (!(mask >> d & 1)) left.dims[left.rank++] = shape_of(f)->dims[d];
    if (mask >> d & 1 && shape_of(f)->dims[d] == 0) is_empty = true;
  }
  if (is_empty) return fill_with_init(f, &left);
  for (int32_t d = shape_of(f)->rank - 1; d >= 0; d--)
    while (mask >> d & 1 && shape_of(f)->dims[d] > 1) TS_TRY(halve(f, d, f->others + f->count));
  for (size_t i = 0; i < f->count; i++) TS_TRY(make_reshape(f->m, f->values[i], &left, &f->values[i]));
  return begin_with_init(f);
}

ts_status make_any_reduce(const make_call *m, const ts_dims *axes) { return with_fold(m, reduce_axes, axes); }

static ts_status slide_windows(fold *f, const void *context) {
  const make_window *w = context;
  for (size_t i = 0; i < f->count; i++)
    TS_TRY(make_pad_window(f->m, f->m->operands[f->count + i].id, w, &f->values[i]));
  for (int32_t d = w->sizes.rank - 1; d >= 0; d--) {
    const int64_t size = w->sizes.dims[d], dilation = w->dilation.dims[d], length = shape_of(f)->dims[d];
    int64_t reach = length;
    const bool fits = ts_mul_i64(size - 1, dilation, &reach) && reach < length;
    if (!fits) /* a result without elements */
      for (size_t i = 0; i < f->count; i++) TS_TRY(cut(f, d, (make_range){0, 0, 1}, &f->values[i]));
    if (fits && size > 1) TS_TRY(slide(f, d, size, dilation, f->others + f->count));
    for (size_t i = 0; i < f->count && fits && w->strides.dims[d] > 1; i++)
      TS_TRY(cut(f, d, (make_range){0, length - reach, w->strides.dims[d]}, &f->values[i]));
  }
  return begin_with_init(f);
}

ts_status make_any_window(const make_call *m, const make_window *window) { return with_fold(m, slide_windows, window); }
