/* The table of functions. */
#include "plugin/plugin.h"

/* ---- functions */

#define PLUGIN_FUNCTION(place, body, last, name)                                                             \
  static pj_error *call_##place(pj_args *args) {                                                             \
    return plugin_answer(args, offsetof(pj_args, last) + sizeof(((pj_args *)0)->last), name, plugin_##body); \
  }
#define PLUGIN_ABSENT(place, name)                                                                     \
  static pj_error *call_##place(pj_args *args) {                                                       \
    (void)args;                                                                                        \
    return plugin_error(ts_error(TS_UNIMPLEMENTED, "the plugin of Tessera has no function %s", name)); \
  }
#include "plugin/functions.def"
#undef PLUGIN_FUNCTION
#undef PLUGIN_ABSENT

ts_status plugin_initialize(pj_args *args) {
  (void)args;
  return TS_SUCCESS;
}

/* Programs come in the form of that version of StableHLO. */
static const int64_t newest[] = {1, 14, 0}, oldest[] = {1, 0, 0};
static const pj_named attributes[] = {
    {sizeof(pj_named), NULL, "stablehlo_current_version", 25, PJ_INT64S, {.integers = newest}, 3},
    {sizeof(pj_named), NULL, "stablehlo_minimum_version", 25, PJ_INT64S, {.integers = oldest}, 3},
};

ts_status plugin_attributes(pj_args *args) {
  args->attributes.named = attributes;
  args->attributes.count = sizeof attributes / sizeof *attributes;
  return TS_SUCCESS;
}

/* ---- the table */

typedef union entry {
  pj_error *(*call)(pj_args *args);
  void (*plain)(pj_args *args);
} entry;

/* A caller asks for the extension from minor version 91 on, and takes it that the table has the functions of it. */
enum { FUNCTIONS = 128, MINOR = 91 };

/* As pj_api, with the functions. */
static const struct {
  size_t size;
  const void *extensions;
  pj_version version;
  entry functions[FUNCTIONS];
} table = {.size = sizeof table,
           .extensions = &plugin_shardings,
           .version = {.size = sizeof(pj_version), .major = PJ_MAJOR, .minor = MINOR},
           .functions = {
               [PJ_ERROR_DESTROY].plain = plugin_error_destroy,
               [PJ_ERROR_MESSAGE].plain = plugin_error_message,
               [PJ_ERROR_CODE].call = plugin_error_code,
#define PLUGIN_FUNCTION(place, body, last, name) [place].call = call_##place,
#define PLUGIN_ABSENT(place, name) [place].call = call_##place,
#include "plugin/functions.def"
           }};

__attribute__((visibility("default"))) const pj_api *GetPjrtApi(void);
const pj_api *GetPjrtApi(void) { return (const pj_api *)(const void *)&table; }
