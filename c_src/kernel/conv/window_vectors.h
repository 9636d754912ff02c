/* The vectors of one instruction set, whose functions on them follow in the includer (window_body.h). The includer
 * defines VECTOR_BYTES. No include guard: each instruction set has its own. */
#include <stdint.h>

#define VECTOR __attribute__((vector_size(VECTOR_BYTES)))
#define IN_MEMORY(T) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias))

typedef float floats VECTOR;
typedef double doubles VECTOR;
typedef int32_t ints VECTOR;
typedef int64_t longs VECTOR;
typedef uint32_t words VECTOR;
enum { FLOATS = VECTOR_BYTES / 4 };
