/* Loads LLVM's objects: copies the sections of a kernel into one mapping, applies relocations, and makes it executable.
 * This is much less than a full linker does, so that a cached kernel is ready in tens of microseconds and a program
 * whose kernels are all cached never starts LLVM. Calls out of the mapping go through stubs at its end, as the callee
 * may be out of reach.
 *
 * Objects are checked for form, since they may come from a file: a bad one is an
 * error. Their code is trusted (see jit_disk.c). */
#include "jit/emit/emit.h"
#include "jit/session/jit_internal.h"
#include "jit/session/jit_reloc.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

#define MAX_SECTIONS 256
#define MAX_IMAGE_BYTES ((size_t)64 << 20)

typedef struct loader {
  const uint8_t *data;
  size_t size;
  const Elf64_Shdr *sections;
  size_t section_count;
  const Elf64_Sym *symbols;
  size_t symbol_count;
  const char *strings;
  size_t strings_size;
  size_t offsets[MAX_SECTIONS]; /* in the mapping; defined where `loaded` */
  bool loaded[MAX_SECTIONS];
  size_t stubs; /* offset of the first */
  size_t image_size;
  uint8_t *image;
} loader;

static ts_status malformed(const char *what) { return ts_error(TS_DATA_LOSS, "kernel object: %s", what); }

static bool inside(const loader *l, uint64_t offset, uint64_t size) {
  return offset <= l->size && size <= l->size - offset;
}

static const char *string_at(const char *strings, size_t size, size_t offset) {
  return offset < size ? strings + offset : "";
}

/* The table and its last byte, which must terminate the last string. */
static ts_status string_table(const loader *l, uint32_t index, const char **out, size_t *out_size) {
  if (index >= l->section_count) return malformed("no string table");
  const Elf64_Shdr *s = &l->sections[index];
  if (s->sh_size == 0 || !inside(l, s->sh_offset, s->sh_size) || l->data[s->sh_offset + s->sh_size - 1] != 0) {
    return malformed("bad string table");
  }
  *out = (const char *)l->data + s->sh_offset;
  *out_size = s->sh_size;
  return TS_SUCCESS;
}

static ts_status parse_header(loader *l) {
  const Elf64_Ehdr *h = (const Elf64_Ehdr *)l->data;
  if (l->size < sizeof(*h) || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0) return malformed("not ELF");
  if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_type != ET_REL || h->e_machine != TS_RELOC_HOST) {
    return malformed("for another machine");
  }
  if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shnum > MAX_SECTIONS || h->e_shoff % 8 != 0 ||
      !inside(l, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr))) {
    return malformed("bad section table");
  }
  l->sections = (const Elf64_Shdr *)(l->data + h->e_shoff);
  l->section_count = h->e_shnum;
  for (size_t i = 0; i < l->section_count; i++) {
    const Elf64_Shdr *s = &l->sections[i];
    if (s->sh_type != SHT_NOBITS && !inside(l, s->sh_offset, s->sh_size)) return malformed("section out of bounds");
  }
  return TS_SUCCESS;
}

static ts_status find_symbols(loader *l) {
  for (size_t i = 0; i < l->section_count; i++) {
    const Elf64_Shdr *s = &l->sections[i];
    if (s->sh_type != SHT_SYMTAB) continue;
    if (s->sh_entsize != sizeof(Elf64_Sym) || s->sh_offset % 8 != 0) return malformed("bad symbol table");
    l->symbols = (const Elf64_Sym *)(l->data + s->sh_offset);
    l->symbol_count = s->sh_size / sizeof(Elf64_Sym);
    return string_table(l, s->sh_link, &l->strings, &l->strings_size);
  }
  return malformed("no symbols");
}

/* Unwind tables are left out: kernels do not throw and are not unwound through. */
static bool is_needed(const Elf64_Shdr *s, const char *name) {
  return (s->sh_flags & SHF_ALLOC) && s->sh_size > 0 && strcmp(name, ".eh_frame") != 0;
}

