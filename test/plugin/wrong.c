/* Plugins that are refused; WRONG says why. */
#include "tessera_plugin.h"

#define SYMBOL 1
#define NOTHING 2
#define VERSION 3
#define UNNAMED 4
#define LIES 5
#define TWICE 6
#define TAKEN 7
#define NORUN 8
#define TARGET 9
#define MINUS 10
#define NONE 11
#define BEYOND 12
#define NOWHERE 13
#define LATIN 14
#define LONG 15
#define STRAY 16
#define VARIABLE 17

#if WRONG == SYMBOL
__attribute__((visibility("default"))) int tessera_plugin_other;
#elif WRONG == VARIABLE
__attribute__((visibility("default"))) int variable __asm__("tessera_plugin_get") = 1;
#else
/* an address that no process has mapped */
#define STRAY_ADDRESS ((const void *)8)
#define TEN "a123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static int run(const tessera_core *core, const tessera_call *call) {
  (void)core, (void)call;
  return TESSERA_OK;
}

static const tessera_target targets[] = {
#if WRONG == TWICE
    {"twice", 0, run},
    {"twice", 0, run},
#elif WRONG == TAKEN
    {"fresh", 0, run},
    {"scale", 0, run},
#elif WRONG == LATIN
    {"caf\xe9", 0, run},
#elif WRONG == LONG
    {HUNDRED HUNDRED HUNDRED, 0, run},
#elif WRONG == STRAY
    {STRAY_ADDRESS, 0, run},
#elif WRONG == MINUS || WRONG == NONE || WRONG == BEYOND
    {"one", 0, run},
#elif WRONG == NORUN
    {"no_run", 0, 0},
#else
    {"two words", 0, run},
#endif
};

const tessera_plugin *tessera_plugin_get(void) {
  static const tessera_plugin plugin = {WRONG == VERSION ? TESSERA_PLUGIN_VERSION + 1 : TESSERA_PLUGIN_VERSION,
                                        WRONG == UNNAMED ? 0 : "wrong",
                                        WRONG == LIES ? sizeof(tessera_call) - 8 : sizeof(tessera_call),
                                        WRONG == MINUS  ? UINT32_MAX
                                        : WRONG == NONE ? 0
                                                        : sizeof targets / sizeof *targets,
                                        WRONG == BEYOND ? STRAY_ADDRESS : targets};
  return WRONG == NOTHING ? 0 : WRONG == NOWHERE ? STRAY_ADDRESS : &plugin;
}
#endif
