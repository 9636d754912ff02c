/* Free blocks of memory by size class, the links written into the blocks. Not
 * thread-safe: whoever has such a set guards it. The set owns its blocks. */
#ifndef TS_TENSOR_BLOCKS_H
#define TS_TENSOR_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#define TS_BLOCK_POWERS 47
#define TS_BLOCK_CLASSES ((TS_BLOCK_POWERS + 1) * 8)
#define TS_BLOCK_LARGEST ((int64_t)1 << TS_BLOCK_POWERS)

/* It stands in the list of its class, last freed first since that one is warm
 * in the cache, but hasty ones last; and in the list of all. */
typedef struct ts_free_block {
  struct ts_free_block *class_next, *class_prev;
  struct ts_free_block *newer, *older;
  int64_t freed_at;
  int64_t bytes;
  int32_t class;
  bool hasty; /* made of small pages: pages.h */
} ts_free_block;

typedef struct ts_blocks {
  ts_free_block *classes[TS_BLOCK_CLASSES];
  ts_free_block *newest, *oldest;
  int64_t bytes; /* of all */
} ts_blocks;

/* The class of a block of `size` bytes, and the bytes that such blocks have. */
int32_t ts_block_class(int64_t size, int64_t *out_bytes);

/* The bytes of a class of blocks of 2 MB and more. */
int64_t ts_block_bytes(int32_t class);

/* `block->bytes`, `block->class` and `block->hasty` are set. */
void ts_blocks_push(ts_blocks *blocks, ts_free_block *block, int64_t now);
ts_free_block *ts_blocks_pop(ts_blocks *blocks, int32_t class); /* NULL when there is none */
/* Cuts a block of whole huge pages off the smallest free block of a larger class; what is left of that stays, as free
 * blocks of their own. NULL when there is none. */
ts_free_block *ts_blocks_split(ts_blocks *blocks, int32_t class, int64_t bytes, int64_t now);
/* A hasty block of the class; NULL when there is none. */
ts_free_block *ts_blocks_pop_hasty(ts_blocks *blocks, int32_t class);
/* The largest class that has a hasty block, of those whose blocks are replaced; -1 when there is none. */
int32_t ts_blocks_hasty_class(const ts_blocks *blocks);
ts_free_block *ts_blocks_pop_oldest(ts_blocks *blocks); /* there must be one */

#endif
