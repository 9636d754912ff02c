/* ELF relocations that LLVM emits for position-independent code of the small code model. The relocations of every
 * machine are compiled on all machines, so that they can be tested everywhere. Pure; no ownership. */
#ifndef TS_JIT_JIT_RELOC_H
#define TS_JIT_JIT_RELOC_H

#include "base/status.h"

#include <elf.h>
#include <stdint.h>

#if defined(__x86_64__)
#define TS_RELOC_HOST EM_X86_64
#else
#define TS_RELOC_HOST EM_AARCH64
#endif

#define TS_RELOC_STUB_BYTES 16

typedef struct ts_reloc_symbol {
  uint64_t address;
  uint64_t stub; /* a jump to the symbol within reach; 0 when the symbol itself is within reach */
} ts_reloc_symbol;

/* The patched location: its bytes in this process, and the address where they will run. */
typedef struct ts_reloc_place {
  uint8_t *bytes;
  size_t left; /* bytes to the end of the section, at least 4 */
  uint64_t address;
} ts_reloc_place;

/* A jump through the address in the stub's upper 8 bytes, which also serve as GOT entry. */
void ts_reloc_write_stub(uint16_t machine, uint8_t *stub, uint64_t address);
ts_status ts_reloc_apply(uint16_t machine, uint32_t type, const ts_reloc_place *place, const ts_reloc_symbol *symbol,
                         int64_t addend);

#endif
