#include "jit/session/jit_internal.h"
#include "jit_kernels.h"
#include "testing.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Each test uses constants of its own: with CK_FORK=no they share the session. */

static ts_jit_stats stats(void) {
  ts_jit_stats s;
  ts_jit_get_stats(&s);
  return s;
}

static void setup(void) {
  const ts_jit_options no_disk = {.cache_dir = ""};
  ts_jit_configure(&no_disk);
}

static ts_kernel *get(int32_t constant) {
  adder a;
  ts_kernel *kernel;
  adder_init(&a, constant);
  ck_assert_ok(ts_jit_get_kernels(&a.source, 1, &kernel));
  adder_check(kernel, constant);
  return kernel;
}

/* ---- requests */

START_TEST(a_kernel_compiles_and_runs)
{
  ts_jit_stats before = stats();
  ts_kernel *kernel = get(5);
  ck_assert_str_eq(ts_kernel_text(kernel), "test add 5");
  ck_assert_uint_gt(ts_kernel_code_bytes(kernel), 0);
  ts_hash128 hash = ts_hash("test add 5", 10);
  ck_assert(ts_kernel_hash(kernel).lo == hash.lo && ts_kernel_hash(kernel).hi == hash.hi);
  ts_jit_stats after = stats();
  ck_assert_int_eq(after.compiled - before.compiled, 1);
  ck_assert_int_eq(after.kernels - before.kernels, 1);
  ck_assert_int_gt(after.code_bytes, before.code_bytes);
  ck_assert_int_gt(after.compile_ns, before.compile_ns);
  ts_kernel_release(kernel);
}
END_TEST

START_TEST(a_kernel_is_compiled_once)
{
  ts_kernel *first = get(10);
  ts_jit_stats before = stats();
  ts_kernel *second = get(10);
  ts_kernel_release(first);
  ts_kernel_release(second);
  ts_kernel *third = get(10);
  ck_assert_ptr_eq(first, second);
  ck_assert_ptr_eq(first, third);
  ck_assert_int_eq(stats().compiled, before.compiled);
  ck_assert_int_eq(stats().reused, before.reused + 2);
  ts_kernel_release(third);
}
END_TEST

START_TEST(one_request_for_many)
{
  enum { N = 12 };
  adder a[N];
  ts_kernel_source sources[N];
  ts_kernel *kernels[N];
  ts_jit_stats before = stats();
  for (int i = 0; i < N; i++) {
    adder_init(&a[i], 20 + i % 5);
    sources[i] = a[i].source;
  }
  ck_assert_ok(ts_jit_get_kernels(sources, N, kernels));
  for (int i = 0; i < N; i++) {
    adder_check(kernels[i], 20 + i % 5);
    ck_assert_ptr_eq(kernels[i], kernels[i % 5]);
  }
  ck_assert_int_eq(stats().compiled - before.compiled, 5);
  for (int i = 0; i < N; i++) ts_kernel_release(kernels[i]);
  ck_assert_ok(ts_jit_get_kernels(NULL, 0, NULL));
}
END_TEST

static void *get_many(void *argument) {
  int32_t first = *(const int32_t *)argument;
  for (int i = 0; i < 6; i++) ts_kernel_release(get(first + i));
  for (int i = 0; i < 4; i++) ts_kernel_release(get(50 + i));
  return NULL;
}

START_TEST(many_threads)
{
  enum { N = 8 };
  pthread_t threads[N];
  int32_t first[N];
  ts_jit_stats before = stats();
  for (int i = 0; i < N; i++) {
    first[i] = i % 2 ? 100 : 100 + i * 10;
    ck_assert_int_eq(pthread_create(&threads[i], NULL, get_many, &first[i]), 0);
  }
  for (int i = 0; i < N; i++) pthread_join(threads[i], NULL);
  ck_assert_int_eq(stats().compiled - before.compiled, 4 * 6 + 4);
  ck_assert_int_eq(stats().kernels - before.kernels, 4 * 6 + 4);
}
END_TEST

/* ---- the bound */

