/* Buffers and transfers. A transfer is done when its function returns. A program may read the bytes of a buffer in
 * place as long as it holds it, and a buffer may share the bytes of the program. */
#include "plugin/plugin.h"

#include <string.h>

/* ---- types */

int plugin_type_of(ts_dtype dtype, bool is_bool) { return is_bool ? PJ_PRED : pj_type(dtype); }

static ts_status dtype_of(int type, ts_dtype *out) {
  *out = TS_U8;
  if (type == PJ_PRED || pj_dtype(type, out)) return TS_SUCCESS;
  return ts_error(TS_UNIMPLEMENTED, "Tessera has no elements of PJRT's type %d", type);
}

/* ---- buffers */

ts_status plugin_buffer_new(pj_device *device, int type, ts_buffer *data, pj_buffer **out) {
  pj_buffer *b;
  TS_TRY(ts_alloc(sizeof *b + ts_shape_size(&data->shape), (void **)&b));
  *b = (pj_buffer){.device = device, .type = type, .data = data, .shape = (ts_shape *)(b + 1)};
  ts_shape_copy(b->shape, &data->shape);
  plugin_client_retain(device->client);
  plugin_account_add(device, data->bytes);
  *out = b;
  return TS_SUCCESS;
}

static void lock(const pj_buffer *b) { pthread_mutex_lock(&b->device->client->lock); }
static void unlock(const pj_buffer *b) { pthread_mutex_unlock(&b->device->client->lock); }

static ts_status deleted(void) { return ts_error(TS_INVALID_ARGUMENT, "the buffer was deleted or donated"); }

ts_status plugin_buffer_get(pj_buffer *b, ts_buffer **out) {
  lock(b);
  *out = b->data;
  if (*out) ts_buffer_retain(*out);
  unlock(b);
  return *out ? TS_SUCCESS : deleted();
}

ts_status plugin_buffer_take(pj_buffer *b, ts_buffer **out) {
  lock(b);
  *out = b->data;
  b->data = NULL;
  unlock(b);
  if (!*out) return deleted();
  plugin_account_add(b->device, -(*out)->bytes);
  return TS_SUCCESS;
}

void plugin_buffer_give_back(pj_buffer *b, ts_buffer *data) {
  plugin_account_add(b->device, data->bytes);
  lock(b);
  b->data = data;
  unlock(b);
}

static void drop(pj_buffer *b) {
  ts_buffer *data;
  if (ts_status_consume_ok(plugin_buffer_take(b, &data))) ts_buffer_release(data);
}

ts_status plugin_buffer_delete(pj_args *args) {
  drop(args->object);
  return TS_SUCCESS;
}

ts_status plugin_buffer_destroy(pj_args *args) {
  pj_buffer *b = args->object;
  if (!b) return TS_SUCCESS;
  pj_handle *client = b->device->client;
  drop(b);
  ts_buffer_release(b->held);
  ts_free(b);
  plugin_client_release(client);
  return TS_SUCCESS;
}

ts_status plugin_buffer_is_deleted(pj_args *args) {
  pj_buffer *b = args->flag.object;
  lock(b);
  args->flag.yes = !b->data;
  unlock(b);
  return TS_SUCCESS;
}

static const pj_buffer *buffer_of(const pj_args *args) { return args->list.object; }

ts_status plugin_buffer_type(pj_args *args) { return plugin_answer_number(args, buffer_of(args)->type); }

ts_status plugin_buffer_dims(pj_args *args) {
  const ts_shape *shape = buffer_of(args)->shape;
  return plugin_answer_list(args, shape->dims, (size_t)shape->rank);
}

ts_status plugin_buffer_unpadded(pj_args *args) { return plugin_buffer_dims(args); }

ts_status plugin_buffer_dynamic(pj_args *args) { return plugin_answer_list(args, NULL, 0); }

/* 63, 62, ... 0: the end of it is the order of row-major dims. */
static const int64_t *row_major(int32_t rank) {
  static const int64_t order[TS_MAX_RANK] = {63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48,
                                             47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32,
                                             31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16,
                                             15, 14, 13, 12, 11, 10, 9,  8,  7,  6,  5,  4,  3,  2,  1,  0};
  return order + TS_MAX_RANK - rank;
}

