/* The code of pick.h for one instruction set: ISA for names, and SOME32(x, i, ...) and SOME64(x, i, ...), which pick
 * from the whole vector at i of x. It has LANES32 or LANES64. */
#include "kernel/inline.h"
#include "kernel/pick.h"

#define T uint32_t
#define LANES LANES32
#define SOME SOME32
#define NAME(name) ISA(name##32)
#include "kernel/pick_type.h"

#define T uint64_t
#define LANES LANES64
#define SOME SOME64
#define NAME(name) ISA(name##64)
#include "kernel/pick_type.h"

const ts_pick ISA(ts_pick) = {ISA(pick32), ISA(pick64), ISA(bound32), ISA(bound64)};
