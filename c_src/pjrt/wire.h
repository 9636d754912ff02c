/* Messages between a client and the process of its plugin (remote.h, server.c). Both are of one build, so numbers have
 * the machine's layout. A message is a head and fields: numbers of 8 bytes, and bytes after their number. A reader of
 * fields that ends too early gives zeros from then on, and says so. */
#ifndef TS_PJRT_WIRE_H
#define TS_PJRT_WIRE_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum pj_wire_kind {
  PJ_WIRE_CALL = 1, /* Calls a function. It has an answer. */
  PJ_WIRE_CAST,     /* Destroys an object. It has no answer. */
  PJ_WIRE_ANSWER,   /* Answers the call of the same number: a code and a text, and fields after a success. */
  PJ_WIRE_EVENT,    /* The event of that call has ended: a code, a text, and bytes. */
  PJ_WIRE_SEGMENT,  /* Shared memory, by its file. `id` is its number. */
  PJ_WIRE_FORGET,   /* The shared memory of the number is not used any more. */
  PJ_WIRE_END       /* The process has ended. `id` is the status of wait(). */
} pj_wire_kind;

typedef struct pj_wire_head {
  uint64_t id;
  uint32_t kind, function;
  uint64_t size; /* of the fields */
} pj_wire_head;

typedef struct pj_wire_message {
  pj_wire_head head;
  char *fields;
  int file; /* that came with it; -1: none */
} pj_wire_message;

/* Blocks while the other side does not read. False when it has ended. The other side gets a copy of `file`, unless it
 * is -1. */
bool pj_wire_send(int socket, const pj_wire_head *head, const char *fields, int file);
/* Blocks until a whole message has come. False at the end, or without memory. */
bool pj_wire_receive(int socket, pj_wire_message *out);
void pj_wire_free(pj_wire_message *message);

/* ---- fields */

static inline void pj_put(ts_text *out, uint64_t number) {
  ts_text_append_n(out, (const char *)&number, sizeof number);
}

static inline void pj_put_bytes(ts_text *out, const void *bytes, size_t size) {
  pj_put(out, size);
  ts_text_append_n(out, bytes, size);
}

/* An object of the plugin's, which only its process knows. */
static inline void pj_put_object(ts_text *out, const void *object) { pj_put(out, (uint64_t)(uintptr_t)object); }

typedef struct pj_fields {
  const char *at;
  size_t left;
  bool is_cut;
} pj_fields;

static inline pj_fields pj_fields_of(const pj_wire_message *m) { return (pj_fields){m->fields, m->head.size, false}; }
uint64_t pj_take(pj_fields *fields);
/* Valid as long as the message; never NULL. Bytes without a NUL at their end. */
const char *pj_take_bytes(pj_fields *fields, size_t *out_size);
static inline void *pj_take_object(pj_fields *fields) { return (void *)(uintptr_t)pj_take(fields); }

#endif
