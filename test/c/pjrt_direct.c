#include "pjrt_direct.h"

#include "pjrt/pjrt.h"
#include "pjrt_file.h"
#include "testing.h"

#include <dlfcn.h>
#include <sched.h>

const test_direction *direction;
const ts_platform *const p = &ts_platform_pjrt;
const test_manner manners[MANNERS] = {TEST_INLINE, TEST_LATE, TEST_MIXED};
const ts_setting on_a_cpu = {.name = "cpu", .kind = TS_SETTING_BOOLEAN, .integer = 1};

static const test_direction *get_direction(void) {
  void *library = dlopen(test_pjrt_file("pjrt_test.so"), RTLD_NOW | RTLD_LOCAL);
  ck_assert_msg(library, "%s", dlerror());
  union {
    void *data;
    test_get_direction call;
    pj_get_api api;
  } get = {.data = dlsym(library, "GetPjrtApi")};
  ck_assert_ptr_nonnull(get.data);
  ck_assert_ptr_nonnull(get.api());
  get.data = dlsym(library, "GetTestDirection");
  ck_assert_ptr_nonnull(get.data);
  return get.call();
}

void direct_begin(void) {
  test_pjrt_use();
  direction = get_direction();
}

ts_status try_open_with(const ts_setting *items, size_t count, void **out) {
  end e = {0};
  ts_opened opened = {0};
  *out = NULL;
  p->open(&(ts_open_options){.name = "direct", .memory_limit = -1, .settings = {items, count}}, &opened, DONE(&e));
  ts_status status = wait_for(&e);
  if (!status) *out = opened.client;
  return status;
}

ts_status try_open(void **out) { return try_open_with(NULL, 0, out); }

ts_status try_compile_graph(void *client, const ts_graph *graph, ts_program *out) {
  end e = {0};
  p->compile(client, graph, &(ts_program_options){0}, out, DONE(&e));
  return wait_for(&e);
}

ts_status try_compile_text(void *client, const char *source, ts_program *out) {
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(source, strlen(source), &graph));
  ts_status status = try_compile_graph(client, graph, out);
  ts_graph_destroy(graph);
  return status;
}

ts_placement placement(void *client, int32_t device) {
  static const ts_shape shape = {1, {3}};
  return (ts_placement){.client = client, .device = device, .dtype = TS_F32, .shape = &shape, .bytes = 12};
}

ts_status try_place(void *client, void **out) {
  end e = {0};
  ts_placement where = placement(client, 0);
  p->from_host(&where, (const float[]){1, 2, 3}, out, DONE(&e));
  return wait_for(&e);
}

ts_status try_read(void *memory, int64_t bytes, float *out) {
  end e = {0};
  p->to_host(memory, bytes, out, DONE(&e));
  return wait_for(&e);
}

ts_status try_address(void *memory, bool for_host, ts_address *out) {
  end e = {0};
  p->address(memory, for_host, out, DONE(&e));
  return wait_for(&e);
}

ts_status try_copy(void *client, void *memory, int32_t device, void **out) {
  end e = {0};
  ts_placement where = placement(client, device);
  p->copy(memory, &where, out, DONE(&e));
  return wait_for(&e);
}

ts_status try_run_with(void *client, const ts_program *program, void *const *args, ts_bits donated, void **results) {
  end e = {0};
  static const int32_t first;
  ts_run_request request = {.program = program->program,
                            .client = client,
                            .devices = &first,
                            .device_count = 1,
                            .args = args,
                            .arg_count = program->param_count,
                            .donated = donated,
                            .results = results};
  p->run(&request, DONE(&e));
  return wait_for(&e);
}

void wait_until_live(int64_t live) {
  while (direction->live() != live) sched_yield();
}
