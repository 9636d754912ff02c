/* The platform `host`. Its memory is a ts_buffer, its program a ts_executable. */
#ifndef TS_DEVICE_HOST_H
#define TS_DEVICE_HOST_H

#include "device/platform.h"
#include "tensor/pool.h"

extern const ts_platform ts_platform_host;

/* Of what its open() made; NULL: the default. */
ts_pool *ts_host_pool(const void *client);

/* The run() of the table, on the thread that calls it; what follows a callback runs on the thread that answers. */
void ts_host_run(const ts_run_request *request, ts_done done);

#endif
