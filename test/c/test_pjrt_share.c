/* Elements that are read in place by the client of plugins (c_src/pjrt/share.c): host memory that is lent to buffers,
 * addresses of buffers, and buffers on memory of others. The plugin of the tests reads lent memory when it computes, so
 * a sanitizer sees memory that was freed too early. */
#include "pjrt_direct.h"
#include "testing.h"

#include <sched.h>
#include <sys/mman.h>

enum { COUNT = 1 << 15, BYTES = COUNT * 4 };

static const ts_shape shape = {1, {COUNT}};

static void *client;
static ts_program twice;

static void open_client(void) {
  ck_assert_ok(try_open_with(&on_a_cpu, 1, &client));
  ck_assert_ok(try_compile_text(client,
                                "graph @main(%0: f32[32768]) -> (f32[32768]) {\n  %1 = add %0, %0 : f32[32768]\n"
                                "  return %1\n}\n",
                                &twice));
}

static void set_up(void) {
  direct_begin();
  direction->set_manner(TEST_MIXED);
  open_client();
}

static void end_client(void) {
  p->release_program(twice.program);
  p->close(client);
}

static void tear_down(void) {
  end_client();
  wait_until_live(0);
  ck_assert_int_eq(direction->wrong(), 0);
}

/* ---- owners: they are freed with their last reference */

typedef struct block {
  _Atomic int refs;
  float data[COUNT];
} block;

static _Atomic int blocks;

static void retain(void *object) { atomic_fetch_add(&((block *)object)->refs, 1); }

static void release(void *object) {
  if (atomic_fetch_sub(&((block *)object)->refs, 1) != 1) return;
  free(object);
  atomic_fetch_sub(&blocks, 1);
}

static block *new_block(float first) {
  block *b = malloc(sizeof *b);
  ck_assert_ptr_nonnull(b);
  atomic_init(&b->refs, 1);
  atomic_fetch_add(&blocks, 1);
  for (int i = 0; i < COUNT; i++) b->data[i] = first + (float)i;
  return b;
}

/* Threads of the client drop the last references. */
static void wait_until_freed(void) {
  while (atomic_load(&blocks) > 0) sched_yield();
}

static ts_placement placement_of(block *b) {
  return (ts_placement){
      .client = client, .dtype = TS_F32, .shape = &shape, .bytes = BYTES, .owner = {b, retain, release}};
}

/* The block is dropped before the memory is used. */
static ts_status try_place_block(float first, void **out) {
  end e = {0};
  block *b = new_block(first);
  const ts_placement where = placement_of(b);
  *out = NULL;
  p->from_host(&where, b->data, out, DONE(&e));
  ts_status status = wait_for(&e);
  release(b);
  return status;
}

static void *place_block(float first) {
  void *memory;
  ck_assert_ok(try_place_block(first, &memory));
  return memory;
}

/* The first block only tells where the client's buffers are, and is copied. */
static void warm_up(void) {
  p->release_memory(place_block(0));
  wait_until_freed();
}

static ts_status try_twice(void *memory, float *out) {
  void *result = NULL;
  TS_TRY(try_run_with(client, &twice, &memory, (ts_bits){0}, &result));
  ts_status status = try_read(result, BYTES, out);
  p->release_memory(result);
  return status;
}

static void check_twice(void *memory, float first) {
  static float out[COUNT];
  ck_assert_ok(try_twice(memory, out));
  for (int i = 0; i < COUNT; i++) ck_assert_float_eq(out[i], 2 * (first + (float)i));
}

/* ---- loans */

/* The buffer reads the block, which lives as long as the buffer, and no longer. */
START_TEST(host_memory_is_lent)
{
  direction->set_manner(manners[_i]);
  warm_up();
  void *memory = place_block(5);
  ck_assert_int_eq(atomic_load(&blocks), 1);
  check_twice(memory, 5);
  p->release_memory(memory);
  wait_until_freed();
}
END_TEST

START_TEST(small_or_unowned_memory_is_copied)
{
  end e = {0};
  warm_up();
  block *b = new_block(1);
  ts_placement small = placement_of(b), unowned = placement_of(b);
  small.shape = &(ts_shape){1, {3}};
  small.bytes = 12;
  unowned.owner.object = NULL;
  for (int i = 0; i < 2; i++) {
    void *memory;
    p->from_host(i ? &small : &unowned, b->data, &memory, DONE(&e));
    ck_assert_ok(wait_for(&e));
    ck_assert_int_eq(atomic_load(&b->refs), 1);
    p->release_memory(memory);
  }
  release(b);
}
END_TEST

