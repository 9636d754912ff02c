/* Files that are mapped for reading. The kernel reads a page when a thread touches it. If another program has cut the
 * file short, the page is lost, and the kernel answers with SIGBUS. The first mapping installs a handler for SIGBUS.
 * Inside of a mapping the handler replaces the lost pages by pages of zeros, and a warning names the file. Other faults
 * are passed to the handler that was installed before. Thread-safe. A mapping belongs to the caller until
 * ts_mapped_file_close. */
#ifndef TS_BASE_MAPPED_FILE_H
#define TS_BASE_MAPPED_FILE_H

#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct ts_mapped_file {
  const void *data; /* NULL for an empty file */
  size_t size;
  struct ts_mapped_range *range; /* the handler's record of this mapping */
} ts_mapped_file;

/* Maps a regular file of any user. An error's message is the reason alone. Its code is TS_UNAVAILABLE if there is no
 * file. */
ts_status ts_mapped_file_open(const char *path, ts_mapped_file *out);
void ts_mapped_file_close(ts_mapped_file *file); /* also accepts a zero file */
/* Whether a read found that the file has become shorter. */
bool ts_mapped_file_is_cut(const ts_mapped_file *file);

#endif
