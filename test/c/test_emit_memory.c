#include "jit_kernels.h"
#include "lesser_isa.h"
#include "tensor/dtype.h"
#include "testing.h"

#include <math.h>
#include <sys/mman.h>

/* Every way to load and store is one kernel that moves a vector from `in` to `out`:
 * args = {out, in, stride, count, offsets}. What must not be touched lies in a
 * page without rights, or keeps its pattern. Run for each instruction set that
 * this machine has, in a process each (the target is fixed once per process). */

typedef enum move_kind {
  LOAD,         /* whole vectors */
  TAIL,         /* `count` lanes */
  SPLAT,        /* one element to all lanes */
  STRIDED,      /* strided load, whole store */
  STRIDED_TAIL, /* strided load of `count` lanes, whole store */
  SCATTERED,    /* whole load, strided store */
  SCATTERED_TAIL,
  GATHER,
  GATHER_TAIL,
  BITS, /* out: the type's bits of float vectors, by ts_emit_half_bits */
  MOVE_KIND_COUNT
} move_kind;

static const char *const kind_names[] = {"load",      "tail",           "splat",  "strided",     "strided_tail",
                                         "scattered", "scattered_tail", "gather", "gather_tail", "bits"};

static const ts_dtype types[] = {TS_S8,  TS_S16, TS_S32, TS_S64,  TS_U8,  TS_U16,
                                 TS_U32, TS_U64, TS_F16, TS_BF16, TS_F32, TS_F64};
enum { TYPE_COUNT = sizeof(types) / sizeof(*types) };

typedef struct mover {
  move_kind how;
  ts_dtype type;
} mover;

static ts_v load(ts_emit *e, const mover *m) {
  ts_v in = kernel_pointer(e, 1), stride = kernel_word(e, 2), count = kernel_word(e, 3);
  LLVMTypeRef offsets_type = LLVMVectorType(LLVMInt64TypeInContext(e->context), (unsigned)e->lanes);
  ts_v offsets = LLVMBuildLoad2(e->b, offsets_type, kernel_pointer(e, 4), "");
  LLVMSetAlignment(offsets, 8);
  switch (m->how) {
  case TAIL: return ts_emit_load_tail(e, m->type, in, count);
  case SPLAT: return ts_emit_load_splat(e, m->type, in);
  case STRIDED: return ts_emit_load_strided(e, m->type, in, stride, NULL);
  case STRIDED_TAIL: return ts_emit_load_strided(e, m->type, in, stride, count);
  case GATHER: return ts_emit_gather(e, m->type, in, offsets, NULL);
  case GATHER_TAIL: return ts_emit_gather(e, m->type, in, offsets, count);
  case BITS: return ts_emit_half_bits(e, m->type, ts_emit_load(e, TS_F32, in));
  default: return ts_emit_load(e, m->type, in);
  }
}

static ts_status emit_move(ts_emit *e, const char *name, const void *description) {
  const mover *m = description;
  kernel_begin(e, name);
  ts_v out = kernel_pointer(e, 0), stride = kernel_word(e, 2), count = kernel_word(e, 3);
  ts_v value = load(e, m);
  switch (m->how) {
  case TAIL: ts_emit_store_tail(e, m->type, value, out, count); break;
  case SCATTERED: ts_emit_store_strided(e, m->type, value, out, stride, NULL); break;
  case SCATTERED_TAIL: ts_emit_store_strided(e, m->type, value, out, stride, count); break;
  case BITS: ts_emit_store(e, TS_U16, value, out); break;
  default: ts_emit_store(e, m->type, value, out);
  }
  LLVMBuildRetVoid(e->b);
  return TS_SUCCESS;
}

static ts_kernel *get(move_kind how, ts_dtype type) {
  char text[64];
  snprintf(text, sizeof(text), "move %s %s", kind_names[how], ts_dtype_name(type));
  mover m = {.how = how, .type = type};
  ts_kernel_source source = {.text = text, .length = strlen(text), .emit = emit_move, .description = &m};
  ts_kernel *kernel;
  ck_assert_ok(ts_jit_get_kernels(&source, 1, &kernel));
  return kernel;
}

/* ---- memory that ends where it must not be touched */

