#include "nif/nif_util.h"

#include "base/alloc.h"
#include "nif/nif_tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

ts_nif_atoms ts_atom;
static ERL_NIF_TERM dtype_atoms[TS_DTYPE_COUNT];

void ts_nif_util_init(ErlNifEnv *env) {
#define X(name) ts_atom.name##_ = enif_make_atom(env, #name);
  TS_NIF_ATOMS(X)
#undef X
  for (int t = 0; t < TS_DTYPE_COUNT; t++) dtype_atoms[t] = enif_make_atom(env, ts_dtype_name((ts_dtype)t));
}

/* ---- terms ---- */

ERL_NIF_TERM ts_nif_binary(ErlNifEnv *env, const char *bytes, size_t length) {
  ERL_NIF_TERM term;
  unsigned char *data = enif_make_new_binary(env, length, &term);
  if (length) memcpy(data, bytes, length);
  return term;
}

/* A binary in UTF-8 also of bytes that are not: file names, and texts of plugins and systems. Those become \xHH. */
static ERL_NIF_TERM readable(ErlNifEnv *env, const char *bytes, size_t length) {
  static const char digits[] = "0123456789ABCDEF";
  ERL_NIF_TERM term;
  size_t wrong = 0, at = 0;
  for (size_t i = ts_utf8_prefix(bytes, length); i < length; i += ts_utf8_prefix(bytes + i, length - i)) i++, wrong++;
  if (wrong == 0) return ts_nif_binary(env, bytes, length);
  unsigned char *data = enif_make_new_binary(env, length + 3 * wrong, &term);
  for (size_t i = 0; i < length; i++) {
    size_t n = ts_utf8_prefix(bytes + i, length - i);
    memcpy(data + at, bytes + i, n);
    at += n;
    i += n;
    if (i == length) break;
    unsigned char c = (unsigned char)bytes[i];
    const unsigned char shown[4] = {'\\', 'x', (unsigned char)digits[c >> 4], (unsigned char)digits[c & 15]};
    memcpy(data + at, shown, sizeof shown);
    at += sizeof shown;
  }
  return term;
}

ERL_NIF_TERM ts_nif_error(ErlNifEnv *env, ts_status status) {
  const char *message = ts_status_message(status);
  ERL_NIF_TERM keys[2] = {ts_atom.code_, ts_atom.message_}, map;
  ERL_NIF_TERM values[2] = {enif_make_atom(env, ts_code_name(ts_status_code(status))),
                            readable(env, message, strlen(message))};
  ts_status_free(status);
  enif_make_map_from_arrays(env, keys, values, 2, &map);
  return enif_make_tuple2(env, ts_atom.error_, map);
}

ERL_NIF_TERM ts_nif_text(ErlNifEnv *env, ts_status status, ts_text *text) {
  char *string = NULL;
  if (!status) status = ts_text_finish(text, &string);
  ts_text_deinit(text);
  if (status) return ts_nif_error(env, status);
  ERL_NIF_TERM term = ts_nif_binary(env, string ? string : "", string ? strlen(string) : 0);
  ts_free(string);
  return term;
}

ERL_NIF_TERM ts_nif_dtype(ts_dtype dtype) { return dtype_atoms[dtype]; }

ERL_NIF_TERM ts_nif_shape(ErlNifEnv *env, const ts_shape *shape) {
  ERL_NIF_TERM dims[TS_MAX_RANK];
  for (int32_t i = 0; i < shape->rank; i++) dims[i] = enif_make_int64(env, shape->dims[i]);
  return enif_make_tuple_from_array(env, dims, (unsigned)shape->rank);
}

ERL_NIF_TERM ts_nif_dims(ErlNifEnv *env, const ts_dims *dims) {
  ERL_NIF_TERM items[TS_MAX_RANK];
  for (int32_t i = 0; i < dims->rank; i++) items[i] = enif_make_int64(env, dims->dims[i]);
  return enif_make_list_from_array(env, items, (unsigned)dims->rank);
}

/* ---- reading terms ---- */

