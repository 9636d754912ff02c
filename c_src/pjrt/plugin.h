/* Plugins, and calls of their functions. A plugin of this process is loaded once and never unloaded. An isolated one
 * has a process of its own (remote.h), and is of one client. Thread-safe. */
#ifndef TS_PJRT_PLUGIN_H
#define TS_PJRT_PLUGIN_H

#include "base/status.h"
#include "pjrt/abi.h"

/* How many milliseconds may be taken; 0: as many as the plugin wants. */
typedef struct pj_deadlines {
  int64_t open_ms;    /* to open a client */
  int64_t answer_ms;  /* by a run or a transfer */
  int64_t compile_ms; /* to compile, save or load a program */
} pj_deadlines;

typedef struct pj_plugin {
  struct pj_plugin *next;
  char *path;
  const pj_api *api;
  struct pj_remote *remote; /* of an isolated plugin: it has no table */
} pj_plugin;

/* The plugin in a file; the first call loads and initializes it. It may take a second. An error names the path. */
ts_status pj_plugin_open(const char *path, const pj_plugin **out);

/* The plugin in a process of its own, with the deadlines of pj_remote_start(). */
ts_status pj_plugin_isolate(const char *path, const pj_deadlines *deadlines, const pj_plugin **out);
/* Ends the process of an isolated plugin. All of its objects have been destroyed. NULL and plugins of this process are
 * allowed. */
void pj_plugin_close(const pj_plugin *plugin);

static inline bool pj_plugin_is_isolated(const pj_plugin *plugin) { return plugin->remote != NULL; }
/* Whether it is isolated, and its process has ended. */
bool pj_plugin_is_gone(const pj_plugin *plugin);

/* Calls a function of the plugin. Its error is ours, under the name of the function. */
ts_status pj_call(const pj_plugin *plugin, pj_function function, pj_args *args);
/* The same for a function that destroys an object, which may be NULL. Its errors are ignored. */
void pj_destroy(const pj_plugin *plugin, pj_function function, void *object);
/* Tessera's error for a plugin's error, after the word `what` unless it is NULL. Takes the plugin's error over. NULL:
 * success. */
ts_status pj_status(const pj_plugin *plugin, pj_error *error, const char *what);

#endif
