/* Nested lists of numbers to tensors, and back. Long ones go to a dirty scheduler, and end early when their process has
 * died. */
#include "nif/nif_tensor.h"

#include <stdint.h>

/* Elements that a normal scheduler may turn into terms or back, some 20 ns each. */
#define SHORT_ELEMENTS 20000

/* Looked at once in so many elements. */
#define LOOK_ELEMENTS 65536

/* A walk over elements, which ends early when there is nobody left to give its result to. */
typedef struct patience {
  ErlNifEnv *env;
  int64_t elements, look_at;
} patience;

static patience patience_of(ErlNifEnv *env) { return (patience){.env = env, .look_at = LOOK_ELEMENTS}; }

/* True as long as the walk is to go on. */
static bool goes_on(patience *p) {
  if (++p->elements < p->look_at) return true;
  if (!enif_is_current_process_alive(p->env)) return false;
  p->look_at += LOOK_ELEMENTS;
  return true;
}

/* ---- from lists ---- */

/* Fewer than `limit` when it succeeds; *out_length is -1 when there are more. */
static ts_status list_length(ErlNifEnv *env, ERL_NIF_TERM list, int64_t limit, patience *p, int64_t *out_length) {
  ERL_NIF_TERM head, tail = list;
  int64_t length = 0;
  while (enif_get_list_cell(env, tail, &head, &tail)) {
    if (!goes_on(p)) return ts_nif_caller_died();
    if (++length < limit) continue;
    *out_length = -1;
    return TS_SUCCESS;
  }
  *out_length = length;
  return enif_is_empty_list(env, tail) ? TS_SUCCESS : ts_nif_expected(env, "a proper list", list);
}

/* Counts along the first elements; store_list checks that the others agree. *out_long when some list has `limit`
 * elements or more: then it was not counted. */
static ts_status measure_list(ErlNifEnv *env, ERL_NIF_TERM list, int64_t limit, ts_shape *out, bool *out_long) {
  ERL_NIF_TERM head = list, tail;
  patience p = patience_of(env);
  *out = (ts_shape){0};
  *out_long = false;
  while (enif_is_list(env, head)) {
    int64_t length;
    TS_TRY(list_length(env, head, limit, &p, &length));
    if (out->rank == TS_MAX_RANK)
      return ts_error(TS_INVALID_ARGUMENT, "the list is nested deeper than %d, expected at most that", TS_MAX_RANK);
    *out_long = length < 0;
    if (*out_long) return TS_SUCCESS;
    out->dims[out->rank++] = length;
    if (length == 0) return TS_SUCCESS;
    enif_get_list_cell(env, head, &head, &tail);
  }
  return TS_SUCCESS;
}

/* What a walk over a nested list does with each number. */
typedef struct list_walk {
  ErlNifEnv *env;
  patience patience;
  const ts_shape *shape;
  ts_status (*visit)(struct list_walk *walk, const ts_number *number);
  void *context;
} list_walk;

static ts_status bad_length(const ts_shape *shape, int32_t axis) {
  if (axis == 0) return ts_error(TS_INVALID_ARGUMENT, "expected a proper list");
  return ts_error(TS_INVALID_ARGUMENT,
                  "the list is ragged: expected each list at depth %d to have %lld elements, as the first", axis,
                  (long long)shape->dims[axis]);
}

/* Where the first elements say that there are numbers. */
static ts_status bad_number(const list_walk *walk, ERL_NIF_TERM term) {
  if (enif_is_list(walk->env, term) && walk->shape->rank > 0)
    return ts_error(TS_INVALID_ARGUMENT, "the list is ragged: at depth %d there are numbers and lists",
                    walk->shape->rank);
  if (enif_is_number(walk->env, term)) return ts_nif_expected(walk->env, "integers of at most 64 bits", term);
  return ts_nif_expected(walk->env, "a number", term);
}

static ts_status walk_list(list_walk *walk, ERL_NIF_TERM term, int32_t axis) {
  if (axis == walk->shape->rank) {
    ts_number number;
    if (ts_nif_get_number(walk->env, term, &number)) return walk->visit(walk, &number);
    return bad_number(walk, term);
  }
  ERL_NIF_TERM head, tail = term;
  int64_t count = 0;
  while (enif_get_list_cell(walk->env, tail, &head, &tail)) {
    if (!goes_on(&walk->patience)) return ts_nif_caller_died();
    if (++count > walk->shape->dims[axis]) return bad_length(walk->shape, axis);
    TS_TRY(walk_list(walk, head, axis + 1));
  }
  if (count != walk->shape->dims[axis] || !enif_is_empty_list(walk->env, tail)) return bad_length(walk->shape, axis);
  return TS_SUCCESS;
}

static ts_status visit_type(list_walk *walk, const ts_number *number) {
  ts_dtype *dtype = walk->context;
  ts_dtype own = ts_number_dtype(number);
  if (*dtype == TS_DTYPE_NONE)
    *dtype = own;
  else if (own != *dtype)
    *dtype = ts_dtype_merge(*dtype, own);
  return TS_SUCCESS;
}

typedef struct store_context {
  ts_dtype dtype;
  size_t size;
  unsigned char *next;
} store_context;

static ts_status visit_store(list_walk *walk, const ts_number *number) {
  store_context *store = walk->context;
  ts_scalar scalar;
  TS_TRY(ts_number_scalar(number, store->dtype, &scalar));
  ts_scalar_store(store->dtype, scalar, store->next);
  store->next += store->size;
  return TS_SUCCESS;
}

