/* Conversion between Erlang terms and the core's values: atoms, types, shapes, numbers, and statuses as error terms.
 * Decoders return a status that describes the expected term. ts_nif_util_init makes the atoms, before any other
 * call. */
#ifndef TS_NIF_UTIL_H
#define TS_NIF_UTIL_H

#include "base/status.h"
#include "base/text.h"
#include "front/number.h"
#include "tensor/shape.h"

#include <erl_nif.h>
#include <limits.h>

/* clang-format off */
#define TS_NIF_ATOMS(X)                                                                                            \
  X(ok) X(error) X(tessera) X(traced) X(pressure) X(undefined) X(true) X(false) X(nan) X(infinity) X(neg_infinity) X(complex) \
  X(code) X(message) X(live) X(peak) X(pooled) X(limit) X(held) X(allocations) X(kernels) X(compiled) X(loaded)    \
  X(reused) X(evicted) X(code_bytes) X(compile_ns) X(link_ns) X(failed_threads) X(background) X(steps) X(kernels_compiled)       \
  X(temp_bytes) X(result_bytes) X(live_peak_bytes) X(planned_peak_bytes) X(cost_ns) X(pass_ns) X(lower_ns)         \
  X(kernel_ns) X(is_short) X(no_fusion) X(no_simplify) X(threads) X(donate) X(tessera_log) X(requested)            \
  X(parameter) X(hidden) X(while) X(cond) X(deallocated) X(stale) X(host) X(callback) X(client) X(waiting) X(ready) \
  X(freed) X(major) X(program) X(profiled) X(precision) X(highest) X(high) X(default) X(placed) X(device) X(crowded) X(tuple) X(list)
/* clang-format on */

typedef struct ts_nif_atoms {
#define X(name) ERL_NIF_TERM name##_;
  TS_NIF_ATOMS(X)
#undef X
} ts_nif_atoms;

extern ts_nif_atoms ts_atom;

/* As enif_is_identical() for an atom, without a call: an atom is one word, so equal atoms are equal words. */
static inline bool ts_nif_is_atom(ERL_NIF_TERM term, ERL_NIF_TERM atom) { return term == atom; }

void ts_nif_util_init(ErlNifEnv *env);

/* {error, #{code => Atom, message => Binary}}. Consumes `status`. */
ERL_NIF_TERM ts_nif_error(ErlNifEnv *env, ts_status status);
/* Returns early from a NIF with the error of `expression`, if it has one. */
#define TS_NIF_TRY(env, expression)                                 \
  do {                                                              \
    ts_status ts_nif_status_ = (expression);                        \
    if (ts_nif_status_) return ts_nif_error((env), ts_nif_status_); \
  } while (0)

ERL_NIF_TERM ts_nif_dtype(ts_dtype dtype); /* the atom */
ERL_NIF_TERM ts_nif_shape(ErlNifEnv *env, const ts_shape *shape);
ERL_NIF_TERM ts_nif_dims(ErlNifEnv *env, const ts_dims *dims); /* a list */
ERL_NIF_TERM ts_nif_binary(ErlNifEnv *env, const char *bytes, size_t length);
/* A finished text as a binary, or the error of `status`; frees the text in either case. */
ERL_NIF_TERM ts_nif_text(ErlNifEnv *env, ts_status status, ts_text *text);

ts_status ts_nif_get_dtype(ErlNifEnv *env, ERL_NIF_TERM term, ts_dtype *out);
ts_status ts_nif_get_shape(ErlNifEnv *env, ERL_NIF_TERM term, ts_shape *out);
ts_status ts_nif_get_dims(ErlNifEnv *env, ERL_NIF_TERM term, ts_dims *out); /* from a list */
ts_status ts_nif_get_int(ErlNifEnv *env, ERL_NIF_TERM term, const char *what, int64_t *out);
/* The path of a file, from a binary. */
ts_status ts_nif_get_path(ErlNifEnv *env, ERL_NIF_TERM term, char out[PATH_MAX]);
/* A limit for the threads of a run; 0: none. */
ts_status ts_nif_get_threads(ErlNifEnv *env, ERL_NIF_TERM term, int *out);
/* An invalid-argument error: `expected`, then "got <term>", shortened. */
ts_status ts_nif_expected(ErlNifEnv *env, const char *expected, ERL_NIF_TERM got) __attribute__((returns_nonnull));
#ifdef __clang_analyzer__
#define ts_nif_expected(...) ts_error_assume((ts_nif_expected)(__VA_ARGS__))
#endif

/* ---- numbers ---- */

/* Also one of the atoms nan, infinity, neg_infinity. */
bool ts_nif_get_number(ErlNifEnv *env, ERL_NIF_TERM term, ts_number *out);
/* An Erlang number, or an atom for NaN and infinities, which Erlang floats cannot represent. */
ERL_NIF_TERM ts_nif_number(ErlNifEnv *env, ts_dtype dtype, const void *element);

#endif
