/* Files that are trusted like code, because their contents are run. So a file counts only if it is a regular file, this
 * user or root owns it, and no other user may write to it. A file is written with mode 0600 under a name that cannot be
 * guessed, then renamed. Symbolic links at the end of a path are not followed; nothing waits for a FIFO or a device.
 * Thread-safe: there is no state. */
#ifndef TS_BASE_FILE_H
#define TS_BASE_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for a temporary name: a prefix of up to 31 characters and 32 random ones. */
#define TS_FILE_NAME_BYTES 64

/* Opens for reading. *out is -1 where there is no file. An error's message is the reason alone.
 * The caller closes the descriptor. */
ts_status ts_file_open(const char *path, int *out, int64_t *out_bytes);
/* Why an open file or directory may not be used: who owns it, or who may change it. NULL: it may. */
const char *ts_file_objection(int file);
bool ts_file_read(int file, void *to, size_t size);
bool ts_file_write(int file, const void *from, size_t size);
/* Creates a file with a random name in an open directory; -1 with errno where that fails. */
int ts_file_create(int directory, const char *prefix, char out_name[TS_FILE_NAME_BYTES]);

/* Maps a file, shared with others, between two pages of zeros; NULL with errno where that fails. Compiled code of OTP
 * 26 and later loads eight bytes where a match wants six. The load begins before the binary, so these bytes must be
 * memory as well. */
void *ts_file_map(int file, size_t size, int protection);
void ts_file_unmap(const void *data, size_t size);

/* ---- sealed files: a header has the layout of the contents, their length and their checksum. Damage is found, forgery
 * is not. */

typedef struct ts_file_layout {
  uint8_t bytes[16];
} ts_file_layout;

typedef struct ts_sealed {
  int file; /* -1: there is no file */
  size_t size;
  uint8_t header[64];
} ts_sealed;

/* Opens a file with contents of this layout and at most `limit` bytes. A file of another layout or length is an error
 * like the errors of ts_file_open, before anything but its header is read. Ends with ts_sealed_read or
 * ts_sealed_close. */
ts_status ts_sealed_open(const char *path, const ts_file_layout *layout, int64_t limit, ts_sealed *out);
/* Reads the contents, `size` bytes, and compares the checksum. Closes the file. */
ts_status ts_sealed_read(ts_sealed *sealed, void *to);
void ts_sealed_close(ts_sealed *sealed);
/* Replaces the file at the path, if any. No reader sees a part of it. */
ts_status ts_sealed_write(const char *path, const ts_file_layout *layout, const void *from, size_t size);

#endif
