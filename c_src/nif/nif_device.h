/* Clients and devices as terms: a client is an atom, a device is {Client, Number}. Thread-safe. */
#ifndef TS_NIF_DEVICE_H
#define TS_NIF_DEVICE_H

#include "device/device.h"
#include "nif/nif_util.h"

bool ts_nif_device_init(ErlNifEnv *env);

/* `undefined` is the default device. */
ts_status ts_nif_get_device(ErlNifEnv *env, ERL_NIF_TERM term, ts_device **out);
ts_status ts_nif_get_client(ErlNifEnv *env, ERL_NIF_TERM term, ts_client **out);
ERL_NIF_TERM ts_nif_device(ErlNifEnv *env, const ts_device *device);

/* NIFs; their Erlang signatures are at the bodies. */
ERL_NIF_TERM ts_nif_client_open(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_client_close(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_client_waits(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_default_client(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_platforms(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_platform_devices(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_client_devices(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_clients(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_client_memory(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_reset_client_peak(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_memory(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_set_limit(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
