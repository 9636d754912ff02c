/* Regular files of any user, to be mapped or read as a whole. Thread-safe. */
#ifndef TS_BASE_REGULAR_FILE_H
#define TS_BASE_REGULAR_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct ts_regular_file {
  int file;
  size_t size;
} ts_regular_file;

/* Ends with ts_regular_file_close. An error's message is the reason alone. Its code is TS_UNAVAILABLE if there is no
 * file. */
ts_status ts_regular_file_open(const char *path, ts_regular_file *out);
void ts_regular_file_close(ts_regular_file *file);
/* The error for this errno of a call that opens, maps or reads a file. */
ts_status ts_regular_file_refused(int error);

/* Whether a long read should go on: called by the calling thread now and then. */
typedef struct ts_goes_on {
  bool (*ask)(void *context); /* NULL: always */
  void *context;
} ts_goes_on;

/* Reads all bytes to `to`, large files by several threads: writing to fresh memory takes longer than the copy. Fails
 * with TS_DATA_LOSS if the file has become shorter, and with TS_CANCELLED if it should not go on. */
ts_status ts_regular_file_read(const ts_regular_file *file, void *to, ts_goes_on goes_on);

#endif