/* Devices other than CPUs copy the memory anyway, and it is not lent for so long. */
START_TEST(devices_get_copies)
{
  void *cpu = client;
  ck_assert_ok(try_open(&client));
  warm_up();
  void *memory = place_block(1);
  ck_assert_int_eq(atomic_load(&blocks), 0);
  p->release_memory(memory);
  p->close(client);
  client = cpu;
}
END_TEST

/* Several buffers and a copy read one block. The host's reference is the first to end. */
START_TEST(buffers_share_a_block)
{
  float out[2];
  void *memory[3], *copy;
  warm_up();
  block *b = new_block(7);
  const ts_placement where = placement_of(b);
  for (int i = 0; i < 3; i++) {
    end e = {0};
    p->from_host(&where, b->data, &memory[i], DONE(&e));
    ck_assert_ok(wait_for(&e));
  }
  release(b);
  ck_assert_ok(try_copy(client, memory[0], 1, &copy));
  for (int i = 0; i < 3; i++) p->release_memory(memory[i]);
  ck_assert_ok(try_read(copy, 8, out));
  ck_assert_float_eq(out[1], 8);
  ck_assert_int_eq(atomic_load(&blocks), 1);
  p->release_memory(copy);
  wait_until_freed();
}
END_TEST

/* A plugin that gives nothing back keeps a bounded number of blocks. Its client ends when they are given back. */
START_TEST(a_plugin_keeps_blocks)
{
  warm_up();
  direction->keep_bytes(true);
  for (int i = 0; i < 300; i++) p->release_memory(place_block((float)i));
  int kept = atomic_load(&blocks);
  int64_t ended = direction->calls(PJ_CLIENT_DESTROY);
  ck_assert_int_ge(kept, 32);
  ck_assert_int_le(kept, 128);
  void *memory = place_block(3);
  check_twice(memory, 3);
  p->release_memory(memory);
  end_client();
  for (int i = 0; i < 1000; i++) sched_yield();
  ck_assert_int_eq(direction->calls(PJ_CLIENT_DESTROY), ended);
  direction->keep_bytes(false);
  wait_until_freed();
  wait_until_live(0);
  open_client();
}
END_TEST

/* A plugin that refuses is not asked again, and gets copies. */
START_TEST(a_plugin_refuses_loans)
{
  warm_up();
  direction->copies(true);
  for (int i = 0; i < 3; i++) {
    int64_t before = direction->calls(PJ_FROM_HOST);
    void *memory = place_block(2);
    ck_assert_int_eq(atomic_load(&blocks), 0);
    ck_assert_int_eq(direction->calls(PJ_FROM_HOST) - before, i ? 1 : 2);
    check_twice(memory, 2);
    p->release_memory(memory);
  }
  direction->copies(false);
}
END_TEST

/* Where the plugin cannot say when it has done with a block, the block is taken back and copied: no thread waits as
 * long as a buffer lives. */
START_TEST(ends_that_cannot_be_watched)
{
  void *memory[20];
  warm_up();
  direction->set_manner(TEST_LATE);
  direction->fail_after(PJ_EVENT_ON_READY, 0);
  for (int i = 0; i < 20; i++) memory[i] = place_block((float)i);
  direction->fail_after(PJ_EVENT_ON_READY, -1);
  wait_until_freed();
  for (int i = 0; i < 20; i++) {
    check_twice(memory[i], (float)i);
    p->release_memory(memory[i]);
  }
}
END_TEST

START_TEST(transfers_that_fail)
{
  warm_up();
  for (int i = 0; i < 30; i++) {
    void *memory;
    direction->set_manner(manners[i % MANNERS]);
    if (i % 2)
      direction->fail_after(PJ_FROM_HOST, 0);
    else
      direction->fail_event_after(PJ_FROM_HOST, 0);
    ts_status status = try_place_block(1, &memory);
    direction->fail_after(PJ_FROM_HOST, -1);
    direction->fail_event_after(PJ_FROM_HOST, -1);
    ck_assert_int_eq(ts_status_code(status), TS_UNAVAILABLE);
    ts_status_free(status);
    wait_until_freed();
  }
}
END_TEST

/* The block of a late transfer stays without a copy of it. */
START_TEST(lent_memory_outlives_a_deadline)
{
  const ts_setting soon[] = {on_a_cpu, {.name = "timeout", .kind = TS_SETTING_INTEGER, .integer = 20}};
  void *cpu = client, *memory = NULL;
  ck_assert_ok(try_open_with(soon, 2, &client));
  direction->keep(true);
  ck_assert_error(try_place_block(1, &memory), TS_UNAVAILABLE, "did not end within 20 ms");
  ck_assert_int_eq(atomic_load(&blocks), 1);
  direction->keep(false);
  wait_until_freed();
  p->close(client);
  client = cpu;
}
END_TEST

enum { MANY = 100000 };

