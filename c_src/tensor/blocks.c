#include "tensor/blocks.h"

#include "tensor/pages.h"
#include "tensor/pool.h"

/* Size classes: every multiple of 64 up to 1 KB; from there four for each power of two, and from 2 MB eight, in whole
 * huge pages. A class is named by the power of two below it and a step: index = 8 * power + step. */
#define SMALL_POWER 10
#define HUGE_POWER 21

_Static_assert(TS_HUGE_PAGE == (size_t)1 << HUGE_POWER, "steps of the first huge classes are one page");
_Static_assert(sizeof(ts_free_block) <= TS_POOL_ALIGNMENT, "a free block must hold its own links");

/* The logarithm of the difference between classes above 2^power. */
static int step_power(int power) {
  if (power < HUGE_POWER) return power - 2;
  return power < HUGE_POWER + 3 ? HUGE_POWER : power - 3;
}

int32_t ts_block_class(int64_t size, int64_t *out_bytes) {
  if (size <= 1 << SMALL_POWER) {
    int64_t units = size <= TS_POOL_ALIGNMENT ? 1 : (size + TS_POOL_ALIGNMENT - 1) / TS_POOL_ALIGNMENT;
    *out_bytes = units * TS_POOL_ALIGNMENT;
    return (int32_t)units; /* 1..16, far below 8 * SMALL_POWER */
  }
  int power = 63 - __builtin_clzll((uint64_t)size - 1); /* 2^power < size <= 2^(power + 1) */
  int step = step_power(power);
  int64_t base = (int64_t)1 << power, steps = (size - base + ((int64_t)1 << step) - 1) >> step;
  *out_bytes = base + (steps << step);
  return (int32_t)(8 * power + steps - 1); /* steps is in 1..8 */
}

void ts_blocks_push(ts_blocks *blocks, ts_free_block *block, int64_t now) {
  ts_free_block **at = &blocks->classes[block->class];
  block->class_prev = NULL;
  block->freed_at = now;
  block->class_next = *at;
  if (*at) (*at)->class_prev = block;
  *at = block;
  block->newer = NULL;
  block->older = blocks->newest;
  *(blocks->newest ? &blocks->newest->newer : &blocks->oldest) = block;
  blocks->newest = block;
  blocks->bytes += block->bytes;
}

static ts_free_block *unlink_block(ts_blocks *blocks, ts_free_block *block) {
  *(block->class_prev ? &block->class_prev->class_next : &blocks->classes[block->class]) = block->class_next;
  if (block->class_next) block->class_next->class_prev = block->class_prev;
  *(block->newer ? &block->newer->older : &blocks->newest) = block->older;
  *(block->older ? &block->older->newer : &blocks->oldest) = block->newer;
  blocks->bytes -= block->bytes;
  return block;
}

ts_free_block *ts_blocks_pop(ts_blocks *blocks, int32_t class) {
  ts_free_block *block = blocks->classes[class];
  return block ? unlink_block(blocks, block) : NULL;
}

ts_free_block *ts_blocks_pop_oldest(ts_blocks *blocks) { return unlink_block(blocks, blocks->oldest); }

/* Frees the memory from `rest` on, a multiple of huge pages, as few large blocks. */
static void push_rest(ts_blocks *blocks, char *rest, int64_t bytes, int64_t now) {
  while (bytes > 0) {
    int step = step_power(63 - __builtin_clzll((uint64_t)bytes));
    int64_t size = bytes >> step << step;
    ts_free_block *block = (ts_free_block *)(void *)rest;
    block->class = ts_block_class(size, &block->bytes);
    ts_blocks_push(blocks, block, now);
    rest += size;
    bytes -= size;
  }
}

ts_free_block *ts_blocks_split(ts_blocks *blocks, int32_t class, int64_t bytes, int64_t now) {
  int32_t larger = class + 1;
  while (larger < TS_BLOCK_CLASSES && !blocks->classes[larger]) larger++;
  if (larger == TS_BLOCK_CLASSES) return NULL;
  ts_free_block *block = ts_blocks_pop(blocks, larger);
  push_rest(blocks, (char *)block + bytes, block->bytes - bytes, now);
  block->bytes = bytes;
  block->class = class;
  return block;
}
