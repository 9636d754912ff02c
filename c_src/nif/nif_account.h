/* Bytes that tensors of Erlang processes hold, counted exactly: by client, a name that the Nx plug gives to devices,
 * and by device of a client. All tensors begin on device 0 of the client `host`. Thread-safe. */
#ifndef TS_NIF_ACCOUNT_H
#define TS_NIF_ACCOUNT_H

#include "nif/nif_util.h"

/* The account of a device of a client. */
typedef uint8_t ts_nif_account;

#define TS_NIF_HOST_ACCOUNT ((ts_nif_account)0)

bool ts_nif_account_init(void);

/* The account of that device; created on first use. */
ts_status ts_nif_account_find(ErlNifEnv *env, ERL_NIF_TERM client, ERL_NIF_TERM device, ts_nif_account *out);
void ts_nif_account_add(ts_nif_account account, int64_t bytes);
/* The total over all clients: exact, and as reported by the threads, which costs nothing. */
int64_t ts_nif_account_total(void);
int64_t ts_nif_account_told(void);

/* NIFs; their Erlang signatures are at the bodies. */
ERL_NIF_TERM ts_nif_client_memory(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_reset_client_peak(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
