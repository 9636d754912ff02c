#include "jit_kernels.h"
#include "testing.h"

LLVMValueRef kernel_begin(ts_emit *e, const char *name) {
  LLVMTypeRef i64 = LLVMInt64TypeInContext(e->context), pointer = LLVMPointerTypeInContext(e->context, 0);
  LLVMTypeRef params[] = {pointer, i64, i64, pointer};
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(e->context), params, 4, 0);
  e->function = LLVMAddFunction(e->module, name, type);
  LLVMPositionBuilderAtEnd(e->b, LLVMAppendBasicBlockInContext(e->context, e->function, "entry"));
  return e->function;
}

ts_v kernel_word(ts_emit *e, int index) {
  LLVMTypeRef i64 = LLVMInt64TypeInContext(e->context);
  ts_v number = LLVMConstInt(i64, (unsigned)index, 0);
  return LLVMBuildLoad2(e->b, i64, LLVMBuildGEP2(e->b, i64, LLVMGetParam(e->function, 0), &number, 1, ""), "");
}

ts_v kernel_pointer(ts_emit *e, int index) {
  return LLVMBuildIntToPtr(e->b, kernel_word(e, index), LLVMPointerTypeInContext(e->context, 0), "");
}

static ts_v element(ts_emit *e, ts_v base, ts_v index) {
  return LLVMBuildGEP2(e->b, LLVMInt32TypeInContext(e->context), base, &index, 1, "");
}

/* A loop over whole vectors, then one tail. */
static ts_status emit_adder(ts_emit *e, const char *name, const void *description) {
  LLVMValueRef f = kernel_begin(e, name);
  LLVMTypeRef i64 = LLVMInt64TypeInContext(e->context);
  ts_v out = kernel_pointer(e, 0), in = kernel_pointer(e, 1), begin = LLVMGetParam(f, 1), end = LLVMGetParam(f, 2);
  ts_v constant = ts_emit_const_int(e, TS_S32, ((const adder *)description)->constant);
  LLVMBasicBlockRef entry = LLVMGetInsertBlock(e->b);
  LLVMBasicBlockRef head = LLVMAppendBasicBlockInContext(e->context, f, "head");
  LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(e->context, f, "body");
  LLVMBasicBlockRef tail = LLVMAppendBasicBlockInContext(e->context, f, "tail");
  LLVMBuildBr(e->b, head);

  LLVMPositionBuilderAtEnd(e->b, head);
  ts_v i = LLVMBuildPhi(e->b, i64, "i");
  ts_v next = LLVMBuildAdd(e->b, i, LLVMConstInt(i64, (unsigned)e->lanes, 0), "");
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLE, next, end, ""), body, tail);
  LLVMAddIncoming(i, &begin, &entry, 1);
  LLVMAddIncoming(i, &next, &body, 1);

  LLVMPositionBuilderAtEnd(e->b, body);
  ts_v sum = LLVMBuildAdd(e->b, ts_emit_load(e, TS_S32, element(e, in, i)), constant, "");
  ts_emit_store(e, TS_S32, sum, element(e, out, i));
  LLVMBuildBr(e->b, head);

  LLVMPositionBuilderAtEnd(e->b, tail);
  ts_v left = LLVMBuildSub(e->b, end, i, "");
  sum = LLVMBuildAdd(e->b, ts_emit_load_tail(e, TS_S32, element(e, in, i), left), constant, "");
  ts_emit_store_tail(e, TS_S32, sum, element(e, out, i), left);
  LLVMBuildRetVoid(e->b);
  return TS_SUCCESS;
}

static ts_status copy_adder(const void *description, void **out) {
  TS_TRY(ts_alloc(sizeof(adder), out));
  memcpy(*out, description, sizeof(adder));
  return TS_SUCCESS;
}

static ts_status family_of_adder(const void *description, ts_hash128 *out) {
  *out = (ts_hash128){(uint64_t)(((const adder *)description)->constant % 10), 1};
  return TS_SUCCESS;
}

void adder_init(adder *a, int32_t constant) {
  snprintf(a->text, sizeof(a->text), "test add %d", constant);
  a->constant = constant;
  a->source = (ts_kernel_source){.text = a->text,
                                 .length = strlen(a->text),
                                 .emit = emit_adder,
                                 .description = a,
                                 .family = family_of_adder,
                                 .copy = copy_adder};
}

void adder_check(const ts_kernel *kernel, int32_t constant) {
  enum { N = 101 };
  int32_t in[N], out[N + 1];
  for (int i = 0; i < N; i++) in[i] = i * 7;
  memset(out, 0x55, sizeof(out));
  int64_t args[] = {(int64_t)(intptr_t)out, (int64_t)(intptr_t)in};
  ts_kernel_entry(kernel)(args, 0, N, NULL);
  for (int i = 0; i < N; i++) ck_assert_int_eq(out[i], in[i] + constant);
  ck_assert_int_eq(out[N], 0x55555555);
}