static bool is_large_integer(ErlNifEnv *env, ERL_NIF_TERM term) {
  ErlNifSInt64 s;
  ErlNifUInt64 u;
  return enif_term_type(env, term) == ERL_NIF_TERM_TYPE_INTEGER && !enif_get_int64(env, term, &s) &&
         !enif_get_uint64(env, term, &u);
}

/* Why a term that resembles the expected one is not valid; NULL when it does not resemble it. */
static const char *why_not(ErlNifEnv *env, const char *expected, ERL_NIF_TERM got) {
  ERL_NIF_TERM ref = got;
  bool is_tensor = ts_nif_tessera_get(env, got, &ref);
  if (is_tensor && enif_is_atom(env, ref)) return ", a template, which has no contents";
  if (is_tensor && enif_is_list(env, ref)) return ", a value of a function that is traced";
  if (enif_is_ref(env, ref)) return ", which is not of this node, or is of a former run of it";
  if (is_large_integer(env, got)) return ", an integer of more than 64 bits";
  if (enif_is_list(env, got) && strstr(expected, "tensor or a number"))
    return "; tessera:tensor/1 makes a tensor of a list";
  return NULL;
}

/* Prints a tensor record as "f32[2,3]" if it is well-formed. */
static bool print_tensor(ErlNifEnv *env, ERL_NIF_TERM term, char *text, size_t size) {
  const ERL_NIF_TERM *items;
  int count;
  ts_dtype dtype = TS_DTYPE_NONE;
  ts_shape shape;
  if (!enif_get_tuple(env, term, &count, &items) || count != 4 || !enif_is_identical(items[0], ts_atom.tessera_) ||
      !enif_is_atom(env, items[2]) || !enif_is_tuple(env, items[3]))
    return false;
  ts_status status = ts_nif_get_dtype(env, items[2], &dtype);
  if (!status) status = ts_nif_get_shape(env, items[3], &shape);
  if (!status) snprintf(text, size, "%s", TS_SHAPE_STR(dtype, &shape));
  bool ok = !status;
  ts_status_free(status);
  return ok;
}

enum { TERM_TEXT = 120, TERM_DEPTH = 3, TERM_ITEMS = 10 };

static size_t print_term(ErlNifEnv *env, ERL_NIF_TERM term, int depth, char *text, size_t size);

/* The number of characters that snprintf wrote. */
static size_t written(int n, size_t size) { return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1; }

/* The items of a tuple, or of a list when `tuple` is NULL. */
typedef struct term_items {
  const ERL_NIF_TERM *tuple;
  int count;
  ERL_NIF_TERM list;
} term_items;

static size_t print_items(ErlNifEnv *env, const term_items *items, int depth, char *text, size_t size) {
  ERL_NIF_TERM list = items->list, head = list;
  const ERL_NIF_TERM *tuple = items->tuple;
  size_t used = 0;
  for (int i = 0; tuple ? i < items->count : enif_get_list_cell(env, list, &head, &list) != 0; i++) {
    if (i > 0) used += written(snprintf(text + used, size - used, i == TERM_ITEMS ? ",..." : ","), size - used);
    if (i == TERM_ITEMS) break;
    used += print_term(env, tuple ? tuple[i] : head, depth, text + used, size - used);
  }
  return used;
}

/* True for a list that would not be printed as a string. */
static bool is_plain_list(ErlNifEnv *env, ERL_NIF_TERM term) {
  ERL_NIF_TERM head, tail = term;
  int character;
  bool plain = false;
  while (enif_get_list_cell(env, tail, &head, &tail))
    if (!enif_get_int(env, head, &character) || character < ' ' || character > '~') plain = true;
  return plain && enif_is_empty_list(env, tail);
}

/* Prints a term as the shell does, tensors by type and shape; truncated where it is long or deep. Returns the
 * length. */
