#include "jit/jit_internal.h"

void ts_disk_configure(const char *dir, int64_t limit_bytes) {
  (void)dir;
  (void)limit_bytes;
}
bool ts_disk_read(const char *text, size_t length, ts_object *out) {
  (void)text;
  (void)length;
  (void)out;
  return false;
}
void ts_disk_write(const char *text, size_t length, const ts_object *object) {
  (void)text;
  (void)length;
  (void)object;
}