START_TEST(old_kernels_are_evicted)
{
  const ts_jit_options small = {.cache_dir = "", .memory_cache_kernels = 3};
  ts_jit_trim();
  ts_jit_configure(&small);
  ts_jit_stats before = stats();
  ck_assert_int_eq(before.kernels, 0);
  ck_assert_int_eq(before.code_bytes, 0);
  ts_kernel *held = get(200);
  for (int32_t i = 1; i <= 5; i++) ts_kernel_release(get(200 + i));
  ck_assert_int_eq(stats().kernels, 3);
  ck_assert_int_eq(stats().evicted - before.evicted, 3);
  adder_check(held, 200);
  ts_kernel_release(get(204)); /* among the youngest, so still there */
  ck_assert_int_eq(stats().compiled - before.compiled, 6);
  ts_kernel_release(get(201));
  ck_assert_int_eq(stats().compiled - before.compiled, 7);
  ts_kernel_release(get(204)); /* was used after 205 */
  ck_assert_int_eq(stats().compiled - before.compiled, 7);
  ts_kernel_release(held);
  ts_jit_trim();
  ck_assert_int_eq(stats().kernels, 0);
  ck_assert_int_eq(stats().code_bytes, 0);
}
END_TEST

START_TEST(held_kernels_may_exceed_the_bound)
{
  const ts_jit_options small = {.cache_dir = "", .memory_cache_kernels = 2};
  ts_kernel *held[4];
  ts_jit_trim();
  ts_jit_configure(&small);
  for (int32_t i = 0; i < 4; i++) held[i] = get(220 + i);
  ck_assert_int_eq(stats().kernels, 4);
  for (int32_t i = 0; i < 4; i++) adder_check(held[i], 220 + i);
  ts_kernel_retain(held[3]);
  for (int32_t i = 0; i < 4; i++) ts_kernel_release(held[i]);
  ck_assert_int_eq(stats().kernels, 2);
  adder_check(held[3], 223);
  ts_kernel_release(held[3]);
}
END_TEST

/* ---- emitters that fail */

static ts_status emit_nothing(ts_emit *e, const char *name, const void *description) {
  (void)e, (void)name, (void)description;
  return TS_SUCCESS;
}

static ts_status emit_refusal(ts_emit *e, const char *name, const void *description) {
  (void)description;
  kernel_begin(e, name);
  return ts_error(TS_UNIMPLEMENTED, "not today");
}

static ts_status emit_unfinished(ts_emit *e, const char *name, const void *description) {
  (void)description;
  kernel_begin(e, name); /* a block without an end */
  return TS_SUCCESS;
}

static void emit_call(ts_emit *e, const char *callee) {
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(e->context), NULL, 0, 0);
  LLVMBuildCall2(e->b, type, LLVMAddFunction(e->module, callee, type), NULL, 0, "");
}

static ts_status emit_unknown_call(ts_emit *e, const char *name, const void *description) {
  (void)description;
  kernel_begin(e, name);
  emit_call(e, "no_such_function");
  LLVMBuildRetVoid(e->b);
  return TS_SUCCESS;
}

/* No assembly parser is initialised, so LLVM calls its fatal error handler. */
static ts_status emit_bad_assembly(ts_emit *e, const char *name, const void *description) {
  (void)description;
  kernel_begin(e, name);
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(e->context), NULL, 0, 0);
  char text[] = "nop", constraints[] = "";
  ts_v assembly = LLVMGetInlineAsm(type, text, strlen(text), constraints, 0, 1, 0, LLVMInlineAsmDialectATT, 0);
  LLVMBuildCall2(e->b, type, assembly, NULL, 0, "");
  LLVMBuildRetVoid(e->b);
  return TS_SUCCESS;
}

static ts_status get_from(ts_status (*emit)(ts_emit *, const char *, const void *), const char *text) {
  ts_kernel_source source = {.text = text, .length = strlen(text), .emit = emit};
  ts_kernel *kernel;
  ts_status status = ts_jit_get_kernels(&source, 1, &kernel);
  ck_assert((status == TS_SUCCESS) == (kernel != NULL));
  if (kernel) ts_kernel_release(kernel);
  return status;
}

