/* The compiled kernels of a matrix product. */
#include "base/alloc.h"
#include "kernel/gemm/bf16/gemm_bf16_chain.h"
#include "kernel/gemm/gemm_internal.h"
#include "kernel/gemm/gemm_quads.h"

static ts_gemm_types all_of(ts_dtype dtype) { return (ts_gemm_types){dtype, dtype, dtype}; }

static bool fits(ts_dtype operand, ts_dtype out) { return operand == out || ts_dtype_widens_to(operand, out); }

bool ts_gemm_has_types(const ts_gemm_types *t) {
  return ts_gemm_has_type(t->out) && fits(t->lhs, t->out) && fits(t->rhs, t->out);
}

static bool fits_pair(ts_dtype type) { return type == TS_S8 || type == TS_U8 || type == TS_S16; }

/* How products with results of bf16 are computed. Operands that are narrower become bf16 when they are packed. */
static gemm_amx_product bf16_product(const ts_gemm_types *types) {
  if (types->out != TS_BF16) return GEMM_AMX_NONE;
  return ts_target_host()->amx ? GEMM_AMX_BF16 : ts_gemm_has_bf16_chains() ? GEMM_CHAIN_BF16 : GEMM_AMX_NONE;
}

/* To pack pairs of bf16 takes longer than a product of so few terms. With AMX the order of sums is that of pairs. */
static bool may_pair(const ts_gemm_types *types, const ts_gemm_shape *shape) {
  return types->out != TS_BF16 || shape->k > 8 || ts_target_host()->amx;
}

static void describe(const ts_gemm_types *types, bool pair, ts_gemm *gemm) {
  gemm->types = *types;
  gemm->lhs_size = (int)ts_dtype_size(types->lhs);
  gemm->rhs_size = (int)ts_dtype_size(types->rhs);
  gemm->size = (int)ts_dtype_size(types->out);
  gemm->native = ts_gemm_is_native(types->out, &gemm->compute);
  bool pairs = pair && fits_pair(types->lhs) && fits_pair(types->rhs) && gemm->compute == TS_GEMM_I32;
  if (pairs) gemm->own = ts_gemm_quads_product(types);
  if (pair && gemm->own == GEMM_AMX_NONE) gemm->own = bf16_product(types);
  gemm->depth = ts_gemm_has_quads(gemm) ? TS_GEMM_QUAD : pairs || gemm->own ? 2 : 1;
  ts_gemm_get_geometry(pairs ? TS_GEMM_PAIRS : gemm->compute, ts_target_host(), &gemm->geometry);
  if (gemm->own) ts_gemm_amx_set_geometry(&gemm->geometry);
}

static ts_status create(const ts_gemm_types *types, bool pair, ts_gemm **out) {
  if (!ts_gemm_has_types(types))
    return ts_error(TS_UNIMPLEMENTED, "no matrix product of type %s", ts_dtype_name(types->out));
  TS_TRY(TS_NEW(out));
  describe(types, pair, *out);
  return TS_SUCCESS;
}

ts_gemm_kernel ts_gemm_kernel_of(const ts_gemm_types *types, const ts_gemm_shape *shape) {
  ts_gemm gemm = {0};
  describe(types, may_pair(types, shape), &gemm);
  return ts_gemm_pick_kernel(&gemm, shape);
}

/* Tile kernels read packed operands, which are widened already, or operands of native types. So they have no narrow
 * types. `x` is the type of the matrix that the other kernels read. */
static void make_source(const ts_gemm *gemm, ts_gemm_kernel kernel, ts_dtype x, ts_gemm_request *request,
                        ts_kernel_source *out) {
  bool tile = kernel == TS_GEMM_TILE || kernel == TS_GEMM_STRIDED || kernel == TS_GEMM_SMALL;
  if (tile || (int)ts_dtype_size(x) >= gemm->geometry.element_size) x = TS_DTYPE_NONE;
  ts_gemm_make_source(kernel == TS_GEMM_TILE ? gemm->geometry.compute : gemm->compute, kernel, x, ts_target_host(),
                      request, out);
}

static ts_status get_all_kernels(ts_gemm *gemm) {
  ts_gemm_request requests[TS_GEMM_KERNEL_COUNT];
  ts_kernel_source sources[TS_GEMM_KERNEL_COUNT];
  ts_kernel *kernels[TS_GEMM_KERNEL_COUNT];
  int count = 0;
  for (int i = 0; i < TS_GEMM_KERNEL_COUNT; i++) {
    make_source(gemm, (ts_gemm_kernel)i, gemm->types.lhs, &requests[count], &sources[count]);
    count++;
  }
  TS_TRY(ts_jit_get_kernels(sources, (size_t)count, kernels));
  for (int i = 0; i < count; i++) gemm->kernels[requests[i].kernel] = kernels[i];
  return TS_SUCCESS;
}

ts_status ts_gemm_prepare(const ts_gemm_types *types, const ts_gemm_shape *shape, ts_gemm **out,
                          ts_kernel_source *out_source) {
  *out = NULL;
  TS_TRY(create(types, may_pair(types, shape), out));
  ts_gemm *gemm = *out;
  make_source(gemm, ts_gemm_pick_kernel(gemm, shape), ts_gemm_matrix_type(gemm, shape), &gemm->request, out_source);
  return TS_SUCCESS;
}