ts_status plugin_buffer_layout(pj_args *args) {
  pj_layout *layout = &args->layout.layout;
  int32_t rank = args->layout.buffer->shape->rank;
  layout->kind = PJ_ORDER;
  layout->order.minor_to_major = row_major(rank);
  layout->order.rank = (size_t)rank;
  layout->order.tiles = NULL;
  layout->order.tile_ranks = NULL;
  layout->order.tile_count = 0;
  return TS_SUCCESS;
}

static int64_t bytes_of(const pj_buffer *b) {
  ts_dtype dtype;
  ts_status_free(dtype_of(b->type, &dtype)); /* the type of a buffer is known */
  return ts_shape_bytes(b->shape, dtype);
}

ts_status plugin_buffer_size(pj_args *args) {
  args->count.count = bytes_of(buffer_of(args));
  return TS_SUCCESS;
}

ts_status plugin_buffer_device(pj_args *args) { return plugin_answer_pointer(args, buffer_of(args)->device); }
ts_status plugin_buffer_space(pj_args *args) { return plugin_answer_pointer(args, &buffer_of(args)->device->space); }

ts_status plugin_buffer_is_on_cpu(pj_args *args) {
  args->flag.yes = true;
  return TS_SUCCESS;
}

/* The event of a buffer that was deleted would be an error: here the call is one. */
ts_status plugin_buffer_ready(pj_args *args) {
  ts_buffer *data;
  TS_TRY(plugin_buffer_get(args->ready.buffer, &data));
  ts_buffer_release(data);
  return plugin_event_new(false, &args->ready.event);
}

/* ---- bytes that are read in place */

ts_status plugin_buffer_hold(pj_args *args) {
  pj_buffer *b = args->object;
  lock(b);
  bool possible = b->holders > 0 || b->data;
  if (possible && b->holders++ == 0) {
    b->held = b->data;
    ts_buffer_retain(b->held);
  }
  unlock(b);
  return possible ? TS_SUCCESS : deleted();
}

ts_status plugin_buffer_let_go(pj_args *args) {
  pj_buffer *b = args->object;
  ts_buffer *held = NULL;
  lock(b);
  bool possible = b->holders > 0;
  if (possible && --b->holders == 0) {
    held = b->held;
    b->held = NULL;
  }
  unlock(b);
  ts_buffer_release(held);
  return possible ? TS_SUCCESS : ts_error(TS_FAILED_PRECONDITION, "the buffer has no external reference");
}

ts_status plugin_buffer_data(pj_args *args) {
  pj_buffer *b = args->pointer.object;
  lock(b);
  const ts_buffer *data = b->held ? b->held : b->data;
  args->pointer.pointer = data ? data->data : NULL;
  unlock(b);
  return data ? TS_SUCCESS : deleted();
}

ts_status plugin_buffer_address(pj_args *args) { return plugin_buffer_data(args); }

/* ---- copies of strided elements */

typedef struct walk {
  const int64_t *dims, *to_strides, *from_strides; /* strides in bytes */
  int32_t rank;                                    /* of the dims to walk; the others are dense on both sides */
  size_t run;                                      /* bytes of an index of the walk */
} walk;

static void copy_axes(const walk *w, int32_t axis, char *to, const char *from) {
  int64_t count = w->dims[axis], a = w->to_strides[axis], b = w->from_strides[axis];
  if (axis == w->rank - 1) {
    for (int64_t i = 0; i < count; i++) memcpy(to + i * a, from + i * b, w->run);
    return;
  }
  for (int64_t i = 0; i < count; i++) copy_axes(w, axis + 1, to + i * a, from + i * b);
}

