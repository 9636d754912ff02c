/* How tests direct the plugin of plugin.c, which exports these beside GetPjrtApi. */
#ifndef TS_TEST_PJRT_PLUGIN_H
#define TS_TEST_PJRT_PLUGIN_H

#include "pjrt/abi.h"

typedef enum test_manner {
  TEST_INLINE, /* all is done when a function returns */
  TEST_LATE,   /* all is done later, on other threads, in any order */
  TEST_MIXED   /* either, by chance */
} test_manner;

typedef struct test_direction {
  void (*set_manner)(test_manner manner);
  /* The function fails after `successes` calls; negative: never. */
  void (*fail_after)(pj_function function, int64_t successes);
  /* The same for the event that it gives, which then ends with an error. */
  void (*fail_event_after)(pj_function function, int64_t successes);
  /* Functions refuse blocks unless these are larger than today's by this number of bytes. */
  void (*set_more)(size_t bytes);
  int64_t (*live)(void);  /* objects that exist */
  int64_t (*wrong)(void); /* how often the client broke a rule */
  int64_t (*calls)(pj_function function);
  void (*hold)(bool held);       /* while it is held, no client is made, and no program */
  void (*keep)(bool kept);       /* while it is true, no event ends */
  void (*stall)(bool stalled);   /* while it is true, functions that begin an operation do not return */
  const char *(*text)(void);     /* of the program that was compiled last */
  void (*keep_bytes)(bool kept); /* while it is true, no host memory that is read in place is given back */
  void (*copies)(bool copies);   /* while it is true, no host memory is read in place */
  void (*other_layout)(bool is); /* while it is true, buffers have another layout than row-major, as they say */
} test_direction;

typedef const test_direction *(*test_get_direction)(void); /* "GetTestDirection" */

#endif
