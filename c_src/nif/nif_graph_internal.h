/* Shared by nif_graph.c and the files of other NIFs on traced programs. */
#ifndef TS_NIF_GRAPH_INTERNAL_H
#define TS_NIF_GRAPH_INTERNAL_H

#include "nif/nif_graph.h"

struct ts_nif_builder {
  ErlNifMutex *lock;
  ERL_NIF_TERM self; /* the builder as its caller has it, while the lock is held */
  ts_tracer tracer;
  size_t placed;                   /* ops whose place was set, where places are recorded */
  TS_VEC(ts_nif_tensor *) tensors; /* of the function's environment: the tracer's hidden arguments */
};

/* The body of a NIF whose first argument is a program that is traced; it gets the other arguments, under the lock.
 * `out` is the atom ok at first. */
typedef ts_status (*ts_nif_builder_fn)(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out);
ERL_NIF_TERM ts_nif_with_builder(ErlNifEnv *env, const ERL_NIF_TERM argv[], ts_nif_builder_fn fn);

/* {tessera, [Builder | Id], Type, Shape}. */
ERL_NIF_TERM ts_nif_value_term(ErlNifEnv *env, ts_nif_builder *b, ts_value_id id);
/* The number of a value of this program, of whichever region. */
ts_status ts_nif_value_id(ErlNifEnv *env, ts_nif_builder *b, ERL_NIF_TERM term, ts_value_id *out);

/* A program that is traced, or an error. */
ts_status ts_nif_builder_expect(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_builder **out);

typedef TS_VEC(ts_type) ts_nif_types;
static inline ts_types ts_nif_types_of(const ts_nif_types *types) { return (ts_types){types->data, types->count}; }
/* From [{Type, Shape}]. On success the caller must free the types. */
ts_status ts_nif_types_get(ErlNifEnv *env, ERL_NIF_TERM list, ts_nif_types *out);

#endif
