#include "exec/steps.h"

static void add_block(ts_block **list, ts_block *block) {
  block->next = *list;
  *list = block;
}

/* Adds the step's blocks to the list of blocks to release, which replaces recursion. */
static void release_step(ts_step *step, ts_block **rest) {
  if (step->kind == TS_STEP_WHILE && step->loop) {
    add_block(rest, &step->loop->condition);
    add_block(rest, &step->loop->body);
  }
  for (int i = 0; i < 2 && step->kind == TS_STEP_COND && step->branches; i++) add_block(rest, &step->branches[i]);
}

static void release_blocks(ts_block *rest) {
  while (rest) {
    ts_block *block = rest;
    rest = block->next;
    for (size_t i = 0; i < block->steps.count; i++) release_step(&block->steps.data[i], &rest);
    TS_VEC_FREE(&block->steps);
  }
}

void ts_step_deinit(ts_step *step) {
  ts_block *blocks = NULL;
  release_step(step, &blocks);
  release_blocks(blocks);
}

void ts_block_deinit(ts_block *block) {
  block->next = NULL;
  release_blocks(block);
}

const char *ts_step_name(const ts_step *step) {
  static const char *const kinds[] = {"launch", "routine", "copy", "while", "cond", "callback", "collective", "whole"};
  if (ts_step_is_native(step)) return "native";
  return step->kind == TS_STEP_ROUTINE ? step->routine.plan->routine->name : kinds[step->kind];
}
