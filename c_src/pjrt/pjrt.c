#include "pjrt/pjrt.h"

#include "pjrt/client.h"

/* Which devices there are is known by a plugin, and a client names it. */
static ts_status enumerate(ts_device_description *out, int32_t room, int32_t *out_count) {
  (void)out, (void)room;
  *out_count = 0;
  return TS_SUCCESS;
}

const ts_platform ts_platform_pjrt = {.name = "pjrt",
                                      .flags = TS_PLATFORM_SAVES | TS_PLATFORM_CALLS_BACK | TS_PLATFORM_GROUPS |
                                               TS_PLATFORM_ADDRESSES,
                                      .enumerate = enumerate,
                                      .open = pj_door_open,
                                      .close = pj_door_close,
                                      .get_memory = pj_door_get_memory,
                                      .compile = pj_compile,
                                      .save = pj_save,
                                      .load = pj_load,
                                      .release_program = pj_release_program,
                                      .explain = pj_explain,
                                      .from_host = pj_from_host,
                                      .to_host = pj_to_host,
                                      .copy = pj_copy,
                                      .release_memory = pj_memory_release,
                                      .address = pj_address,
                                      .view = pj_view,
                                      .run = pj_run};
