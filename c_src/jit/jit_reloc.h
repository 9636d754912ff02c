/* ELF relocations of the host's architecture, those that LLVM makes for
 * position-independent code of the small code model. Pure; no ownership. */
#ifndef TS_JIT_JIT_RELOC_H
#define TS_JIT_JIT_RELOC_H

#include "base/status.h"

#include <elf.h>
#include <stdint.h>

#if defined(__x86_64__)
#define TS_RELOC_MACHINE EM_X86_64
#else
#define TS_RELOC_MACHINE EM_AARCH64
#endif

typedef struct ts_reloc_symbol {
  uint64_t address;
  uint64_t stub; /* a jump to the symbol within reach; 0 when the symbol itself is */
} ts_reloc_symbol;

/* 16 bytes: a jump through the address in the upper 8, which serve as GOT entry too. */
void ts_reloc_write_stub(uint8_t *stub, uint64_t address);
/* Patches `place`, of which `left` bytes remain in its section (at least 4). */
ts_status ts_reloc_apply(uint32_t type, uint8_t *place, size_t left, const ts_reloc_symbol *symbol, int64_t addend);

#endif