static ts_status lay_out(loader *l) {
  const char *names;
  size_t names_size;
  TS_TRY(string_table(l, ((const Elf64_Ehdr *)l->data)->e_shstrndx, &names, &names_size));
  size_t end = 0;
  for (size_t i = 0; i < l->section_count; i++) {
    const Elf64_Shdr *s = &l->sections[i];
    const char *name = string_at(names, names_size, s->sh_name);
    if (!is_needed(s, name)) continue;
    bool constant = !(s->sh_flags & SHF_WRITE) || strncmp(name, ".data.rel.ro", 12) == 0;
    if (s->sh_type == SHT_NOBITS || !constant) return malformed("has writable data");
    size_t alignment = s->sh_addralign > 1 ? s->sh_addralign : 1;
    if (alignment > 4096 || (alignment & (alignment - 1))) return malformed("bad alignment");
    l->offsets[i] = (end + alignment - 1) & ~(alignment - 1);
    l->loaded[i] = true;
    end = l->offsets[i] + s->sh_size;
    if (end > MAX_IMAGE_BYTES) return malformed("too large");
  }
  l->stubs = (end + TS_RELOC_STUB_BYTES - 1) & ~(size_t)(TS_RELOC_STUB_BYTES - 1);
  l->image_size = l->stubs + l->symbol_count * TS_RELOC_STUB_BYTES;
  return TS_SUCCESS;
}

/* Runtime functions that LLVM itself may call. */
static void *runtime_symbol(const char *name) {
  if (strcmp(name, "memcpy") == 0) return (void *)(uintptr_t)memcpy;
  if (strcmp(name, "memmove") == 0) return (void *)(uintptr_t)memmove;
  if (strcmp(name, "memset") == 0) return (void *)(uintptr_t)memset;
  return ts_emit_library_symbol(name);
}

static ts_status resolve(loader *l, size_t index, ts_reloc_symbol *out) {
  if (index >= l->symbol_count) return malformed("no such symbol");
  const Elf64_Sym *symbol = &l->symbols[index];
  if (symbol->st_shndx != SHN_UNDEF) {
    size_t section = symbol->st_shndx;
    if (section >= l->section_count || !l->loaded[section]) return malformed("symbol in a section that is not loaded");
    if (symbol->st_value > l->sections[section].sh_size) return malformed("symbol out of bounds");
    *out = (ts_reloc_symbol){.address = (uint64_t)(uintptr_t)(l->image + l->offsets[section]) + symbol->st_value};
    return TS_SUCCESS;
  }
  const char *name = string_at(l->strings, l->strings_size, symbol->st_name);
  void *address = runtime_symbol(name);
  if (!address) return ts_error(TS_INTERNAL, "kernel object: unknown symbol '%s'", name);
  uint8_t *stub = l->image + l->stubs + index * TS_RELOC_STUB_BYTES;
  ts_reloc_write_stub(TS_RELOC_HOST, stub, (uint64_t)(uintptr_t)address);
  *out = (ts_reloc_symbol){.address = (uint64_t)(uintptr_t)address, .stub = (uint64_t)(uintptr_t)stub};
  return TS_SUCCESS;
}

static ts_status relocate_section(loader *l, const Elf64_Shdr *relocations) {
  size_t section = relocations->sh_info;
  if (section >= l->section_count || !l->loaded[section]) return TS_SUCCESS;
  if (relocations->sh_entsize != sizeof(Elf64_Rela) || relocations->sh_offset % 8 != 0) {
    return malformed("bad relocation table");
  }
  const Elf64_Rela *rela = (const Elf64_Rela *)(l->data + relocations->sh_offset);
  for (size_t i = 0; i < relocations->sh_size / sizeof(*rela); i++) {
    ts_reloc_symbol symbol;
    TS_TRY(resolve(l, ELF64_R_SYM(rela[i].r_info), &symbol));
    size_t size = l->sections[section].sh_size, offset = rela[i].r_offset;
    if (offset > size || size - offset < 4) return malformed("relocation out of bounds");
    uint8_t *bytes = l->image + l->offsets[section] + offset;
    ts_reloc_place place = {.bytes = bytes, .left = size - offset, .address = (uint64_t)(uintptr_t)bytes};
    TS_TRY(ts_reloc_apply(TS_RELOC_HOST, (uint32_t)ELF64_R_TYPE(rela[i].r_info), &place, &symbol, rela[i].r_addend));
  }
  return TS_SUCCESS;
}

static ts_status fill_image(loader *l) {
  for (size_t i = 0; i < l->section_count; i++) {
    if (!l->loaded[i]) continue;
    memcpy(l->image + l->offsets[i], l->data + l->sections[i].sh_offset, l->sections[i].sh_size);
  }
  for (size_t i = 0; i < l->section_count; i++) {
    if (l->sections[i].sh_type == SHT_RELA) TS_TRY(relocate_section(l, &l->sections[i]));
    if (l->sections[i].sh_type == SHT_REL) return malformed("relocations without addends");
  }
  return TS_SUCCESS;
}