static size_t print_term(ErlNifEnv *env, ERL_NIF_TERM term, int depth, char *text, size_t size) {
  const ERL_NIF_TERM *items = NULL;
  double number;
  int count = 0;
  if (print_tensor(env, term, text, size)) return strlen(text);
  if (enif_get_double(env, term, &number))
    return written(snprintf(text, size, number == rint(number) && fabs(number) < 1e6 ? "%.1f" : "%g", number), size);
  bool is_tuple = enif_get_tuple(env, term, &count, &items) != 0;
  if (depth == TERM_DEPTH || !(is_tuple || is_plain_list(env, term)))
    return written(enif_snprintf(text, size, "%T", term), size);
  size_t used = written(snprintf(text, size, is_tuple ? "{" : "["), size);
  used += print_items(env, &(term_items){is_tuple ? items : NULL, count, term}, depth + 1, text + used, size - used);
  return used + written(snprintf(text + used, size - used, is_tuple ? "}" : "]"), size - used);
}

ts_status(ts_nif_expected)(ErlNifEnv *env, const char *expected, ERL_NIF_TERM got) {
  char text[TERM_TEXT + sizeof "..."];
  if (print_term(env, got, 0, text, TERM_TEXT) == TERM_TEXT - 1) memcpy(text + TERM_TEXT - 1, "...", sizeof "...");
  const char *why = why_not(env, expected, got);
  return ts_error(TS_INVALID_ARGUMENT, "expected %s, got %s%s", expected, text, why ? why : "");
}

ts_status ts_nif_get_dtype(ErlNifEnv *env, ERL_NIF_TERM term, ts_dtype *out) {
  for (int t = 0; t < TS_DTYPE_COUNT; t++) {
    if (!enif_is_identical(term, dtype_atoms[t])) continue;
    if (!ts_dtype_supported((ts_dtype)t))
      return ts_error(TS_UNIMPLEMENTED, "type %s is not supported yet", ts_dtype_name((ts_dtype)t));
    *out = (ts_dtype)t;
    return TS_SUCCESS;
  }
  return ts_nif_expected(env, "a type such as f32 or s64", term);
}

/* Reads a dim of `whole`; an error describes the expected form of `whole`. */
static ts_status get_dim(ErlNifEnv *env, ERL_NIF_TERM item, const char *expected, ERL_NIF_TERM whole, ts_dims *out) {
  ErlNifSInt64 dim;
  if (out->rank == TS_MAX_RANK)
    return ts_error(TS_INVALID_ARGUMENT, "more than %d dimensions, expected at most that many", TS_MAX_RANK);
  if (!enif_get_int64(env, item, &dim)) return ts_nif_expected(env, expected, whole);
  out->dims[out->rank++] = dim;
  return TS_SUCCESS;
}

ts_status ts_nif_get_shape(ErlNifEnv *env, ERL_NIF_TERM term, ts_shape *out) {
  const ERL_NIF_TERM *items;
  int count;
  *out = (ts_shape){0};
  if (!enif_get_tuple(env, term, &count, &items)) return ts_nif_expected(env, "a shape such as {2, 3}", term);
  for (int i = 0; i < count; i++) {
    TS_TRY(get_dim(env, items[i], "a shape such as {2, 3}", term, out));
    if (out->dims[i] < 0) return ts_nif_expected(env, "a shape of sizes of at least 0", term);
  }
  return TS_SUCCESS;
}

ts_status ts_nif_get_dims(ErlNifEnv *env, ERL_NIF_TERM term, ts_dims *out) {
  ERL_NIF_TERM head, tail = term;
  *out = (ts_dims){0};
  while (enif_get_list_cell(env, tail, &head, &tail)) TS_TRY(get_dim(env, head, "a list of integers", term, out));
  return enif_is_empty_list(env, tail) ? TS_SUCCESS : ts_nif_expected(env, "a list of integers", term);
}

ts_status ts_nif_get_int(ErlNifEnv *env, ERL_NIF_TERM term, const char *what, int64_t *out) {
  ErlNifSInt64 value;
  if (!enif_get_int64(env, term, &value)) return ts_nif_expected(env, what, term);
  *out = value;
  return TS_SUCCESS;
}

