#include "jit/emit.h"
#include "jit/jit.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- hand-made kernels: out[i] = in[i] + constant, s32, args = {out, in} ---- */

typedef struct adder {
  int64_t constant;
} adder;

static ts_v argument(ts_emit *e, ts_v args, int index) {
  LLVMTypeRef i64 = LLVMInt64TypeInContext(e->context);
  ts_v number = LLVMConstInt(i64, (unsigned)index, 0);
  return LLVMBuildLoad2(e->b, i64, LLVMBuildGEP2(e->b, i64, args, &number, 1, ""), "");
}

static ts_v element_address(ts_emit *e, ts_v base, ts_v index) {
  LLVMTypeRef type = LLVMInt32TypeInContext(e->context);
  ts_v pointer = LLVMBuildIntToPtr(e->b, base, LLVMPointerTypeInContext(e->context, 0), "");
  return LLVMBuildGEP2(e->b, type, pointer, &index, 1, "");
}

static LLVMValueRef begin_function(ts_emit *e, const char *name) {
  LLVMTypeRef i64 = LLVMInt64TypeInContext(e->context), ptr = LLVMPointerTypeInContext(e->context, 0);
  LLVMTypeRef params[] = {ptr, i64, i64, ptr};
  e->function = LLVMAddFunction(e->module, name, LLVMFunctionType(LLVMVoidTypeInContext(e->context), params, 4, 0));
  LLVMPositionBuilderAtEnd(e->b, LLVMAppendBasicBlockInContext(e->context, e->function, "entry"));
  return e->function;
}

static ts_status emit_adder(ts_emit *e, const char *name, const void *description) {
  const adder *a = description;
  LLVMValueRef f = begin_function(e, name);
  LLVMTypeRef i64 = LLVMInt64TypeInContext(e->context);
  ts_v out = argument(e, LLVMGetParam(f, 0), 0), in = argument(e, LLVMGetParam(f, 0), 1);
  LLVMBasicBlockRef entry = LLVMGetInsertBlock(e->b);
  LLVMBasicBlockRef head = LLVMAppendBasicBlockInContext(e->context, f, "head");
  LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(e->context, f, "body");
  LLVMBasicBlockRef tail = LLVMAppendBasicBlockInContext(e->context, f, "tail");
  LLVMBuildBr(e->b, head);

  LLVMPositionBuilderAtEnd(e->b, head);
  ts_v i = LLVMBuildPhi(e->b, i64, "i");
  ts_v next = LLVMBuildAdd(e->b, i, LLVMConstInt(i64, (unsigned)e->lanes, 0), "");
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLE, next, LLVMGetParam(f, 2), ""), body, tail);

  LLVMPositionBuilderAtEnd(e->b, body);
  ts_v constant = ts_emit_const_int(e, TS_S32, a->constant);
  ts_v sum = LLVMBuildAdd(e->b, ts_emit_load(e, TS_S32, element_address(e, in, i)), constant, "");
  ts_emit_store(e, TS_S32, sum, element_address(e, out, i));
  LLVMBuildBr(e->b, head);
  ts_v first = LLVMGetParam(f, 1);
  LLVMAddIncoming(i, &first, &entry, 1);
  LLVMAddIncoming(i, &next, &body, 1);

  LLVMPositionBuilderAtEnd(e->b, tail);
  ts_v left = LLVMBuildSub(e->b, LLVMGetParam(f, 2), i, "");
  sum = LLVMBuildAdd(e->b, ts_emit_load_tail(e, TS_S32, element_address(e, in, i), left), constant, "");
  ts_emit_store_tail(e, TS_S32, sum, element_address(e, out, i), left);
  LLVMBuildRetVoid(e->b);
  return TS_SUCCESS;
}

typedef struct adder_source {
  char text[64];
  adder description;
  ts_kernel_source source;
} adder_source;

static void make_source(adder_source *s, int64_t constant) {
  snprintf(s->text, sizeof(s->text), "test add %lld", (long long)constant);
  s->description.constant = constant;
  s->source = (ts_kernel_source){s->text, strlen(s->text), emit_adder, &s->description};
}

static void check_adds(const ts_kernel *kernel, int64_t constant) {
  int32_t in[101], out[102];
  for (int i = 0; i < 101; i++) in[i] = i * 7;
  memset(out, 0x55, sizeof(out));
  int64_t args[] = {(int64_t)(intptr_t)out, (int64_t)(intptr_t)in};
  ts_kernel_entry(kernel)(args, 0, 101, NULL);
  for (int i = 0; i < 101; i++) ck_assert_int_eq(out[i], i * 7 + constant);
  ck_assert_int_eq(out[101], 0x55555555);
}

static void check_ok(ts_status status) {
  ck_assert_msg(status == TS_SUCCESS, "%s", ts_status_message(status));
}

static ts_jit_stats stats(void) {
  ts_jit_stats s;
  ts_jit_get_stats(&s);
  return s;
}

START_TEST(a_kernel_compiles_and_runs) {
  adder_source s;
  make_source(&s, 5);
  ts_kernel *kernel;
  check_ok(ts_jit_get_kernels(&s.source, 1, &kernel));
  check_adds(kernel, 5);
  ck_assert_str_eq(ts_kernel_text(kernel), s.text);
  ck_assert_uint_gt(ts_kernel_code_bytes(kernel), 0);
  ck_assert_int_eq(stats().compiled, 1);
  ts_kernel_release(kernel);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("jit");
  TCase *tc = tcase_create("session");
  tcase_add_test(tc, a_kernel_compiles_and_runs);
  suite_add_tcase(suite, tc);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
