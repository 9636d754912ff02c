/* The client of plugins (c_src/pjrt) called directly, with the plugin of the tests (test/pjrt/plugin.c). Functions
 * whose names begin with `try` wait for the end of their operation, and give its status. */
#ifndef TS_TEST_PJRT_DIRECT_H
#define TS_TEST_PJRT_DIRECT_H

#include "../pjrt/plugin.h"
#include "device/platform.h"
#include "operation_end.h"

extern const test_direction *direction; /* of that plugin; set by direct_begin() */
extern const ts_platform *const p;
enum { MANNERS = 3 };
extern const test_manner manners[MANNERS];
extern const ts_setting on_a_cpu; /* The plugin's device is then a CPU, whose buffers have addresses here. */

void direct_begin(void);

ts_status try_open_with(const ts_setting *items, size_t count, void **out);
ts_status try_open(void **out);
ts_status try_compile_graph(void *client, const ts_graph *graph, ts_program *out);
ts_status try_compile_text(void *client, const char *source, ts_program *out);
/* Three f32 numbers on a device: their placement, and 1, 2, 3 there. */
ts_placement placement(void *client, int32_t device);
ts_status try_place(void *client, void **out);
ts_status try_read(void *memory, int64_t bytes, float *out);
ts_status try_address(void *memory, bool for_host, ts_address *out);
ts_status try_copy(void *client, void *memory, int32_t device, void **out);
/* On device 0. */
ts_status try_run_with(void *client, const ts_program *program, void *const *args, ts_bits donated, void **results);
/* The plugin has so many objects. Threads of the client destroy objects. */
void wait_until_live(int64_t live);

#endif