enum { AREA = 1 << 16 };

typedef struct area {
  uint8_t *map;
  uint8_t *end; /* the page here has no rights */
} area;

static area area_make(void) {
  area a;
  a.map = mmap(NULL, 2 * AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ck_assert(a.map != MAP_FAILED);
  a.end = a.map + AREA;
  ck_assert_int_eq(mprotect(a.end, AREA, PROT_NONE), 0);
  return a;
}

static void area_free(area a) { munmap(a.map, 2 * AREA); }

/* Any bits, but no NaN of the half types: they may come back quieted. */
static void fill(uint8_t *from, uint8_t *to, ts_dtype type) {
  static uint32_t state = 1;
  for (uint8_t *p = from; p < to; p++) *p = (uint8_t)((state = state * 1664525 + 1013904223) >> 24);
  uint16_t *half = (uint16_t *)(void *)from;
  uint16_t infinity = type == TS_F16 ? 0x7c00 : 0x7f80;
  if (type != TS_F16 && type != TS_BF16) return;
  for (; (uint8_t *)half < to; half++) {
    if ((*half & 0x7fff) > infinity) *half = (uint16_t)(*half & ~infinity);
  }
}

static void run(const ts_kernel *kernel, void *out, const void *in, int64_t stride, int64_t count,
                const int64_t *offsets) {
  int64_t args[] = {(int64_t)(intptr_t)out, (int64_t)(intptr_t)in, stride, count, (int64_t)(intptr_t)offsets};
  ts_kernel_entry(kernel)(args, 0, 0, NULL);
}

typedef struct fixture {
  ts_dtype type;
  int64_t size, lanes;
  area in, out;
  int64_t offsets[64];
} fixture;

static bool is_zero(const uint8_t *p, int64_t size) {
  for (int64_t i = 0; i < size; i++) {
    if (p[i]) return false;
  }
  return true;
}

static void check_element(const fixture *f, const uint8_t *out, const uint8_t *in, int64_t lane) {
  ck_assert_msg(memcmp(out, in, (size_t)f->size) == 0, "%s, lane %d", ts_dtype_name(f->type), (int)lane);
}

/* ---- one access each */

static void check_whole(fixture *f) {
  ts_kernel *kernel = get(LOAD, f->type);
  int64_t bytes = f->lanes * f->size;
  for (int64_t shift = 0; shift < 3; shift++) { /* aligned to the element only */
    uint8_t *in = f->in.end - bytes - shift * f->size, *out = f->out.end - bytes - (2 - shift) * f->size;
    fill(in, in + bytes, f->type);
    run(kernel, out, in, 0, 0, f->offsets);
    for (int64_t i = 0; i < f->lanes; i++) check_element(f, out + i * f->size, in + i * f->size, i);
  }
  ts_kernel_release(kernel);
}

static void check_tail(fixture *f) {
  ts_kernel *kernel = get(TAIL, f->type);
  for (int64_t count = 0; count <= f->lanes; count++) {
    int64_t bytes = count * f->size;
    uint8_t *in = f->in.end - bytes, *out = f->out.end - bytes;
    uint8_t *out2 = f->out.end - 2 * f->lanes * f->size; /* and the bytes after it are unchanged */
    fill(in, f->in.end, f->type);
    run(kernel, out, in, 0, count, f->offsets);
    for (int64_t i = 0; i < count; i++) check_element(f, out + i * f->size, in + i * f->size, i);
    memset(out2, 0x5a, (size_t)(2 * f->lanes * f->size));
    run(kernel, out2, in, 0, count, f->offsets);
    for (uint8_t *p = out2 + bytes; p < f->out.end; p++) ck_assert_int_eq(*p, 0x5a);
  }
  ts_kernel_release(kernel);
}

static void check_splat(fixture *f) {
  ts_kernel *kernel = get(SPLAT, f->type);
  uint8_t *in = f->in.end - f->size, *out = f->out.end - f->lanes * f->size;
  fill(in, f->in.end, f->type);
  run(kernel, out, in, 0, 0, f->offsets);
  for (int64_t i = 0; i < f->lanes; i++) check_element(f, out + i * f->size, in, i);
  ts_kernel_release(kernel);
}

/* The last element touched ends the area, or begins it when the stride is negative. */
static uint8_t *strided_start(area a, int64_t size, int64_t stride, int64_t count) {
  if (count == 0) return a.end;
  return stride >= 0 ? a.end - (count - 1) * stride - size : a.end - size;
}

static void check_strided_load(fixture *f, ts_kernel *kernel, int64_t stride, int64_t count) {
  uint8_t *in = strided_start(f->in, f->size, stride, count), *out = f->out.end - f->lanes * f->size;
  fill(f->in.end - 4096, f->in.end, f->type);
  run(kernel, out, in, stride, count, f->offsets);
  for (int64_t i = 0; i < count; i++) check_element(f, out + i * f->size, in + i * stride, i);
  ck_assert(is_zero(out + count * f->size, (f->lanes - count) * f->size));
}

static void check_strided_store(fixture *f, ts_kernel *kernel, int64_t stride, int64_t count) {
  uint8_t *out = strided_start(f->out, f->size, stride, count), *in = f->in.end - f->lanes * f->size;
  fill(in, f->in.end, f->type);
  uint8_t expected[4096];
  memset(f->out.end - 4096, 0x5a, 4096);
  memset(expected, 0x5a, 4096);
  for (int64_t i = 0; i < count; i++) {
    memcpy(expected + (out + i * stride - (f->out.end - 4096)), in + i * f->size, (size_t)f->size);
  }
  run(kernel, out, in, stride, count, f->offsets);
  ck_assert_msg(memcmp(expected, f->out.end - 4096, 4096) == 0, "%s, stride %d, count %d", ts_dtype_name(f->type),
                (int)stride, (int)count);
}

static void check_strided(fixture *f) {
  ts_kernel *loads = get(STRIDED, f->type), *tails = get(STRIDED_TAIL, f->type);
  ts_kernel *stores = get(SCATTERED, f->type), *store_tails = get(SCATTERED_TAIL, f->type);
  const int64_t strides[] = {1, 2, 5, -1, -3, 17};
  for (size_t s = 0; s < sizeof(strides) / sizeof(*strides); s++) {
    int64_t stride = strides[s] * f->size;
    check_strided_load(f, loads, stride, f->lanes);
    check_strided_store(f, stores, stride, f->lanes);
    for (int64_t count = 0; count <= f->lanes; count++) {
      check_strided_load(f, tails, stride, count);
      check_strided_store(f, store_tails, stride, count);
    }
  }
  check_strided_load(f, loads, 0, f->lanes);
  ts_kernel_release(loads);
  ts_kernel_release(tails);
  ts_kernel_release(stores);
  ts_kernel_release(store_tails);
}

static void check_gather(fixture *f) {
  ts_kernel *whole = get(GATHER, f->type), *tail = get(GATHER_TAIL, f->type);
  uint8_t *base = f->in.end - 2048, *out = f->out.end - f->lanes * f->size;
  fill(f->in.end - 4096, f->in.end, f->type);
  for (int64_t count = f->lanes; count >= 0; count--) {
    for (int64_t i = 0; i < 64; i++) {
      int64_t element = (i * 37 + 11) % (4096 / f->size) - 2048 / f->size;
      f->offsets[i] = i < count ? element * f->size : INT64_C(1) << 46; /* a fault if followed */
    }
    run(count == f->lanes ? whole : tail, out, base, 0, count, f->offsets);
    for (int64_t i = 0; i < count; i++) check_element(f, out + i * f->size, base + f->offsets[i], i);
    ck_assert(is_zero(out + count * f->size, (f->lanes - count) * f->size));
  }
  run(tail, out, base, 0, 0, f->offsets);
  ts_kernel_release(whole);
  ts_kernel_release(tail);
}

START_TEST(every_access_of_a_type)
{
  fixture f = {.type = types[_i], .lanes = ts_target_host()->lanes, .in = area_make(), .out = area_make()};
  f.size = (int64_t)ts_dtype_size(f.type);
  check_whole(&f);
  check_tail(&f);
  check_splat(&f);
  check_strided(&f);
  check_gather(&f);
  area_free(f.in);
  area_free(f.out);
}
END_TEST

/* ---- half precision */

static uint16_t narrow(ts_dtype type, float x) { return type == TS_F16 ? ts_f32_to_f16(x) : ts_f32_to_bf16(x); }

static float widen(ts_dtype type, uint16_t bits) { return type == TS_F16 ? ts_f16_to_f32(bits) : ts_bf16_to_f32(bits); }

static void check_narrowing(ts_dtype type, const ts_kernel *kernel, const float *in) {
  uint16_t out[64];
  int64_t offsets[64] = {0};
  run(kernel, out, in, 0, 0, offsets);
  for (int64_t i = 0; i < ts_target_host()->lanes; i++) {
    if (isnan(in[i])) {
      ck_assert(isnan(widen(type, out[i])));
    } else {
      ck_assert_msg(out[i] == narrow(type, in[i]), "%a to %s gives %04x", (double)in[i], ts_dtype_name(type), out[i]);
    }
  }
}

/* Around each value of the type: itself, the middle to the next, and one float to either side of both. */
START_TEST(halves_round_to_nearest_even)
{
  ts_dtype type = _i == 0 ? TS_F16 : TS_BF16;
  ts_kernel *kernel = get(BITS, type);
  float in[64];
  int n = 0, lanes = ts_target_host()->lanes;
  for (uint32_t bits = 0; bits < 0x10000; bits++) {
    float value = widen(type, (uint16_t)bits), next = widen(type, (uint16_t)(bits + 1));
    float middle = (float)(((double)value + (double)next) / 2);
    const float near[] = {value, nextafterf(value, INFINITY), middle, nextafterf(middle, INFINITY),
                          nextafterf(middle, -INFINITY)};
    for (int i = 0; i < 5; i++) {
      in[n++] = near[i];
      if (n == lanes) check_narrowing(type, kernel, in);
      if (n == lanes) n = 0;
    }
  }
  const uint32_t special[] = {0x7f800001, 0x7fffffff, 0xffffffff, 0x7fbfffff, 0x477fefff, 0x477ff000,
                              0x7f7fffff, 0x7f7f7fff, 0x00000001, 0x80000001, 0x33000000, 0x33000001,
                              0xff800000, 0x7f800000, 0xff7fffff, 0x807fffff};
  memcpy(in, special, sizeof(special));
  for (int i = 0; i < 16; i += lanes) check_narrowing(type, kernel, in + i);
  ts_kernel_release(kernel);
}
END_TEST

/* All 65536 patterns survive loading and storing; a NaN stays one. */
START_TEST(halves_survive)
{
  ts_dtype type = _i == 0 ? TS_F16 : TS_BF16;
  ts_kernel *kernel = get(LOAD, type);
  int64_t offsets[64] = {0};
  int lanes = ts_target_host()->lanes;
  for (uint32_t bits = 0; bits < 0x10000; bits += (uint32_t)lanes) {
    uint16_t in[64], out[64];
    for (int i = 0; i < lanes; i++) in[i] = (uint16_t)(bits + (uint32_t)i);
    run(kernel, out, in, 0, 0, offsets);
    for (int i = 0; i < lanes; i++) {
      bool nan = isnan(widen(type, in[i]));
      ck_assert_msg(nan ? isnan(widen(type, out[i])) : in[i] == out[i], "%s %04x: %04x", ts_dtype_name(type), in[i],
                    out[i]);
    }
  }
  ts_kernel_release(kernel);
}
END_TEST

static void setup(void) {
  const ts_jit_options no_disk = {.cache_dir = ""};
  ts_jit_configure(&no_disk);
}

static Suite *suite(void) {
  Suite *s = suite_create("emit_memory");
  TCase *tc = tcase_create("emit_memory");
  tcase_add_checked_fixture(tc, setup, NULL);
  tcase_set_timeout(tc, 120);
  tcase_add_loop_test(tc, every_access_of_a_type, 0, TYPE_COUNT);
  tcase_add_loop_test(tc, halves_round_to_nearest_even, 0, 2);
  tcase_add_loop_test(tc, halves_survive, 0, 2);
  test_add_lesser_isas(tc);
  suite_add_tcase(s, tc);
  return s;
}

int main(void) { return testing_run(suite()); }
