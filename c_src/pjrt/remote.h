/* A plugin in a process of its own, for clients with the option `isolated`. pj_call() asks such a plugin here: the same
 * functions take the same blocks of arguments, and their objects belong to the process. Events are ours, and the
 * process tells when one has ended. Elements of tensors go through shared memory, small ones through the messages.
 *
 * If the process ends, or does not answer by a deadline (then it is killed), all calls and events end with the error
 * TS_UNAVAILABLE, and so do all later calls; objects that remain are destroyed by doing nothing. Calls wait for the
 * answer, so they are made on threads of the client (work.h). Thread-safe.
 *
 * The process is the program tessera_plugin (server.c), in the folder of the library. It ends when its socket does. */
#ifndef TS_PJRT_REMOTE_H
#define TS_PJRT_REMOTE_H

#include "pjrt/plugin.h"
#include "pjrt/wire.h"

#include <pthread.h>

typedef struct pj_segment {
  struct pj_segment *next;
  uint64_t number;
  size_t size;
  char *data;
} pj_segment;

/* A call that waits for its answer: memory of the caller's. */
typedef struct pj_waiting {
  struct pj_waiting *next;
  uint64_t id;
  int64_t deadline_ns; /* INT64_MAX: no deadline. */
  const char *option;  /* The client's option that sets the deadline. */
  bool is_done;
  pj_wire_message answer; /* Without fields if the process has ended. */
  pthread_cond_t signal;
} pj_waiting;

struct pj_event {
  pj_event *next;
  uint64_t id; /* Of its call. */
  int64_t deadline_ns;
  bool is_ready, is_destroyed;
  ts_status status;                         /* The event's error; NULL: success. */
  void (*call)(pj_error *error, void *arg); /* NULL: no callback yet. */
  void *arg;
  void *to; /* The place for the bytes of a transfer to the host. */
  size_t size;
  pj_segment *segment;
};

/* The plugin's executable and copies of its properties. */
struct pj_executable {
  void *object;
  size_t count;
  int *types;
  size_t *ranks;
  int64_t *dims;
};

typedef struct pj_remote {
  _Atomic int refs; /* the owner's and the reader's */
  pthread_mutex_t lock, sending;
  pthread_cond_t ended; /* some event is ready */
  int socket, bell;     /* the bell wakes the reader, for an earlier deadline; -1 after the end of the process */
  int pid;              /* 0 once it has been waited for. Under the lock, as the rest */
  bool is_dead;
  char reason[256];
  int64_t open_by_ns; /* When a client must be open; INT64_MAX: no deadline. */
  int64_t answer_ns;  /* How long calls and events may take; INT64_MAX: for ever. */
  int64_t compile_ns; /* The same of calls that compile. */
  int64_t wakes_ns;   /* When the reader looks for deadlines. */
  uint64_t last_id, last_segment;
  pj_waiting *waiting;
  pj_event *events; /* Events that are not ready. */
  pj_segment *segments;
  size_t idle_bytes; /* Of `segments`. */
  char *name, *version, *kind;
  pj_device **devices;
} pj_remote;

/* Starts the process. It is killed when a deadline passes. */
ts_status pj_remote_start(const pj_deadlines *deadlines, pj_remote **out);
/* Has the process load the plugin. */
ts_status pj_remote_open(pj_remote *remote, const char *path);
/* Kills the process; NULL is allowed. All of its events have ended. */
void pj_remote_end(pj_remote *remote);
bool pj_remote_is_dead(pj_remote *remote);

ts_status pj_remote_call(pj_remote *remote, int function, pj_args *args);

/* ---- remote.c, for remote_start.c and remote_call.c */

/* Starts the thread that reads the messages of the process. After an error the process has ended. */
ts_status pj_remote_watch(pj_remote *remote);

/* A call: fields are appended, then it is made. The answer's fields are in `answer` until pj_asking_end(). */
typedef struct pj_asking {
  pj_remote *remote;
  int function;
  ts_text fields;
  pj_event *event; /* made by pj_asking_event(): the caller owns it after a success */
  pj_wire_message message;
  pj_fields answer;
} pj_asking;

ts_status pj_asking_event(pj_asking *asking);
ts_status pj_ask(pj_asking *asking);
/* Frees all but the event, and after an error the event too. Returns the error. */
ts_status pj_asking_end(pj_asking *asking, ts_status status);
/* Without an answer. */
void pj_remote_cast(pj_remote *remote, int function, void *object);
/* Shared memory of at least that size. The process knows it. */
ts_status pj_segment_take(pj_remote *remote, size_t size, pj_segment **out);
void pj_segment_give(pj_remote *remote, pj_segment *segment); /* NULL is allowed */
void pj_event_destroy(pj_remote *remote, pj_event *event);
bool pj_event_is_ready(pj_remote *remote, pj_event *event);
ts_status pj_event_await(pj_remote *remote, pj_event *event); /* until it has ended */
void pj_event_on_ready(pj_remote *remote, pj_args *args);
/* Copies of more bytes than this go through shared memory. */
enum { PJ_WIRE_INLINE = 1 << 16 };

#endif
