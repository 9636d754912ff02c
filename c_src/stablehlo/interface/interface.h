/* The names and types of a module's arguments and results, and the files that modules come in. Internal to stablehlo/.
 */
#ifndef TS_STABLEHLO_INTERFACE_H
#define TS_STABLEHLO_INTERFACE_H

#include "stablehlo/bytecode.h"
#include "stablehlo/make.h"

/* ---- exported.c */
/* Of the bytes that JAX's `Exported.serialize()` returns, the module's bytecode. Other bytes stay as they are. */
ts_status mlir_open_exported(const char **inout_text, size_t *inout_length);

#endif
