#include "jit/lower/layout.h"

#include "jit/lower/lower_internal.h"

#include <string.h>

/* ---- reading a layout from canonical text ---- */

static const char *skip_word(const char *at) {
  while (*at && *at != ' ' && *at != '\n') at++;
  return *at == ' ' ? at + 1 : at;
}

static const char *next_line(const char *at) {
  while (*at && *at != '\n') at++;
  return *at ? at + 1 : at;
}

static bool starts_with(const char *text, const char *prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

static bool parse_kind(const char *text, ts_kernel_layout *out) {
  for (ts_kernel_kind kind = TS_KERNEL_MAP; kind <= TS_KERNEL_COL; kind++) {
    const char *name = ts_kernel_kind_name(kind);
    if (!starts_with(text, name) || text[strlen(name)] != ' ') continue;
    out->kind = kind;
    const char *rank = skip_word(text);
    out->rank = rank[0] - '0';
    return out->rank >= 1 && out->rank <= TS_KERNEL_MAX_RANK && rank[1] == '\n';
  }
  return false;
}

static bool parse_classes(const char *at, ts_kernel_layout *out) {
  if (out->operand_count == TS_KERNEL_MAX_OPERANDS) return false;
  for (int32_t d = 0; d < out->rank; d++) {
    static const char classes[] = "01s-"; /* of ts_stride_class */
    const char *class = at[d] ? strchr(classes, at[d]) : NULL;
    if (!class) return false;
    out->stride[out->operand_count][d] = (uint8_t)(class - classes);
  }
  out->operand_count++;
  return true;
}

bool ts_layout_parse(const char *text, ts_kernel_layout *out) {
  *out = (ts_kernel_layout){0};
  if (!parse_kind(text, out)) return false;
  int output = 0;
  for (const char *line = next_line(text);; line = next_line(line)) {
    bool in = starts_with(line, "in "), to = starts_with(line, "out ");
    if (!in && !to && !starts_with(line, "index ")) return true;
    const char *classes = skip_word(line);
    if (in || to) classes = skip_word(classes); /* after the type */
    if (!parse_classes(classes, out)) return false;
    if (!to) continue;
    const char *end = next_line(line);
    if (end - line > 7 && strncmp(end - 7, "stream\n", 7) == 0) out->streams |= UINT64_C(1) << output;
    output++;
  }
}

/* ---- matching a launch and a layout ---- */

typedef struct matcher {
  const ts_launch *launch;
  const ts_kernel_layout *layout;
  int32_t *dims;
  int32_t cost;
} matcher;

static const ts_kernel_operand *operand_of(const ts_kernel_desc *d, int32_t i) {
  if (i < d->input_count) return &d->inputs[i];
  i -= d->input_count;
  return i < d->output_count ? &d->outputs[i].operand : &d->indices[i - d->output_count];
}

void ts_layout_generalize(const ts_kernel_desc *desc, ts_kernel_layout *out) {
  int32_t fixed = ts_kernel_fixed_dims(desc->kind), more = desc->rank < TS_KERNEL_MAX_RANK;
  *out = (ts_kernel_layout){.kind = desc->kind, .rank = desc->rank + more};
  out->operand_count = desc->input_count + desc->output_count + desc->index_count;
  for (int32_t i = 0; i < out->operand_count; i++) {
    const uint8_t *stride = operand_of(desc, i)->stride;
    for (int32_t d = 0; d < out->rank; d++)
      out->stride[i][d] = d < out->rank - fixed ? (uint8_t)TS_STRIDE_ANY : stride[d - more];
  }
  for (int32_t i = 0; i < desc->output_count; i++) out->streams |= (uint64_t)desc->outputs[i].stream << i;
}

/* True when dim `from` of the launch can become dim `to` of the layout. The innermost dims must match exactly, since
 * they decide the speed. */
static bool admits(matcher *m, int32_t from, int32_t to) {
  const ts_kernel_desc *d = &m->launch->desc;
  bool inner = to >= m->layout->rank - ts_kernel_fixed_dims(m->layout->kind);
  if (m->launch->args[from] == 1) return true;
  for (int32_t i = 0; i < m->layout->operand_count; i++) {
    uint8_t have = operand_of(d, i)->stride[from], want = m->layout->stride[i][to];
    if (have == want) continue;
    if (inner || want != TS_STRIDE_ANY) return false;
    m->cost++;
  }
  return true;
}

/* Maps dims 0..from to dims below `limit` of the layout, the last one as far inside as possible. */
static bool place_outer(matcher *m, int32_t from, int32_t limit) {
  if (from < 0) return true;
  for (int32_t to = limit - 1; to >= from; to--) {
    int32_t cost = m->cost;
    m->dims[from] = to;
    if (admits(m, from, to) && place_outer(m, from - 1, to)) return true;
    m->cost = cost;
  }
  return false;
}

static bool same_operands(const ts_launch *launch, const ts_kernel_layout *layout) {
  const ts_kernel_desc *d = &launch->desc;
  if (layout->operand_count != d->input_count + d->output_count + d->index_count) return false;
  for (int32_t i = 0; i < d->output_count; i++) {
    if (layout->streams >> i & 1 && !d->outputs[i].stream) return false;
  }
  return true;
}

/* Maps a reduced row to the reduced dim of a COL with one column. */
static bool match_row_to_col(matcher *m) {
  int32_t last = m->launch->desc.rank - 1, to = m->layout->rank - 2;
  if (m->launch->points > TS_SMALL_POINTS) return false; /* it would have no vectors */
  m->dims[last] = to;
  for (int32_t i = 0; i < m->layout->operand_count && m->launch->args[last] != 1; i++) {
    uint8_t have = operand_of(&m->launch->desc, i)->stride[last], want = m->layout->stride[i][to];
    if (have != want && want != TS_STRIDE_ANY) return false;
  }
  return place_outer(m, last - 1, to);
}

bool ts_layout_match(const ts_launch *launch, const ts_kernel_layout *layout, int32_t *out_dims, int32_t *out_cost) {
  matcher m = {.launch = launch, .layout = layout, .dims = out_dims, .cost = layout->rank - launch->desc.rank};
  const ts_kernel_desc *d = &launch->desc;
  if (d->columns != TS_COLUMNS_ANY || d->members > 0 || d->joined > 0 || d->lined > 0) return false;
  if (layout->rank < d->rank || !same_operands(launch, layout)) return false;
  bool serial = d->kind == TS_KERNEL_MAP && d->rank == 1 && layout->rank > 1;
  if (serial && launch->points > TS_SMALL_POINTS) return false; /* it would have one unit */
  bool fits;
  if (d->kind == TS_KERNEL_ROW && layout->kind == TS_KERNEL_COL) {
    fits = match_row_to_col(&m);
  } else {
    int32_t fixed = ts_kernel_fixed_dims(d->kind), from = d->rank - 1, to = layout->rank - 1;
    fits = d->kind == layout->kind;
    for (int32_t k = 0; fits && k < fixed; k++, from--, to--) {
      out_dims[from] = to;
      fits = admits(&m, from, to);
    }
    fits = fits && place_outer(&m, from, to + 1);
  }
  *out_cost = m.cost;
  return fits;
}

/* ---- a launch in another layout ---- */

static void set_classes(const ts_kernel_layout *layout, int32_t operand, ts_kernel_operand *to) {
  memcpy(to->stride, layout->stride[operand], sizeof(to->stride));
}

static ts_status describe(const ts_launch *launch, const ts_kernel_layout *layout, ts_arena *arena,
                          ts_kernel_desc *out) {
  const ts_kernel_desc *d = &launch->desc;
  ts_kernel_operand *inputs, *indices;
  ts_kernel_output *outputs;
  int32_t operand = 0;
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)d->input_count, &inputs));
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)d->output_count, &outputs));
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)d->index_count, &indices));
  for (int32_t i = 0; i < d->input_count; i++, operand++) {
    inputs[i] = d->inputs[i];
    inputs[i].step[layout->rank - 1] = d->inputs[i].step[d->rank - 1]; /* of NEAR */
    set_classes(layout, operand, &inputs[i]);
  }
  for (int32_t i = 0; i < d->output_count; i++, operand++) {
    outputs[i] = d->outputs[i];
    outputs[i].stream = layout->streams >> i & 1;
    set_classes(layout, operand, &outputs[i].operand);
  }
  for (int32_t i = 0; i < d->index_count; i++, operand++) {
    indices[i] = d->indices[i];
    set_classes(layout, operand, &indices[i]);
  }
  *out = *d;
  out->kind = layout->kind;
  out->rank = layout->rank;
  out->inputs = inputs;
  out->outputs = outputs;
  out->indices = indices;
  return TS_SUCCESS;
}

