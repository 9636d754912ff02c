/* Tensors from nested lists of numbers, and back. Long ones move to a dirty scheduler, and end early when their process
 * has died. */
#include "nif/nif_job.h"
#include "nif/nif_turns.h"

#include <stdint.h>
#include <stdio.h>

/* How many elements a normal scheduler may convert, at about 20 ns each. */
#define SHORT_ELEMENTS 20000

/* How many elements are converted between two checks. */
#define LOOK_ELEMENTS 65536

/* Checks from time to time whether the calling process is alive. */
typedef struct patience {
  ErlNifEnv *env;
  int64_t elements, look_at;
} patience;

static patience patience_of(ErlNifEnv *env) { return (patience){.env = env, .look_at = LOOK_ELEMENTS}; }

/* True while the walk should continue. */
static bool goes_on(patience *p) {
  if (++p->elements < p->look_at) return true;
  if (!enif_is_current_process_alive(p->env)) return false;
  p->look_at += LOOK_ELEMENTS;
  return true;
}

/* ---- from lists ---- */

/* The length is below `limit` on success; *out_length is -1 for longer lists. */
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

/* Takes the shape from the first element at each level; walk_list checks the others. *out_long is true when some list
 * has `limit` elements or more: then counting stopped. */
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

/* The action of a walk over a nested list for each number. */
typedef struct list_walk {
  ErlNifEnv *env;
  patience patience;
  const ts_shape *shape;
  ts_status (*visit)(struct list_walk *walk, const ts_number *number);
  void *context;
  int64_t at[TS_MAX_RANK]; /* indices of the current element, from 0 */
} list_walk;

enum { PATH_TEXT = 22 * TS_MAX_RANK + 3 };

/* The first `depth` indices as "[1,0]". */
static const char *path(const int64_t *at, int32_t depth, char text[PATH_TEXT]) {
  int used = 0;
  text[used++] = '[';
  for (int32_t i = 0; i < depth; i++)
    used += snprintf(text + used, (size_t)(PATH_TEXT - used), "%s%lld", i ? "," : "", (long long)at[i]);
  snprintf(text + used, (size_t)(PATH_TEXT - used), "]");
  return text;
}

/* Adds the element's indices to the message of an error. */
static ts_status of_element(const list_walk *walk, ts_status why) {
  char here[PATH_TEXT];
  return walk->shape->rank ? ts_error_context(why, "at %s", path(walk->at, walk->shape->rank, here)) : why;
}

/* Tensors (the message names stack/1), and deallocated ones. */
static bool is_tensor(ErlNifEnv *env, ERL_NIF_TERM term) {
  ERL_NIF_TERM ref;
  return ts_nif_tessera_get(env, term, &ref) && !enif_is_atom(env, ref);
}

static ts_status tensor_in_list(void) {
  return ts_error(TS_INVALID_ARGUMENT, "expected a number, got a tensor; tessera:stack/1 makes one tensor of several");
}

/* The error for a term where the shape requires a number. */
static ts_status bad_number(const list_walk *walk, ERL_NIF_TERM term) {
  const int64_t first[TS_MAX_RANK] = {0};
  char here[PATH_TEXT], there[PATH_TEXT];
  int32_t rank = walk->shape->rank;
  if (rank > 0 && is_tensor(walk->env, term)) return of_element(walk, tensor_in_list());
  if (rank > 0 && enif_is_list(walk->env, term))
    return ts_error(TS_INVALID_ARGUMENT, "the list is ragged: there is a list at %s and a number at %s",
                    path(walk->at, rank, here), path(first, rank, there));
  return of_element(walk, ts_nif_expected(walk->env, "a number", term));
}