START_TEST(emitters_that_fail)
{
  ck_assert_error(get_from(emit_refusal, "test refused"), TS_UNIMPLEMENTED, "not today");
  ck_assert_error(get_from(emit_nothing, "test nothing"), TS_INTERNAL, "no function of that name");
  ck_assert_error(get_from(emit_unfinished, "test unfinished"), TS_INTERNAL, "invalid code");
  ck_assert_error(get_from(emit_unknown_call, "test unknown"), TS_INTERNAL, "no_such_function");
  ck_assert_error(get_from(emit_bad_assembly, "test assembly"), TS_INTERNAL, "fatal error of LLVM");
  ts_kernel_release(get(300));
}
END_TEST

START_TEST(a_failure_does_not_stick)
{
  adder a;
  adder_init(&a, 310);
  ck_assert_error(get_from(emit_refusal, a.text), TS_UNIMPLEMENTED, "not today");
  ts_kernel_release(get(310));
}
END_TEST

START_TEST(one_failure_fails_the_request)
{
  adder a[3];
  ts_kernel_source sources[3];
  ts_kernel *kernels[3];
  for (int i = 0; i < 3; i++) {
    adder_init(&a[i], 320 + i);
    sources[i] = a[i].source;
  }
  sources[1].emit = emit_refusal;
  ck_assert_error(ts_jit_get_kernels(sources, 3, kernels), TS_UNIMPLEMENTED, "not today");
  for (int i = 0; i < 3; i++) ck_assert_ptr_null(kernels[i]);
  ts_kernel_release(get(320));
  ts_kernel_release(get(321));
}
END_TEST

/* A call that leaves the mapping. */
static ts_status emit_fill(ts_emit *e, const char *name, const void *description) {
  (void)description;
  kernel_begin(e, name);
  ts_v value = LLVMConstInt(LLVMInt8TypeInContext(e->context), 0x2a, 0);
  LLVMBuildMemSet(e->b, kernel_pointer(e, 0), value, kernel_word(e, 1), 1);
  LLVMBuildRetVoid(e->b);
  return TS_SUCCESS;
}

START_TEST(code_calls_outside)
{
  const char *text = "test fill";
  ts_kernel_source source = {.text = text, .length = strlen(text), .emit = emit_fill};
  ts_kernel *kernel;
  ck_assert_ok(ts_jit_get_kernels(&source, 1, &kernel));
  char bytes[301] = {0};
  int64_t args[] = {(int64_t)(intptr_t)bytes, 300};
  ts_kernel_entry(kernel)(args, 0, 0, NULL);
  for (int i = 0; i < 300; i++) ck_assert_int_eq(bytes[i], 0x2a);
  ck_assert_int_eq(bytes[300], 0);
  ts_kernel_release(kernel);
}
END_TEST

/* ---- faults */

/* Room for no thread's stack. */
START_TEST(no_thread_can_start)
{
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  ck_assert_int_eq(fscanf(file, "%ld", &pages), 1);
  fclose(file);
  struct rlimit old, tight;
  ck_assert_int_eq(getrlimit(RLIMIT_AS, &old), 0);
  tight = old;
  tight.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)4 << 20);
  ck_assert_int_eq(setrlimit(RLIMIT_AS, &tight), 0);
  adder a;
  ts_kernel *kernel;
  adder_init(&a, 390);
  ts_status status = ts_jit_get_kernels(&a.source, 1, &kernel);
  ck_assert_int_eq(setrlimit(RLIMIT_AS, &old), 0);
  ck_assert_error(status, TS_RESOURCE_EXHAUSTED, "compile thread");
  ts_kernel_release(get(390));
}
END_TEST

static void try_to_get(int32_t constant) {
  adder a;
  ts_kernel *kernel;
  adder_init(&a, constant);
  if (ts_status_consume_ok(ts_jit_get_kernels(&a.source, 1, &kernel))) {
    adder_check(kernel, constant);
    ts_kernel_release(kernel);
  }
  ts_jit_trim();
}

/* Each thread allocates its compiler once, whenever it gets to it. */
static void start_all_threads(void) {
  enum { N = 16 };
  adder a[N];
  ts_kernel_source sources[N];
  ts_kernel *kernels[N];
  for (int i = 0; i < N; i++) {
    adder_init(&a[i], 400 + i);
    sources[i] = a[i].source;
  }
  ck_assert_ok(ts_jit_get_kernels(sources, N, kernels));
  for (int i = 0; i < N; i++) ts_kernel_release(kernels[i]);
  ts_jit_trim();
  for (int64_t live = -1; live != ts_alloc_live(); usleep(100000)) live = ts_alloc_live();
}

