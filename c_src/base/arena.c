#include "base/arena.h"

#include <string.h>

#define ALIGNMENT 16
#define FIRST_CHUNK ((size_t)4096)
#define LARGEST_CHUNK ((size_t)1 << 20)

void ts_arena_init(ts_arena *arena) { *arena = (ts_arena){.head = NULL, .chunk_size = FIRST_CHUNK}; }

void ts_arena_deinit(ts_arena *arena) {
  for (struct ts_arena_chunk *chunk = arena->head; chunk;) {
    struct ts_arena_chunk *next = chunk->next;
    ts_free(chunk);
    chunk = next;
  }
  ts_arena_init(arena);
}

/* NULL when there is no memory. */
static struct ts_arena_chunk *chunk_new(size_t bytes) {
  size_t size;
  struct ts_arena_chunk *chunk = ts_add_size(bytes, sizeof *chunk, &size) ? ts_malloc_raw(size) : NULL;
  if (chunk) chunk->size = bytes;
  return chunk;
}

/* A request that would waste most of a chunk gets a chunk of its own behind the current one, which stays in use. NULL
 * when there is no memory. */
static void *alloc_slow(ts_arena *arena, size_t size) {
  if (!arena->chunk_size) arena->chunk_size = FIRST_CHUNK;
  bool own = size > arena->chunk_size / 4 && arena->head;
  struct ts_arena_chunk *chunk = chunk_new(own || size > arena->chunk_size ? size : arena->chunk_size);
  if (!chunk) return NULL;
  if (own) {
    chunk->next = arena->head->next;
    arena->head->next = chunk;
  } else {
    chunk->next = arena->head;
    arena->head = chunk;
    if (arena->chunk_size < LARGEST_CHUNK) arena->chunk_size *= 2;
  }
  chunk->used = size;
  return chunk->bytes;
}

/* Memory is zeroed on allocation, not by chunk, so that unused pages are never touched. */
ts_status ts_arena_take_slow(ts_arena *arena, size_t size, void **out) {
  *out = NULL;
  size_t rounded;
  if (!ts_add_size(size ? size : 1, ALIGNMENT - 1, &rounded)) return ts_error_no_memory();
  rounded &= ~(size_t)(ALIGNMENT - 1);
  struct ts_arena_chunk *head = arena->head;
  if (head && head->size - head->used >= rounded) {
    *out = head->bytes + head->used;
    head->used += rounded;
  } else {
    *out = alloc_slow(arena, rounded);
    if (!*out) return ts_error_no_memory();
  }
  arena->used += rounded;
  return TS_SUCCESS;
}

ts_status ts_arena_alloc(ts_arena *arena, size_t size, void **out) {
  TS_TRY(ts_arena_take(arena, size, out));
  memset(*out, 0, size);
  return TS_SUCCESS;
}

void ts_arena_reset(ts_arena *arena) {
  struct ts_arena_chunk *head = arena->head;
  if (!head) return;
  arena->head = head->next;
  ts_arena_deinit(arena);
  head->next = NULL;
  head->used = 0;
  arena->head = head;
}

ts_status ts_arena_alloc_array(ts_arena *arena, size_t count, size_t element_size, void **out) {
  *out = NULL;
  size_t size;
  if (!ts_mul_size(count, element_size, &size)) return ts_error_no_memory();
  return ts_arena_alloc(arena, size, out);
}

ts_status ts_arena_copy(ts_arena *arena, const void *data, size_t size, void **out) {
  TS_TRY(ts_arena_take(arena, size, out));
  if (size) memcpy(*out, data, size);
  return TS_SUCCESS;
}

ts_status ts_arena_strdup(ts_arena *arena, const char *text, char **out) {
  return ts_arena_copy(arena, text, strlen(text) + 1, (void **)out);
}