/* Made and dropped in any order, with runs between. */
START_TEST(many_buffers)
{
  enum { HELD = 16 };
  void *held[HELD] = {0};
  uint64_t random = 88172645463325252u;
  const int many = TEST_IS_SANITIZED && !testing_every_case() ? MANY / 10 : MANY;
  direction->set_manner(manners[_i]);
  warm_up();
  block *b = new_block(1);
  const ts_placement where = placement_of(b);
  for (int i = 0; i < many; i++) {
    end e = {0};
    random = random * 6364136223846793005u + 1442695040888963407u;
    void **at = &held[random >> 60];
    if (*at && i % 1000 == 0) check_twice(*at, 1);
    if (*at) p->release_memory(*at);
    p->from_host(&where, b->data, at, DONE(&e));
    ck_assert_ok(wait_for(&e));
  }
  for (int i = 0; i < HELD; i++)
    if (held[i]) p->release_memory(held[i]);
  while (atomic_load(&b->refs) > 1) sched_yield();
  release(b);
}
END_TEST

/* ---- addresses */

START_TEST(addresses_of_buffers)
{
  ts_address first, second;
  void *memory = place_block(4), *other = place_block(6);
  ck_assert_ok(try_address(memory, false, &first));
  ck_assert(first.is_on_host);
  ck_assert_float_eq(((float *)first.data)[3], 7);
  ck_assert_ok(try_address(memory, false, &second));
  ck_assert_ptr_eq(first.data, second.data);
  check_twice(memory, 4);
  ck_assert_float_eq(((float *)first.data)[3], 7);
  p->release_memory(memory);
  p->release_memory(other);
}
END_TEST

/* The host cannot use an address of another device, so it asks for none to read the elements. */
START_TEST(addresses_of_devices)
{
  static const pj_function unused[] = {PJ_BUFFER_SIZE, PJ_BUFFER_LAYOUT, PJ_BUFFER_HOLD, PJ_BUFFER_ADDRESS};
  float out[2];
  ts_address at;
  void *cpu = client, *memory;
  ck_assert_ok(try_open(&client));
  memory = place_block(1);
  int64_t calls[4];
  for (int i = 0; i < 4; i++) calls[i] = direction->calls(unused[i]);
  for (int i = 0; i < 2; i++) {
    ck_assert_ok(try_address(memory, true, &at));
    ck_assert_ptr_null(at.data);
    ck_assert_ok(try_read(memory, 8, out));
    ck_assert_float_eq(out[1], 2);
  }
  for (int i = 0; i < 4; i++) ck_assert_int_eq(direction->calls(unused[i]), calls[i]);
  ck_assert_ok(try_address(memory, false, &at));
  ck_assert(!at.is_on_host);
  ck_assert_ptr_nonnull(at.data);
  p->release_memory(memory);
  p->close(client);
  client = cpu;
}
END_TEST

/* Each function on the way may fail. The address has the error, and a transfer takes another way. */
START_TEST(functions_of_addresses_may_fail)
{
  static const pj_function functions[] = {PJ_BUFFER_SIZE, PJ_BUFFER_LAYOUT, PJ_BUFFER_HOLD, PJ_BUFFER_ADDRESS};
  float out[2];
  ts_address at;
  for (size_t i = 0; i < 4; i++) {
    void *memory = place_block(1);
    direction->fail_after(functions[i], 0);
    ck_assert_error(try_address(memory, false, &at), TS_UNAVAILABLE, "the plugin failed at PJRT_Buffer_");
    direction->fail_after(functions[i], 0);
    int64_t before = direction->calls(PJ_BUFFER_TO_HOST);
    ck_assert_ok(try_read(memory, 8, out));
    ck_assert_float_eq(out[1], 2);
    ck_assert_int_eq(direction->calls(PJ_BUFFER_TO_HOST) - before, 1);
    direction->fail_after(functions[i], -1);
    ck_assert_ok(try_address(memory, false, &at));
    p->release_memory(memory);
  }
}
END_TEST

START_TEST(other_layouts_have_no_address)
{
  static const ts_shape square = {2, {128, 256}};
  end e = {0};
  float out[2];
  ts_address at;
  void *memory;
  block *b = new_block(1);
  ts_placement where = placement_of(b);
  where.shape = &square;
  p->from_host(&where, b->data, &memory, DONE(&e));
  ck_assert_ok(wait_for(&e));
  release(b);
  direction->other_layout(true);
  ck_assert_error(try_address(memory, false, &at), TS_UNIMPLEMENTED, "keeps f32[128,256] in another layout");
  ck_assert_ok(try_read(memory, 8, out)); /* by the plugin */
  direction->other_layout(false);
  ck_assert_float_eq(out[1], 2);
  p->release_memory(memory);
}
END_TEST

