/* Matrix products against the plain sum in their order, bit for bit: every type, shapes around
 * the tile edges, layouts, batches, threads; complex numbers; failing allocations and cancelling. */
#include "gemm_check.h"

#include <math.h>

static const ts_dtype types[] = {TS_S8,  TS_S16, TS_S32, TS_S64,  TS_U8,  TS_U16,
                                 TS_U32, TS_U64, TS_F16, TS_BF16, TS_F32, TS_F64};
#define TYPE_COUNT ((int)(sizeof(types) / sizeof(*types)))

/* ---- tests ---- */

START_TEST(edge_shapes)
{
  static const int64_t m[] = {0, 1, 2, 5, 13, 14, 15, 27, 33}, n[] = {0, 1, 3, 15, 16, 17, 33, 64, 71},
                       k[] = {0, 1, 2, 7, 40};
  ts_dtype type = types[_i];
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(type, NULL, &gemm));
  for (size_t a = 0; a < sizeof(m) / sizeof(*m); a++)
    for (size_t b = 0; b < sizeof(n) / sizeof(*n); b++)
      for (size_t c = 0; c < sizeof(k) / sizeof(*k); c++)
        if (testing_in_share((int64_t)(a + b + c) + _i))
          check(gemm, type, 1, m[a], n[b], k[c], NORMAL, NORMAL, &ts_parallel_serial, 1);
  ts_gemm_release(gemm);
}
END_TEST

START_TEST(layouts)
{
  static const int64_t shapes[][3] = {{19, 37, 21}, {1, 50, 35}, {50, 1, 35}, {16, 32, 16},
                                      {1, 1, 9},    {3, 50, 35}, {37, 8, 21}, {70, 2, 3}};
  ts_dtype type = types[_i];
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(type, NULL, &gemm));
  for (size_t s = 0; s < sizeof(shapes) / sizeof(*shapes); s++)
    for (int lhs = 0; lhs < LAYOUT_COUNT; lhs++)
      for (int rhs = 0; rhs < LAYOUT_COUNT; rhs++) {
        const int64_t *d = shapes[s];
        if (!testing_in_share((int64_t)s + lhs / 2 + rhs + _i)) continue;
        check(gemm, type, 1 + (lhs + rhs) % 2 * 2, d[0], d[1], d[2], (layout)lhs, (layout)rhs, &ts_parallel_serial, 1);
      }
  ts_gemm_release(gemm);
}
END_TEST

/* A vector times a few long rows, on either side, of any length of k around the chains and the blocks, and of pages. */
START_TEST(few_long_rows)
{
  static const int64_t k[] = {5, 31, 95, 130, 256, 257, 384, 511, 512, 513, 768, 1024, 1999, 5000, 3072, 9216},
                       rows[] = {2, 3, 7, 8, 9, 15, 17, 24, 27, 30, 33};
  static const layout forms[] = {NORMAL, PADDED};
  ts_dtype type = types[_i];
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(type, NULL, &gemm));
  for (size_t a = 0; a < sizeof k / sizeof *k; a++)
    for (size_t b = 0; b < sizeof rows / sizeof *rows; b++) {
      const int64_t batch = 1 + (int64_t)(a + b) % 2;
      if (!testing_in_share((int64_t)(a + b) + _i)) continue;
      check(gemm, type, batch, 1, rows[b], k[a], NORMAL, TRANSPOSED, &threaded, 1);
      check(gemm, type, batch, rows[b], 1, k[a], forms[b % 2], NORMAL, &threaded, 1);
    }
  ts_gemm_release(gemm);
}
END_TEST

/* A vector times more rows than the caches hold, which crowd sets of the first cache or not. */
START_TEST(many_rows_in_memory)
{
  static const int64_t k[] = {513, 1024, 1028, 1999, 4096};
  const ts_dtype type = _i == 0 ? TS_F32 : TS_F64;
  const int64_t elements = 8 * ts_target_host()->l2_bytes / (int64_t)ts_dtype_size(type);
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(type, NULL, &gemm));
  for (int a = 0; a < (int)(sizeof k / sizeof *k); a++) {
    const int64_t rows = elements / k[a] + 3 + a;
    if (!testing_in_share(a + _i)) continue;
    check(gemm, type, 1, rows, 1, k[a], a % 2 ? NORMAL : PADDED, NORMAL, &threaded, 17);
  }
  ts_gemm_release(gemm);
}
END_TEST