static ts_status fill_args(const ts_launch *launch, const int32_t *dims, ts_arena *arena, ts_launch *out) {
  const ts_kernel_desc *from = &launch->desc, *to = &out->desc;
  int32_t operands = from->input_count + from->output_count + from->index_count;
  ts_launch_pointer *pointers;
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)ts_kernel_arg_count(to), &out->args)); /* zeroed */
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)launch->pointer_count, &pointers));
  for (int32_t d = 0; d < to->rank; d++) out->args[d] = 1;
  for (int32_t d = 0; d < from->rank; d++) out->args[dims[d]] = launch->args[d];
  for (int32_t i = 0; i < operands; i++) {
    const int64_t *words = launch->args + ts_kernel_arg_operand(from, i);
    int64_t *moved = out->args + ts_kernel_arg_operand(to, i);
    const ts_kernel_operand *operand = operand_of(to, i);
    moved[0] = words[0];
    for (int32_t d = 0; d < from->rank; d++) moved[1 + dims[d]] = words[1 + d];
    for (int32_t d = 0; d < to->rank; d++) { /* where the extent is 1 */
      bool index = i >= from->input_count + from->output_count;
      int64_t unit = index ? 1 : (int64_t)ts_dtype_size(operand->dtype);
      if (operand->stride[d] == TS_STRIDE_ZERO) moved[1 + d] = 0;
      if (operand->stride[d] == TS_STRIDE_UNIT) moved[1 + d] = unit;
      if (operand->stride[d] == TS_STRIDE_DOWN) moved[1 + d] = -unit;
    }
  }
  for (int32_t i = 0; i < from->scalar_count; i++)
    out->args[ts_kernel_arg_scalar(to, i)] = launch->args[ts_kernel_arg_scalar(from, i)];
  for (int32_t i = 0; i < launch->pointer_count; i++) {
    pointers[i] = launch->pointers[i];
    pointers[i].word = ts_kernel_arg_operand(to, i);
  }
  out->pointers = pointers;
  return TS_SUCCESS;
}

ts_status ts_layout_apply(const ts_launch *launch, const ts_kernel_layout *layout, const int32_t *dims, ts_arena *arena,
                          ts_launch *out) {
  ts_launch moved = *launch;
  TS_TRY(describe(launch, layout, arena, &moved.desc));
  TS_TRY(fill_args(launch, dims, arena, &moved));
  ts_launch_measure(&moved);
  *out = moved;
  return TS_SUCCESS;
}
