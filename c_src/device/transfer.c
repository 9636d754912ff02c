/* Bytes of buffers: where they are, and how they get to another device. */
#include "device/device.h"

#include "tensor/buffer.h"

#include <string.h>

ts_status ts_device_bytes(const ts_buffer *buffer, void **out) {
  *out = buffer->data;
  if (!buffer->elsewhere) return TS_SUCCESS;
  return ts_error(TS_FAILED_PRECONDITION, "the host cannot read %s on %s", TS_SHAPE_STR(buffer->dtype, &buffer->shape),
                  TS_DEVICE_STR(buffer->device));
}

ts_status ts_device_read(const ts_buffer *buffer, int64_t bytes, void *out) {
  const ts_device *device = buffer->elsewhere ? buffer->device : NULL;
  if (device) return device->client->platform->to_host(ts_buffer_root(buffer), bytes, out);
  memcpy(out, buffer->data, (size_t)bytes);
  return TS_SUCCESS;
}

ts_status ts_device_fetch(ts_buffer *buffer, ts_buffer **out) {
  *out = buffer;
  if (!buffer->elsewhere) {
    ts_buffer_retain(buffer);
    return TS_SUCCESS;
  }
  TS_TRY(ts_buffer_create(ts_pool_default(), buffer->dtype, &buffer->shape, out));
  ts_status status = ts_device_read(buffer, buffer->bytes, (*out)->data);
  if (status) ts_buffer_release(*out);
  return status;
}

ts_status ts_device_stage(ts_device *device, ts_dtype dtype, const ts_shape *shape, ts_buffer **out) {
  bool host = !device->client->platform->elsewhere;
  TS_TRY(ts_buffer_create(host ? ts_client_pool(device->client) : ts_pool_default(), dtype, shape, out));
  if (host) (*out)->device = device;
  return TS_SUCCESS;
}

ts_status ts_device_place(ts_device *device, ts_buffer *host, ts_buffer **out) {
  *out = host;
  if (!device->client->platform->elsewhere) {
    host->device = device;
    return TS_SUCCESS;
  }
  ts_status status = device->client->platform->from_host(device, host, out);
  ts_buffer_release(host);
  return status;
}

ts_status ts_device_copy(ts_device *device, ts_buffer *buffer, ts_buffer **out) {
  ts_buffer *stage;
  *out = NULL;
  TS_TRY(ts_device_stage(device, buffer->dtype, &buffer->shape, &stage));
  ts_status status = ts_device_read(buffer, buffer->bytes, stage->data);
  if (!status) return ts_device_place(device, stage, out);
  ts_buffer_release(stage);
  return status;
}

ts_status ts_device_move(ts_device *device, ts_buffer *buffer, ts_buffer **out) {
  ts_client *client = device->client;
  if (buffer->device == device) {
    ts_buffer_retain(buffer);
    *out = buffer;
    return TS_SUCCESS;
  }
  if (client->platform->elsewhere || !buffer->device || buffer->device->client != client)
    return ts_device_copy(device, buffer, out);
  TS_TRY(ts_buffer_alias(buffer, buffer->dtype, &buffer->shape, out));
  (*out)->device = device;
  return TS_SUCCESS;
}