/* ---- narrow operands of a wide product ---- */

static const ts_gemm_types wide_types[] = {
    {TS_S8, TS_S8, TS_S32},        {TS_U8, TS_S8, TS_S32},    {TS_S16, TS_U8, TS_U32},   {TS_U16, TS_S8, TS_S32},
    {TS_S32, TS_U8, TS_S32},       {TS_F32, TS_F16, TS_F32},  {TS_BF16, TS_F32, TS_F32}, {TS_F16, TS_BF16, TS_F32},
    {TS_S8, TS_F32, TS_F32},       {TS_F32, TS_U8, TS_F32},   {TS_U16, TS_S16, TS_F32},  {TS_F32, TS_F64, TS_F64},
    {TS_F64, TS_F16, TS_F64},      {TS_BF16, TS_F32, TS_F64}, {TS_F16, TS_S32, TS_F64},  {TS_S8, TS_F64, TS_F64},
    {TS_F64, TS_U32, TS_F64},      {TS_S16, TS_U8, TS_F64},   {TS_U16, TS_F64, TS_F64},  {TS_F8, TS_F32, TS_F32},
    {TS_S4, TS_F8E4M3FN, TS_F32},  {TS_F32, TS_U2, TS_F32},   {TS_F16, TS_S8, TS_F16},   {TS_U8, TS_BF16, TS_BF16},
    {TS_F8E4M3FN, TS_F8, TS_BF16}, {TS_S2, TS_F16, TS_F16},   {TS_S8, TS_U8, TS_S32},    {TS_U8, TS_U8, TS_U32},
};

/* The operand with all its elements, `count` in all, of another type. */
static operand converted(const operand *o, ts_dtype from, ts_dtype to, int64_t count) {
  int64_t size = (int64_t)ts_dtype_size(from), wide = (int64_t)ts_dtype_size(to);
  operand out = *o;
  out.memory = malloc((size_t)(count * wide) + 1);
  for (int64_t i = 0; i < count; i++) {
    ts_scalar x = ts_scalar_load(from, o->memory + i * size);
    ts_scalar_store(to, ts_scalar_convert(from, x, to), out.memory + i * wide);
  }
  out.origin = out.memory + (o->origin - o->memory) / size * wide;
  return out;
}

static ts_gemm *get_wide(const ts_gemm_types *t, const ts_gemm_shape *shape, bool is_scaled) {
  ts_kernel_source source;
  ts_kernel *kernel;
  ts_gemm *gemm;
  ck_assert_ok((is_scaled ? ts_gemm_prepare_scaled : ts_gemm_prepare)(t, shape, &gemm, &source));
  ck_assert_ok(ts_jit_get_kernels(&source, 1, &kernel));
  ts_gemm_adopt(gemm, kernel);
  ts_kernel_release(kernel);
  return gemm;
}

typedef struct wide_case {
  int64_t batch, m, n, k;
  layout lhs, rhs;
} wide_case;

/* A product of `narrow` operands, and the same with operands that are converted before. */
static product make_wide(const ts_gemm_types *t, const wide_case *c, product *narrow) {
  product p = make_product(t->out, c->batch, c->m, c->n, c->k, NORMAL, NORMAL);
  free(p.lhs.memory);
  free(p.rhs.memory);
  *narrow = p;
  narrow->lhs = make_operand(t->lhs, c->lhs, c->batch, c->m, c->k);
  narrow->rhs = make_operand(t->rhs, c->rhs, c->batch, c->k, c->n);
  p.lhs = converted(&narrow->lhs, t->lhs, t->out, c->batch * narrow->lhs.batch);
  p.rhs = converted(&narrow->rhs, t->rhs, t->out, c->batch * narrow->rhs.batch);
  p.shape = (ts_gemm_shape){c->batch,  c->m,        c->n,      c->k,      p.lhs.batch,       p.lhs.row,
                            p.lhs.col, p.rhs.batch, p.rhs.row, p.rhs.col, p.shape.out_batch, p.shape.out_row};
  narrow->shape = p.shape;
  narrow->out = malloc((size_t)p.out_bytes + 1);
  memset(narrow->out, OUT_FILL, (size_t)p.out_bytes + 1);
  return p;
}