static ts_status list_dtype(ErlNifEnv *env, ERL_NIF_TERM list, const ts_shape *shape, ts_dtype *out) {
  list_walk walk = {env, patience_of(env), shape, visit_type, out};
  *out = TS_DTYPE_NONE;
  TS_TRY(walk_list(&walk, list, 0));
  if (*out == TS_DTYPE_NONE) *out = TS_F32;
  return TS_SUCCESS;
}

static ts_status list_buffer(ErlNifEnv *env, ERL_NIF_TERM list, ERL_NIF_TERM type, const ts_shape *shape,
                             ts_buffer **out) {
  ts_dtype dtype;
  if (enif_is_identical(type, ts_atom.undefined_))
    TS_TRY(list_dtype(env, list, shape, &dtype));
  else
    TS_TRY(ts_nif_get_dtype(env, type, &dtype));
  TS_TRY(ts_buffer_create(ts_pool_default(), dtype, shape, out));
  store_context store = {dtype, ts_dtype_size(dtype), (*out)->data};
  list_walk walk = {env, patience_of(env), shape, visit_store, &store};
  ts_status status = walk_list(&walk, list, 0);
  if (status) ts_buffer_release(*out);
  return status;
}

static ERL_NIF_TERM from_list_dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  ts_shape shape;
  ts_buffer *buffer;
  ERL_NIF_TERM term;
  bool is_long;
  (void)argc;
  TS_NIF_TRY(env, measure_list(env, argv[0], INT64_MAX, &shape, &is_long));
  TS_NIF_TRY(env, ts_shape_check(&shape, TS_F64));
  TS_NIF_TRY(env, list_buffer(env, argv[0], argv[1], &shape, &buffer));
  TS_NIF_TRY(env, ts_nif_tensor_make(env, buffer, &term));
  return ts_nif_with_pressure(env, term);
}

ERL_NIF_TERM ts_nif_from_list(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* from_list(number() | nested list, Type | undefined) -> Tensor */
  ts_shape shape;
  bool is_long;
  TS_NIF_TRY(env, measure_list(env, argv[0], SHORT_ELEMENTS, &shape, &is_long));
  TS_NIF_TRY(env, ts_shape_check(&shape, TS_F64));
  if (is_long || ts_shape_elements(&shape) > SHORT_ELEMENTS)
    return enif_schedule_nif(env, "from_list", ERL_NIF_DIRTY_JOB_CPU_BOUND, from_list_dirty, argc, argv);
  return from_list_dirty(env, argc, argv);
}

/* ---- to lists ---- */

/* The most lists that an empty tensor may become: its outer dimensions can be of any size. */
#define MAX_EMPTY_LISTS 10000000

/* Elements and inner lists together, which is what making the list costs. */
static ts_status count_cells(const ts_buffer *buffer, int64_t *out) {
  int64_t lists = 1, cells = 0;
  for (int32_t i = 0; i < buffer->shape.rank && lists > 0; i++) {
    if (!ts_mul_i64(lists, buffer->shape.dims[i], &lists) || !ts_add_i64(cells, lists, &cells)) cells = INT64_MAX;
    if (cells > MAX_EMPTY_LISTS && ts_shape_elements(&buffer->shape) == 0)
      return ts_error(TS_RESOURCE_EXHAUSTED, "%s is empty, but has too many dimensions of other sizes for a list",
                      TS_SHAPE_STR(buffer->dtype, &buffer->shape));
  }
  *out = cells;
  return TS_SUCCESS;
}

/* Builds from the back, so that every list cell is made once. */
static ERL_NIF_TERM make_list(patience *p, const ts_buffer *buffer, int32_t axis, const int64_t *strides,
                              const unsigned char *data) {
  if (axis == buffer->shape.rank) return ts_nif_number(p->env, buffer->dtype, data);
  ERL_NIF_TERM list = enif_make_list(p->env, 0);
  int64_t step = strides[axis] * (int64_t)ts_dtype_size(buffer->dtype);
  for (int64_t i = buffer->shape.dims[axis]; i-- > 0 && goes_on(p);)
    list = enif_make_list_cell(p->env, make_list(p, buffer, axis + 1, strides, data + i * step), list);
  return list;
}

static ERL_NIF_TERM to_list_dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  ts_nif_tensor *tensor;
  int64_t strides[TS_MAX_RANK];
  (void)argc;
  TS_NIF_TRY(env, ts_nif_tensor_get_pinned(env, argv[0], &tensor));
  ts_shape_strides(&tensor->buffer->shape, strides);
  patience p = patience_of(env);
  ERL_NIF_TERM list = make_list(&p, tensor->buffer, 0, strides, tensor->buffer->data);
  ts_nif_tensor_unpin(tensor);
  return list;
}

ERL_NIF_TERM ts_nif_to_list(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* to_list(Ref) -> number() | nested list */
  ts_nif_tensor *tensor;
  int64_t cells = 0;
  TS_NIF_TRY(env, ts_nif_tensor_get_pinned(env, argv[0], &tensor));
  ts_status status = count_cells(tensor->buffer, &cells);
  ts_nif_tensor_unpin(tensor);
  TS_NIF_TRY(env, status);
  if (cells > SHORT_ELEMENTS)
    return enif_schedule_nif(env, "to_list", ERL_NIF_DIRTY_JOB_CPU_BOUND, to_list_dirty, argc, argv);
  return to_list_dirty(env, argc, argv);
}
