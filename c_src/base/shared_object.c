#include "base/shared_object.h"

#include "base/alloc.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#error "the ELF machine of this CPU is not known"
#endif

#define OWN_ORDER (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB)

/* No linker writes more entries into a shared object. */
enum { MOST_DYNAMIC = 4096 };

typedef struct object {
  const char *path;
  int file;
  uint64_t size;
  Elf64_Ehdr header;
  Elf64_Phdr *segments; /* e_phnum */
  Elf64_Shdr *sections; /* e_shnum */
  Elf64_Dyn *dynamic;
} object;

static ts_status bad(const object *o, const char *what) {
  return ts_error(TS_INVALID_ARGUMENT, "%s: %s", o->path, what);
}

static bool is_inside(const object *o, uint64_t offset, uint64_t bytes) {
  return offset <= o->size && bytes <= o->size - offset;
}

static ts_status read_at(const object *o, uint64_t offset, void *out, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t n = pread(o->file, (char *)out + done, bytes - done, (off_t)(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ts_error(TS_INVALID_ARGUMENT, "%s cannot be read: %s", o->path, strerror(errno));
    if (n == 0) return bad(o, "the file is truncated");
    done += (size_t)n;
  }
  return TS_SUCCESS;
}

static const char *kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
  case S_IFDIR: return "a folder";
  case S_IFIFO: return "a pipe";
  case S_IFSOCK: return "a socket";
  default: return "a device";
  }
}

/* Opens without waiting for the other end of a pipe: the file's kind is known only after opening. */
static ts_status open_file(object *o) {
  struct stat status;
  o->file = open(o->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (o->file < 0) return ts_error(TS_INVALID_ARGUMENT, "%s cannot be opened: %s", o->path, strerror(errno));
  if (fstat(o->file, &status) != 0)
    return ts_error(TS_INVALID_ARGUMENT, "%s cannot be read: %s", o->path, strerror(errno));
  if (!S_ISREG(status.st_mode))
    return ts_error(TS_INVALID_ARGUMENT, "%s is %s, not a file", o->path, kind_of(status.st_mode));
  o->size = (uint64_t)status.st_size;
  return TS_SUCCESS;
}

static ts_status check_header(object *o) {
  const Elf64_Ehdr *h = &o->header;
  if (o->size == 0) return bad(o, "the file is empty");
  if (o->size < sizeof *h) return bad(o, "the file is too short for a shared object");
  TS_TRY(read_at(o, 0, &o->header, sizeof o->header));
  if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0) return bad(o, "the file is not a shared object (ELF)");
  if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != OWN_ORDER || h->e_machine != OWN_MACHINE)
    return bad(o, "the shared object is for another machine");
  if (h->e_type != ET_DYN) return bad(o, "the file is ELF, but not a shared object");
  if (h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phnum == 0 || h->e_phnum == PN_XNUM)
    return bad(o, "the shared object has no valid table of segments");
  return TS_SUCCESS;
}

static ts_status check_segment(const object *o, const Elf64_Phdr *s, const Elf64_Phdr *before) {
  if (s->p_type == PT_NULL || s->p_filesz == 0) return TS_SUCCESS;
  if (!is_inside(o, s->p_offset, s->p_filesz)) return bad(o, "the file is truncated: a segment ends beyond it");
  if (s->p_type != PT_LOAD) return TS_SUCCESS;
  bool ordered = !before || before->p_vaddr + before->p_memsz <= s->p_vaddr;
  if (s->p_filesz > s->p_memsz || s->p_vaddr + s->p_memsz < s->p_vaddr || !ordered)
    return bad(o, "the shared object has a malformed segment");
  return TS_SUCCESS;
}

static ts_status check_segments(object *o) {
  size_t count = o->header.e_phnum;
  const Elf64_Phdr *before = NULL;
  if (!is_inside(o, o->header.e_phoff, count * sizeof *o->segments))
    return bad(o, "the file is truncated: its table of segments ends beyond it");
  TS_TRY(TS_NEW_ARRAY(count, &o->segments));
  TS_TRY(read_at(o, o->header.e_phoff, o->segments, count * sizeof *o->segments));
  for (size_t i = 0; i < count; i++) {
    const Elf64_Phdr *s = &o->segments[i];
    TS_TRY(check_segment(o, s, before));
    if (s->p_type == PT_LOAD) before = s;
  }
  return before ? TS_SUCCESS : bad(o, "the shared object has nothing to load");
}

/* Linkers write the table of sections last. dlopen does not read it, but without it the file is not whole. Objects
 * without sections (sstrip) have none. */