/* Runs the product of converted operands, compares, and frees both. */
static void check_same(const ts_gemm_types *t, const wide_case *c, product *p, product *narrow) {
  ts_gemm *plain;
  ck_assert_ok(ts_gemm_get(t->out, &p->shape, &plain));
  ck_assert_ok(run_product(plain, p, &ts_parallel_serial));
  ck_assert_msg(!memcmp(p->out, narrow->out, (size_t)p->out_bytes), "%s by %s in %s: %d x %d x %d x %d, layouts %d, %d",
                ts_dtype_name(t->lhs), ts_dtype_name(t->rhs), ts_dtype_name(t->out), (int)c->batch, (int)c->m,
                (int)c->n, (int)c->k, (int)c->lhs, (int)c->rhs);
  ts_gemm_release(plain);
  free_product(p);
  free_product(narrow);
}

static void check_wide(const ts_gemm_types *t, const wide_case *c) {
  product narrow, p = make_wide(t, c, &narrow);
  ts_gemm *gemm = get_wide(t, &p.shape, false);
  ck_assert_ok(run_product(gemm, &narrow, &threaded));
  ts_gemm_release(gemm);
  check_same(t, c, &p, &narrow);
}

START_TEST(narrow_operands)
{
  static const wide_case cases[] = {
      {1, 33, 71, 41, NORMAL, NORMAL},        {3, 19, 37, 21, TRANSPOSED, TRANSPOSED},
      {1, 150, 170, 1001, NORMAL, PADDED},    {1, 1, 700, 451, NORMAL, NORMAL},
      {1, 900, 1, 460, NORMAL, NORMAL},       {1, 5, 2100, 303, NORMAL, TRANSPOSED},
      {2, 300, 6, 77, STRIDED, NORMAL},       {1, 70, 65, 1, REVERSED, STRIDED},
      {2, 40, 50, 2, ROW_REPEATED, REVERSED}, {1, 9, 1300, 701, NORMAL, NORMAL},
      {1, 14, 32, 64, NORMAL, COL_REPEATED},  {1, 1, 3, 1411, NORMAL, NORMAL},
      {1, 3, 1, 8192 + 77, NORMAL, NORMAL},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    if (testing_takes((int64_t)c + _i, 2)) check_wide(&wide_types[_i], &cases[c]);
}
END_TEST

typedef struct scaled_case {
  ts_gemm_types types;
  int operand;
  bool along_batch, along_units;
  wide_case shape;
} scaled_case;

/* Scales an operand as an elementwise op does: [batch, units, k]; `strides` are the strides of `unit` and `k`. */
static void scale_operand(ts_dtype type, char *origin, const int64_t extents[3], const int64_t strides[3],
                          const char *scales, const int64_t scale_strides[2]) {
  const int64_t size = (int64_t)ts_dtype_size(type);
  for (int64_t b = 0; b < extents[0]; b++)
    for (int64_t u = 0; u < extents[1]; u++)
      for (int64_t i = 0; i < extents[2]; i++) {
        char *at = origin + (b * strides[0] + u * strides[1] + i * strides[2]) * size;
        const ts_scalar by = ts_scalar_load(type, scales + (b * scale_strides[0] + u * scale_strides[1]) * size);
        const double x = ts_scalar_to_f64(type, ts_scalar_load(type, at)) * ts_scalar_to_f64(type, by);
        ts_scalar_store(type, ts_scalar_from_f64(type, x), at); /* of 24 bits each: rounded once */
      }
}

/* As a product of operands that were converted and scaled before. */
static void check_scaled(const scaled_case *s) {
  const wide_case *c = &s->shape;
  product narrow, p = make_wide(&s->types, c, &narrow);
  const int64_t units = s->operand ? c->n : c->m, strides[2] = {s->along_batch ? units : 0, s->along_units ? 1 : 0};
  operand scales = make_operand(s->types.out, NORMAL, 1, c->batch, units);
  const operand *o = s->operand ? &p.rhs : &p.lhs;
  scale_operand(s->types.out, o->origin, (int64_t[]){c->batch, units, c->k},
                (int64_t[]){o->batch, s->operand ? o->col : o->row, s->operand ? o->row : o->col}, scales.origin,
                strides);
  ts_gemm *gemm = get_wide(&s->types, &p.shape, true);
  ts_gemm_call call = {.lhs = narrow.lhs.origin, .rhs = narrow.rhs.origin, .out = narrow.out};
  call.scale = &(ts_gemm_scale){scales.origin, s->operand, strides[0], strides[1]};
  call.parallel = &threaded;
  call.pool = ts_pool_default();
  ck_assert_ok(ts_gemm_run(gemm, &p.shape, &call));
  ts_gemm_release(gemm);
  free(scales.memory);
  check_same(&s->types, c, &p, &narrow);
}

static const scaled_case scaled_cases[] = {
    {{TS_F32, TS_S8, TS_F32}, 1, false, true, {1, 33, 71, 41, NORMAL, NORMAL}},
    {{TS_F32, TS_S8, TS_F32}, 1, false, true, {1, 1, 700, 451, NORMAL, TRANSPOSED}},
    {{TS_F32, TS_U8, TS_F32}, 1, false, false, {1, 150, 170, 1001, NORMAL, PADDED}},
    {{TS_F16, TS_F8, TS_F32}, 1, true, true, {3, 19, 37, 21, TRANSPOSED, STRIDED}},
    {{TS_F32, TS_F16, TS_F32}, 1, true, true, {2, 5, 2100, 303, NORMAL, TRANSPOSED}},
    {{TS_S4, TS_F32, TS_F32}, 0, true, true, {2, 300, 6, 77, NORMAL, NORMAL}},
    {{TS_BF16, TS_F32, TS_F32}, 0, false, true, {1, 70, 1300, 65, REVERSED, STRIDED}},
    {{TS_F16, TS_S8, TS_F16}, 1, false, true, {1, 150, 170, 300, NORMAL, NORMAL}},
    {{TS_F16, TS_F8E4M3FN, TS_F16}, 1, true, true, {2, 9, 1300, 70, NORMAL, TRANSPOSED}},
    {{TS_U8, TS_BF16, TS_BF16}, 0, false, true, {1, 900, 7, 460, TRANSPOSED, NORMAL}},
    {{TS_BF16, TS_F8, TS_BF16}, 1, true, false, {3, 20, 250, 25, NORMAL, NORMAL}},
};

START_TEST(scaled_operands)
{ check_scaled(&scaled_cases[_i]); }
END_TEST

/* Several blocks of k, tasks and threads. */
START_TEST(large_shapes)
{
  static const struct {
    int64_t batch, m, n, k;
    layout lhs, rhs;
  } cases[] = {
      {1, 150, 170, 1000, NORMAL, NORMAL},  {1, 150, 170, 1000, TRANSPOSED, TRANSPOSED},
      {1, 9, 1300, 700, NORMAL, PADDED},    {1, 700, 9, 500, NORMAL, NORMAL},
      {5, 70, 65, 300, NORMAL, NORMAL},     {1, 1, 3000, 450, NORMAL, NORMAL},
      {2, 1500, 1, 460, NORMAL, NORMAL},    {1, 1, 700, 450, NORMAL, TRANSPOSED},
      {1, 260, 300, 33, STRIDED, REVERSED}, {1, 20, 2500, 250, NORMAL, STRIDED},
      {1, 5, 2100, 1300, NORMAL, PADDED},   {2, 3, 1900, 1500, TRANSPOSED, NORMAL},
      {1, 8, 3000, 2300, STRIDED, NORMAL},  {1, 2500, 2, 2200, TRANSPOSED, NORMAL},
      {1, 900, 7, 461, NORMAL, STRIDED},    {2, 6, 700, 450, NORMAL, TRANSPOSED},
      {1, 70, 410, 900, NORMAL, NORMAL}, /* several groups of panels */
  };
  ts_dtype type = types[_i];
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(type, NULL, &gemm));
  for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
    const int which = (int)c + _i;
    if (!testing_every_case() && (which % (TEST_IS_SANITIZED ? 4 : 2) != 0 || !testing_in_half(which / 2))) continue;
    product p = make_product(type, cases[c].batch, cases[c].m, cases[c].n, cases[c].k, cases[c].lhs, cases[c].rhs);
    ck_assert_ok(run_product(gemm, &p, &threaded));
    check_product(type, &p, 17);
    char *first = p.out;
    p.out = malloc((size_t)p.out_bytes + 1);
    memset(p.out, OUT_FILL, (size_t)p.out_bytes);
    ck_assert_ok(run_product(gemm, &p, &ts_parallel_serial));
    ck_assert_msg(!memcmp(p.out, first, (size_t)p.out_bytes), "case %d: threads change bits", (int)c);
    free(first);
    free_product(&p);
  }
  ts_gemm_release(gemm);
}
END_TEST

