/* The platform `host`. Its memory is a ts_buffer, its program a ts_executable. */
#ifndef TS_DEVICE_HOST_H
#define TS_DEVICE_HOST_H

#include "device/platform.h"
#include "tensor/pool.h"

extern const ts_platform ts_platform_host;

/* The program of a loaded one; NULL if that is of another platform. */
struct ts_loaded;
struct ts_executable *ts_host_program(const struct ts_loaded *loaded);

/* The pool of the client from open(); NULL: the default pool. */
ts_pool *ts_host_pool(const void *client);

/* The run() of the table, on the thread that calls it; after a callback it continues on the answering thread. */
void ts_host_run(const ts_run_request *request, ts_done done);

#endif