static ts_status check_sections(object *o) {
  size_t count = o->header.e_shnum;
  if (o->header.e_shoff == 0 || count == 0) return TS_SUCCESS;
  if (o->header.e_shentsize != sizeof *o->sections)
    return bad(o, "the shared object has a malformed table of sections");
  if (!is_inside(o, o->header.e_shoff, count * sizeof *o->sections))
    return bad(o, "the file is truncated: its table of sections ends beyond it");
  TS_TRY(TS_NEW_ARRAY(count, &o->sections));
  TS_TRY(read_at(o, o->header.e_shoff, o->sections, count * sizeof *o->sections));
  for (size_t i = 0; i < count; i++) {
    const Elf64_Shdr *s = &o->sections[i];
    if (s->sh_type != SHT_NULL && s->sh_type != SHT_NOBITS && !is_inside(o, s->sh_offset, s->sh_size))
      return bad(o, "the file is truncated: a section ends beyond it");
  }
  if (o->header.e_shstrndx < count && o->sections[o->header.e_shstrndx].sh_type != SHT_STRTAB)
    return bad(o, "the shared object has a malformed table of sections");
  return TS_SUCCESS;
}

/* Whether a segment's part that the file has includes these bytes of the object's memory. */
static bool is_loaded(const object *o, uint64_t address, uint64_t bytes) {
  for (size_t i = 0; i < o->header.e_phnum; i++) {
    const Elf64_Phdr *s = &o->segments[i];
    if (s->p_type != PT_LOAD || address < s->p_vaddr) continue;
    if (address - s->p_vaddr <= s->p_filesz && bytes <= s->p_filesz - (address - s->p_vaddr)) return true;
  }
  return false;
}

/* The value of a tag, or 0. */
static uint64_t value_of(const object *o, Elf64_Sxword tag) {
  for (const Elf64_Dyn *d = o->dynamic; d->d_tag != DT_NULL; d++)
    if (d->d_tag == tag) return d->d_un.d_val;
  return 0;
}

/* What dlopen follows: tables with the tags of their addresses and sizes. */
static ts_status check_tables(const object *o) {
  static const Elf64_Sxword tables[][2] = {{DT_STRTAB, DT_STRSZ},    {DT_RELA, DT_RELASZ},
                                           {DT_JMPREL, DT_PLTRELSZ}, {DT_INIT_ARRAY, DT_INIT_ARRAYSZ},
                                           {DT_SYMTAB, DT_SYMENT},   {DT_FINI_ARRAY, DT_FINI_ARRAYSZ},
                                           {DT_GNU_HASH, DT_NULL},   {DT_HASH, DT_NULL},
                                           {DT_VERSYM, DT_NULL},     {DT_VERNEED, DT_NULL},
                                           {DT_VERDEF, DT_NULL},     {DT_INIT, DT_NULL}};
  if (!value_of(o, DT_STRTAB) || !value_of(o, DT_SYMTAB)) return bad(o, "the shared object has no table of symbols");
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    uint64_t at = value_of(o, tables[i][0]), bytes = tables[i][1] == DT_NULL ? 1 : value_of(o, tables[i][1]);
    if (at && !is_loaded(o, at, bytes)) return bad(o, "the shared object has a dynamic table beyond its segments");
  }
  for (const Elf64_Dyn *d = o->dynamic; d->d_tag != DT_NULL; d++) {
    bool is_name = d->d_tag == DT_NEEDED || d->d_tag == DT_SONAME || d->d_tag == DT_RPATH || d->d_tag == DT_RUNPATH;
    if (is_name && d->d_un.d_val >= value_of(o, DT_STRSZ))
      return bad(o, "the shared object has a name beyond its names");
  }
  return TS_SUCCESS;
}

static ts_status check_dynamic(object *o) {
  const Elf64_Phdr *found = NULL;
  for (size_t i = 0; i < o->header.e_phnum; i++)
    if (o->segments[i].p_type == PT_DYNAMIC) found = &o->segments[i];
  size_t count = found ? found->p_filesz / sizeof *o->dynamic : 0;
  if (count == 0 || count > MOST_DYNAMIC || !is_loaded(o, found->p_vaddr, found->p_filesz))
    return bad(o, "the shared object has no valid dynamic table");
  TS_TRY(TS_NEW_ARRAY(count, &o->dynamic));
  TS_TRY(read_at(o, found->p_offset, o->dynamic, count * sizeof *o->dynamic));
  for (size_t i = 0; i < count; i++)
    if (o->dynamic[i].d_tag == DT_NULL) return check_tables(o);
  return bad(o, "the shared object has a dynamic table without an end");
}

static ts_status check(object *o) {
  TS_TRY(open_file(o));
  TS_TRY(check_header(o));
  TS_TRY(check_segments(o));
  TS_TRY(check_sections(o));
  return check_dynamic(o);
}

ts_status ts_shared_object_check(const char *path) {
  object o = {.path = path, .file = -1};
  ts_status status = check(&o);
  if (o.file >= 0) (void)close(o.file);
  ts_free(o.segments);
  ts_free(o.sections);
  ts_free(o.dynamic);
  return status;
}

ts_status ts_shared_object_open(const char *path, void **out) {
  TS_TRY(ts_shared_object_check(path));
  *out = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return *out ? TS_SUCCESS : ts_error(TS_INVALID_ARGUMENT, "%s", dlerror());
}