/* Narrow elements that are widened as they are read, of matrices that just pay, in odd sizes. */
START_TEST(narrow_edges)
{
  static const int64_t shapes[][3] = {{1, 8193, 1}, {1, 4099, 2}, {2731, 1, 3}, {2049, 1, 4}, {1, 1641, 5},
                                      {3, 1173, 7}, {517, 8, 16}, {5, 487, 17}, {251, 1, 33}, {17, 1, 1001},
                                      {1, 16, 513}, {7, 33, 250}, {1, 15, 800}};
  ts_dtype type = types[_i];
  ts_gemm *gemm;
  if (ts_dtype_size(type) > 2) return;
  ck_assert_ok(ts_gemm_get(type, NULL, &gemm));
  for (size_t s = 0; s < sizeof(shapes) / sizeof(*shapes); s++)
    for (int how = 0; how < 2; how++) {
      const int64_t *d = shapes[s];
      static const layout forms[] = {NORMAL, TRANSPOSED};
      check(gemm, type, 1, d[0], d[1], d[2], forms[how], NORMAL, &ts_parallel_serial, 1);
      check(gemm, type, 2, d[0], d[1], d[2], PADDED, forms[how], &threaded, 1);
    }
  ts_gemm_release(gemm);
}
END_TEST

/* So large a rhs that it is packed in several phases. */
START_TEST(phases)
{
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(TS_F32, NULL, &gemm));
  check(gemm, TS_F32, 1, 100, 1100, 3001, NORMAL, NORMAL, &threaded, 997);
  check(gemm, TS_F32, 2, 100, 1100, 1501, TRANSPOSED, TRANSPOSED, &threaded, 997);
  ts_gemm_release(gemm);
}
END_TEST

