#include "exec/choose.h"

#include "jit/lower/layout.h"

#include <string.h>

/* A launch of more points gets a kernel of its own, even if another kernel of the program could stand in. */
#define SMALL_POINTS 32768

void ts_chooser_init(ts_chooser *c, const ts_graph *graph, ts_arena *arena, const ts_compile_options *options) {
  *c = (ts_chooser){.graph = graph, .arena = arena, .options = options};
  ts_jit_batch_init(&c->batch, options->nonblocking, options->cancel);
}

void ts_chooser_deinit(ts_chooser *c) {
  ts_jit_batch_deinit(&c->batch);
  for (size_t i = 0; i < c->texts.count; i++) ts_free(c->texts.data[i]);
  for (size_t i = 0; i < c->later.count; i++) ts_free((void *)(uintptr_t)c->later.data[i].text);
  TS_VEC_FREE(&c->texts);
  TS_VEC_FREE(&c->families);
  TS_VEC_FREE(&c->later);
  TS_VEC_FREE(&c->kernels);
  TS_VEC_FREE(&c->works);
  ts_map_deinit(&c->source_ids);
  ts_keys_deinit(&c->known);
}

/* ---- kernels ---- */

/* The family of a kernel's source; zero without one, or when memory runs out. */
static ts_hash128 family_of(const ts_kernel_source *source) {
  ts_hash128 family;
  bool known = source->family && ts_status_consume_ok(source->family(source->description, &family));
  return known ? family : (ts_hash128){0};
}

ts_status ts_choose_source(ts_chooser *c, char *text, const ts_kernel_source *source, uint32_t *out) {
  uintptr_t known = (uintptr_t)ts_map_get(&c->source_ids, text, source->length);
  if (known) {
    *out = (uint32_t)known - 1;
    ts_free(text);
    return TS_SUCCESS;
  }
  ts_status status = TS_VEC_PUSH(&c->texts, text);
  if (status) {
    ts_free(text);
    return status;
  }
  *out = (uint32_t)c->batch.requests.count;
  TS_TRY(TS_VEC_PUSH(&c->families, family_of(source)));
  TS_TRY(ts_map_put(&c->source_ids, text, source->length, (void *)(c->batch.requests.count + 1)));
  return ts_jit_batch_add(&c->batch, source);
}

static bool is_at_hand(const ts_chooser *c, const ts_kernel_source *source) {
  return ts_map_get(&c->source_ids, source->text, source->length) || ts_jit_has(source);
}

/* The cheapest existing kernel that can stand in for a launch's own. */
typedef struct stand_in {
  const ts_launch *launch;
  ts_kernel_layout layout;
  int32_t dims[TS_KERNEL_MAX_RANK];
  int32_t cost;
  bool found, own; /* own: among the kernels that this program requests */
} stand_in;

static void consider_layout(stand_in *best, const ts_kernel_layout *layout) {
  int32_t dims[TS_KERNEL_MAX_RANK], cost;
  if (!ts_layout_match(best->launch, layout, dims, &cost) || (best->found && best->cost <= cost)) return;
  best->layout = *layout;
  best->cost = cost;
  best->found = true;
  memcpy(best->dims, dims, sizeof(dims));
}

static void consider(void *context, const char *text) {
  ts_kernel_layout layout;
  if (ts_layout_parse(text, &layout)) consider_layout(context, &layout);
}

/* Considers the kernels that this program has requested already: for example, one kernel can compute both steps of a
 * sum in two steps. */
static void consider_own(const ts_chooser *c, const ts_kernel_source *source, stand_in *out) {
  if (out->launch->points > SMALL_POINTS) return;
  ts_hash128 family = family_of(source);
  for (size_t i = 0; i < c->families.count; i++) {
    ts_hash128 own = c->families.data[i];
    if (own.lo == family.lo && own.hi == family.hi) consider(out, c->texts.data[i]);
  }
  out->own = out->found;
}

static void find_stand_in(const ts_chooser *c, const ts_kernel_source *source, stand_in *out) {
  ts_kernel_layout layout;
  if (c->options->general_kernels) {
    ts_layout_generalize(&out->launch->desc, &layout);
    consider_layout(out, &layout);
  } else if (!is_at_hand(c, source)) {
    consider_own(c, source, out);
    if (!out->found) ts_jit_batch_visit_family(&c->batch, source, consider, out);
  }
}

/* Makes a kernel source with a description that lives as long as the executable, unlike the launch's. */
static ts_status make_source(ts_arena *arena, const ts_launch *launch, char **out_text, ts_kernel_source *out) {
  void *desc;
  TS_TRY(ts_arena_copy(arena, &launch->desc, sizeof(launch->desc), &desc));
  return ts_kernel_make_source(desc, out_text, out);
}

