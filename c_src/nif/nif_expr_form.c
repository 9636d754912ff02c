#include "nif/nif_expr_form.h"

/* {f, 32} and so on: kind and bits of each type. */
static struct {
  ERL_NIF_TERM kind;
  int bits;
} types[TS_DTYPE_COUNT];

void ts_expr_forms_init(ErlNifEnv *env) {
  for (int t = 0; t < TS_DTYPE_COUNT; t++) {
    const char *name = ts_dtype_name((ts_dtype)t);
    /* {f, 8} is e5m2, which the other one would be, too. */
    size_t length = t == TS_F8E4M3FN ? strlen(name) : strcspn(name, "0123456789");
    types[t].kind = enif_make_atom_len(env, name, length);
    types[t].bits = ts_dtype_supported((ts_dtype)t) ? ts_dtype_bits((ts_dtype)t) : 0;
  }
}

void ts_expr_forms_deinit(ts_expr_forms *forms) {
  ts_expr_table_deinit(&forms->by_terms);
  ts_expr_table_deinit(&forms->by_form);
  TS_VEC_FREE(&forms->known);
  TS_VEC_FREE(&forms->terms);
}

/* The terms of a form: kind and bits of the type, and the dims, with vectorized axes first. */
enum { DIMS = 2 };

typedef struct form_key {
  size_t count;
  ERL_NIF_TERM terms[DIMS + TS_MAX_RANK];
} form_key;

static bool put_dim(form_key *key, ERL_NIF_TERM dim) {
  if (key->count == DIMS + TS_MAX_RANK) return false;
  key->terms[key->count++] = dim;
  return true;
}

static bool get_key(const ts_expr_forms *x, ERL_NIF_TERM type, ERL_NIF_TERM axes, ERL_NIF_TERM shape, form_key *out) {
  ERL_NIF_TERM head;
  const ERL_NIF_TERM *f;
  int count;
  if (!enif_get_tuple(x->env, type, &count, &f) || count != 2) return false;
  out->terms[0] = f[0], out->terms[1] = f[1];
  out->count = DIMS;
  while (enif_get_list_cell(x->env, axes, &head, &axes))
    if (!enif_get_tuple(x->env, head, &count, &f) || count != 2 || !put_dim(out, f[1])) return false;
  if (!enif_is_empty_list(x->env, axes) || !enif_get_tuple(x->env, shape, &count, &f)) return false;
  for (int i = 0; i < count; i++)
    if (!put_dim(out, f[i])) return false;
  return true;
}

static uint32_t hash_key(const form_key *key) {
  uint64_t h = 0;
  for (size_t i = 0; i < key->count; i++) h = ts_expr_mix(h, key->terms[i]);
  return (uint32_t)(h ^ h >> 32);
}

static bool get_type(const ts_expr_forms *x, const form_key *key, ts_dtype *out) {
  int bits;
  if (!enif_get_int(x->env, key->terms[1], &bits)) return false;
  for (int t = 0; t < TS_DTYPE_COUNT; t++) {
    if (types[t].bits != bits || types[t].kind != key->terms[0]) continue;
    *out = (ts_dtype)t;
    return true;
  }
  return false;
}

static bool get_shape(const ts_expr_forms *x, const form_key *key, ts_shape *out) {
  ErlNifSInt64 dim;
  *out = (ts_shape){0};
  for (size_t i = DIMS; i < key->count; i++) {
    if (!enif_get_int64(x->env, key->terms[i], &dim) || dim < 0) return false;
    out->dims[out->rank++] = dim;
  }
  return true;
}

static ts_status find_form(ts_expr_forms *x, const form_key *key, ts_expr *e, uint32_t *out) {
  ts_type form;
  *out = TS_NO_ID;
  if (!get_type(x, key, &form.dtype) || !get_shape(x, key, &form.shape)) return TS_SUCCESS;
  return ts_expr_add_form(e, &x->by_form, &form, out);
}

static bool is_key(const ts_expr_forms *x, const ts_expr_known_form *form, const form_key *key) {
  return form->count == key->count &&
         memcmp(x->terms.data + form->terms, key->terms, key->count * sizeof *key->terms) == 0;
}

/* Adds terms as a key of a form; other terms may be keys of it, too. */
static ts_status add_key(ts_expr_forms *x, const form_key *key, uint32_t hash, uint32_t form) {
  ts_expr_known_form known = {x->terms.count, key->count, form};
  for (size_t i = 0; i < key->count; i++) TS_TRY(TS_VEC_PUSH(&x->terms, key->terms[i]));
  TS_TRY(TS_VEC_PUSH(&x->known, known));
  return ts_expr_table_add(&x->by_terms, hash, (uint32_t)x->known.count - 1);
}

ts_status ts_expr_form(ts_expr_forms *x, ERL_NIF_TERM type, ERL_NIF_TERM axes, ERL_NIF_TERM shape, ts_expr *e,
                       uint32_t *out) {
  form_key key;
  uint32_t number;
  *out = TS_NO_ID;
  if (!get_key(x, type, axes, shape, &key)) return TS_SUCCESS;
  uint32_t hash = hash_key(&key);
  for (size_t at = hash; (number = ts_expr_table_next(&x->by_terms, hash, &at)) != TS_NO_ID;) {
    *out = x->known.data[number].form;
    if (is_key(x, &x->known.data[number], &key)) return TS_SUCCESS;
  }
  TS_TRY(find_form(x, &key, e, out));
  return *out == TS_NO_ID ? TS_SUCCESS : add_key(x, &key, hash, *out);
}
