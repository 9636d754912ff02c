#include "jit/jit_reloc.h"

#include <string.h>

static ts_status out_of_reach(uint32_t type) {
  return ts_error(TS_INTERNAL, "kernel object: relocation %u out of reach", type);
}

static ts_status unknown(uint32_t type) {
  return ts_error(TS_INTERNAL, "kernel object: relocation %u not known", type);
}

/* Calls go to the stub where there is one. */
static uint64_t callee(const ts_reloc_symbol *symbol) { return symbol->stub ? symbol->stub : symbol->address; }

static ts_status put64(uint32_t type, uint8_t *place, size_t left, uint64_t value) {
  if (left < 8) return out_of_reach(type);
  memcpy(place, &value, 8);
  return TS_SUCCESS;
}

static ts_status put_relative32(uint32_t type, uint8_t *place, uint64_t target) {
  int64_t distance = (int64_t)(target - (uint64_t)(uintptr_t)place);
  int32_t value = (int32_t)distance;
  if (value != distance) return out_of_reach(type);
  memcpy(place, &value, 4);
  return TS_SUCCESS;
}

#if defined(__x86_64__)

void ts_reloc_write_stub(uint8_t *stub, uint64_t address) {
  static const uint8_t jump[8] = {0xff, 0x25, 2, 0, 0, 0, 0xcc, 0xcc}; /* jmp *2(%rip) */
  memcpy(stub, jump, 8);
  memcpy(stub + 8, &address, 8);
}

ts_status ts_reloc_apply(uint32_t type, uint8_t *place, size_t left, const ts_reloc_symbol *symbol, int64_t addend) {
  switch (type) {
    case R_X86_64_NONE:
      return TS_SUCCESS;
    case R_X86_64_64:
      return put64(type, place, left, symbol->address + (uint64_t)addend);
    case R_X86_64_PC32:
      return put_relative32(type, place, symbol->address + (uint64_t)addend);
    case R_X86_64_PLT32:
      return put_relative32(type, place, callee(symbol) + (uint64_t)addend);
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
      if (!symbol->stub) return unknown(type);
      return put_relative32(type, place, symbol->stub + 8 + (uint64_t)addend);
    default:
      return unknown(type);
  }
}

#else

void ts_reloc_write_stub(uint8_t *stub, uint64_t address) {
  static const uint32_t jump[2] = {0x58000050, 0xd61f0200}; /* ldr x16, stub + 8; br x16 */
  memcpy(stub, jump, 8);
  memcpy(stub + 8, &address, 8);
}

static void put_bits(uint8_t *place, uint32_t mask, uint32_t bits) {
  uint32_t instruction;
  memcpy(&instruction, place, 4);
  instruction = (instruction & ~mask) | (bits & mask);
  memcpy(place, &instruction, 4);
}

static ts_status put_branch(uint32_t type, uint8_t *place, uint64_t target) {
  int64_t distance = (int64_t)(target - (uint64_t)(uintptr_t)place);
  if (distance >= (1 << 27) || distance < -(1 << 27) || (distance & 3)) return out_of_reach(type);
  put_bits(place, 0x03ffffff, (uint32_t)(distance >> 2));
  return TS_SUCCESS;
}

static ts_status put_page(uint32_t type, uint8_t *place, uint64_t target) {
  int64_t pages = ((int64_t)(target & ~(uint64_t)4095) - (int64_t)((uint64_t)(uintptr_t)place & ~(uint64_t)4095)) >> 12;
  if (pages >= (1 << 20) || pages < -(1 << 20)) return out_of_reach(type);
  put_bits(place, 0x60ffffe0, ((uint32_t)pages & 3) << 29 | (((uint32_t)pages >> 2) & 0x7ffff) << 5);
  return TS_SUCCESS;
}

/* The low 12 bits as the immediate of an add (shift 0), or of a load scaled by its size. */
static ts_status put_low12(uint32_t type, uint8_t *place, uint64_t target, int shift) {
  uint32_t low = (uint32_t)(target & 4095);
  if (low & ((1u << shift) - 1)) return out_of_reach(type);
  put_bits(place, 0x003ffc00, (low >> shift) << 10);
  return TS_SUCCESS;
}

ts_status ts_reloc_apply(uint32_t type, uint8_t *place, size_t left, const ts_reloc_symbol *symbol, int64_t addend) {
  uint64_t target = symbol->address + (uint64_t)addend;
  uint64_t slot = symbol->stub + 8; /* its GOT entry */
  switch (type) {
    case R_AARCH64_NONE:
      return TS_SUCCESS;
    case R_AARCH64_ABS64:
      return put64(type, place, left, target);
    case R_AARCH64_PREL32:
      return put_relative32(type, place, target);
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26:
      return put_branch(type, place, callee(symbol) + (uint64_t)addend);
    case R_AARCH64_ADR_PREL_PG_HI21:
      return put_page(type, place, target);
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC:
      return put_low12(type, place, target, 0);
    case R_AARCH64_LDST16_ABS_LO12_NC:
      return put_low12(type, place, target, 1);
    case R_AARCH64_LDST32_ABS_LO12_NC:
      return put_low12(type, place, target, 2);
    case R_AARCH64_LDST64_ABS_LO12_NC:
      return put_low12(type, place, target, 3);
    case R_AARCH64_LDST128_ABS_LO12_NC:
      return put_low12(type, place, target, 4);
    case R_AARCH64_ADR_GOT_PAGE:
      return symbol->stub ? put_page(type, place, slot) : unknown(type);
    case R_AARCH64_LD64_GOT_LO12_NC:
      return symbol->stub ? put_low12(type, place, slot, 3) : unknown(type);
    default:
      return unknown(type);
  }
}

#endif
