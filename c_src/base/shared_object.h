/* Files for dlopen, which trusts them: it maps a truncated file and touches missing pages, which ends the process with
 * SIGBUS; it follows addresses of its headers out of the file; it waits for a pipe. Thread-safe. */
#ifndef TS_BASE_SHARED_OBJECT_H
#define TS_BASE_SHARED_OBJECT_H

#include "base/status.h"

/* Fails unless the path is a regular file with the headers of a shared object of this machine, and its segments,
 * sections and dynamic table lie within the file. The error names the path and the fault. The contents of the segments,
 * and the libraries that it needs, are not checked. */
ts_status ts_shared_object_check(const char *path);
/* dlopen(path, RTLD_NOW | RTLD_LOCAL) of a file that was checked so. */
ts_status ts_shared_object_open(const char *path, void **out);

#endif
