/* Folds of windows by the largest and the least element, for one type, as window_fold_sums.h has the sums; MAX, MIN,
 * ONE_MAX_OF and ONE_MIN_OF are the ops, LOWEST and HIGHEST the ends of the type. */
#define FOLD(name) NAMED(name, max)
#define OP MAX
#define ONE_OP ONE_MAX_OF
#define FIRST LOWEST
#include "kernel/conv/window_fold.h"

#define FOLD(name) NAMED(name, min)
#define OP MIN
#define ONE_OP ONE_MIN_OF
#define FIRST HIGHEST
#include "kernel/conv/window_fold.h"

#undef MAX
#undef MIN
#undef ONE_MAX_OF
#undef ONE_MIN_OF
#undef LOWEST
#undef HIGHEST
