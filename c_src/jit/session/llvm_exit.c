/* LLVM calls __cxa_atexit(). In LLVM's shared library the entry of the table through which it calls is replaced. In a
 * library into which LLVM is linked the linker replaces the function (--wrap). */
#include "jit/session/llvm_exit.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <llvm-c/Core.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static _Atomic int64_t kept;

static int keep(void (*destroy)(void *), void *object, void *library) {
  (void)destroy, (void)object, (void)library;
  atomic_fetch_add(&kept, 1);
  return 0;
}

int64_t ts_llvm_kept_objects(void) { return atomic_load(&kept); }

#ifdef TS_LLVM_STATIC

/* The linker replaces calls of the function by calls of the first name. The second name is the function itself. */
extern int __wrap___cxa_atexit(void (*destroy)(void *), void *object, void *library);
extern int __real___cxa_atexit(void (*destroy)(void *), void *object, void *library);

/* Handlers of our own are of no library (base/system.h). */
int __wrap___cxa_atexit(void (*destroy)(void *), void *object, void *library) {
  return library ? keep(destroy, object, library) : __real___cxa_atexit(destroy, object, NULL);
}

void ts_llvm_keep_objects(void) {}

#else

/* The entries of a library's dynamic section that are used here. */
typedef struct dynamic {
  const char *names;
  const ElfW(Sym) * symbols;
  const ElfW(Rela) * calls; /* relocations of the table of calls */
  size_t call_count;
} dynamic;

/* glibc has made the addresses in the section absolute. */
static dynamic read_dynamic(const ElfW(Dyn) * entry) {
  dynamic d = {0};
  for (; entry->d_tag != DT_NULL; entry++) {
    switch (entry->d_tag) {
    case DT_STRTAB: d.names = (const char *)entry->d_un.d_ptr; break;
    case DT_SYMTAB: d.symbols = (const ElfW(Sym) *)entry->d_un.d_ptr; break;
    case DT_JMPREL: d.calls = (const ElfW(Rela) *)entry->d_un.d_ptr; break;
    case DT_PLTRELSZ: d.call_count = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
    default: break;
    }
  }
  return d;
}

/* The table entry with the address of that function; NULL when the library does not call it. */
static void **find_entry(uintptr_t base, const dynamic *d, const char *function) {
  if (!d->names || !d->symbols || !d->calls) return NULL;
  for (size_t i = 0; i < d->call_count; i++) {
    const ElfW(Sym) *symbol = &d->symbols[ELF64_R_SYM(d->calls[i].r_info)];
    if (strcmp(d->names + symbol->st_name, function) == 0) return (void **)(base + d->calls[i].r_offset);
  }
  return NULL;
}

/* The dynamic linker may have made the page read-only. */
static bool make_writable(void **entry, bool writable) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)entry & ~(page - 1);
  return mprotect((void *)start, page, writable ? PROT_READ | PROT_WRITE : PROT_READ) == 0;
}

static bool is_protected(const struct dl_phdr_info *library, void **entry) {
  uintptr_t offset = (uintptr_t)entry - library->dlpi_addr;
  for (int i = 0; i < library->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &library->dlpi_phdr[i];
    if (part->p_type == PT_GNU_RELRO && offset - part->p_vaddr < part->p_memsz) return true;
  }
  return false;
}

static void replace(const struct dl_phdr_info *library, void **entry) {
  bool guarded = is_protected(library, entry);
  if (guarded && !make_writable(entry, true)) return;
  *entry = (void *)(uintptr_t)keep;
  if (guarded) make_writable(entry, false);
}

static int visit(struct dl_phdr_info *library, size_t size, void *llvm_base) {
  (void)size;
  if (library->dlpi_addr != (uintptr_t)llvm_base) return 0;
  for (int i = 0; i < library->dlpi_phnum; i++) {
    if (library->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    dynamic d = read_dynamic((const ElfW(Dyn) *)(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr));
    void **entry = find_entry(library->dlpi_addr, &d, "__cxa_atexit");
    if (entry) replace(library, entry);
  }
  return 1;
}

void ts_llvm_keep_objects(void) {
  Dl_info llvm, own;
  if (!dladdr((void *)(uintptr_t)LLVMContextCreate, &llvm) || !dladdr((void *)(uintptr_t)keep, &own)) return;
  if (llvm.dli_fbase != own.dli_fbase) dl_iterate_phdr(visit, llvm.dli_fbase);
}

#endif