ts_status ts_nif_get_path(ErlNifEnv *env, ERL_NIF_TERM term, char out[PATH_MAX]) {
  ErlNifBinary path;
  if (!enif_inspect_binary(env, term, &path) || path.size == 0 || path.size >= PATH_MAX ||
      memchr(path.data, 0, path.size))
    return ts_nif_expected(env, "the path of a file", term);
  memcpy(out, path.data, path.size);
  out[path.size] = '\0';
  return TS_SUCCESS;
}

ts_status ts_nif_get_threads(ErlNifEnv *env, ERL_NIF_TERM term, int *out) {
  int64_t threads;
  TS_TRY(ts_nif_get_int(env, term, "a number of threads", &threads));
  if (threads < 0 || threads > INT16_MAX) return ts_nif_expected(env, "a number of threads", term);
  *out = (int)threads;
  return TS_SUCCESS;
}

/* ---- numbers ---- */

static bool get_special(ERL_NIF_TERM term, double *out) {
  if (enif_is_identical(term, ts_atom.nan_))
    *out = (double)NAN;
  else if (enif_is_identical(term, ts_atom.infinity_))
    *out = (double)INFINITY;
  else if (enif_is_identical(term, ts_atom.neg_infinity_))
    *out = -(double)INFINITY;
  else
    return false;
  return true;
}

static bool get_part(ErlNifEnv *env, ERL_NIF_TERM term, double *out) {
  ErlNifSInt64 s;
  ErlNifUInt64 u;
  if (enif_get_double(env, term, out) || get_special(term, out)) return true;
  if (enif_get_int64(env, term, &s))
    *out = (double)s;
  else if (enif_get_uint64(env, term, &u))
    *out = (double)u;
  else
    return false;
  return true;
}

/* {complex, Re, Im} */
static bool get_complex(ErlNifEnv *env, ERL_NIF_TERM term, ts_number *out) {
  const ERL_NIF_TERM *items;
  int count;
  out->kind = TS_NUMBER_COMPLEX;
  return enif_get_tuple(env, term, &count, &items) && count == 3 && enif_is_identical(items[0], ts_atom.complex_) &&
         get_part(env, items[1], &out->parts[0]) && get_part(env, items[2], &out->parts[1]);
}

bool ts_nif_get_number(ErlNifEnv *env, ERL_NIF_TERM term, ts_number *out) {
  ErlNifSInt64 s;
  ErlNifUInt64 u;
  if (enif_get_int64(env, term, &s))
    *out = (ts_number){TS_NUMBER_SIGNED, {.s = s}};
  else if (enif_get_double(env, term, &out->f) || get_special(term, &out->f))
    out->kind = TS_NUMBER_FLOAT;
  else if (enif_get_uint64(env, term, &u))
    *out = (ts_number){TS_NUMBER_UNSIGNED, {.u = u}};
  else
    return get_complex(env, term, out);
  return true;
}

static ERL_NIF_TERM make_float(ErlNifEnv *env, double value) {
  if (isnan(value)) return ts_atom.nan_;
  if (isinf(value)) return value > 0 ? ts_atom.infinity_ : ts_atom.neg_infinity_;
  return enif_make_double(env, value);
}

ERL_NIF_TERM ts_nif_number(ErlNifEnv *env, ts_dtype dtype, const void *element) {
  ts_scalar scalar = ts_scalar_load(dtype, element);
  if (ts_dtype_is_complex(dtype))
    return enif_make_tuple3(env, ts_atom.complex_, make_float(env, ts_scalar_to_f64(dtype, scalar)),
                            make_float(env, ts_scalar_imag(dtype, scalar)));
  if (ts_dtype_is_float(dtype)) return make_float(env, ts_scalar_to_f64(dtype, scalar));
  if (dtype == TS_U64) return enif_make_uint64(env, scalar.u64);
  return enif_make_int64(env, ts_scalar_to_s64(dtype, scalar));
}

bool ts_nif_tessera_get(ErlNifEnv *env, ERL_NIF_TERM term, ERL_NIF_TERM *out_ref) {
  const ERL_NIF_TERM *items;
  int count;
  if (!enif_get_tuple(env, term, &count, &items) || count != 4) return false;
  if (!ts_nif_is_atom(items[0], ts_atom.tessera_)) return false;
  *out_ref = items[1];
  return true;
}
