/* Plugins (loaded once, never unloaded), and calls of their functions. Thread-safe. */
#ifndef TS_PJRT_PLUGIN_H
#define TS_PJRT_PLUGIN_H

#include "base/status.h"
#include "pjrt/abi.h"

typedef struct pj_plugin {
  struct pj_plugin *next;
  char *path;
  const pj_api *api;
} pj_plugin;

/* The plugin in a file; the first call loads and initializes it. It may take a second. An error names the path. */
ts_status pj_plugin_open(const char *path, const pj_plugin **out);

/* Calls a function of the plugin. Its error is ours, under the name of the function. */
ts_status pj_call(const pj_plugin *plugin, pj_function function, pj_args *args);
/* The same for a function that destroys an object, which may be NULL. Errors of these functions are ignored. */
void pj_destroy(const pj_plugin *plugin, pj_function function, void *object);
/* Tessera's error for a plugin's error, which is taken over. NULL: success. */
ts_status pj_status(const pj_plugin *plugin, pj_error *error, const char *what);

#endif
