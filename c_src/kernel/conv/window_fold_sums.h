/* Folds of windows by sum and product, for one type: a part of kernel/conv/window_body.h. The includer defines the
 * names that window_fold.h uses, except the op, and NAMED of a function's name and an op's. Sums of integers use the
 * unsigned type, which wraps. */
#define FOLD(name) NAMED(name, sum)
#define OP SUM
#define ONE_OP ONE_SUM
#define FIRST 0
#include "kernel/conv/window_fold.h"

#define FOLD(name) NAMED(name, product)
#define OP PRODUCT
#define ONE_OP ONE_PRODUCT
#define FIRST 1
#include "kernel/conv/window_fold.h"

#undef ONE_SUM
#undef ONE_PRODUCT