/* ---- views */

static ts_status try_view(block *b, void *data, void **out) {
  end e = {0};
  const ts_placement where = placement_of(b);
  p->view(&where, data, out, DONE(&e));
  return wait_for(&e);
}

START_TEST(buffers_on_memory_of_others)
{
  void *memory;
  direction->set_manner(manners[_i]);
  block *b = new_block(1);
  ck_assert_ok(try_view(b, b->data, &memory));
  b->data[0] = 9; /* not a copy */
  static float out[COUNT];
  ck_assert_ok(try_twice(memory, out));
  ck_assert_float_eq(out[0], 18);
  ck_assert_float_eq(out[1], 4);
  ck_assert_int_eq(atomic_load(&b->refs), 2);
  b->data[0] = 1;
  release(b);
  check_twice(memory, 1);
  p->release_memory(memory);
  wait_until_freed();
}
END_TEST

START_TEST(views_that_are_refused)
{
  void *memory, *closed = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  block *b = new_block(1);
  ck_assert_error(try_view(b, closed, &memory), TS_INVALID_ARGUMENT, "cannot all be read");
  ck_assert_ptr_null(memory);
  direction->fail_after(PJ_BUFFER_VIEW, 0);
  ck_assert_error(try_view(b, b->data, &memory), TS_UNAVAILABLE, "PJRT_Client_CreateViewOfDeviceBuffer");
  direction->fail_after(PJ_BUFFER_VIEW, -1);
  while (atomic_load(&b->refs) > 1) sched_yield();
  release(b);
  munmap(closed, BYTES);
}
END_TEST

/* An address of this process means nothing in another one. */
START_TEST(isolated_plugins_have_no_addresses)
{
  const ts_setting isolated[] = {on_a_cpu, {.name = "isolated", .kind = TS_SETTING_BOOLEAN, .integer = 1}};
  void *cpu = client, *memory, *view;
  ts_address at;
  ck_assert_ok(try_open_with(isolated, 2, &client));
  memory = place_block(1);
  ck_assert_int_eq(atomic_load(&blocks), 0);
  ck_assert_error(try_address(memory, false, &at), TS_UNIMPLEMENTED, "has a process of its own");
  block *b = new_block(1);
  ck_assert_error(try_view(b, b->data, &view), TS_UNIMPLEMENTED, "has a process of its own");
  release(b);
  p->release_memory(memory);
  p->close(client);
  client = cpu;
}
END_TEST

/* ---- without memory */

static ts_status try_all(void) {
  ts_address at;
  void *memory = NULL, *view = NULL;
  block *b = new_block(1);
  ts_status status = try_place_block(1, &memory);
  if (!status) status = try_address(memory, false, &at);
  if (!status) status = try_view(b, b->data, &view);
  if (memory) p->release_memory(memory);
  if (view) p->release_memory(view);
  release(b);
  wait_until_freed();
  return status;
}

START_TEST(without_memory)
{
  warm_up();
  for (int64_t n = 1; n < 1000; n++) {
    ts_alloc_fail_after(n, false);
    ts_status status = try_all();
    bool failed = ts_alloc_failures() > 0;
    ts_alloc_fail_after(0, false);
    ts_status_free(status);
    if (!failed) break;
    ck_assert_int_lt(n, 999);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("pjrt_share");
  TCase *cases = tcase_create("pjrt_share");
  tcase_set_timeout(cases, 300);
  tcase_add_checked_fixture(cases, set_up, tear_down);
  tcase_add_loop_test(cases, host_memory_is_lent, 0, MANNERS);
  tcase_add_test(cases, small_or_unowned_memory_is_copied);
  tcase_add_test(cases, devices_get_copies);
  tcase_add_test(cases, buffers_share_a_block);
  tcase_add_test(cases, a_plugin_keeps_blocks);
  tcase_add_test(cases, a_plugin_refuses_loans);
  tcase_add_test(cases, ends_that_cannot_be_watched);
  tcase_add_test(cases, transfers_that_fail);
  tcase_add_test(cases, lent_memory_outlives_a_deadline);
  tcase_add_loop_test(cases, many_buffers, 0, MANNERS);
  tcase_add_test(cases, addresses_of_buffers);
  tcase_add_test(cases, addresses_of_devices);
  tcase_add_test(cases, functions_of_addresses_may_fail);
  tcase_add_test(cases, other_layouts_have_no_address);
  tcase_add_loop_test(cases, buffers_on_memory_of_others, 0, MANNERS);
  tcase_add_test(cases, views_that_are_refused);
  tcase_add_test(cases, isolated_plugins_have_no_addresses);
  tcase_add_test(cases, without_memory);
  suite_add_tcase(suite, cases);
  return testing_run(suite);
}
