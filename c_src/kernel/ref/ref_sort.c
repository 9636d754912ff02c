#include "kernel/ref/ref_internal.h"

/* A line's order: positions, sorted stably by merging. */
typedef struct sorter {
  const ts_ref_call *call;
  bool descending;
  int64_t base, stride;
  int64_t *order, *spare;
} sorter;

static bool is_nan(const ts_buffer *x, ts_scalar value) { return ts_ref_predicate(TS_OP_IS_NAN, x->dtype, value); }

/* Whether the element at position j must stand before the one at position i. NaN is greater than any number. */
static bool stands_before(const sorter *s, int64_t j, int64_t i) {
  const ts_buffer *x = s->call->operands[0];
  ts_scalar a = ts_ref_get(x, s->base + (s->descending ? i : j) * s->stride);
  ts_scalar b = ts_ref_get(x, s->base + (s->descending ? j : i) * s->stride);
  return is_nan(x, b) ? !is_nan(x, a) : ts_ref_compare(TS_OP_LESS, x->dtype, a, b);
}

/* Two sorted neighbours become one; of equals the first is taken. */
static void merge(const sorter *s, int64_t first, int64_t middle, int64_t last) {
  int64_t i = first, j = middle;
  for (int64_t at = first; ts_ref_goes_on(s->call, at, last); at++) {
    bool right = i == middle || (j < last && stands_before(s, s->order[j], s->order[i]));
    s->spare[at] = s->order[right ? j++ : i++];
  }
}

/* Merges runs of 1, 2, 4, ... elements; `order` is where the result is. */
static void sort_line(sorter *s, int64_t count) {
  for (int64_t i = 0; i < count; i++) s->order[i] = i;
  for (int64_t run = 1; ts_ref_goes_on(s->call, 0, count - run); run *= 2) {
    for (int64_t first = 0; first < count; first += 2 * run) {
      int64_t middle = first + run < count ? first + run : count;
      merge(s, first, middle, middle + run < count ? middle + run : count);
    }
    int64_t *order = s->order;
    s->order = s->spare;
    s->spare = order;
  }
}

/* The lines of an op, from its attributes. */
typedef struct line_spec {
  int32_t axis;
  bool descending;
  int64_t kept; /* elements of a sorted line that the results have; not all only along the last axis */
} line_spec;

static line_spec get_spec(const ts_ref_call *call) {
  const ts_attrs *attrs = call->op->attrs;
  const ts_shape *shape = &call->operands[0]->shape;
  switch ((ts_ops_SORT)call->op->code) {
  case TS_OP_SORT: return (line_spec){attrs->sort.axis, attrs->sort.descending, shape->dims[attrs->sort.axis]};
  case TS_OP_ARGSORT:
    return (line_spec){attrs->argsort.axis, attrs->argsort.descending, shape->dims[attrs->argsort.axis]};
  case TS_OP_TOP_K: break;
  }
  return (line_spec){shape->rank - 1, true, attrs->top_k.k};
}

/* Writes `count` elements of a line from `to` on, to the results: values, positions, or both. */
static void write_line(const sorter *s, int64_t count, int64_t to) {
  const ts_ref_call *call = s->call;
  ts_buffer *values = call->op->code == TS_OP_ARGSORT ? NULL : call->results[0];
  ts_buffer *positions = call->op->code == TS_OP_SORT ? NULL : call->results[values ? 1 : 0];
  for (int64_t k = 0; ts_ref_goes_on(call, k, count); k++) {
    int64_t at = to + k * s->stride;
    if (values) ts_ref_set(values, at, ts_ref_get(call->operands[0], s->base + s->order[k] * s->stride));
    if (positions) ts_ref_set(positions, at, ts_scalar_from_s64(positions->dtype, s->order[k]));
  }
}

ts_status ts_ref_sort(const ts_ref_call *call) {
  line_spec spec = get_spec(call);
  const ts_shape *shape = &call->operands[0]->shape;
  int64_t count = shape->dims[spec.axis], kept[TS_MAX_RANK] = {0}, *memory;
  ts_ref_split split = ts_ref_split_dims(shape, &(ts_dims){.rank = 1, .dims = {spec.axis}});
  if (ts_shape_elements(shape) == 0) return TS_SUCCESS;
  TS_TRY(TS_NEW_ARRAY(2 * (size_t)count, &memory));
  sorter s = {call, spec.descending, 0, split.reduced_strides[0], memory, memory + count};
  for (int64_t i = 0; ts_ref_goes_on(call, i, ts_shape_elements(&split.kept)); i++, ts_ref_next(&split.kept, kept)) {
    s.base = ts_ref_offset(split.kept.rank, kept, split.kept_strides);
    sort_line(&s, count);
    write_line(&s, spec.kept, spec.kept == count ? s.base : i * spec.kept);
  }
  ts_free(memory);
  return TS_SUCCESS;
}
