/* The kernels that Tessera was built with. */
#include "jit/emit/gemm_emit.h"
#include "jit/session/builtin.h"
#include "kernel/gemm/gemm.h"
#include "testing.h"

#include <string.h>

/* Compares with the compiler's output of now, byte for byte, for every class of machine. */
START_TEST(are_what_the_compiler_makes)
{
  size_t count;
  const ts_target *targets = ts_target_all(&count);
  for (size_t i = 0; i < count; i++) {
    if (!testing_takes(_i + (int64_t)i, 3)) continue;
    ts_compiler *compiler;
    ts_gemm_request request;
    ts_kernel_source source;
    ck_assert_ok(ts_compiler_create(&targets[i], &compiler));
    ts_gemm_make_builtin(_i, &targets[i], &request, &source);
    char name[TS_KERNEL_NAME_BYTES];
    ts_kernel_make_name(source.text, source.length, name);
    ts_object made, found;
    ck_assert_ok(ts_compiler_run(compiler, &source, name, &made));
    ck_assert(ts_builtin_find(targets[i].cpu, source.text, source.length, &found));
    ck_assert_uint_eq(made.size, found.size);
    ck_assert_mem_eq(made.data, found.data, made.size);
    ts_free(made.data);
    ts_compiler_destroy(compiler);
  }
}
END_TEST

START_TEST(others_are_not_found)
{
  ts_gemm_request request;
  ts_kernel_source source;
  ts_object object;
  const char *cpu = ts_target_host()->cpu;
  ts_gemm_make_builtin(0, ts_target_host(), &request, &source);
  ck_assert(ts_builtin_find(cpu, source.text, source.length, &object));
  ck_assert(!ts_builtin_find(cpu, source.text, source.length - 1, &object));
  ck_assert(!ts_builtin_find("another", source.text, source.length, &object));
  ck_assert(!ts_builtin_find(cpu, "another", 7, &object));
}
END_TEST

static ts_jit_stats stats(void) {
  ts_jit_stats s;
  ts_jit_get_stats(&s);
  return s;
}

START_TEST(products_wait_for_nothing)
{
  ts_jit_configure(&(ts_jit_options){.cache_dir = ""});
  ts_jit_trim();
  ts_jit_stats before = stats();
  for (ts_dtype dtype = TS_S8; dtype < TS_DTYPE_COUNT; dtype++) {
    ts_gemm *gemm;
    if (!ts_gemm_has_type(dtype)) continue;
    ck_assert_ok(ts_gemm_get(dtype, NULL, &gemm));
    ts_gemm_release(gemm);
  }
  ck_assert_int_eq(stats().compiled, before.compiled);
  ck_assert_int_eq(stats().built_in, before.built_in + TS_GEMM_BUILTINS);
}
END_TEST

/* A kernel of a text that the table does not have, as on a class of machine it was not made for. */
START_TEST(others_are_compiled)
{
  ts_gemm_request request;
  ts_kernel_source source;
  ts_kernel *kernel;
  ts_jit_configure(&(ts_jit_options){.cache_dir = ""});
  ts_gemm_make_builtin(0, ts_target_host(), &request, &source);
  strcat(request.text, " !");
  source.length += 2;
  ck_assert(!ts_jit_has(&source));
  ts_jit_stats before = stats();
  ck_assert_ok(ts_jit_get_kernels(&source, 1, &kernel));
  ck_assert_int_eq(stats().compiled, before.compiled + 1);
  ck_assert_int_eq(stats().built_in, before.built_in);
  ts_kernel_release(kernel);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("builtin");
  TCase *t = tcase_create("builtin");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, are_what_the_compiler_makes, 0, TS_GEMM_BUILTINS);
  tcase_add_test(t, others_are_not_found);
  tcase_add_test(t, products_wait_for_nothing);
  tcase_add_test(t, others_are_compiled);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
