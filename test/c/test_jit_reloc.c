#include "jit/session/jit_reloc.h"
#include "testing.h"

/* Expected encodings come from LLVM's assembler, of the same instruction with its immediate written out. */

enum { PLACE = 0x10000000, STUB = 0x10002000 };

typedef struct relocation {
  uint32_t type;
  uint64_t before;
  uint64_t target; /* PLACE + distance */
  int64_t addend;
  uint64_t stub;
  uint64_t after;
} relocation;

#define INSTRUCTION(a, b, c, d) ((uint64_t)(a) | (uint64_t)(b) << 8 | (uint64_t)(c) << 16 | (uint64_t)(d) << 24)
#define FILL 0xeeeeeeee00000000

static void check(uint16_t machine, const relocation *r) {
  uint8_t bytes[8];
  memcpy(bytes, &r->before, 8);
  ts_reloc_place place = {.bytes = bytes, .left = 8, .address = PLACE};
  ts_reloc_symbol symbol = {.address = r->target, .stub = r->stub};
  ck_assert_ok(ts_reloc_apply(machine, r->type, &place, &symbol, r->addend));
  uint64_t after;
  memcpy(&after, bytes, 8);
  ck_assert_msg(after == r->after, "type %u: %llx, not %llx", r->type, (unsigned long long)after,
                (unsigned long long)r->after);
}

START_TEST(x86_64)
{
  static const relocation cases[] = {
      {R_X86_64_NONE, FILL, 0, 0, 0, FILL},
      {R_X86_64_64, 0, 0x123456789abcdef0, 0x10, 0, 0x123456789abcdf00},
      {R_X86_64_PC32, FILL, PLACE + 0x100, -4, 0, FILL | 0xfc},
      {R_X86_64_PC32, FILL, PLACE - 0x100, -4, 0, FILL | 0xfffffefc},
      {R_X86_64_PLT32, FILL, PLACE + 0x100, -4, 0, FILL | 0xfc},
      {R_X86_64_PLT32, FILL, 0x7fffffffffff, -4, STUB, FILL | 0x1ffc},
      {R_X86_64_GOTPCREL, FILL, 0x7fffffffffff, -4, STUB, FILL | 0x2004},
      {R_X86_64_REX_GOTPCRELX, FILL, 0x7fffffffffff, -4, STUB, FILL | 0x2004},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) check(EM_X86_64, &cases[i]);
}
END_TEST

START_TEST(aarch64)
{
  const uint64_t bl = FILL | INSTRUCTION(0, 0, 0, 0x94), b = FILL | INSTRUCTION(0, 0, 0, 0x14);
  const uint64_t adrp = FILL | INSTRUCTION(0, 0, 0, 0x90), add = FILL | INSTRUCTION(0, 0, 0, 0x91);
  const uint64_t ldr_x = FILL | INSTRUCTION(0, 0, 0x40, 0xf9);
  const relocation cases[] = {
      {R_AARCH64_ABS64, 0, 0x123456789abcdef0, 0x10, 0, 0x123456789abcdf00},
      {R_AARCH64_PREL32, FILL, PLACE - 0x100, 0, 0, FILL | 0xffffff00},
      {R_AARCH64_CALL26, bl, PLACE + 0x1000, 0, 0, FILL | INSTRUCTION(0x00, 0x04, 0x00, 0x94)},
      {R_AARCH64_CALL26, bl, PLACE - 0x1000, 0, 0, FILL | INSTRUCTION(0x00, 0xfc, 0xff, 0x97)},
      {R_AARCH64_CALL26, bl, 0x7fffffffffff, 0, PLACE + 0x1000, FILL | INSTRUCTION(0x00, 0x04, 0x00, 0x94)},
      {R_AARCH64_JUMP26, b, PLACE + 0x7fffffc, 0, 0, FILL | INSTRUCTION(0xff, 0xff, 0xff, 0x15)},
      {R_AARCH64_ADR_PREL_PG_HI21, adrp, PLACE + 0x3123, 0, 0, FILL | INSTRUCTION(0x00, 0x00, 0x00, 0xf0)},
      {R_AARCH64_ADR_PREL_PG_HI21, adrp, PLACE - 0x5000, 0, 0, FILL | INSTRUCTION(0xc0, 0xff, 0xff, 0xf0)},
      {R_AARCH64_ADR_PREL_PG_HI21, adrp, PLACE + 0x2fff, 1, 0, FILL | INSTRUCTION(0x00, 0x00, 0x00, 0xf0)},
      {R_AARCH64_ADD_ABS_LO12_NC, add, PLACE + 0x5123, 0, 0, FILL | INSTRUCTION(0x00, 0x8c, 0x04, 0x91)},
      {R_AARCH64_LDST8_ABS_LO12_NC, FILL | INSTRUCTION(0, 0, 0x40, 0x39), PLACE + 0x123, 0, 0,
       FILL | INSTRUCTION(0x00, 0x8c, 0x44, 0x39)},
      {R_AARCH64_LDST16_ABS_LO12_NC, FILL | INSTRUCTION(0, 0, 0x40, 0x79), PLACE + 0x124, 0, 0,
       FILL | INSTRUCTION(0x00, 0x48, 0x42, 0x79)},
      {R_AARCH64_LDST32_ABS_LO12_NC, FILL | INSTRUCTION(0, 0, 0x40, 0xb9), PLACE + 0x124, 0, 0,
       FILL | INSTRUCTION(0x00, 0x24, 0x41, 0xb9)},
      {R_AARCH64_LDST64_ABS_LO12_NC, ldr_x, PLACE + 0x128, 0, 0, FILL | INSTRUCTION(0x00, 0x94, 0x40, 0xf9)},
      {R_AARCH64_LDST128_ABS_LO12_NC, FILL | INSTRUCTION(0, 0, 0xc0, 0x3d), PLACE + 0x120, 0, 0,
       FILL | INSTRUCTION(0x00, 0x48, 0xc0, 0x3d)},
      {R_AARCH64_ADR_GOT_PAGE, adrp, 0x7fffffffffff, 0, PLACE + 0x3120, FILL | INSTRUCTION(0x00, 0x00, 0x00, 0xf0)},
      {R_AARCH64_LD64_GOT_LO12_NC, ldr_x, 0x7fffffffffff, 0, PLACE + 0x3120,
       FILL | INSTRUCTION(0x00, 0x94, 0x40, 0xf9)},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) check(EM_AARCH64, &cases[i]);
}
END_TEST

