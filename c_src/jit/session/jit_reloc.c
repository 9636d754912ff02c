#include "jit/session/jit_reloc.h"

#include <string.h>

static ts_status out_of_reach(uint32_t type) {
  return ts_error(TS_INTERNAL, "kernel object: relocation %u out of reach", type);
}

static ts_status unknown(uint32_t type) {
  return ts_error(TS_INTERNAL, "kernel object: relocation %u not known", type);
}

/* Calls go to the stub where there is one. */
static uint64_t callee(const ts_reloc_symbol *symbol) { return symbol->stub ? symbol->stub : symbol->address; }

static uint64_t got_entry(const ts_reloc_symbol *symbol) { return symbol->stub + 8; }

static ts_status put64(uint32_t type, const ts_reloc_place *place, uint64_t value) {
  if (place->left < 8) return out_of_reach(type);
  memcpy(place->bytes, &value, 8);
  return TS_SUCCESS;
}

static ts_status put_relative32(uint32_t type, const ts_reloc_place *place, uint64_t target) {
  int64_t distance = (int64_t)(target - place->address);
  int32_t value = (int32_t)distance;
  if (value != distance) return out_of_reach(type);
  memcpy(place->bytes, &value, 4);
  return TS_SUCCESS;
}

/* ---- x86-64 ---- */

static ts_status apply_x86(uint32_t type, const ts_reloc_place *place, const ts_reloc_symbol *symbol, int64_t addend) {
  switch (type) {
  case R_X86_64_NONE: return TS_SUCCESS;
  case R_X86_64_64: return put64(type, place, symbol->address + (uint64_t)addend);
  case R_X86_64_PC32: return put_relative32(type, place, symbol->address + (uint64_t)addend);
  case R_X86_64_PLT32: return put_relative32(type, place, callee(symbol) + (uint64_t)addend);
  case R_X86_64_GOTPCREL:
  case R_X86_64_GOTPCRELX:
  case R_X86_64_REX_GOTPCRELX:
    return symbol->stub ? put_relative32(type, place, got_entry(symbol) + (uint64_t)addend) : unknown(type);
  default: return unknown(type);
  }
}

/* ---- aarch64: immediates inside instructions ---- */

static void put_bits(const ts_reloc_place *place, uint32_t mask, uint32_t bits) {
  uint32_t instruction;
  memcpy(&instruction, place->bytes, 4);
  instruction = (instruction & ~mask) | (bits & mask);
  memcpy(place->bytes, &instruction, 4);
}

static ts_status put_branch(uint32_t type, const ts_reloc_place *place, uint64_t target) {
  int64_t distance = (int64_t)(target - place->address);
  if (distance >= (1 << 27) || distance < -(1 << 27) || (distance & 3)) return out_of_reach(type);
  put_bits(place, 0x03ffffff, (uint32_t)((uint64_t)distance >> 2));
  return TS_SUCCESS;
}

/* The distance in pages: its low two bits at bit 29, the others at bit 5. */
static ts_status put_page(uint32_t type, const ts_reloc_place *place, uint64_t target) {
  int64_t pages = (int64_t)(target >> 12) - (int64_t)(place->address >> 12);
  if (pages >= (1 << 20) || pages < -(1 << 20)) return out_of_reach(type);
  uint32_t bits = (uint32_t)pages;
  put_bits(place, 0x60ffffe0, (bits & 3) << 29 | ((bits >> 2) & 0x7ffff) << 5);
  return TS_SUCCESS;
}

/* The low 12 bits as the immediate of an add (shift 0), or of a load or store scaled by its size. */
static ts_status put_low12(uint32_t type, const ts_reloc_place *place, uint64_t target, int shift) {
  uint32_t low = (uint32_t)(target & 4095);
  if (low & ((1u << shift) - 1)) return out_of_reach(type);
  put_bits(place, 0x003ffc00, (low >> shift) << 10);
  return TS_SUCCESS;
}

static ts_status apply_arm(uint32_t type, const ts_reloc_place *place, const ts_reloc_symbol *symbol, int64_t addend) {
  uint64_t target = symbol->address + (uint64_t)addend;
  switch (type) {
  case R_AARCH64_NONE: return TS_SUCCESS;
  case R_AARCH64_ABS64: return put64(type, place, target);
  case R_AARCH64_PREL32: return put_relative32(type, place, target);
  case R_AARCH64_CALL26:
  case R_AARCH64_JUMP26: return put_branch(type, place, callee(symbol) + (uint64_t)addend);
  case R_AARCH64_ADR_PREL_PG_HI21: return put_page(type, place, target);
  case R_AARCH64_ADD_ABS_LO12_NC:
  case R_AARCH64_LDST8_ABS_LO12_NC: return put_low12(type, place, target, 0);
  case R_AARCH64_LDST16_ABS_LO12_NC: return put_low12(type, place, target, 1);
  case R_AARCH64_LDST32_ABS_LO12_NC: return put_low12(type, place, target, 2);
  case R_AARCH64_LDST64_ABS_LO12_NC: return put_low12(type, place, target, 3);
  case R_AARCH64_LDST128_ABS_LO12_NC: return put_low12(type, place, target, 4);
  case R_AARCH64_ADR_GOT_PAGE: return symbol->stub ? put_page(type, place, got_entry(symbol)) : unknown(type);
  case R_AARCH64_LD64_GOT_LO12_NC: return symbol->stub ? put_low12(type, place, got_entry(symbol), 3) : unknown(type);
  default: return unknown(type);
  }
}

/* ---- entry points for any machine ---- */

void ts_reloc_write_stub(uint16_t machine, uint8_t *stub, uint64_t address) {
  static const uint8_t x86_jump[8] = {0xff, 0x25, 2, 0, 0, 0, 0xcc, 0xcc};       /* jmp *2(%rip) */
  static const uint8_t arm_jump[8] = {0x50, 0, 0, 0x58, 0x00, 0x02, 0x1f, 0xd6}; /* ldr x16, .+8; br x16 */
  memcpy(stub, machine == EM_X86_64 ? x86_jump : arm_jump, 8);
  memcpy(stub + 8, &address, 8);
}

ts_status ts_reloc_apply(uint16_t machine, uint32_t type, const ts_reloc_place *place, const ts_reloc_symbol *symbol,
                         int64_t addend) {
  return machine == EM_X86_64 ? apply_x86(type, place, symbol, addend) : apply_arm(type, place, symbol, addend);
}
