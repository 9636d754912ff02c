/* Copies of weights that are made once: which buffers have them and for how long, and equal bits of products and
 * convolutions with and without them. */
#include "exec/executable.h"
#include "random_graph.h"
#include "tensor/prepared.h"
#include "tensors.h"
#include "testing.h"

#include <pthread.h>
#include <string.h>

static const ts_prepared_key one = {{1}}, two = {{2}};
static ts_pool *pool;

static void make_pool(void) { ck_assert_ok(ts_pool_create(1 << 20, &pool)); }
static void destroy_pool(void) { ts_pool_destroy(pool); }

static int64_t live(void) {
  ts_pool_stats stats;
  ts_pool_get_stats(pool, &stats);
  return stats.live;
}

static ts_buffer *make_buffer(void) {
  ts_buffer *buffer;
  ts_shape shape = SHAPE(100, 100);
  ck_assert_ok(ts_buffer_create(pool, TS_F32, &shape, &buffer));
  return buffer;
}

/* The result of a use: nothing, a copy to make, or a copy. */
typedef enum found { NOTHING, TO_MAKE, THERE } found;

static found use(ts_buffer *buffer, const ts_prepared_key *key, ts_prepared **out_use) {
  void *data;
  bool make;
  *out_use = ts_prepared_use(buffer, key, 1000, pool, &make, &data);
  if (!*out_use) return NOTHING;
  if (make) memset(data, 7, 1000);
  ck_assert_int_eq(((const char *)data)[999], 7);
  return make ? TO_MAKE : THERE;
}

/* Makes one if it is the second use, and ends the use. */
static found use_whole(ts_buffer *buffer, const ts_prepared_key *key) {
  ts_prepared *claim;
  found what = use(buffer, key, &claim);
  if (what == TO_MAKE) ts_prepared_made(claim, true);
  if (claim) ts_prepared_leave(claim);
  return what;
}

static found make_copy(ts_buffer *buffer, const ts_prepared_key *key) {
  found first = use_whole(buffer, key);
  return first == NOTHING ? use_whole(buffer, key) : first;
}

START_TEST(the_second_use_makes_a_copy)
{
  ts_buffer *buffer = make_buffer();
  ts_prepared *claim, *other;
  int64_t before = live();
  ck_assert_int_eq(use(buffer, &one, &claim), NOTHING);
  ck_assert_int_eq(live(), before);
  ck_assert_int_eq(use(buffer, &one, &claim), TO_MAKE);
  ck_assert_int_eq(use(buffer, &one, &other), NOTHING); /* another run, while it is made */
  ts_prepared_made(claim, false);                       /* that one was cancelled */
  ck_assert_int_eq(live(), before);
  ck_assert_int_eq(use_whole(buffer, &one), TO_MAKE);
  ck_assert_int_eq(use_whole(buffer, &one), THERE);
  ck_assert_int_eq(make_copy(buffer, &two), TO_MAKE); /* has its own */
  ck_assert_int_ge(live(), before + 2000);
  ts_buffer_release(buffer);
  ck_assert_int_eq(live(), 0);
}
END_TEST

/* Copies make room at the limit, except copies in use, and are not made again. */
START_TEST(short_of_memory)
{
  ts_buffer *buffer = make_buffer(), *other = make_buffer();
  ts_prepared *used;
  void *block;
  make_copy(buffer, &one);
  make_copy(other, &one);
  ck_assert_int_eq(use(other, &one, &used), THERE);
  ts_pool_set_limit(pool, live() + 1500);
  ck_assert_ok(ts_pool_alloc(pool, 2000, &block));
  ck_assert_int_eq(make_copy(buffer, &one), NOTHING);
  ts_pool_free(pool, block, 2000);
  ck_assert_error(ts_pool_alloc(pool, 4000, &block), TS_RESOURCE_EXHAUSTED, "are live and the limit is");
  ts_pool_set_limit(pool, 1 << 20);
  ts_prepared_leave(used);
  ck_assert_int_eq(use_whole(other, &one), THERE);
  ts_buffer_release(buffer);
  ts_buffer_release(other);
  ck_assert_int_eq(live(), 0);
}
END_TEST

START_TEST(no_copy)
{
  ts_buffer *buffer = make_buffer(), *wrapped;
  float bytes[4] = {0};
  ts_shape four = SHAPE(4);
  atomic_store(&buffer->is_fixed, false); /* its address was given away */
  ck_assert_int_eq(make_copy(buffer, &one), NOTHING);
  ts_buffer_release(buffer);
  ck_assert_ok(ts_buffer_wrap(TS_F32, &four, bytes, NULL, NULL, &wrapped));
  ck_assert_int_eq(make_copy(wrapped, &one), NOTHING);
  ts_buffer_release(wrapped);
  buffer = make_buffer();
  for (int64_t i = 0; i < 6; i++)
    ck_assert_int_eq(make_copy(buffer, &(ts_prepared_key){{i}}), i < 4 ? TO_MAKE : NOTHING);
  ts_buffer_release(buffer);
  buffer = make_buffer();
  ts_pool_set_limit(pool, live() + 1500); /* half of the rest is less than the copy */
  ck_assert_int_eq(make_copy(buffer, &one), NOTHING);
  ts_pool_set_limit(pool, 1 << 20);
  ck_assert_int_eq(use_whole(buffer, &one), NOTHING); /* not tried again */
  ts_buffer_release(buffer);
  ck_assert_int_eq(live(), 0);
}
END_TEST