START_TEST(every_allocation_may_fail)
{
  start_all_threads();
  try_to_get(420);
  CK_FAIL_EACH_ALLOCATION(try_to_get(420));
}
END_TEST

START_TEST(debuggers_are_told)
{
  setenv("TESSERA_GDB", "1", 1);
  setenv("TESSERA_PERF", "1", 1);
  ts_kernel_release(get(450));
  ts_jit_trim();
  ts_kernel_release(get(451));
  unsetenv("TESSERA_GDB");
  unsetenv("TESSERA_PERF");
  char path[64], line[256];
  snprintf(path, sizeof(path), "/tmp/perf-%ld.map", (long)getpid());
  FILE *file = fopen(path, "r");
  ck_assert_ptr_nonnull(file);
  int lines = 0;
  for (; fgets(line, sizeof(line), file); lines++) ck_assert_ptr_nonnull(strstr(line, " tessera_test_"));
  fclose(file);
  unlink(path);
  ck_assert_int_eq(lines, 2);
}
END_TEST

/* Where another one has put a link, its target is not written to; nor is a FIFO waited for. */
START_TEST(perf_map_is_no_link)
{
  char path[64], victim[] = "/tmp/tessera-test-XXXXXX";
  struct stat s;
  int file = mkstemp(victim);
  snprintf(path, sizeof(path), "/tmp/perf-%ld.map", (long)getpid());
  setenv("TESSERA_PERF", "1", 1);
  ck_assert_int_eq(symlink(victim, path), 0);
  ts_kernel_release(get(452));
  ck_assert_int_eq(unlink(path), 0);
  ck_assert_int_eq(link(victim, path), 0);
  ts_kernel_release(get(453));
  ck_assert_int_eq(unlink(path), 0);
  ck_assert_int_eq(mkfifo(path, 0600), 0);
  ts_kernel_release(get(454));
  unsetenv("TESSERA_PERF");
  ck_assert_int_eq(unlink(path), 0);
  ck_assert_int_eq(fstat(file, &s), 0);
  ck_assert_int_eq(s.st_size, 0);
  close(file);
  unlink(victim);
}
END_TEST

static void *get_failing(void *unused) {
  (void)unused;
  adder a;
  ts_kernel *kernel;
  adder_init(&a, 460);
  ts_status status = ts_jit_get_kernels(&a.source, 1, &kernel);
  if (!status) ts_kernel_release(kernel);
  ts_status_free(status);
  return NULL;
}

START_TEST(waiters_outlive_a_failure)
{
  pthread_t threads[8];
  ts_jit_inject_fatal(3);
  for (int i = 0; i < 8; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, get_failing, NULL), 0);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  ts_jit_inject_fatal(0);
  ts_kernel_release(get(460));
}
END_TEST

static void wait_for(const ts_kernel_source *source) {
  for (int i = 0; i < 60000 && !ts_jit_has(source); i++) usleep(1000);
  ck_assert(ts_jit_has(source));
}

START_TEST(a_prefetched_kernel_is_there_later)
{
  adder a, gone;
  adder_init(&a, 600);
  adder_init(&gone, 600);
  ck_assert(!ts_jit_has(&a.source));
  int64_t prefetched = stats().prefetched;
  ts_jit_prefetch(&gone.source, 1);
  ts_jit_prefetch(&gone.source, 1);  /* once is enough */
  memset(&gone, 0xee, sizeof(gone)); /* nothing of the caller's is kept */
  wait_for(&a.source);
  ts_kernel_release(get(600));
  ck_assert_int_eq(stats().prefetched, prefetched + 1);
}
END_TEST

/* More kernels than the queue has room for, and requests that wait for queued kernels. */
START_TEST(prefetched_kernels_can_be_waited_for)
{
  enum { N = 100 };
  adder adders[N];
  for (int i = 0; i < N; i++) adder_init(&adders[i], 700 + i);
  for (int i = 0; i < N; i++) ts_jit_prefetch(&adders[i].source, 1);
  for (int i = N - 1; i >= 0; i--) {
    ts_kernel *kernel = get(700 + i);
    adder_check(kernel, 700 + i);
    ts_kernel_release(kernel);
  }
}
END_TEST

