/* Files for dlopen, which trusts them: it maps a truncated file and touches what is not there, which ends the process
 * with SIGBUS; it follows addresses of its headers out of the file; a pipe makes it wait. Thread-safe. */
#ifndef TS_BASE_SHARED_OBJECT_H
#define TS_BASE_SHARED_OBJECT_H

#include "base/status.h"

/* Fails unless the path is a regular file whose headers are those of a shared object of this machine, and whose
 * segments, sections and dynamic table lie within it. The error names the path and what is wrong. What the segments
 * contain is not checked, nor the libraries that it needs. */
ts_status ts_shared_object_check(const char *path);
/* dlopen(path, RTLD_NOW | RTLD_LOCAL) of a file that was checked so. */
ts_status ts_shared_object_open(const char *path, void **out);

#endif
