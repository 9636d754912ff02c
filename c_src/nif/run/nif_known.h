/* The short way of a jitted function's call: the function and the types of its arguments select a program that the
 * calling thread has used before, so that the call needs neither a key of terms nor a table of the VM. It has plain
 * arguments, plain results in at most one container, and stays on the scheduler. Thread-safe. */
#ifndef TS_NIF_KNOWN_H
#define TS_NIF_KNOWN_H

#include <erl_nif.h>

ERL_NIF_TERM ts_nif_run_known(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_known_add(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_known_clear(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