static void check_refused(uint16_t machine, uint32_t type, size_t left, uint64_t target) {
  uint8_t bytes[8];
  memset(bytes, 0xee, 8);
  ts_reloc_place place = {.bytes = bytes, .left = left, .address = PLACE};
  ts_reloc_symbol symbol = {.address = target};
  ck_assert_error(ts_reloc_apply(machine, type, &place, &symbol, 0), TS_INTERNAL, "relocation");
  for (int i = 0; i < 8; i++) ck_assert_int_eq(bytes[i], 0xee);
}

START_TEST(refusals)
{
  check_refused(EM_X86_64, 9999, 8, PLACE);
  check_refused(EM_X86_64, R_X86_64_64, 7, PLACE);
  check_refused(EM_X86_64, R_X86_64_PC32, 8, PLACE + UINT64_C(0x80000000));
  check_refused(EM_X86_64, R_X86_64_GOTPCREL, 8, PLACE); /* without a stub */
  check_refused(EM_AARCH64, 9999, 8, PLACE);
  check_refused(EM_AARCH64, R_AARCH64_ABS64, 7, PLACE);
  check_refused(EM_AARCH64, R_AARCH64_CALL26, 8, PLACE + 0x8000000);
  check_refused(EM_AARCH64, R_AARCH64_CALL26, 8, PLACE + 2);
  check_refused(EM_AARCH64, R_AARCH64_ADR_PREL_PG_HI21, 8, PLACE + UINT64_C(0x100000000));
  check_refused(EM_AARCH64, R_AARCH64_LDST64_ABS_LO12_NC, 8, PLACE + 4);
  check_refused(EM_AARCH64, R_AARCH64_ADR_GOT_PAGE, 8, PLACE);
  check_refused(EM_AARCH64, R_AARCH64_LD64_GOT_LO12_NC, 8, PLACE);
}
END_TEST

START_TEST(stubs)
{
  const uint8_t x86[16] = {0xff, 0x25, 2, 0, 0, 0, 0xcc, 0xcc, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
  const uint8_t arm[16] = {0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
  uint8_t stub[TS_RELOC_STUB_BYTES];
  ts_reloc_write_stub(EM_X86_64, stub, 0x1122334455667788);
  ck_assert_mem_eq(stub, x86, 16);
  ts_reloc_write_stub(EM_AARCH64, stub, 0x1122334455667788);
  ck_assert_mem_eq(stub, arm, 16);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("jit_reloc");
  TCase *tc = tcase_create("jit_reloc");
  tcase_add_test(tc, x86_64);
  tcase_add_test(tc, aarch64);
  tcase_add_test(tc, refusals);
  tcase_add_test(tc, stubs);
  suite_add_tcase(s, tc);
  return s;
}

int main(void) { return testing_run(suite()); }