/* One rhs for all batches, and one lhs. */
START_TEST(shared_operands)
{
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(TS_F32, NULL, &gemm));
  for (int which = 0; which < 2; which++)
    for (int how = 0; how <= STRIDED; how++) {
      product p = make_product(TS_F32, 6, 45, 70, 380, (layout)how, (layout)how);
      *(which ? &p.shape.lhs_batch : &p.shape.rhs_batch) = 0;
      ck_assert_ok(run_product(gemm, &p, &threaded));
      check_product(TS_F32, &p, 3);
      free_product(&p);
    }
  ts_gemm_release(gemm);
}
END_TEST

/* A zero times infinity stays where it is: padding never meets real elements. */
START_TEST(special_values)
{
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(TS_F32, NULL, &gemm));
  product p = make_product(TS_F32, 1, 17, 35, 20, NORMAL, NORMAL);
  float *lhs = (float *)(void *)p.lhs.memory, *rhs = (float *)(void *)p.rhs.memory, *out = (float *)(void *)p.out;
  for (int i = 0; i < 17 * 20; i++) lhs[i] = -0.0f;
  for (int i = 0; i < 20 * 35; i++) rhs[i] = 1;
  for (int k = 0; k < 20; k++) lhs[16 * 20 + k] = INFINITY, lhs[3 * 20 + k] = NAN;
  ck_assert_ok(run_product(gemm, &p, &ts_parallel_serial));
  for (int i = 0; i < 17; i++)
    for (int j = 0; j < 35; j++) {
      float v = out[i * 37 + j];
      ck_assert(i == 16 ? v == INFINITY : i == 3 ? isnan(v) != 0 : v == 0 && !signbit(v));
    }
  free_product(&p);
  ts_gemm_release(gemm);
}
END_TEST

