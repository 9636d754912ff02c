/* Names of kernels. */
#include "base/map.h"
#include "jit/session/jit_internal.h"

#include <stdio.h>

/* "tessera_map_0123456789abcdef": the text's first word tells users of perf and gdb the kernel's kind. */
void ts_kernel_make_name(const char *text, size_t length, char out[TS_KERNEL_NAME_BYTES]) {
  char word[24];
  size_t n = 0;
  while (n < sizeof(word) - 1 && n < length && text[n] >= 'a' && text[n] <= 'z') {
    word[n] = text[n];
    n++;
  }
  word[n] = 0;
  unsigned long long hash = ts_hash(text, length).lo;
  snprintf(out, TS_KERNEL_NAME_BYTES, "tessera_%s_%016llx", n ? word : "kernel", hash);
}
