/* Native calls of plugins. A plugin is a shared object that defines tessera_plugin_get. tessera:load_plugin/1 loads it;
 * programs call its targets by tessera:custom_call/4 or, from Nx, by a block with an implementation of
 * Tessera.CustomCall. docs/plugins.md has an example.
 *
 * A target's functions may be called by many threads at once. The memory of a call is valid until the function returns.
 * Elements are in row-major order; data is aligned to 64 bytes. A plugin stays loaded until the VM ends. */
#ifndef TESSERA_PLUGIN_H
#define TESSERA_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this interface. A plugin of a later version is refused. Plugins of version 1 are called as before: they see the
 * last types below, which version 1 does not name, as TESSERA_OTHER. */
#define TESSERA_PLUGIN_VERSION 2

typedef enum tessera_type {
  TESSERA_OTHER = 0, /* a type that this version does not name */
  TESSERA_S8 = 1,
  TESSERA_S16 = 2,
  TESSERA_S32 = 3,
  TESSERA_S64 = 4,
  TESSERA_U8 = 5,
  TESSERA_U16 = 6,
  TESSERA_U32 = 7,
  TESSERA_U64 = 8,
  TESSERA_F16 = 9,
  TESSERA_BF16 = 10,
  TESSERA_F32 = 11,
  TESSERA_F64 = 12,
  TESSERA_C64 = 13,
  TESSERA_C128 = 14,
  /* Since version 2. Integers of 2 and 4 bits take a byte each, extended by their sign or by zeros. */
  TESSERA_S2 = 15,
  TESSERA_S4 = 16,
  TESSERA_U2 = 17,
  TESSERA_U4 = 18,
  TESSERA_F8 = 19,       /* E5M2 */
  TESSERA_F8_E4M3FN = 20 /* no infinities */
} tessera_type;

typedef struct tessera_tensor {
  int32_t type; /* tessera_type */
  int32_t rank;
  const int64_t *dims;
  int64_t elements, bytes;
  void *data; /* NULL in a check; an operand's must not be written */
} tessera_tensor;

typedef enum tessera_attribute_kind {
  TESSERA_INTEGER = 1, /* `integer`; `number` is the same as a float */
  TESSERA_NUMBER = 2,  /* `number` */
  TESSERA_BOOLEAN = 3, /* `integer` is 0 or 1 */
  TESSERA_TEXT = 4,    /* `text` ends with a NUL, which `count` does not count */
  TESSERA_INTEGERS = 5 /* `integers`, `count` of them */
} tessera_attribute_kind;

typedef struct tessera_attribute {
  const char *name;
  int32_t kind; /* tessera_attribute_kind */
  int64_t integer;
  double number;
  const char *text;
  const int64_t *integers;
  int64_t count;
} tessera_attribute;

typedef struct tessera_call {
  const char *target;
  const tessera_tensor *operands, *results;
  int32_t operand_count, result_count;
  const tessera_attribute *attributes;
  int32_t attribute_count;
  int32_t threads;         /* how many parts may run at once, at least 1 */
  void *workspace;         /* of this call alone, aligned to 64 bytes; NULL in a check */
  int64_t workspace_bytes; /* the bytes that the check requested */
  void *core;              /* Tessera's own */
} tessera_call;

/* What Tessera offers a plugin. `call` is the target's own. */
typedef struct tessera_core {
  /* Says why a check or run fails; its text is copied. The function then returns TESSERA_FAILED. */
  void (*set_error)(const tessera_call *call, const char *text);
  /* True once the run was cancelled, because its caller died or asked for it. A long run asks now and then, and
   * returns. */
  bool (*is_cancelled)(const tessera_call *call);
  /* Runs part(arg, i, thread) for each i in [0, count) on several threads and returns when all have ended. `thread`
   * is in [0, call->threads); no two parts with the same one run at once. Only in a run. */
  void (*run_parts)(const tessera_call *call, int64_t count, void (*part)(void *arg, int64_t i, int thread), void *arg);
} tessera_core;

#define TESSERA_OK 0
#define TESSERA_FAILED 1

/* A check's facts about the runs; all 0 at first. */
typedef struct tessera_needs {
  int64_t workspace;   /* bytes for each run */
  int64_t nanoseconds; /* about how long a run takes on one thread. 0: unknown. Below 100000 the call may run on the
                          scheduler of its process, where it cannot be cancelled; below 1000000 on a dirty one; others
                          have a thread of their own, and keep none of the VM waiting. */
} tessera_needs;

typedef struct tessera_target {
  const char *name; /* a letter, then letters, digits, _ and . */
  /* Called when a program is compiled: whether the target takes these types, shapes and attributes, and the needs of
   * its runs. NULL: it takes everything without needs. */
  int (*check)(const tessera_core *core, const tessera_call *call, tessera_needs *needs);
  /* Fills the results. The same operands and attributes must give the same results. */
  int (*run)(const tessera_core *core, const tessera_call *call);
} tessera_target;

typedef struct tessera_plugin {
  uint32_t version;    /* TESSERA_PLUGIN_VERSION */
  const char *name;    /* for messages */
  uint32_t call_bytes; /* sizeof(tessera_call): a header of another layout is refused */
  uint32_t target_count;
  const tessera_target *targets;
} tessera_plugin;

/* The symbol that the shared object defines. Its result is never freed. */
__attribute__((visibility("default"))) const tessera_plugin *tessera_plugin_get(void);

/* The attribute of that name, or NULL. */
static inline const tessera_attribute *tessera_find(const tessera_call *call, const char *name) {
  for (int32_t i = 0; i < call->attribute_count; i++) {
    const char *a = call->attributes[i].name, *b = name;
    while (*a && *a == *b) a++, b++;
    if (*a == *b) return &call->attributes[i];
  }
  return 0;
}

#ifdef __cplusplus
}
#endif

#endif
