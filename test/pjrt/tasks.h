/* The objects and the work of the plugin in plugin.c, whose functions of the table use these. An object is made by
 * made() and freed under the lock by its count. Each piece of work is a task. A task whose operands are not ready
 * waits, and its event ends when it is done. */
#ifndef TS_TEST_PJRT_TASKS_H
#define TS_TEST_PJRT_TASKS_H

#include "ir/graph.h"
#include "plugin.h"
#include "tensor/buffer.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

extern pthread_mutex_t lock;
extern _Atomic int64_t live, wrong, calls[PJ_TABLE];         /* As in test_direction. */
extern _Atomic int64_t left[PJ_TABLE], left_event[PJ_TABLE]; /* Calls until a failure; negative: no failure. */
extern _Atomic size_t more;
extern _Atomic int manner;

struct pj_error {
  int code;
  char text[512];
};

typedef struct callback {
  struct callback *next;
  void (*call)(pj_error *error, void *arg);
  void *arg;
} callback;

struct pj_event {
  int refs;
  bool is_ready;
  int code; /* 0: no error. */
  char text[256];
  callback *callbacks;
};

struct pj_device {
  int id;
  struct pj_handle *client;
};

struct pj_handle {
  int64_t users; /* Buffers and executables, and 1 while it is open. */
  int64_t operations, fail_every, abort_at, hang_at, never_at, full_at;
  bool cpu;    /* It has the name of XLA's CPUs, reads host memory in place, and gives addresses. */
  bool never_compiles;
  bool leaves; /* Another process stays, with all files of this one, where this one ends. */
  int device_count;
  pj_device devices[64];
  pj_device *list[64];
};

struct pj_buffer {
  int refs;
  pj_handle *client;
  pj_device *device;
  ts_dtype dtype;
  ts_shape shape;
  ts_buffer *data; /* A task sets it. */
  int holders;     /* External references. */
  pj_event *ready;
};

typedef struct code {
  int refs;
  bool is_loaded; /* it was saved before */
  pj_handle *client;
  ts_graph *graph;
  size_t
      replicas; /* The graph has the arguments of the first one, then of the second, and so on; and so the results. */
  char *text;
  size_t size, result_count;
  int *types;
  int64_t *dims;
  size_t *ranks;
} code;

struct pj_loaded {
  code *code;
};
struct pj_executable {
  code *code;
};

enum { MOST_EVENTS = 8 };

typedef struct task {
  struct task *next;
  void (*body)(struct task *task); /* Frees nothing of the task. */
  pj_buffer *operands[64], *results[64];
  size_t operand_count, result_count;
  const void *from;
  pj_event *read; /* Of host memory that is read in place: ends when no buffer has it. NULL: the bytes are copied. */
  void *to;
  struct ended *view; /* Of bytes that become a buffer's. */
  size_t size;
  code *code;
  pj_event *events[MOST_EVENTS]; /* A reference to each. */
  int fail;                      /* The code of the events' errors; 0: no error. */
} task;

void *made(size_t size);
void unmade(void *block);
pj_error *error_of(int number, const char *text);

/* The beginning of each function: its block must be large enough. */
pj_error *begin(pj_function function, const pj_args *args, size_t fields);

#define BEGIN(function, member)                                                    \
  do {                                                                             \
    pj_error *begun_ = begin(PJ_##function, args, sizeof(((pj_args *)0)->member)); \
    if (begun_) return begun_;                                                     \
  } while (0)

/* For clients that fail: whether this is the `fail_every`-th operation. The lock is held. */
bool fails_now(pj_handle *client);

/* ---- events */

pj_event *new_event(void);
void drop_event(pj_event *event); /* the lock is held, as for the next three */
void drop_client(pj_handle *client);
void drop_buffer(pj_buffer *buffer);
void drop_code(code *c);
pj_error *error_of_event(const pj_event *event);
void wait_for_event(pj_event *event);

/* ---- the end of bytes of others */

/* What to tell the owner of bytes: an event that ends, or a call. */
typedef struct ended {
  struct ended *next;
  pj_event *event;
  void (*call)(void *data, void *arg);
  void *data, *arg;
} ended;

/* For ts_buffer_wrap(): its owner is told by the next tell_owners(). */
void end_bytes(void *ended);
/* By tasks, as the manner says. No lock is held. */
void tell_owners(void);
/* While it is true, no owner is told. */
void keep_bytes(bool is);

/* ---- tasks */

task *new_task(pj_function function, void (*body)(task *));
/* An event for the caller; the task ends it. */
pj_event *promise(task *t, int i);
/* Take the task over: post() by the manner, do_task() at once. The operands of do_task() are ready. */
void post(task *t);
void do_task(task *t);
/* While it is true no task is done, so that no event ends. */
void keep_tasks(bool is);

#endif