START_TEST(a_fatal_error_in_the_background_fails_no_request)
{
  adder a;
  adder_init(&a, 610);
  int64_t failed = stats().failed_threads;
  ts_jit_inject_fatal(1);
  ts_jit_prefetch(&a.source, 1);
  for (int i = 0; i < 60000 && stats().failed_threads == failed; i++) usleep(1000);
  ck_assert_int_eq(stats().failed_threads, failed + 1);
  ts_kernel_release(get(610));
  adder_init(&a, 611);
  ts_jit_prefetch(&a.source, 1); /* by another thread */
  wait_for(&a.source);
}
END_TEST

static void sum_constants(void *context, const char *text) { *(int *)context += atoi(text + strlen("test add ")); }

static int family_sum(const ts_jit_batch *batch, const ts_kernel_source *source) {
  int sum = 0;
  ts_jit_batch_visit_family(batch, source, sum_constants, &sum);
  return sum;
}

START_TEST(families_are_those_in_memory)
{
  adder a;
  ts_jit_batch before, after;
  ts_jit_trim();
  adder_init(&a, 627);
  ts_kernel_release(get(617));
  ts_jit_batch_init(&before, false, NULL);
  ts_kernel_release(get(637));
  ts_kernel_release(get(638));
  ts_jit_batch_init(&after, false, NULL);
  ck_assert_int_eq(family_sum(&after, &a.source), 617 + 637);
  ck_assert_int_eq(family_sum(&before, &a.source), 617);
  ts_jit_trim();
  ck_assert_int_eq(family_sum(&after, &a.source), 0);
  ts_jit_batch_deinit(&before);
  ts_jit_batch_deinit(&after);
}
END_TEST

START_TEST(batches_begin_at_once)
{
  adder first, second;
  ts_kernel *kernels[2];
  ts_jit_batch batch;
  adder_init(&first, 650);
  adder_init(&second, 651);
  ts_jit_batch_init(&batch, false, NULL);
  ck_assert_ok(ts_jit_batch_add(&batch, &first.source));
  wait_for(&first.source); /* the batch was not taken yet */
  ck_assert_ok(ts_jit_batch_add(&batch, &second.source));
  ck_assert_ok(ts_jit_batch_take(&batch, kernels));
  adder_check(kernels[0], 650);
  adder_check(kernels[1], 651);
  ts_kernel_release(kernels[0]);
  ts_kernel_release(kernels[1]);
  ts_jit_batch_deinit(&batch);
}
END_TEST

/* A kernel of a dropped batch that no thread has begun is compiled only if another request needs it. */
START_TEST(a_batch_can_be_dropped)
{
  enum { N = 200 };
  static adder a[N];
  ts_jit_batch batch, other;
  ts_kernel *kernel;
  int64_t compiled = stats().compiled;
  ts_jit_batch_init(&batch, false, NULL);
  ts_jit_batch_init(&other, false, NULL);
  for (int i = 0; i < N; i++) {
    adder_init(&a[i], 1000 + i);
    ck_assert_ok(ts_jit_batch_add(&batch, &a[i].source));
  }
  ck_assert_ok(ts_jit_batch_add(&other, &a[N - 1].source)); /* the first batch makes it */
  ts_jit_batch_deinit(&batch);
  ck_assert_int_lt(stats().compiled - compiled, N);
  ck_assert_ok(ts_jit_batch_take(&other, &kernel));
  adder_check(kernel, 1000 + N - 1);
  ts_kernel_release(kernel);
  ts_jit_batch_deinit(&other);
  compiled = stats().compiled;
  usleep(100000);
  ck_assert_int_eq(stats().compiled, compiled);
}
END_TEST

