#include "amx_model.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xmmintrin.h>

enum { TILES = 8, MOST_ROWS = 16, MOST_BYTES = 64, MOST_COLS = MOST_BYTES / 4 };

typedef struct tile {
  int rows, bytes; /* bytes of a row */
  union {
    char row[MOST_ROWS][MOST_BYTES];
    float f32[MOST_ROWS][MOST_COLS];
    uint32_t word[MOST_ROWS][MOST_COLS];
  };
} tile;

static _Thread_local tile tiles[TILES];
static _Thread_local bool is_configured;

/* A test program of this model takes it, where the caller has not chosen instructions. */
__attribute__((constructor)) static void choose_amx(void) { setenv("TESSERA_ISA", "amx", 0); }

static void require(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "the model of AMX: %s\n", what);
  abort();
}

static tile *tile_of(int index) {
  require(is_configured, "a tile before its configuration");
  require(index >= 0 && index < TILES && tiles[index].rows > 0, "a tile without rows");
  return &tiles[index];
}

void amx_model_configure(const void *configuration) {
  uint8_t c[64];
  memcpy(c, configuration, sizeof c);
  require(c[0] == 1 && c[1] == 0, "another palette than 1");
  for (int i = 2; i < 16; i++) require(c[i] == 0, "reserved bytes that are not 0");
  memset(tiles, 0, sizeof tiles);
  for (int i = 0; i < TILES; i++) {
    tiles[i].bytes = c[16 + 2 * i] | c[17 + 2 * i] << 8;
    tiles[i].rows = c[48 + i];
    require(tiles[i].rows <= MOST_ROWS && tiles[i].bytes <= MOST_BYTES, "a tile that is too large");
    require((tiles[i].rows == 0) == (tiles[i].bytes == 0), "a tile with rows or columns only");
  }
  is_configured = true;
}

void amx_model_release(void) {
  memset(tiles, 0, sizeof tiles);
  is_configured = false;
}

void amx_model_zero(int index) {
  tile *t = tile_of(index);
  memset(t->row, 0, sizeof t->row);
}

void amx_model_load(int index, const void *from, size_t stride) {
  tile *t = tile_of(index);
  memset(t->row, 0, sizeof t->row);
  for (int r = 0; r < t->rows; r++) memcpy(t->row[r], (const char *)from + (size_t)r * stride, (size_t)t->bytes);
}

void amx_model_store(int index, void *to, size_t stride) {
  const tile *t = tile_of(index);
  for (int r = 0; r < t->rows; r++) memcpy((char *)to + (size_t)r * stride, t->row[r], (size_t)t->bytes);
}

static void require_shapes(const tile *sums, const tile *lhs, const tile *rhs) {
  require(sums != lhs && sums != rhs && lhs != rhs, "the same tile twice");
  require(sums->rows == lhs->rows && sums->bytes == rhs->bytes && lhs->bytes == 4 * rhs->rows,
          "tiles that do not match");
}

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* The sums of both halves begin at 0, and rounding is to nearest. Numbers below the normal ones are zeros. */
void amx_model_sum_bf16(int sums, int lhs, int rhs) {
  tile *s = tile_of(sums);
  const tile *l = tile_of(lhs), *r = tile_of(rhs);
  require_shapes(s, l, r);
  const unsigned before = _mm_getcsr();
  _mm_setcsr(0x9FC0); /* to nearest, no exceptions, zeros for such operands and results */
  for (int m = 0; m < s->rows; m++) {
    float low[MOST_COLS] = {0}, high[MOST_COLS] = {0};
    for (int k = 0; k < r->rows; k++)
      for (int n = 0; n < s->bytes / 4; n++) {
        const uint32_t left = l->word[m][k], right = r->word[k][n];
        low[n] = fmaf(float_of(left << 16), float_of(right << 16), low[n]);
        high[n] = fmaf(float_of(left & 0xFFFF0000U), float_of(right & 0xFFFF0000U), high[n]);
      }
    for (int n = 0; n < s->bytes / 4; n++) s->f32[m][n] += low[n] + high[n];
  }
  _mm_setcsr(before);
}

static int32_t byte_of(uint32_t quad, int at, bool is_signed) {
  const uint8_t byte = (uint8_t)(quad >> 8 * at);
  return is_signed ? (int8_t)byte : byte;
}

/* Sums wrap. */
void amx_model_sum_bytes(int sums, int lhs, bool lhs_signed, int rhs, bool rhs_signed) {
  tile *s = tile_of(sums);
  const tile *l = tile_of(lhs), *r = tile_of(rhs);
  require_shapes(s, l, r);
  for (int m = 0; m < s->rows; m++)
    for (int k = 0; k < r->rows; k++)
      for (int n = 0; n < s->bytes / 4; n++)
        for (int at = 0; at < 4; at++)
          s->word[m][n] += (uint32_t)(byte_of(l->word[m][k], at, lhs_signed) * byte_of(r->word[k][n], at, rhs_signed));
}