/* Every bit pattern of a half times one: packing and rounding keep it. */
START_TEST(halves)
{
  ts_dtype type = _i ? TS_BF16 : TS_F16;
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(type, NULL, &gemm));
  product p = make_product(type, 1, 256, 256, 1, NORMAL, NORMAL);
  uint16_t *lhs = (uint16_t *)(void *)p.lhs.memory, *rhs = (uint16_t *)(void *)p.rhs.memory;
  p.shape.n = 1;
  p.shape.m = 65536;
  p.shape.lhs_row = p.shape.out_row = 1;
  p.lhs.origin = realloc(p.lhs.memory, 131072);
  p.lhs.memory = p.lhs.origin;
  lhs = (uint16_t *)(void *)p.lhs.memory;
  for (int i = 0; i < 65536; i++) lhs[i] = (uint16_t)i;
  rhs[0] = (uint16_t)ts_scalar_from_f64(type, 1).bits;
  ck_assert_ok(run_product(gemm, &p, &ts_parallel_serial));
  for (int i = 0; i < 65536; i++) {
    double want = ts_scalar_to_f64(type, (ts_scalar){.bits = (uint64_t)i});
    uint16_t got = ((uint16_t *)(void *)p.out)[i];
    if (isnan(want)) {
      ck_assert(isnan(ts_scalar_to_f64(type, (ts_scalar){.bits = got})));
    } else {
      ck_assert_uint_eq(got, i == 0x8000 ? 0 : i); /* from +0, minus zero is absorbed */
    }
  }
  free_product(&p);
  ts_gemm_release(gemm);
}
END_TEST

/* ---- the epilogue sees every element once, final ---- */

typedef struct seen {
  product *p;
  bool whole_rows;
  _Atomic int calls;
} seen;

static void negate(void *context, const ts_epilogue_part *part, int worker) {
  seen *s = context;
  ck_assert(worker >= 0 && worker < WIDTH);
  ck_assert(!s->whole_rows || (part->col == 0 && part->cols == s->p->shape.n));
  float *out = (float *)(void *)s->p->out + part->batch * s->p->shape.out_batch;
  for (int64_t i = part->row; i < part->row + part->rows; i++)
    for (int64_t j = part->col; j < part->col + part->cols; j++) out[i * s->p->shape.out_row + j] *= -1;
  atomic_fetch_add(&s->calls, 1);
}

static void check_epilogue(const ts_gemm *gemm, const int64_t *d, bool whole_rows) {
  product p = make_product(TS_F32, d[0], d[1], d[2], d[3], NORMAL, NORMAL);
  ck_assert_ok(run_product(gemm, &p, &threaded));
  char *plain = p.out;
  p.out = malloc((size_t)p.out_bytes + 1);
  memset(p.out, OUT_FILL, (size_t)p.out_bytes);
  seen s = {.p = &p, .whole_rows = whole_rows};
  ts_epilogue ending = {negate, &s, whole_rows};
  ck_assert_ok(ts_gemm_run(gemm, &p.shape,
                           &(ts_gemm_call){.lhs = p.lhs.origin,
                                           .rhs = p.rhs.origin,
                                           .out = p.out,
                                           .epilogue = &ending,
                                           .parallel = &threaded,
                                           .pool = ts_pool_default()}));
  ck_assert_int_gt(atomic_load(&s.calls), 0);
  for (int64_t at = 0; at < d[0] * d[1] * p.shape.out_row; at++) {
    float before = ((float *)(void *)plain)[at], after = ((float *)(void *)p.out)[at];
    ck_assert(at % p.shape.out_row < d[2] ? after == -before : after == before);
  }
  free(plain);
  free_product(&p);
}

START_TEST(epilogue)
{
  /* several groups of columns, few rows, nothing to add, vectors on either side, many batches */
  static const int64_t shapes[][4] = {{1, 200, 600, 500}, {1, 400, 3000, 700}, {1, 7, 3000, 400}, {3, 20, 40, 0},
                                      {1, 1, 5000, 300},  {1, 1, 9, 30},       {1, 900, 1, 300},  {4, 30, 90, 410},
                                      {2, 900, 5, 300},   {1, 6, 3000, 900},   {2, 9, 70, 9000}};
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(TS_F32, NULL, &gemm));
  for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
    for (int whole_rows = 0; whole_rows < 2; whole_rows++) check_epilogue(gemm, shapes[i], whole_rows);
  ts_gemm_release(gemm);
}
END_TEST

/* ---- complex numbers ---- */

