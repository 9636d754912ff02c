/* Errors, and answers of several functions of the plugin. */
#include "plugin/plugin.h"

#include <string.h>

/* ---- errors */

struct pj_error {
  ts_status status;
};

/* Answers that need no memory. */
static pj_error no_memory;

pj_error *plugin_error(ts_status status) {
  pj_error *error;
  if (!status) return NULL;
  if (!ts_status_consume_ok(TS_NEW(&error))) {
    ts_status_free(status);
    return &no_memory;
  }
  error->status = status;
  return error;
}

void plugin_error_destroy(pj_args *args) {
  pj_error *error = args->object;
  if (!error || error == &no_memory) return;
  ts_status_free(error->status);
  ts_free(error);
}

void plugin_error_message(pj_args *args) {
  const pj_error *error = args->message.error;
  args->message.text = error->status ? ts_status_message(error->status) : "there is no memory";
  args->message.text_size = strlen(args->message.text);
}

static int code_of(ts_status status) {
  switch (status ? ts_status_code(status) : TS_RESOURCE_EXHAUSTED) {
  case TS_OK: return 0;
  case TS_INVALID_ARGUMENT: return PJ_INVALID_ARGUMENT;
  case TS_OUT_OF_RANGE: return PJ_OUT_OF_RANGE;
  case TS_RESOURCE_EXHAUSTED: return PJ_RESOURCE_EXHAUSTED;
  case TS_FAILED_PRECONDITION: return PJ_FAILED_PRECONDITION;
  case TS_UNIMPLEMENTED: return PJ_UNIMPLEMENTED;
  case TS_CANCELLED: return PJ_CANCELLED;
  case TS_DATA_LOSS: return PJ_DATA_LOSS;
  case TS_UNAVAILABLE: return PJ_UNAVAILABLE;
  case TS_ELSEWHERE:
  case TS_INTERNAL: return PJ_INTERNAL;
  }
  return PJ_UNKNOWN;
}

pj_error *plugin_error_code(pj_args *args) {
  args->code.code = code_of(args->code.error->status);
  return NULL;
}

/* ---- answers */

pj_error *plugin_answer(pj_args *args, size_t least, const char *name, ts_status (*body)(pj_args *)) {
  if (!args) return plugin_error(ts_error(TS_INVALID_ARGUMENT, "%s: there is no block of arguments", name));
  if (args->size < least)
    return plugin_error(ts_error(TS_INVALID_ARGUMENT, "%s: its block of arguments has %zu bytes, expected at least %zu",
                                 name, args->size, least));
  ts_status status = body(args);
  return status ? plugin_error(ts_error_context(status, "%s", name)) : NULL;
}

ts_status plugin_answer_text(pj_args *args, const char *text) {
  args->text.text = text;
  args->text.text_size = strlen(text);
  return TS_SUCCESS;
}

ts_status plugin_answer_list(pj_args *args, const void *items, size_t count) {
  args->list.items = items;
  args->list.count = count;
  return TS_SUCCESS;
}

ts_status plugin_answer_number(pj_args *args, int number) {
  args->number.number = number;
  return TS_SUCCESS;
}

ts_status plugin_answer_pointer(pj_args *args, void *pointer) {
  args->pointer.pointer = pointer;
  return TS_SUCCESS;
}

static void free_saved(pj_saved *saved) { ts_free(saved); }

ts_status plugin_answer_saved(pj_args *args, char *data, size_t size) {
  args->save.bytes = data;
  args->save.byte_count = size;
  args->save.saved = (pj_saved *)data;
  args->save.destroy = free_saved;
  return TS_SUCCESS;
}
