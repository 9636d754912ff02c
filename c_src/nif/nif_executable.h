/* Compiled programs as resources, and running them from Erlang. A run is a
 * resource too, for as long as it takes: it watches its caller and stops when
 * that dies. Thread-safe; runs of one executable share no lock of ours. */
#ifndef TS_NIF_EXECUTABLE_H
#define TS_NIF_EXECUTABLE_H

#include "exec/executable.h"
#include "nif/nif_op.h"
#include "nif/nif_tensor.h"

/* The arguments of one run: pinned tensors, donated ones, and scalars made of numbers. */
typedef struct ts_nif_args {
  size_t count;
  ts_buffer **buffers;
  ts_nif_tensor **tensors; /* NULL where the buffer is our own */
  uint64_t donated;        /* those that were taken out of their tensors */
  bool checked;            /* the program was looked for by their types */
  void *block;             /* the arrays, when they do not fit here */
  ts_buffer *few_buffers[8];
  ts_nif_tensor *few_tensors[8];
} ts_nif_args;

/* With room for `count`, to be added in order. */
ts_status ts_nif_args_init(ts_nif_args *args, size_t count);
ts_status ts_nif_args_add_tensor(ts_nif_args *args, ts_nif_tensor *tensor, bool donate);
void ts_nif_args_add_buffer(ts_nif_args *args, ts_buffer *buffer); /* takes over the reference; may be NULL as yet */
ts_status ts_nif_number_buffer(const ts_number *number, const ts_type *type, ts_buffer **out);
/* From a list of {tessera, Ref, ...} and numbers, which become scalars of the given types. */
ts_status ts_nif_args_get(ErlNifEnv *env, ERL_NIF_TERM list, const ts_type *const *types, size_t count, uint64_t donate,
                          ts_nif_args *out);
/* After a run, which took the donated ones when it succeeded. A second time it does nothing. */
void ts_nif_args_done(ts_nif_args *args, bool succeeded);

bool ts_nif_executable_init(ErlNifEnv *env, ErlNifResourceFlags flags);

/* Runs; `out` gets the results, and the arguments are done. With `watched` the run ends when the calling process does.
 */
ts_status ts_nif_run_program(ErlNifEnv *env, const ts_executable *executable, ts_nif_args *args, int threads,
                             bool watched, ts_buffer **out);

/* Counts what a run on a normal scheduler took, as planned, to the calling process. */
void ts_nif_spend(ErlNifEnv *env, const ts_executable *executable);

ERL_NIF_TERM ts_nif_compile(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_run(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_executable_info(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_executable_kernels(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_explain(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