static void copy(const ts_shape *shape, ts_dtype dtype, char *to, const int64_t *to_strides, const char *from,
                 const int64_t *from_strides) {
  walk w = {shape->dims, to_strides, from_strides, shape->rank, ts_dtype_size(dtype)};
  if (ts_shape_elements(shape) == 0) return;
  for (; w.rank > 0; w.rank--) {
    int32_t last = w.rank - 1;
    int64_t run = (int64_t)w.run;
    if (shape->dims[last] > 1 && (to_strides[last] != run || from_strides[last] != run)) break;
    w.run *= (size_t)shape->dims[last];
  }
  if (w.rank == 0)
    memcpy(to, from, w.run);
  else
    copy_axes(&w, 0, to, from);
}

static void dense_strides(const ts_shape *shape, ts_dtype dtype, int64_t *out) {
  ts_shape_strides(shape, out);
  for (int32_t i = 0; i < shape->rank; i++) out[i] *= (int64_t)ts_dtype_size(dtype);
}

static bool is_dense(const ts_shape *shape, const int64_t *strides, const int64_t *dense) {
  for (int32_t i = 0; i < shape->rank; i++)
    if (shape->dims[i] > 1 && strides[i] != dense[i]) return false;
  return true;
}

/* Bytes from one index to the next. */
static ts_status layout_strides(const pj_layout *layout, const ts_shape *shape, ts_dtype dtype, int64_t *out) {
  uint64_t seen = 0;
  int64_t stride = (int64_t)ts_dtype_size(dtype);
  if (!layout) {
    dense_strides(shape, dtype, out);
    return TS_SUCCESS;
  }
  if (layout->kind == PJ_STRIDES && layout->strides.rank == (size_t)shape->rank) {
    for (int32_t i = 0; i < shape->rank; i++) out[i] = layout->strides.bytes[i];
    return TS_SUCCESS;
  }
  if (layout->kind != PJ_ORDER || layout->order.tile_count || layout->order.rank != (size_t)shape->rank)
    return ts_error(TS_UNIMPLEMENTED, "a layout with tiles, or of another rank than %d", shape->rank);
  for (int32_t i = 0; i < shape->rank; i++) {
    int64_t axis = layout->order.minor_to_major[i];
    if (axis < 0 || axis >= shape->rank || seen >> axis & 1)
      return ts_error(TS_INVALID_ARGUMENT, "a layout that is no order of %d dims", shape->rank);
    seen |= UINT64_C(1) << axis;
    out[axis] = stride;
    stride *= shape->dims[axis];
  }
  return TS_SUCCESS;
}

/* ---- from the host */

/* Elements of fewer than 8 bits fill a byte, and a program may give any upper bits. */
static void extend(ts_buffer *buffer) {
  int unused = 8 - ts_dtype_bits(buffer->dtype);
  if (ts_dtype_size(buffer->dtype) != 1 || unused <= 0) return;
  uint8_t *bytes = buffer->data;
  for (int64_t i = 0; i < buffer->bytes; i++) {
    uint8_t high = (uint8_t)(bytes[i] << unused);
    bytes[i] = ts_dtype_is_signed(buffer->dtype) ? (uint8_t)((int8_t)high >> unused) : (uint8_t)(high >> unused);
  }
}

static ts_status choose_device(pj_device *device, const pj_space *space, pj_device **out) {
  *out = space ? space->device : device;
  return *out ? TS_SUCCESS : ts_error(TS_INVALID_ARGUMENT, "there is neither a device nor a memory");
}

static ts_status read_type(int type, const int64_t *dims, size_t rank, ts_dtype *out_dtype, ts_shape *out_shape) {
  if (rank > TS_MAX_RANK) return ts_error(TS_UNIMPLEMENTED, "a tensor has at most %d dims, got %zu", TS_MAX_RANK, rank);
  TS_TRY(dtype_of(type, out_dtype));
  ts_shape_set(out_shape, (int32_t)rank, dims);
  return ts_shape_check(out_shape, *out_dtype);
}

typedef struct source {
  const char *data;
  ts_dtype dtype;
  ts_shape shape;
  int64_t strides[TS_MAX_RANK], dense[TS_MAX_RANK];
} source;