START_TEST(forgotten_copies)
{
  ts_buffer *buffer = make_buffer(), *other = make_buffer();
  int64_t before = live();
  make_copy(buffer, &one);
  make_copy(other, &one);
  ts_prepared_forget(buffer);
  ck_assert_int_lt(live(), before + 2000);
  ck_assert_int_eq(make_copy(buffer, &one), TO_MAKE);
  ck_assert_int_eq(make_copy(other, &one), THERE);
  ts_buffer_release(buffer);
  ts_buffer_release(other);
  ck_assert_int_eq(live(), 0);
}
END_TEST

/* ---- programs ---- */

#define CONV(sizes)                                                                                                \
  " {strides = [1,1], low = [1,1], high = [1,1], input_dilation = [1,1], kernel_dilation = [1,1], groups = " sizes \
  "} : "
/* The first argument is the input, the second the weights. */
static const char *const programs[] = {
    "(%0: f32[16,700], %1: f32[700,900]) -> (f32[16,900]) {\n  %2 = dot_general %0, %1 {lhs_contract = [1], lhs_batch "
    "= [], rhs_contract = [0], rhs_batch = []} : f32[16,900]",
    "(%0: f32[33,700], %1: f32[611,700]) -> (f32[33,611]) {\n  %2 = dot_general %0, %1 {lhs_contract = [1], lhs_batch "
    "= [], rhs_contract = [1], rhs_batch = []} : f32[33,611]",
    "(%0: f64[9,601], %1: f64[601,803]) -> (f64[9,803]) {\n  %2 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = "
    "[], rhs_contract = [0], rhs_batch = []} : f64[9,803]",
    "(%0: s32[128,129], %1: s32[130,129]) -> (s32[128,130]) {\n  %2 = dot_general %0, %1 {lhs_contract = [1], "
    "lhs_batch = [], rhs_contract = [1], rhs_batch = []} : s32[128,130]",
    "(%0: f32[3,20,65], %1: f32[3,70,65]) -> (f32[3,20,70]) {\n  %2 = dot_general %0, %1 {lhs_contract = [2], "
    "lhs_batch = [0], rhs_contract = [2], rhs_batch = [0]} : f32[3,20,70]",
    /* longer in k than a phase of packing */
    "(%0: f32[40,9001], %1: f32[9001,300]) -> (f32[40,300]) {\n  %2 = dot_general %0, %1 {lhs_contract = [1], "
    "lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[40,300]",
    "(%0: f32[1,7,7,512], %1: f32[3,3,512,256]) -> (f32[1,7,7,256]) {\n  %2 = conv %0, %1" CONV("1") "f32[1,7,7,256]",
    "(%0: f32[1,7,7,512], %1: f32[3,3,256,512]) -> (f32[1,7,7,512]) {\n  %2 = conv %0, %1" CONV("2") "f32[1,7,7,512]",
    "(%0: f32[1,7,14,128], %1: f32[3,3,128,288]) -> (f32[1,7,14,288]) {\n  %2 = conv %0, %1" CONV(
        "1") "f32[1,7,14,288]",
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

static ts_graph *parse(const char *program) {
  char text[500];
  ts_graph *graph;
  snprintf(text, sizeof text, "graph @main%s\n  return %%2\n}\n", program);
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  return graph;
}

static ts_buffer *run(const ts_executable *exe, ts_buffer **args, const ts_run_options *options) {
  ts_buffer *result;
  ck_assert_ok(ts_executable_run(exe, args, 2, options, &result));
  return result;
}

static void check_equal(const ts_buffer *actual, const ts_buffer *expected) {
  ck_assert_int_eq(actual->bytes, expected->bytes);
  ck_assert(memcmp(actual->data, expected->data, (size_t)expected->bytes) == 0);
}

/* The default pool's bytes, which tell whether the weights have a copy. */
static int64_t default_live(void) {
  ts_pool_stats stats;
  ts_pool_get_stats(ts_pool_default(), &stats);
  return stats.live;
}

START_TEST(equal_bits)
{
  ts_graph *graph = parse(programs[_i]);
  ts_executable *exe;
  ts_buffer **args, *results[4];
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_ok(ts_random_args(3, graph, ts_pool_default(), &args));
  int64_t before = default_live(), each = 0;
  for (int i = 0; i < 4; i++) {
    results[i] = run(exe, args, &(ts_run_options){.threads = i == 2 ? 1 : 0});
    check_equal(results[i], results[0]);
    if (i == 0) each = default_live() - before;
  }
  ck_assert_int_ge(default_live() - before - 4 * each, args[1]->bytes); /* the copy */
  for (int i = 0; i < 4; i++) ts_buffer_release(results[i]);
  ck_assert_int_ge(default_live() - before, args[1]->bytes);
  ts_random_args_free(args, 2);
  ck_assert_int_lt(default_live(), before);
  ts_executable_release(exe);
  ts_graph_destroy(graph);
}
END_TEST

/* A product with other weights, in the memory of weights that had a copy. */
START_TEST(donated_weights)
{
  static const char square[] = "graph @main(%0: f32[512,512], %1: f32[512,512]) -> (f32[512,512]) {\n  %2 = add %0, %1 "
                               ": f32[512,512]\n  return %2\n}\n";
  ts_graph *graph = parse("(%0: f32[16,512], %1: f32[512,512]) -> (f32[16,512]) {\n  %2 = dot_general %0, %1 "
                          "{lhs_contract = [1], lhs_batch = [], rhs_contract = [1], rhs_batch = []} : f32[16,512]");
  ts_executable *product, *sum = test_compile(square);
  ts_buffer **args, *copy, *added, *results[4];
  uint64_t donated = 1;
  ck_assert_ok(ts_executable_create(graph, NULL, &product));
  ck_assert_ok(ts_random_args(3, graph, ts_pool_default(), &args));
  for (int i = 0; i < 3; i++) results[i] = run(product, args, NULL);
  ts_buffer *weights = args[1];
  ck_assert_ok(ts_buffer_create(ts_pool_default(), TS_F32, &weights->shape, &copy));
  memcpy(copy->data, weights->data, (size_t)copy->bytes);
  ck_assert_ok(ts_executable_run(sum, (ts_buffer *[]){weights, copy}, 2, &(ts_run_options){.donated = {&donated, 0, 2}},
                                 &added));
  ck_assert_ptr_eq(added, weights); /* its memory was taken */
  args[1] = added;
  results[3] = run(product, args, NULL);
  for (int64_t i = 0; i < 16 * 512; i++)
    ck_assert_float_eq(((float *)results[3]->data)[i], 2 * ((float *)results[0]->data)[i]);
  for (int i = 0; i < 4; i++) ts_buffer_release(results[i]);
  ts_buffer_release(copy);
  ts_random_args_free(args, 2);
  ts_executable_release(product);
  ts_executable_release(sum);
  ts_graph_destroy(graph);
}
END_TEST

typedef struct caller {
  const ts_executable *exe;
  ts_buffer **args;
  ts_buffer *result; /* of the last run */
} caller;

static void *call_often(void *context) {
  caller *c = context;
  for (int i = 0; i < 20; i++) {
    ts_buffer_release(c->result);
    c->result = run(c->exe, c->args, &(ts_run_options){.threads = 1});
  }
  return NULL;
}

/* One of them makes the copy while others run without, or with it. */
START_TEST(callers_at_once)
{
  enum { CALLERS = 4 };
  ts_graph *graph = parse(programs[1]);
  ts_executable *exe;
  ts_buffer **args;
  caller callers[CALLERS];
  pthread_t threads[CALLERS];
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_ok(ts_random_args(3, graph, ts_pool_default(), &args));
  for (int i = 0; i < CALLERS; i++) {
    callers[i] = (caller){exe, args, NULL};
    ck_assert_int_eq(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
  }
  for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < CALLERS; i++) {
    check_equal(callers[i].result, callers[0].result);
    if (i > 0) ts_buffer_release(callers[i].result);
  }
  ts_buffer_release(callers[0].result);
  ts_random_args_free(args, 2);
  ts_executable_release(exe);
  ts_graph_destroy(graph);
}
END_TEST

/* Makes a copy of the weights with the second run. */
static ts_status run_three_times(const ts_graph *graph, const ts_executable *exe) {
  ts_buffer **args, *results[3] = {0};
  ts_status status = ts_random_args(3, graph, ts_pool_default(), &args);
  if (status) return status;
  for (int i = 0; !status && i < 3; i++) {
    status = ts_executable_run(exe, args, 2, NULL, &results[i]);
    if (results[i]) check_equal(results[i], results[0]);
  }
  for (int i = 0; i < 3; i++) ts_buffer_release(results[i]);
  ts_random_args_free(args, 2);
  return status;
}

START_TEST(failing_allocations)
{
  ts_graph *graph = parse(programs[1]);
  ts_executable *exe;
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  CK_FAIL_EACH_ALLOCATION({ ts_status_free(run_three_times(graph, exe)); });
  ts_executable_release(exe);
  ts_graph_destroy(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("prepared");
  TCase *copies = tcase_create("copies"), *runs = tcase_create("programs");
  tcase_add_checked_fixture(copies, make_pool, destroy_pool);
  tcase_add_test(copies, the_second_use_makes_a_copy);
  tcase_add_test(copies, short_of_memory);
  tcase_add_test(copies, no_copy);
  tcase_add_test(copies, forgotten_copies);
  suite_add_tcase(suite, copies);
  tcase_add_loop_test(runs, equal_bits, 0, PROGRAMS);
  tcase_add_test(runs, donated_weights);
  tcase_add_test(runs, callers_at_once);
  tcase_add_test(runs, failing_allocations);
  suite_add_tcase(suite, runs);
  return testing_run(suite);
}
