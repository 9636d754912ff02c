#include "jit/session/build_id.h"

#include <dlfcn.h>
#include <link.h>
#include <llvm-c/Core.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char text[128];

typedef struct note {
  const uint8_t *bytes; /* NULL: not found */
  size_t size;
} note;

typedef struct search {
  const void *address; /* in the library */
  note found;
} search;

static bool holds(const struct dl_phdr_info *object, const void *address) {
  uintptr_t here = (uintptr_t)address;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &object->dlpi_phdr[i];
    if (p->p_type == PT_LOAD && here - (object->dlpi_addr + p->p_vaddr) < p->p_memsz) return true;
  }
  return false;
}

static size_t padded(size_t size) { return (size + 3) & ~(size_t)3; }

static note find_in_segment(const uint8_t *segment, size_t size) {
  ElfW(Nhdr) header;
  while (size >= sizeof(header)) {
    memcpy(&header, segment, sizeof(header));
    size_t name = padded(header.n_namesz), content = padded(header.n_descsz);
    if (name + content > size - sizeof(header)) break;
    const uint8_t *start = segment + sizeof(header);
    bool gnu = header.n_namesz == 4 && memcmp(start, "GNU", 4) == 0;
    if (gnu && header.n_type == NT_GNU_BUILD_ID) return (note){start + name, header.n_descsz};
    segment = start + name + content;
    size -= sizeof(header) + name + content;
  }
  return (note){0};
}

static int find_note(struct dl_phdr_info *object, size_t size, void *context) {
  (void)size;
  search *s = context;
  if (!holds(object, s->address)) return 0;
  for (int i = 0; i < object->dlpi_phnum && !s->found.bytes; i++) {
    const ElfW(Phdr) *p = &object->dlpi_phdr[i];
    if (p->p_type != PT_NOTE) continue;
    s->found = find_in_segment((const uint8_t *)(object->dlpi_addr + p->p_vaddr), p->p_memsz);
  }
  return 1;
}

/* Without a build id: size and modification time of the file. */
static size_t print_file(const void *address, char *out, size_t size) {
  Dl_info info;
  struct stat s;
  if (!dladdr(address, &info) || stat(info.dli_fname, &s) != 0) s = (struct stat){0};
  return (size_t)snprintf(out, size, "%lld.%lld.%ld", (long long)s.st_size, (long long)s.st_mtim.tv_sec,
                          s.st_mtim.tv_nsec);
}

size_t ts_jit_build_id_of(const void *address, char *out, size_t size) {
  search s = {.address = address};
  dl_iterate_phdr(find_note, &s);
  size_t n = 0;
  for (size_t i = 0; s.found.bytes && i < s.found.size && 2 * i + 2 < size; i++)
    n += (size_t)snprintf(out + n, size - n, "%02x", s.found.bytes[i]);
  return n > 0 ? n : print_file(address, out, size);
}

static void compute(void) {
  size_t n = ts_jit_build_id_of(text, text, TS_BUILD_ID_TEXT);
  unsigned major, minor, patch;
  LLVMGetVersion(&major, &minor, &patch);
  snprintf(text + n, sizeof(text) - n, " LLVM %u.%u.%u", major, minor, patch);
}

const char *ts_jit_build_id(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, compute);
  return text;
}
