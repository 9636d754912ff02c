/* Compiled programs as resources. Thread-safe. */
#ifndef TS_NIF_EXECUTABLE_H
#define TS_NIF_EXECUTABLE_H

#include "device/device.h"
#include "front/promote.h"
#include "nif/nif_attrs.h"
#include "nif/nif_tensor.h"

/* An executable, and the device of its runs; NULL: their arguments decide. */
typedef struct ts_nif_bound {
  ts_loaded *loaded;
  ts_device *device;
} ts_nif_bound;

bool ts_nif_executable_init(ErlNifEnv *env, ErlNifResourceFlags flags);

ts_status ts_nif_executable_get(ErlNifEnv *env, ERL_NIF_TERM term, ts_loaded **out);
/* For NIFs that run it. A NIF that is given another term returns ts_nif_executable_missing(). */
bool ts_nif_executable_find(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_bound *out);
/* `stale` for a reference, which is an executable of an earlier load of this library; else an error. */
ERL_NIF_TERM ts_nif_executable_missing(ErlNifEnv *env, ERL_NIF_TERM term);
/* The handle of an executable, which this function takes over, also on failure. Its runs are on the device; NULL: their
 * arguments decide. */
ts_status ts_nif_executable_make(ErlNifEnv *env, ts_loaded *loaded, ts_device *device, ERL_NIF_TERM *out);

ERL_NIF_TERM ts_nif_compile(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_on_device(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_executable_info(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_executable_kernels(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_explain(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