static ts_status choose(ts_chooser *c, char *text, const ts_kernel_source *source) {
  uint32_t kernel;
  TS_TRY(ts_choose_source(c, text, source, &kernel));
  return TS_VEC_PUSH(&c->kernels, kernel);
}

static ts_status keep_cached(ts_arena *arena, ts_launch *launch) {
  ts_kernel_output *outputs;
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)launch->desc.output_count, &outputs));
  for (int32_t i = 0; i < launch->desc.output_count; i++) {
    outputs[i] = launch->desc.outputs[i];
    outputs[i].stream = false;
  }
  launch->desc.outputs = outputs;
  return TS_SUCCESS;
}

/* Chooses the kernel of a launch. If its own kernel would have to be compiled and a more general one exists, that one
 * stands in, and its own is compiled in the background. */
static ts_status choose_kernel(void *context, ts_arena *arena, ts_launch *launch) {
  ts_chooser *c = context;
  char *text;
  ts_kernel_source source;
  if (c->cached) TS_TRY(keep_cached(arena, launch));
  TS_TRY(make_source(arena, launch, &text, &source));
  stand_in other = {.launch = launch};
  find_stand_in(c, &source, &other);
  if (!other.found) return choose(c, text, &source);
  ts_status status = other.own ? TS_SUCCESS : TS_VEC_PUSH(&c->later, source);
  if (status || other.own) ts_free(text);
  if (status) return status;
  TS_TRY(ts_layout_apply(launch, &other.layout, other.dims, arena, launch));
  TS_TRY(make_source(arena, launch, &text, &source));
  return choose(c, text, &source);
}

/* ---- ops ---- */

/* Adds to the key what lowering reads of an operand: its type, which earlier operand it equals, and its value if it is
 * a constant. */
static ts_status put_operand(ts_chooser *c, const ts_op *op, uint32_t i) {
  uint32_t first = 0;
  ts_scalar known = {0};
  while (op->operands[first] != op->operands[i]) first++;
  bool constant = ts_graph_is_constant(c->graph, op->operands[i], &known);
  TS_TRY(ts_keys_put_type(&c->known, ts_graph_value(c->graph, op->operands[i]), first << 1 | constant));
  return constant ? ts_keys_put(&c->known, known.bits) : TS_SUCCESS;
}

/* The key holds everything that lowering an op depends on. */
static ts_status make_key(ts_chooser *c, const ts_op *op) {
  ts_keys_begin(&c->known);
  TS_TRY(ts_keys_put(&c->known, c->cached));
  TS_TRY(ts_keys_put_op(&c->known, op, NULL));
  for (uint32_t i = 0; i < op->operand_count; i++) TS_TRY(put_operand(c, op, i));
  return TS_SUCCESS;
}

static ts_status plan_launches(const ts_chooser *c, ts_work *work) {
  const ts_lowered *lowered = &work->lowered;
  TS_TRY(TS_ARENA_ARRAY(c->arena, (size_t)lowered->launch_count, &work->launches));
  for (int32_t i = 0; i < lowered->launch_count; i++) {
    const ts_launch *launch = &lowered->launches[i];
    ts_step_launch *l = &work->launches[i];
    l->launch = launch;
    l->kernel = c->kernels.data[i];
    ts_tasks_plan(l, ts_kernel_point_cost(&launch->desc));
    work->cost_ns += l->cost_ns;
    if (launch->scratch > work->scratch_bytes) work->scratch_bytes = launch->scratch;
  }
  work->scratch_bytes = (work->scratch_bytes + 63) & ~(int64_t)63;
  return TS_SUCCESS;
}

static ts_status lower(ts_chooser *c, ts_op_id id, ts_work **out) {
  ts_lower_hook hook = {choose_kernel, c};
  TS_TRY(TS_ARENA_ARRAY(c->arena, 1, out));
  c->kernels.count = 0;
  TS_TRY(ts_lower_op(c->graph, id, c->arena, &hook, &(*out)->lowered));
  TS_TRY(plan_launches(c, *out));
  return TS_VEC_PUSH(&c->works, *out);
}

ts_status ts_choose(ts_chooser *c, ts_op_id id, bool cached, const ts_work **out) {
  ts_work *fresh;
  c->cached = cached;
  TS_TRY(make_key(c, ts_graph_op(c->graph, id)));
  *out = ts_keys_find(&c->known);
  if (*out) return TS_SUCCESS;
  TS_TRY(lower(c, id, &fresh));
  *out = fresh;
  return ts_keys_keep(&c->known, fresh);
}
