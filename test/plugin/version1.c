/* A plugin of the first version of tessera_plugin.h, which names fewer types. */
#include "tessera_plugin.h"

/* The number of the operand's type, as s32. */
static int run(const tessera_core *core, const tessera_call *call) {
  (void)core;
  *(int32_t *)call->results[0].data = call->operands[0].type;
  return TESSERA_OK;
}

static const tessera_target targets[] = {{"type_of_version1", 0, run}};

const tessera_plugin *tessera_plugin_get(void) {
  static const tessera_plugin plugin = {1, "version1", sizeof(tessera_call), 1, targets};
  return &plugin;
}
