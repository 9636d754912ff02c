#include "kernel/isa_base.h"
#include "kernel/vector_dot_body.h"
