/* Files with a checksum (base/file.h), for the option `cache: path`. Thread-safe. */
#ifndef TS_NIF_FILE_H
#define TS_NIF_FILE_H

#include <erl_nif.h>

/* NIFs; their Erlang signatures are at the bodies. */
ERL_NIF_TERM ts_nif_file_read(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_file_write(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