static ts_status describe(const pj_args *args, source *s) {
  size_t rank = args->from_host.rank, strides = args->from_host.stride_count;
  if (strides != 0 && strides != rank) return ts_error(TS_INVALID_ARGUMENT, "%zu strides of %zu dims", strides, rank);
  s->data = args->from_host.data;
  TS_TRY(read_type(args->from_host.type, args->from_host.dims, rank, &s->dtype, &s->shape));
  dense_strides(&s->shape, s->dtype, s->dense);
  for (size_t i = 0; i < rank; i++) s->strides[i] = strides ? args->from_host.strides[i] : s->dense[i];
  return TS_SUCCESS;
}

/* On the device elements are row-major. */
static ts_status check_layout(const pj_layout *layout, const ts_shape *shape, ts_dtype dtype) {
  int64_t wanted[TS_MAX_RANK], dense[TS_MAX_RANK];
  TS_TRY(layout_strides(layout, shape, dtype, wanted));
  dense_strides(shape, dtype, dense);
  if (is_dense(shape, wanted, dense)) return TS_SUCCESS;
  return ts_error(TS_UNIMPLEMENTED, "on a device elements are row-major, and another layout was wanted");
}

static ts_status copy_in(const source *s, ts_pool *pool, ts_buffer **out) {
  TS_TRY(ts_buffer_create(pool, s->dtype, &s->shape, out));
  copy(&s->shape, s->dtype, (*out)->data, s->dense, s->data, s->strides);
  extend(*out);
  return TS_SUCCESS;
}

/* Less is sooner copied than shared. */
enum { SHARED_BYTES = 1 << 16 };

static bool is_shared(const source *s, int semantics) {
  return semantics >= PJ_SHARED && ts_shape_bytes(&s->shape, s->dtype) >= SHARED_BYTES &&
         (uintptr_t)s->data % ts_dtype_alignment(s->dtype) == 0 && ts_dtype_bits(s->dtype) >= 8 &&
         is_dense(&s->shape, s->strides, s->dense);
}

static void end_sharing(void *event) { plugin_event_end(event); }

static ts_status share(const source *s, pj_event **out_event, ts_buffer **out) {
  TS_TRY(plugin_event_new(true, out_event));
  ts_status status = ts_buffer_wrap(s->dtype, &s->shape, (void *)(uintptr_t)s->data, end_sharing, *out_event, out);
  if (status) {
    plugin_event_end(*out_event);
    plugin_event_destroy(&(pj_args){.object = *out_event});
  }
  return status;
}

static ts_status copy_or_share(const source *s, int semantics, ts_pool *pool, pj_event **out_event, ts_buffer **out) {
  if (is_shared(s, semantics)) return share(s, out_event, out);
  TS_TRY(copy_in(s, pool, out));
  ts_status status = plugin_event_new(false, out_event);
  if (status) ts_buffer_release(*out);
  return status;
}

ts_status plugin_from_host(pj_args *args) {
  source s;
  ts_buffer *data;
  pj_event *event;
  pj_device *device;
  TS_TRY(choose_device(args->from_host.device, args->from_host.memory, &device));
  TS_TRY(describe(args, &s));
  TS_TRY(check_layout(args->from_host.layout, &s.shape, s.dtype));
  TS_TRY(copy_or_share(&s, args->from_host.semantics, plugin_client_pool(device->client), &event, &data));
  ts_status status = plugin_buffer_new(device, args->from_host.type, data, &args->from_host.buffer);
  if (status) {
    ts_buffer_release(data);
    plugin_event_destroy(&(pj_args){.object = event});
  }
  args->from_host.read = status ? NULL : event;
  return status;
}

/* ---- bytes of others */

typedef struct view {
  void *data, *arg;
  void (*release)(void *data, void *arg);
} view;

static void release_view(void *context) {
  view *v = context;
  if (v->release) v->release(v->data, v->arg);
  ts_free(v);
}

