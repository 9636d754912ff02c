/* The arguments of a run: terms of Erlang become buffers, which stay pinned until the run has ended. */
#ifndef TS_NIF_ARGS_H
#define TS_NIF_ARGS_H

#include "front/promote.h"
#include "nif/nif_attrs.h"
#include "nif/nif_tensor.h"

/* Pinned tensors, donated ones, and scalars made from numbers. */
typedef struct ts_nif_args {
  size_t count;
  ts_buffer **buffers;
  ts_nif_tensor **tensors; /* NULL where the buffer has no tensor */
  uint64_t *donated;       /* bits: those whose buffers were taken out of their tensors */
  bool donates;            /* there are some */
  bool checked;            /* the types are known to fit, since they are part of the program's key */
  void *block;             /* the arrays, when they do not fit into the struct */
  ts_buffer *few_buffers[8];
  ts_nif_tensor *few_tensors[8];
  uint64_t few_donated;
} ts_nif_args;

/* The donated arguments, for the options of a run. */
static inline ts_bits ts_nif_args_donated(const ts_nif_args *args) {
  return (ts_bits){args->donates ? args->donated : NULL, 0, args->count};
}

/* A set of arguments as Erlang has it: an integer of any size, bit i for the i-th from 0. */
typedef struct ts_nif_set {
  uint64_t small;
  ErlNifBinary text; /* of a large one, in the external format of terms */
  size_t at, count;  /* of its bytes there, the least one first; 0: it is `small` */
} ts_nif_set;
ts_status ts_nif_set_get(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_set *out);
bool ts_nif_set_has(const ts_nif_set *set, size_t i);
void ts_nif_set_done(ts_nif_set *set);

/* With room for `count` arguments, to be added in order. */
ts_status ts_nif_args_init(ts_nif_args *args, size_t count);
/* A {tessera, Ref, ...}, or a number, which becomes a scalar of the type. */
ts_status ts_nif_args_add(ErlNifEnv *env, ERL_NIF_TERM term, const ts_type *type, bool donate, ts_nif_args *args);
ts_status ts_nif_args_add_tensor(ts_nif_args *args, ts_nif_tensor *tensor, bool donate);
void ts_nif_args_add_buffer(ts_nif_args *args, ts_buffer *buffer); /* takes over the reference; may be NULL for now */
ts_status ts_nif_number_buffer(const ts_number *number, const ts_type *type, ts_buffer **out);
/* From a list of {tessera, Ref, ...} and numbers, which become scalars of the given types. NULL for `donate`: none. */
ts_status ts_nif_args_get(ErlNifEnv *env, ERL_NIF_TERM list, const ts_type *const *types, size_t count,
                          const ts_nif_set *donate, ts_nif_args *out);
/* Ends the use of the arguments after a run; a successful run has taken the donated ones, a failed one those that it
 * may have overwritten. A second call has no effect. */
void ts_nif_args_done(ts_nif_args *args, bool succeeded);

#endif