/* The error for a term where the shape requires a list of a given length. */
static ts_status bad_list(list_walk *walk, ERL_NIF_TERM term, int32_t axis) {
  const int64_t first[TS_MAX_RANK] = {0};
  char here[PATH_TEXT], there[PATH_TEXT];
  int64_t length;
  path(walk->at, axis, here);
  if (!enif_is_list(walk->env, term)) {
    if (is_tensor(walk->env, term)) return ts_error_context(tensor_in_list(), "at %s", here);
    if (!enif_is_number(walk->env, term))
      return ts_error_context(ts_nif_expected(walk->env, "a list of numbers", term), "at %s", here);
    return ts_error(TS_INVALID_ARGUMENT, "the list is ragged: there is a number at %s and a list at %s", here,
                    path(first, axis, there));
  }
  ts_status status = list_length(walk->env, term, INT64_MAX, &walk->patience, &length);
  if (status) return axis ? ts_error_context(status, "at %s", here) : status;
  return ts_error(TS_INVALID_ARGUMENT, "the list is ragged: the list at %s has %lld elements, the one at %s has %lld",
                  here, (long long)length, path(first, axis, there), (long long)walk->shape->dims[axis]);
}

static ts_status walk_list(list_walk *walk, ERL_NIF_TERM term, int32_t axis) {
  if (axis == walk->shape->rank) {
    ts_number number;
    if (ts_nif_get_number(walk->env, term, &number)) return walk->visit(walk, &number);
    return bad_number(walk, term);
  }
  ERL_NIF_TERM head, tail = term;
  int64_t *count = &walk->at[axis];
  for (*count = 0; enif_get_list_cell(walk->env, tail, &head, &tail); ++*count) {
    if (!goes_on(&walk->patience)) return ts_nif_caller_died();
    if (*count == walk->shape->dims[axis]) return bad_list(walk, term, axis);
    TS_TRY(walk_list(walk, head, axis + 1));
  }
  if (*count != walk->shape->dims[axis] || !enif_is_empty_list(walk->env, tail)) return bad_list(walk, term, axis);
  return TS_SUCCESS;
}

/* The properties of a list's numbers that determine its type. */
typedef struct number_kinds {
  bool complex, floats, negative, wide, unsigned_only; /* wide: beyond 32 bits; unsigned_only: beyond 63 */
} number_kinds;

static ts_status visit_kind(list_walk *walk, const ts_number *number) {
  number_kinds *kinds = walk->context;
  switch (number->kind) {
  case TS_NUMBER_COMPLEX: kinds->complex = true; break;
  case TS_NUMBER_FLOAT: kinds->floats = true; break;
  case TS_NUMBER_SIGNED:
    kinds->negative |= number->s < 0;
    kinds->wide |= number->s < INT32_MIN || number->s > INT32_MAX;
    break;
  case TS_NUMBER_UNSIGNED: kinds->unsigned_only = true; break;
  }
  return TS_SUCCESS;
}

/* If no integer type fits all numbers the type is s64, and the first number that is too large is an error. */
static ts_dtype common_dtype(const number_kinds *kinds) {
  if (kinds->complex) return TS_C64;
  if (kinds->floats) return TS_F32;
  if (kinds->unsigned_only && !kinds->negative) return TS_U64;
  return kinds->wide || kinds->unsigned_only ? TS_S64 : TS_S32;
}

typedef struct store_context {
  ts_dtype dtype;
  size_t size;
  unsigned char *next;
  int64_t least, largest; /* limits of an integer type within s64; not set for a float type */
} store_context;

static store_context store_context_of(const ts_buffer *buffer) {
  ts_dtype dtype = buffer->dtype;
  store_context store = {.dtype = dtype, .size = ts_dtype_size(dtype), .next = buffer->data, .least = 1, .largest = 0};
  if (!ts_dtype_is_integer(dtype)) return store;
  uint64_t largest = ts_dtype_highest(dtype).u64;
  store.least = ts_dtype_is_signed(dtype) ? -(int64_t)largest - 1 : 0;
  store.largest = largest > INT64_MAX ? INT64_MAX : (int64_t)largest;
  return store;
}

