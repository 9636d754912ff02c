/* Calls of our own plugin of PJRT (c_src/plugin) by its table, as JAX does it. A call that must not fail ends the test
 * if it fails. */
#ifndef TS_TEST_PLUGIN_CALLS_H
#define TS_TEST_PLUGIN_CALLS_H

#include "plugin/plugin.h"
#include "testing.h"

/* The places of functions that our client does not call, by PJRT's list; PJ_* has the others. */
enum {
  AT_CLIENT_DEVICES = 15,
  AT_LOOK_UP_DEVICE = 17,
  AT_DEFAULT_ASSIGNMENT = 21,
  AT_DEVICE_IS_ADDRESSABLE = 30,
  AT_EXECUTABLE_COST = 46,
  AT_EXECUTABLE_OPTIMIZED = 48,
  AT_LOADED_DEVICES = 52,
  AT_LOADED_DELETE = 53,
  AT_LOADED_FINGERPRINT = 57,
  AT_BUFFER_TYPE = 59,
  AT_BUFFER_DELETE = 67,
  AT_BUFFER_IS_DELETED = 68,
  AT_BUFFER_HOLD = 74,
  AT_BUFFER_LET_GO = 75,
  AT_BUFFER_DATA = 76,
  AT_TOPOLOGY_CREATE = 82,
  AT_TOPOLOGY_DESTROY = 83,
  AT_TOPOLOGY_DESCRIPTIONS = 86,
  AT_TOPOLOGY_SAVE = 87,
  AT_CLIENT_TOPOLOGY = 95,
  AT_BUFFER_RAW = 100,
  AT_LOADED_ASSIGNMENT = 117
};

const pj_api *GetPjrtApi(void);

/* The error of the call as a status with its code and its text. */
ts_status call(int place, pj_args *args);
void destroy(int place, void *object);

pj_handle *open_client(int devices);

/* The least options of a compilation: one replica of one partition. */
extern const char least[6];
ts_status try_compile_with(pj_handle *client, const char *text, const char *options, size_t size, pj_loaded **out);
pj_loaded *compile(pj_handle *client, const char *text);
ts_status try_execute(pj_loaded *loaded, pj_buffer *const *buffers, size_t count, pj_buffer **results);

/* The arguments of a transfer to the client's first device. The caller makes the call. */
pj_args from_host(pj_handle *client, int type, const void *data, const int64_t *dims, size_t rank);
pj_buffer *place_on(pj_handle *client, int device, int type, const void *data, int64_t count);
pj_buffer *place(pj_handle *client, int type, const void *data, int64_t count);
/* A buffer that may use the bytes of `data` as long as it lives; `*out_event` ends with it. */
pj_buffer *share(pj_handle *client, int semantics, const float *data, int64_t count, pj_event **out_event);
/* The address of the buffer's elements. */
const void *address_of(pj_buffer *buffer);
void read_back(pj_buffer *buffer, void *to, size_t size);
void check_floats(pj_buffer *buffer, const float *expected, size_t count);

/* A client of one device with a program, and two buffers of f32[3]. */
typedef struct runnable {
  pj_handle *client;
  pj_loaded *loaded;
  pj_buffer *x, *y; /* x is [1, 2, 3] */
} runnable;

runnable open_program(const char *text, const float y[3]);
void close_program(const runnable *program);

#endif
