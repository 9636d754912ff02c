/* The platform `host`. Its memory is a ts_buffer, its program a ts_executable. */
#ifndef TS_DEVICE_HOST_H
#define TS_DEVICE_HOST_H

#include "device/platform.h"
#include "tensor/pool.h"

extern const ts_platform ts_platform_host;

/* The program of a loaded one; NULL if that is of another platform. */
struct ts_loaded;
struct ts_executable *ts_host_program(const struct ts_loaded *loaded);

/* What open() returns. */
typedef struct ts_host_client {
  ts_pool *pool; /* NULL: the default */
} ts_host_client;

/* The pool of the client from open(); NULL: the default pool. */
static inline ts_pool *ts_host_pool(const void *client) {
  const ts_host_client *c = client;
  return c && c->pool ? c->pool : ts_pool_default();
}

/* The run() of the table, on the thread that calls it; after a callback it continues on the answering thread. */
void ts_host_run(const ts_run_request *request, ts_done done);

#endif