static ts_status visit_store(list_walk *walk, const ts_number *number) {
  store_context *store = walk->context;
  ts_scalar scalar;
  if (number->kind == TS_NUMBER_SIGNED && number->s >= store->least && number->s <= store->largest) {
    scalar = (ts_scalar){.s64 = number->s};
    ts_scalar_store(store->dtype, scalar, store->next);
    store->next += store->size;
    return TS_SUCCESS;
  }
  ts_status status = ts_number_scalar(number, store->dtype, &scalar);
  if (status) return of_element(walk, status);
  ts_scalar_store(store->dtype, scalar, store->next);
  store->next += store->size;
  return TS_SUCCESS;
}

static ts_status list_dtype(ErlNifEnv *env, ERL_NIF_TERM list, const ts_shape *shape, ts_dtype *out) {
  number_kinds kinds = {.floats = ts_shape_elements(shape) == 0};
  list_walk walk = {.env = env, .patience = patience_of(env), .shape = shape, .visit = visit_kind, .context = &kinds};
  TS_TRY(walk_list(&walk, list, 0));
  *out = common_dtype(&kinds);
  return TS_SUCCESS;
}

/* In host memory. */
static ts_status list_buffer(ErlNifEnv *env, const ERL_NIF_TERM argv[], const ts_shape *shape, ts_device *device,
                             ts_buffer **out) {
  ts_dtype dtype;
  ERL_NIF_TERM list = argv[0], type = argv[1];
  if (enif_is_identical(type, ts_atom.undefined_))
    TS_TRY(list_dtype(env, list, shape, &dtype));
  else
    TS_TRY(ts_nif_get_dtype(env, type, &dtype));
  TS_TRY(ts_device_stage(device, dtype, shape, out));
  store_context store = store_context_of(*out);
  list_walk walk = {.env = env, .patience = patience_of(env), .shape = shape, .visit = visit_store, .context = &store};
  ts_status status = walk_list(&walk, list, 0);
  if (status) ts_buffer_release(*out);
  return status;
}

static ERL_NIF_TERM from_list_dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  ts_shape shape;
  ts_buffer *buffer;
  bool is_long;
  ts_device *device;
  TS_NIF_TRY(env, ts_nif_get_device(env, argc > 2 ? argv[2] : ts_atom.undefined_, &device));
  TS_NIF_TRY(env, measure_list(env, argv[0], INT64_MAX, &shape, &is_long));
  TS_NIF_TRY(env, ts_shape_check(&shape, TS_F64));
  TS_NIF_TRY(env, list_buffer(env, argv, &shape, device, &buffer));
  return ts_nif_place_tensor(env, device, buffer);
}

ERL_NIF_TERM ts_nif_from_list(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* from_list(number() | nested list, Type | undefined[, {Client, Number} | undefined]) -> Tensor */
  ts_shape shape;
  bool is_long;
  TS_NIF_TRY(env, measure_list(env, argv[0], SHORT_ELEMENTS, &shape, &is_long));
  TS_NIF_TRY(env, ts_shape_check(&shape, TS_F64));
  TS_NIF_TRY(env, ts_nif_turn_check(env));
  if (is_long || ts_shape_elements(&shape) > SHORT_ELEMENTS)
    return enif_schedule_nif(env, "from_list", ERL_NIF_DIRTY_JOB_CPU_BOUND, from_list_dirty, argc, argv);
  return from_list_dirty(env, argc, argv);
}

/* ---- to lists ---- */

/* Limit for the lists of an empty tensor, whose outer dims can be of any size. */
#define MAX_EMPTY_LISTS 10000000

/* Counts elements and inner lists: the cost of making the list. */
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

/* Builds lists from the end, so that every cell is allocated once. */
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
  void *bytes;
  ts_buffer *host = tensor->buffer;
  ts_status status = ts_device_bytes(host, &bytes);
  if (!status) ts_buffer_retain(host);
  ts_nif_tensor_unpin(tensor);
  TS_NIF_TRY(env, status);
  patience p = patience_of(env);
  ERL_NIF_TERM list = make_list(&p, host, 0, strides, bytes);
  ts_buffer_release(host);
  return list;
}

ERL_NIF_TERM ts_nif_to_list(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* to_list(Ref) -> number() | nested list: of a tensor that the host can read */
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