static void check_numbers(ts_dtype type, const int64_t *d, layout lhs, layout rhs) {
  product p = make_product(type, 1 + (lhs + rhs) % 2 * 2, d[0], d[1], d[2], lhs, rhs);
  const ts_gemm_shape s = p.shape;
  ts_gemm *gemm;
  ts_kernel_source source;
  ts_kernel *kernel;
  ck_assert_ok(ts_gemm_prepare_complex(ts_dtype_part(type), NULL, &gemm, &source));
  ck_assert_ok(ts_jit_get_kernels(&source, 1, &kernel));
  ts_gemm_adopt(gemm, kernel);
  ts_kernel_release(kernel);
  p.shape = ts_gemm_shape_of_parts(&s);
  ck_assert_ok(run_product(gemm, &p, d[0] > 60 ? &threaded : &ts_parallel_serial));
  check_elements(type, &p, &s, 1);
  free_product(&p);
  ts_gemm_release(gemm);
}

START_TEST(complex_numbers)
{
  static const int64_t shapes[][3] = {{5, 7, 1}, {1, 1, 9}, {19, 37, 21}, {16, 16, 16}, {65, 130, 1201}, {3, 9, 9001}};
  const ts_dtype type = _i == 0 ? TS_C64 : TS_C128;
  for (size_t s = 0; s < sizeof(shapes) / sizeof(*shapes); s++)
    for (int lhs = 0; lhs < LAYOUT_COUNT; lhs++)
      for (int rhs = 0; rhs < LAYOUT_COUNT; rhs++)
        if (shapes[s][2] < 1000 || lhs + rhs == 1) check_numbers(type, shapes[s], (layout)lhs, (layout)rhs);
}
END_TEST

/* ---- failures ---- */

START_TEST(allocations_fail)
{
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(TS_F32, NULL, &gemm));
  product cases[] = {
      make_product(TS_F32, 1, 90, 90, 90, NORMAL, TRANSPOSED), make_product(TS_F32, 1, 90, 1, 90, NORMAL, STRIDED),
      make_product(TS_F32, 1, 90, 3, 90, NORMAL, NORMAL), make_product(TS_F32, 1, 5, 6, 9000, NORMAL, NORMAL)};
  for (int i = 0; i < 4; i++) {
    CK_FAIL_EACH_ALLOCATION({
      ts_status status = run_product(gemm, &cases[i], &threaded);
      if (status) ck_assert_int_eq(ts_status_code(status), TS_RESOURCE_EXHAUSTED);
      ts_status_free(status);
    });
    check_product(TS_F32, &cases[i], 1);
    free_product(&cases[i]);
  }
  CK_FAIL_EACH_ALLOCATION({
    ts_gemm *other = NULL;
    ts_status status = ts_gemm_get(TS_F32, NULL, &other);
    ck_assert(!status == !!other);
    ts_status_free(status);
    ts_gemm_release(other);
  });
  ts_gemm_release(gemm);
}
END_TEST

START_TEST(cancelled)
{
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(TS_F32, NULL, &gemm));
  static const int64_t shapes[][2] = {{100, 100}, {100, 1}, {1, 100}, {100, 4}};
  for (int i = 0; i < 4; i++) {
    product p = make_product(TS_F32, 1, shapes[i][0], shapes[i][1], 50, NORMAL, NORMAL);
    _Atomic bool cancel = true;
    ck_assert_error(ts_gemm_run(gemm, &p.shape,
                                &(ts_gemm_call){.lhs = p.lhs.origin,
                                                .rhs = p.rhs.origin,
                                                .out = p.out,
                                                .parallel = &threaded,
                                                .pool = ts_pool_default(),
                                                .cancel = &cancel}),
                    TS_CANCELLED, "cancelled");
    cancel = false;
    ck_assert_ok(ts_gemm_run(gemm, &p.shape,
                             &(ts_gemm_call){.lhs = p.lhs.origin,
                                             .rhs = p.rhs.origin,
                                             .out = p.out,
                                             .parallel = &threaded,
                                             .pool = ts_pool_default(),
                                             .cancel = &cancel}));
    check_product(TS_F32, &p, 1);
    free_product(&p);
  }
  ts_gemm_release(gemm);
}
END_TEST

/* The flag is set from the epilogue, in the middle of the work. */
static void cancel_now(void *context, const ts_epilogue_part *part, int worker) {
  (void)part, (void)worker;
  atomic_store((_Atomic bool *)context, true);
}

