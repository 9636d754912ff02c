/* Free blocks of memory by size class; the links are stored in the blocks. Not thread-safe: the owner of a set guards
 * it. The set owns its blocks. */
#ifndef TS_TENSOR_BLOCKS_H
#define TS_TENSOR_BLOCKS_H

#include <stdint.h>

#define TS_BLOCK_POWERS 47
#define TS_BLOCK_CLASSES ((TS_BLOCK_POWERS + 1) * 8)
#define TS_BLOCK_LARGEST ((int64_t)1 << TS_BLOCK_POWERS)

/* A free block is in the list of its class, most recently freed first since that one is warm in the cache, and in the
 * list of all blocks. */
typedef struct ts_free_block {
  struct ts_free_block *class_next, *class_prev;
  struct ts_free_block *newer, *older;
  int64_t freed_at;
  int64_t bytes;
  int32_t class;
} ts_free_block;

typedef struct ts_blocks {
  ts_free_block *classes[TS_BLOCK_CLASSES];
  ts_free_block *newest, *oldest;
  int64_t bytes; /* of all blocks */
} ts_blocks;

/* The class of a block of `size` bytes; `out_bytes` is the size of blocks of that class. */
int32_t ts_block_class(int64_t size, int64_t *out_bytes);

/* Requires `block->bytes` and `block->class`. */
void ts_blocks_push(ts_blocks *blocks, ts_free_block *block, int64_t now);
ts_free_block *ts_blocks_pop(ts_blocks *blocks, int32_t class); /* NULL when there is none */
/* Cuts a block of whole huge pages off the smallest free block of a larger class; the remainder is freed as blocks of
 * its own. NULL when there is none. */
ts_free_block *ts_blocks_split(ts_blocks *blocks, int32_t class, int64_t bytes, int64_t now);
ts_free_block *ts_blocks_pop_oldest(ts_blocks *blocks); /* there must be one */

#endif