START_TEST(a_batch_can_be_cancelled)
{
  enum { N = 200 };
  static adder a[N];
  _Atomic bool cancel = true;
  ts_jit_batch batch;
  ts_kernel *kernels[N];
  ts_jit_batch_init(&batch, false, &cancel);
  for (int i = 0; i < N; i++) {
    adder_init(&a[i], 1300 + i);
    ck_assert_ok(ts_jit_batch_add(&batch, &a[i].source));
  }
  ck_assert_error(ts_jit_batch_take(&batch, kernels), TS_CANCELLED, "cancelled");
  ts_jit_batch_deinit(&batch);
  ts_kernel_release(get(1300 + N - 1));
}
END_TEST

START_TEST(nonblocking_needs_kernels_in_memory)
{
  adder known, other;
  ts_kernel *kernel;
  ts_jit_batch batch;
  adder_init(&known, 670);
  adder_init(&other, 671);
  ts_kernel_release(get(670));
  int64_t compiled = stats().compiled;
  ts_jit_batch_init(&batch, true, NULL);
  ck_assert_ok(ts_jit_batch_add(&batch, &known.source));
  ck_assert_error(ts_jit_batch_add(&batch, &other.source), TS_CANCELLED, "has to be made first");
  ck_assert_ok(ts_jit_batch_take(&batch, &kernel));
  adder_check(kernel, 670);
  ts_kernel_release(kernel);
  ts_jit_batch_deinit(&batch);
  ck_assert_int_eq(stats().compiled, compiled);
}
END_TEST

START_TEST(fatal_errors_park_threads)
{
  adder a;
  ts_kernel *kernel;
  adder_init(&a, 470);
  int64_t before = stats().failed_threads;
  ts_jit_inject_fatal(1);
  ck_assert_error(ts_jit_get_kernels(&a.source, 1, &kernel), TS_INTERNAL, "fatal error of LLVM");
  ck_assert_int_eq(stats().failed_threads, before + 1);
  ts_kernel_release(get(470));

  /* Too many, and the compiler is off; compiled kernels stay usable. */
  ts_kernel *held = get(471);
  for (int64_t i = before + 1; i < 16; i++) {
    ts_jit_inject_fatal(1);
    adder_init(&a, 480 + (int32_t)i);
    ck_assert_error(ts_jit_get_kernels(&a.source, 1, &kernel), TS_INTERNAL, "injected by a test");
  }
  ck_assert_error(ts_jit_get_kernels(&a.source, 1, &kernel), TS_INTERNAL, "the compiler is off");
  ts_kernel_release(get(470));
  adder_check(held, 471);
  ts_kernel_release(held);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("jit");
  TCase *tc = tcase_create("jit");
  tcase_add_checked_fixture(tc, setup, NULL);
  tcase_set_timeout(tc, 60);
  tcase_add_test(tc, a_kernel_compiles_and_runs);
  tcase_add_test(tc, a_kernel_is_compiled_once);
  tcase_add_test(tc, one_request_for_many);
  tcase_add_test(tc, many_threads);
  tcase_add_test(tc, old_kernels_are_evicted);
  tcase_add_test(tc, held_kernels_may_exceed_the_bound);
  tcase_add_test(tc, emitters_that_fail);
  tcase_add_test(tc, a_failure_does_not_stick);
  tcase_add_test(tc, one_failure_fails_the_request);
  tcase_add_test(tc, code_calls_outside);
  if (getenv("CK_FORK") == NULL) tcase_add_test(tc, no_thread_can_start); /* needs a process without threads */
  tcase_add_test(tc, every_allocation_may_fail);
  tcase_add_test(tc, debuggers_are_told);
  tcase_add_test(tc, perf_map_is_no_link);
  tcase_add_test(tc, waiters_outlive_a_failure);
  tcase_add_test(tc, a_prefetched_kernel_is_there_later);
  tcase_add_test(tc, prefetched_kernels_can_be_waited_for);
  tcase_add_test(tc, a_fatal_error_in_the_background_fails_no_request);
  tcase_add_test(tc, families_are_those_in_memory);
  tcase_add_test(tc, batches_begin_at_once);
  tcase_add_test(tc, a_batch_can_be_dropped);
  tcase_add_test(tc, a_batch_can_be_cancelled);
  tcase_add_test(tc, nonblocking_needs_kernels_in_memory);
  tcase_add_test(tc, fatal_errors_park_threads); /* last: it turns the compiler off */
  suite_add_tcase(s, tc);
  return s;
}

int main(void) { return testing_run(suite()); }