START_TEST(cancelled_midway)
{
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(TS_F32, NULL, &gemm));
  product p = make_product(TS_F32, 50, 60, 60, 60, NORMAL, NORMAL);
  _Atomic bool cancel = false;
  ts_epilogue ending = {.run = cancel_now, .context = &cancel};
  ck_assert_error(ts_gemm_run(gemm, &p.shape,
                              &(ts_gemm_call){.lhs = p.lhs.origin,
                                              .rhs = p.rhs.origin,
                                              .out = p.out,
                                              .epilogue = &ending,
                                              .parallel = &threaded,
                                              .pool = ts_pool_default(),
                                              .cancel = &cancel}),
                  TS_CANCELLED, "cancelled");
  ck_assert_int_eq(p.out[p.out_bytes - 1], OUT_FILL);
  free_product(&p);
  ts_gemm_release(gemm);
}
END_TEST

START_TEST(refused)
{
  ts_gemm *gemm;
  ck_assert_error(ts_gemm_get(TS_F8, NULL, &gemm), TS_UNIMPLEMENTED, "f8");
  ck_assert_ptr_null(gemm);
}
END_TEST

/* A gemm for one shape serves this shape, and is refused for a shape with another kernel. */
START_TEST(one_shape)
{
  static const int64_t dims[][3] = {{20, 40, 30}, {1, 40, 30}, {40, 1, 30}};
  for (int planned = 0; planned < 3; planned++) {
    product p[3];
    for (int i = 0; i < 3; i++) p[i] = make_product(TS_F32, 1, dims[i][0], dims[i][1], dims[i][2], NORMAL, NORMAL);
    ts_gemm *gemm;
    ck_assert_ok(ts_gemm_get(TS_F32, &p[planned].shape, &gemm));
    for (int i = 0; i < 3; i++) {
      if (i == planned) {
        ck_assert_ok(run_product(gemm, &p[i], &ts_parallel_serial));
        check_product(TS_F32, &p[i], 1);
      } else {
        ck_assert_error(run_product(gemm, &p[i], &ts_parallel_serial), TS_FAILED_PRECONDITION, "shape");
      }
      free_product(&p[i]);
    }
    ts_gemm_release(gemm);
  }
}
END_TEST

START_TEST(costs)
{
  ts_gemm_shape small = {.batch = 1, .m = 8, .n = 8, .k = 8}, large = {.batch = 1, .m = 1024, .n = 1024, .k = 1024};
  ck_assert_int_lt(ts_gemm_cost(TS_F32, &small), 2000);
  ck_assert_int_gt(ts_gemm_cost(TS_F32, &large), 1000000);
  ts_gemm_shape huge = {.batch = 1, .m = INT32_MAX, .n = INT32_MAX, .k = INT32_MAX};
  ck_assert_int_gt(ts_gemm_cost(TS_F64, &huge), INT64_MAX / 2);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("gemm");
  TCase *t = tcase_create("products");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, scaled_operands, 0, sizeof scaled_cases / sizeof *scaled_cases);
  tcase_add_loop_test(t, narrow_operands, 0, sizeof wide_types / sizeof *wide_types);
  tcase_add_loop_test(t, edge_shapes, 0, TYPE_COUNT);
  tcase_add_loop_test(t, layouts, 0, TYPE_COUNT);
  tcase_add_loop_test(t, few_long_rows, 0, TYPE_COUNT);
  tcase_add_loop_test(t, many_rows_in_memory, 0, 2);
  tcase_add_loop_test(t, large_shapes, 0, TYPE_COUNT);
  tcase_add_loop_test(t, narrow_edges, 0, TYPE_COUNT);
  tcase_add_test(t, phases);
  tcase_add_loop_test(t, halves, 0, 2);
  tcase_add_test(t, shared_operands);
  tcase_add_test(t, special_values);
  tcase_add_test(t, epilogue);
  tcase_add_loop_test(t, complex_numbers, 0, 2);
  tcase_add_test(t, allocations_fail);
  tcase_add_test(t, cancelled);
  tcase_add_test(t, cancelled_midway);
  tcase_add_test(t, refused);
  tcase_add_test(t, one_shape);
  tcase_add_test(t, costs);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
