/* For every machine. */
#define ISA(name) name##_base
#define LANES32 1
#define LANES64 1
#include "kernel/pick_body.h"