ts_status ts_gemm_prepare_scaled(const ts_gemm_types *types, const ts_gemm_shape *shape, ts_gemm **out,
                                 ts_kernel_source *out_source) {
  (void)shape; /* of any one: tiles read packed operands */
  *out = NULL;
  TS_TRY(create(types, bf16_product(types) != GEMM_AMX_NONE, out));
  (*out)->scaled = true;
  make_source(*out, TS_GEMM_TILE, types->out, &(*out)->request, out_source);
  return TS_SUCCESS;
}

ts_status ts_gemm_prepare_quantized(ts_dtype dtype, const ts_gemm_shape *shape, ts_gemm **out,
                                    ts_kernel_source *out_source) {
  (void)shape;
  ts_gemm_types types = all_of(dtype);
  *out = NULL;
  TS_TRY(create(&types, true, out));
  (*out)->scaled = true;
  make_source(*out, TS_GEMM_TILE, dtype, &(*out)->request, out_source);
  return TS_SUCCESS;
}

ts_status ts_gemm_prepare_rows(ts_dtype dtype, ts_gemm **out, ts_kernel_source *out_source) {
  ts_gemm_types types = all_of(dtype);
  *out = NULL;
  TS_TRY(create(&types, false, out)); /* the rows' runs of elements may be odd */
  make_source(*out, TS_GEMM_TILE, dtype, &(*out)->request, out_source);
  return TS_SUCCESS;
}

ts_status ts_gemm_prepare_some(const ts_gemm_types *types, ts_gemm **out, ts_kernel_source *out_source) {
  *out = NULL;
  TS_TRY(create(types, false, out));
  make_source(*out, TS_GEMM_SMALL, types->out, &(*out)->request, out_source);
  return TS_SUCCESS;
}

/* Pairs of bf16 are multiplied twice as fast, and by AMX their sums have another order. */
bool ts_gemm_has_some(const ts_gemm_types *types, const ts_gemm_shape *shape) {
  if (!ts_gemm_has_types(types) || !ts_dtype_is_float(types->out)) return false;
  if (bf16_product(types) != GEMM_AMX_NONE) return false;
  if (ts_dtype_is_small(types->lhs) || ts_dtype_is_small(types->rhs)) return false;
  if (!ts_dtype_is_float(types->lhs) || !ts_dtype_is_float(types->rhs)) return false;
  return shape->k <= TS_CONTRACT_BLOCK;
}

ts_status ts_gemm_prepare_complex(ts_dtype part, const ts_gemm_shape *shape, ts_gemm **out,
                                  ts_kernel_source *out_source) {
  ts_gemm_types types = all_of(part);
  *out = NULL;
  TS_TRY(create(&types, false, out));
  (*out)->complex = true;
  make_source(*out, shape ? ts_gemm_pick_kernel(*out, shape) : TS_GEMM_TILE, part, &(*out)->request, out_source);
  return TS_SUCCESS;
}

/* The product of the parts: n and k count real numbers. The strides along n of the right side and along k are still of
 * complex numbers, which packing splits (gemm_pack_complex.c). With k = 1 that stride has no meaning, and the two parts
 * of the left side are adjacent. */
ts_gemm_shape ts_gemm_shape_of_parts(const ts_gemm_shape *numbers) {
  ts_gemm_shape s = *numbers;
  if (s.k == 1) s.lhs_col = 1;
  s.n *= 2;
  s.k *= 2;
  s.lhs_batch *= 2;
  s.lhs_row *= 2;
  s.rhs_batch *= 2;
  s.out_batch *= 2;
  s.out_row *= 2;
  return s;
}

ts_status ts_gemm_prepare_strided(ts_dtype dtype, ts_gemm **out, ts_kernel_source *out_source) {
  ts_gemm_types types = all_of(dtype);
  *out = NULL;
  TS_TRY(create(&types, false, out));
  make_source(*out, TS_GEMM_STRIDED, dtype, &(*out)->request, out_source);
  return TS_SUCCESS;
}

void ts_gemm_adopt(ts_gemm *gemm, ts_kernel *kernel) {
  ts_kernel_retain(kernel);
  gemm->kernels[gemm->request.kernel] = kernel;
}

static ts_status get_one_kernel(ts_dtype dtype, const ts_gemm_shape *shape, ts_gemm **out) {
  ts_kernel_source source;
  ts_gemm_types types = all_of(dtype);
  TS_TRY(ts_dtype_is_complex(dtype) ? ts_gemm_prepare_complex(ts_dtype_part(dtype), shape, out, &source)
                                    : ts_gemm_prepare(&types, shape, out, &source));
  return ts_jit_get_kernels(&source, 1, &(*out)->kernels[(*out)->request.kernel]);
}

ts_status ts_gemm_get(ts_dtype dtype, const ts_gemm_shape *shape, ts_gemm **out) {
  *out = NULL;
  ts_gemm_types types = all_of(dtype);
  const bool one = shape || ts_dtype_is_complex(dtype);
  ts_status status = one ? get_one_kernel(dtype, shape, out) : create(&types, true, out);
  if (!status && !one) status = get_all_kernels(*out);
  if (!status) return TS_SUCCESS;
  ts_gemm_release(*out);
  *out = NULL;
  return ts_error_context(status, "matrix product of type %s", ts_dtype_name(dtype));
}

void ts_gemm_release(ts_gemm *gemm) {
  if (!gemm) return;
  for (int i = 0; i < TS_GEMM_KERNEL_COUNT; i++)
    if (gemm->kernels[i]) ts_kernel_release(gemm->kernels[i]);
  ts_free(gemm);
}