static ts_status find_entry(loader *l, const char *name, ts_module *out) {
  for (size_t i = 0; i < l->symbol_count; i++) {
    const Elf64_Sym *symbol = &l->symbols[i];
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC) continue;
    if (strcmp(string_at(l->strings, l->strings_size, symbol->st_name), name) != 0) continue;
    ts_reloc_symbol found;
    TS_TRY(resolve(l, i, &found));
    out->entry = (ts_kernel_fn)(uintptr_t)found.address;
    ts_debug_note_perf(name, (const void *)(uintptr_t)found.address, symbol->st_size);
    return TS_SUCCESS;
  }
  return ts_error(TS_DATA_LOSS, "kernel object: no function '%s'", name);
}

/* gdb expects the object itself, with the addresses of its sections filled in. */
static void tell_gdb(loader *l, ts_module *module) {
  void *copy;
  if (!ts_debug_wants_gdb() || !ts_status_consume_ok(ts_alloc(l->size, &copy))) return;
  memcpy(copy, l->data, l->size);
  Elf64_Shdr *sections = (Elf64_Shdr *)((uint8_t *)copy + ((const Elf64_Ehdr *)l->data)->e_shoff);
  for (size_t i = 0; i < l->section_count; i++) {
    if (l->loaded[i]) sections[i].sh_addr = (uint64_t)(uintptr_t)(l->image + l->offsets[i]);
  }
  module->debug = ts_debug_register(copy, l->size);
}

/* Linux before 6.3 does not know MFD_EXEC; later releases may be configured to require it. */
static int new_memory_file(void) {
  int file = memfd_create("tessera-kernel", MFD_CLOEXEC | MFD_EXEC);
  return file < 0 && errno == EINVAL ? memfd_create("tessera-kernel", MFD_CLOEXEC) : file;
}

/* Where written pages may not become executable (PR_SET_MDWE, systemd's MemoryDenyWriteExecute, SELinux), pages of a
 * file may: the image is copied to a memory file. */
static bool replace_by_file(loader *l) {
  int file = new_memory_file();
  if (file < 0) return false;
  bool replaced = write(file, l->image, l->image_size) == (ssize_t)l->image_size &&
                  mmap(l->image, l->image_size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0) != MAP_FAILED;
  close(file);
  return replaced;
}

static ts_status make_executable(loader *l) {
  if (mprotect(l->image, l->image_size, PROT_READ | PROT_EXEC) == 0) return TS_SUCCESS;
  int error = errno;
  if (error == ENOMEM)
    return ts_error(TS_RESOURCE_EXHAUSTED, "cannot make %zu bytes of kernel code executable", l->image_size);
  if (replace_by_file(l)) return TS_SUCCESS;
  return ts_error(TS_FAILED_PRECONDITION,
                  "the system does not let this process make code executable, which compiled programs are (%s): "
                  "a policy such as SELinux's or a seccomp filter forbids it",
                  strerror(error));
}

static ts_status load_image(loader *l, const char *name, ts_module *out) {
  TS_TRY(fill_image(l));
  TS_TRY(find_entry(l, name, out));
  TS_TRY(make_executable(l));
  __builtin___clear_cache((char *)l->image, (char *)l->image + l->image_size);
  tell_gdb(l, out);
  return TS_SUCCESS;
}

ts_status ts_module_load(const ts_object *object, const char *name, ts_module *out) {
  loader l = {.data = object->data, .size = object->size};
  *out = (ts_module){0};
  TS_TRY(parse_header(&l));
  TS_TRY(find_symbols(&l));
  TS_TRY(lay_out(&l));
  void *image = mmap(NULL, l.image_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (image == MAP_FAILED)
    return ts_error(TS_RESOURCE_EXHAUSTED, "no memory for %zu bytes of kernel code", l.image_size);
  l.image = image;
  ts_status status = load_image(&l, name, out);
  if (status) {
    munmap(image, l.image_size);
    *out = (ts_module){0};
    return status;
  }
  out->base = image;
  out->size = l.image_size;
  return TS_SUCCESS;
}

void ts_module_unload(ts_module *module) {
  if (module->debug) ts_debug_unregister(module->debug);
  if (module->base) munmap(module->base, module->size);
  *module = (ts_module){0};
}
