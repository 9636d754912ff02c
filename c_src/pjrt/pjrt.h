/* The platform `pjrt`: clients of plugins, which bring a device and its compiler. docs/accelerators.md describes it. */
#ifndef TS_PJRT_PJRT_H
#define TS_PJRT_PJRT_H

#include "device/platform.h"

extern const ts_platform ts_platform_pjrt;

#endif
