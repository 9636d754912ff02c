#include "tool/opt_read.h"

#include "base/vec.h"
#include "stablehlo/read.h"

#include <string.h>

/* The first bytes after blanks and comments. */
static size_t skip_blanks(const char *text, size_t length) {
  size_t at = 0;
  while (at < length) {
    if (strchr(" \t\r\n", text[at]) && text[at]) {
      at++;
    } else if (length - at >= 2 && text[at] == '/' && text[at + 1] == '/') {
      while (at < length && text[at] != '\n') at++;
    } else {
      break;
    }
  }
  return at;
}

/* Texts of MLIR begin with one of these words, and texts of graphs do not. Other forms contain zero bytes. */
static bool is_stablehlo(const char *text, size_t length) {
  static const char *const words[] = {"module", "builtin.module", "func.func", "sdy.mesh", "\"", "#", "ML\xefR"};
  const size_t at = skip_blanks(text, length);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    const size_t word = strlen(words[i]);
    if (length - at >= word && memcmp(text + at, words[i], word) == 0) return true;
  }
  return memchr(text, 0, length) != NULL;
}

/* The arguments with the size for each symbol. */
static ts_status set_sizes(const ts_stablehlo_leaves *leaves, uint64_t size, ts_type *out) {
  for (size_t i = 0; i < leaves->param_count; i++) {
    const ts_stablehlo_leaf *leaf = &leaves->params[i];
    out[i].dtype = leaf->dtype;
    ts_shape_copy(&out[i].shape, leaf->shape);
    for (int32_t d = 0; d < leaf->shape->rank; d++)
      if (leaf->shape->dims[d] < 0) out[i].shape.dims[d] = (int64_t)size;
    TS_TRY(ts_shape_check(&out[i].shape, leaf->dtype));
  }
  return TS_SUCCESS;
}

static ts_status read_sized(const char *text, size_t length, uint64_t size, ts_graph **out) {
  ts_stablehlo_leaves leaves;
  ts_type *types;
  TS_TRY(ts_stablehlo_read_leaves(text, length, &leaves));
  ts_status status = TS_NEW_ARRAY(leaves.param_count + 1, &types);
  if (!status) {
    status = set_sizes(&leaves, size, types);
    if (!status) status = ts_stablehlo_read_for(text, length, &(ts_types){types, leaves.param_count}, out);
    ts_free(types);
  }
  ts_stablehlo_leaves_deinit(&leaves);
  return status;
}

static ts_status read_stablehlo(const char *text, size_t length, uint64_t size, ts_graph **out) {
  ts_stablehlo_shardings shardings;
  if (size) return read_sized(text, length, size, out);
  TS_TRY(ts_stablehlo_read_shardings(text, length, &shardings));
  const int64_t partitions = shardings.is_local ? 1 : shardings.partitions;
  ts_stablehlo_shardings_deinit(&shardings);
  TS_TRY(partitions == 1 ? ts_stablehlo_read_for(text, length, NULL, out)
                         : ts_stablehlo_read_whole(text, length, partitions, out));
  return *out ? TS_SUCCESS : ts_error(TS_INVALID_ARGUMENT, "the program has symbols for sizes: --size=N gives a size");
}

ts_status ts_opt_read(const char *text, size_t length, uint64_t size, ts_graph **out) {
  if (!is_stablehlo(text, length)) return ts_graph_parse(text, length, out);
  return read_stablehlo(text, length, size, out);
}
