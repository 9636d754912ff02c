#define ISA(name) name##_base
#include "kernel/scan/scan_body.h"
