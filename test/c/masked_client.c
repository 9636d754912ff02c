#include "masked_client.h"

#include "base/alloc.h"

#include <string.h>

enum { MASK = 0x5a };

static _Atomic int64_t left = -1, live;

void test_masked_fail_after(int64_t transfers) { atomic_store(&left, transfers); }
int64_t test_masked_live(void) { return atomic_load(&live); }

static ts_status transfer(void) {
  int64_t n = atomic_load(&left);
  if (n == 0) return ts_error(TS_RESOURCE_EXHAUSTED, "the masked device refuses a transfer");
  if (n > 0) atomic_store(&left, n - 1);
  return TS_SUCCESS;
}

/* ---- buffers */

static void mask(unsigned char *out, const unsigned char *in, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i++) out[i] = in[i] ^ MASK;
}

static void free_masked(void *bytes) {
  atomic_fetch_sub(&live, 1);
  ts_free(bytes);
}

static ts_status from_host(ts_device *device, const ts_buffer *host, ts_buffer **out) {
  unsigned char *bytes;
  *out = NULL;
  TS_TRY(transfer());
  TS_TRY(ts_alloc((size_t)host->bytes + 1, (void **)&bytes));
  mask(bytes, host->data, host->bytes);
  ts_status status = ts_buffer_wrap_elsewhere(device, host->dtype, &host->shape, free_masked, bytes, out);
  if (status)
    ts_free(bytes);
  else
    atomic_fetch_add(&live, 1);
  return status;
}

static ts_status to_host(const ts_buffer *buffer, int64_t bytes, void *out) {
  TS_TRY(transfer());
  mask(out, buffer->context, bytes);
  return TS_SUCCESS;
}

static void release_all(ts_buffer **buffers, size_t count) {
  for (size_t i = 0; i < count; i++) ts_buffer_release(buffers[i]);
}

/* Copies in host memory; of buffers of other platforms and of no device, too. */
static ts_status fetch_all(ts_buffer *const *buffers, size_t count, ts_buffer **out) {
  for (size_t i = 0; i < count; i++) {
    ts_status status = ts_device_fetch(buffers[i], &out[i]);
    if (!status) continue;
    release_all(out, i);
    return status;
  }
  return TS_SUCCESS;
}

/* Puts results in host memory on the device. Takes them over. */
static ts_status place_all(ts_device *device, ts_buffer **results, size_t count) {
  for (size_t i = 0; i < count; i++) {
    ts_buffer *placed;
    ts_status status = ts_device_place(device, results[i], &placed);
    if (!status) {
      results[i] = placed;
      continue;
    }
    release_all(results, i);
    release_all(results + i + 1, count - i - 1);
    return status;
  }
  return TS_SUCCESS;
}

/* ---- programs */

static ts_status compile(ts_client *client, const ts_graph *graph, const ts_compile_options *options, ts_loaded *out) {
  TS_TRY(ts_platform_host.compile(client, graph, options, out));
  out->is_short = false; /* transfers may take long */
  return TS_SUCCESS;
}

static void release(void *own) { ts_platform_host.release(own); }

static void take_donated(ts_run_args args, ts_bits donated) {
  for (size_t i = 0; i < args.count; i++)
    if (ts_bits_has(donated, i)) ts_buffer_release(args.buffers[i]);
}

static ts_status run(const ts_loaded *loaded, ts_run_args args, const ts_run_options *options,
                     ts_buffer **out_results) {
  ts_buffer **host;
  ts_run_options o = {.control = options->control, .threads = options->threads};
  TS_TRY(TS_NEW_ARRAY(args.count, &host));
  ts_status status = fetch_all(args.buffers, args.count, host);
  if (!status) {
    status = ts_executable_run(loaded->own, host, args.count, &o, out_results);
    release_all(host, args.count);
  }
  if (!status) status = place_all(options->device, out_results, loaded->result_count);
  if (!status) take_donated(args, options->donated);
  ts_free(host);
  return status;
}

/* ---- resumable runs */

typedef struct masked_run {
  const ts_loaded *loaded;
  ts_device *device;
  ts_execution *execution;
  ts_run_args given;
  ts_bits donated;
  ts_buffer **host;
} masked_run;

static void free_run(masked_run *r) {
  release_all(r->host, r->given.count);
  ts_free(r->host);
  ts_free(r);
}

static ts_status begin(const ts_loaded *loaded, ts_run_args args, const ts_run_options *options, void **out_run) {
  masked_run *r;
  ts_run_options o = {.control = options->control, .threads = options->threads};
  *out_run = NULL;
  TS_TRY(TS_NEW(&r));
  *r = (masked_run){.loaded = loaded, .device = options->device, .donated = options->donated};
  ts_status status = TS_NEW_ARRAY(args.count, &r->host);
  if (!status) status = fetch_all(args.buffers, args.count, r->host);
  if (!status) {
    r->given = args;
    status = ts_execution_create(loaded->own, r->host, args.count, &o, &r->execution);
  }
  if (status)
    free_run(r);
  else
    *out_run = r;
  return status;
}

static ts_status advance(void *own, ts_run_state *out_state) {
  return ts_execution_advance(((masked_run *)own)->execution, out_state);
}

static void get_call(const void *own, ts_run_call *out) {
  ts_execution_get_call(((const masked_run *)own)->execution, out);
}

static const void *operand(const void *own, uint32_t i) {
  return ts_execution_operand(((const masked_run *)own)->execution, i);
}

static ts_status answer(void *own, ts_buffer *const *results, size_t count) {
  return ts_execution_answer(((masked_run *)own)->execution, results, count);
}

static ts_status end(void *own, ts_buffer **out_results) {
  masked_run *r = own;
  ts_status status = ts_execution_end(r->execution, out_results);
  if (out_results && !status) status = place_all(r->device, out_results, r->loaded->result_count);
  if (out_results && !status) take_donated(r->given, r->donated);
  free_run(r);
  return status;
}

const ts_platform test_masked = {.name = "masked",
                                 .elsewhere = true,
                                 .compile = compile,
                                 .release = release,
                                 .run = run,
                                 .begin = begin,
                                 .advance = advance,
                                 .get_call = get_call,
                                 .operand = operand,
                                 .answer = answer,
                                 .end = end,
                                 .from_host = from_host,
                                 .to_host = to_host};

const ts_platform test_masked_simple = {.name = "masked_simple",
                                        .elsewhere = true,
                                        .compile = compile,
                                        .release = release,
                                        .run = run,
                                        .from_host = from_host,
                                        .to_host = to_host};
