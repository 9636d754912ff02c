#include "pjrt_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *test_pjrt_file(const char *name) {
  static char path[PATH_MAX + 256];
  ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
  if (length < 0) abort();
  path[length] = '\0';
  char *slash = strrchr(path, '/');
  snprintf(slash + 1, sizeof path - (size_t)(slash + 1 - path), "%s", name);
  return path;
}

void test_pjrt_use(void) { setenv("TESSERA_PJRT_PLUGIN", test_pjrt_file("pjrt_test.so"), 0); }