ts_status plugin_buffer_view(pj_args *args) {
  ts_shape shape;
  ts_dtype dtype;
  ts_buffer *data;
  view *v;
  pj_device *device;
  const bool has_space = args->size >= offsetof(pj_args, view.space) + sizeof args->view.space;
  TS_TRY(choose_device(args->view.device, has_space ? args->view.space : NULL, &device));
  TS_TRY(read_type(args->view.type, args->view.dims, args->view.rank, &dtype, &shape));
  TS_TRY(check_layout(args->view.layout, &shape, dtype));
  if ((uintptr_t)args->view.data % ts_dtype_alignment(dtype))
    return ts_error(TS_INVALID_ARGUMENT, "the address is not a multiple of an element's alignment");
  TS_TRY(TS_NEW(&v));
  *v = (view){args->view.data, args->view.arg, NULL};
  ts_status status = ts_buffer_wrap(dtype, &shape, args->view.data, release_view, v, &data);
  if (status) {
    ts_free(v);
    return status;
  }
  status = plugin_buffer_new(device, args->view.type, data, &args->view.buffer);
  if (status)
    ts_buffer_release(data);
  else
    v->release = args->view.release; /* a failed call does not release the bytes */
  return status;
}

/* ---- to the host, and to other devices */

static ts_status copy_out(const pj_args *args, const ts_buffer *data) {
  int64_t strides[TS_MAX_RANK], dense[TS_MAX_RANK];
  const ts_shape *shape = args->to_host.buffer->shape;
  if (args->to_host.to_size < (size_t)data->bytes)
    return ts_error(TS_INVALID_ARGUMENT, "there is room for %zu bytes of %lld", args->to_host.to_size,
                    (long long)data->bytes);
  TS_TRY(layout_strides(args->to_host.layout, shape, data->dtype, strides));
  dense_strides(shape, data->dtype, dense);
  copy(shape, data->dtype, args->to_host.to, strides, data->data, dense);
  return TS_SUCCESS;
}

ts_status plugin_buffer_to_host(pj_args *args) {
  ts_buffer *data;
  if (!args->to_host.to) {
    args->to_host.to_size = (size_t)bytes_of(args->to_host.buffer);
    args->to_host.event = NULL;
    return TS_SUCCESS;
  }
  TS_TRY(plugin_buffer_get(args->to_host.buffer, &data));
  ts_status status = copy_out(args, data);
  ts_buffer_release(data);
  return status ? status : plugin_event_new(false, &args->to_host.event);
}

ts_status plugin_buffer_raw(pj_args *args) {
  ts_buffer *data;
  int64_t offset = args->raw.offset, bytes = args->raw.bytes;
  TS_TRY(plugin_buffer_get(args->raw.buffer, &data));
  bool fits = offset >= 0 && bytes >= 0 && offset <= data->bytes && bytes <= data->bytes - offset;
  if (fits && bytes) memcpy(args->raw.to, (const char *)data->data + offset, (size_t)bytes);
  ts_status status = TS_SUCCESS;
  if (!fits)
    status = ts_error(TS_OUT_OF_RANGE, "%lld bytes from byte %lld of %lld", (long long)bytes, (long long)offset,
                      (long long)data->bytes);
  ts_buffer_release(data);
  return status ? status : plugin_event_new(false, &args->raw.event);
}

/* The copy shares the bytes, since all devices are the host's. A run writes the bytes of a donated buffer only if no
 * other buffer has them. */
static ts_status copy_to(pj_buffer *from, pj_device *device, pj_buffer **out) {
  ts_buffer *data;
  if (device->client != from->device->client)
    return ts_error(TS_INVALID_ARGUMENT, "the device is one of another client");
  TS_TRY(plugin_buffer_get(from, &data));
  ts_status status = plugin_buffer_new(device, from->type, data, out);
  if (status) ts_buffer_release(data);
  return status;
}

ts_status plugin_buffer_to_device(pj_args *args) {
  return copy_to(args->to_device.buffer, args->to_device.device, &args->to_device.copy);
}

ts_status plugin_buffer_to_space(pj_args *args) {
  return copy_to(args->to_space.buffer, args->to_space.space->device, &args->to_space.copy);
}
