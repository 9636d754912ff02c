#include "exec/choose.h"

#include "jit/lower/layout.h"

#include <string.h>

void ts_chooser_init(ts_chooser *c, const ts_graph *graph, ts_arena *arena, const ts_compile_options *options) {
  *c = (ts_chooser){.graph = graph, .arena = arena, .options = options};
  ts_jit_batch_init(&c->batch, options->nonblocking, options->cancel);
}

void ts_chooser_deinit(ts_chooser *c) {
  ts_jit_batch_deinit(&c->batch);
  for (size_t i = 0; i < c->chosen.count; i++) ts_free(c->chosen.data[i].text);
  TS_VEC_FREE(&c->chosen);
  TS_VEC_FREE(&c->later);
  TS_VEC_FREE(&c->kernels);
  TS_VEC_FREE(&c->owns);
  TS_VEC_FREE(&c->works);
  ts_map_deinit(&c->indices);
  ts_keys_deinit(&c->known);
}

/* ---- kernels by their texts ---- */

/* The family of a kernel's source; zero without one, or when memory runs out. */
static ts_hash128 family_of(const ts_kernel_source *source) {
  ts_hash128 family;
  bool known = source->family && ts_status_consume_ok(source->family(source->description, &family));
  return known ? family : (ts_hash128){0};
}

static ts_chosen *find_chosen(const ts_chooser *c, const ts_kernel_source *source) {
  uintptr_t known = (uintptr_t)ts_map_get(&c->indices, source->text, source->length);
  return known ? &c->chosen.data[known - 1] : NULL;
}

/* Takes over `text`, the source's. The result is valid until the next one is added. */
static ts_status add_chosen(ts_chooser *c, char *text, ts_kernel_source *source, ts_chosen **out) {
  *out = find_chosen(c, source);
  if (*out) {
    ts_free(text);
    source->text = (*out)->text;
    return TS_SUCCESS;
  }
  ts_chosen fresh = {.text = text, .family = family_of(source), .requested = TS_NO_ID};
  ts_status status = TS_VEC_PUSH(&c->chosen, fresh);
  if (status) {
    ts_free(text);
    return status;
  }
  *out = &c->chosen.data[c->chosen.count - 1];
  return ts_map_put(&c->indices, text, source->length, (void *)c->chosen.count);
}

static ts_status request(ts_chooser *c, ts_chosen *chosen, const ts_kernel_source *source, uint32_t *out) {
  if (chosen->requested != TS_NO_ID) {
    *out = chosen->requested;
    return TS_SUCCESS;
  }
  *out = chosen->requested = (uint32_t)c->batch.requests.count;
  return ts_jit_batch_add(&c->batch, source);
}

ts_status ts_choose_source(ts_chooser *c, char *text, const ts_kernel_source *source, uint32_t *out) {
  ts_chosen *chosen;
  ts_kernel_source kept = *source;
  TS_TRY(add_chosen(c, text, &kept, &chosen));
  chosen->own = true;
  return request(c, chosen, &kept, out);
}

int64_t ts_chooser_own_kernels(const ts_chooser *c) {
  int64_t count = 0;
  for (size_t i = 0; i < c->chosen.count; i++) count += c->chosen.data[i].own;
  return count;
}

/* ---- layouts of other kernels ---- */

/* The cheapest of the kernels that could compute a launch. */
typedef struct stand_in {
  const ts_launch *launch;
  ts_kernel_layout layout;
  int32_t dims[TS_KERNEL_MAX_RANK];
  int32_t cost;
  bool found;
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

/* Considers the kernels that the program has already: for example, one kernel can compute both steps of a sum in two
 * steps. The launch's own kernel is not looked for in memory or on disk, where it may be by chance. */
static void consider_own(const ts_chooser *c, const ts_kernel_source *source, stand_in *out) {
  if (out->launch->points > TS_SMALL_POINTS || find_chosen(c, source)) return;
  ts_hash128 family = family_of(source);
  for (size_t i = 0; i < c->chosen.count; i++) {
    const ts_chosen *own = &c->chosen.data[i];
    if (own->own && own->family.lo == family.lo && own->family.hi == family.hi) consider(out, own->text);
  }
}

/* Makes a kernel source with a description that lives as long as the executable, unlike the launch's. */
static ts_status make_source(ts_arena *arena, const ts_launch *launch, char **out_text, ts_kernel_source *out) {
  void *desc;
  TS_TRY(ts_arena_copy(arena, &launch->desc, sizeof(launch->desc), &desc));
  return ts_kernel_make_source(desc, out_text, out);
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

/* Moves the launch, which `of` is about, to the layout that was found. */
static ts_status move_launch(ts_arena *arena, const stand_in *of, ts_launch *out, char **text,
                             ts_kernel_source *source) {
  TS_TRY(ts_layout_apply(of->launch, &of->layout, of->dims, arena, out));
  return make_source(arena, out, text, source);
}

/* Makes the launch that the program's own kernel computes, with the kernel's text. */
static ts_status own_launch(ts_chooser *c, ts_arena *arena, ts_launch *launch, char **text, ts_kernel_source *source) {
  const ts_launch plain = *launch;
  stand_in found = {.launch = &plain};
  ts_kernel_layout general;
  TS_TRY(make_source(arena, launch, text, source));
  if (c->options->general_kernels) {
    ts_layout_generalize(&launch->desc, &general);
    consider_layout(&found, &general);
  } else {
    consider_own(c, source, &found);
  }
  if (!found.found) return TS_SUCCESS;
  ts_free(*text);
  return move_launch(arena, &found, launch, text, source);
}

/* True when the program is the same with `other` in place of its own launch: no more workspace, and as an epilogue it
 * fits where the own one does. */
static bool is_as_good(const ts_chooser *c, const ts_launch *own, const ts_launch *other) {
  if (other->scratch > own->scratch) return false;
  for (int32_t i = 0; i < own->pointer_count && c->cached; i++) {
    const ts_launch_pointer *p = &own->pointers[i];
    if (p->role != TS_ROLE_OPERAND) continue;
    if (ts_launch_follows(own, p->index) != ts_launch_follows(other, p->index)) return false;
  }
  return true;
}

/* Keeps what explain shows of the own kernel while another one stands in for it. */
static ts_status keep_own(ts_arena *arena, const ts_launch *own, const ts_kernel_source *source, ts_own_kernel **out) {
  TS_TRY(TS_ARENA_ARRAY(arena, 1, out));
  (*out)->hash = ts_hash(source->text, source->length);
  (*out)->launch = *own;
  return TS_SUCCESS;
}

/* Looks for a kernel of another program that can stand in for an own kernel that would have to be compiled. `plain` is
 * the launch before it was moved to the layout of its own kernel. */
static ts_status find_stand_in(ts_chooser *c, ts_arena *arena, const ts_launch *plain, const ts_kernel_source *source,
                               ts_launch *launch, ts_own_kernel **out_own) {
  ts_launch moved;
  stand_in other = {.launch = plain};
  if (c->options->general_kernels || ts_jit_has(source)) return TS_SUCCESS;
  ts_jit_batch_visit_family(&c->batch, source, consider, &other);
  if (!other.found) return TS_SUCCESS;
  TS_TRY(ts_layout_apply(plain, &other.layout, other.dims, arena, &moved));
  if (!is_as_good(c, launch, &moved)) return TS_SUCCESS;
  TS_TRY(keep_own(arena, launch, source, out_own));
  TS_TRY(TS_VEC_PUSH(&c->later, *source));
  *launch = moved;
  return TS_SUCCESS;
}

/* Chooses the kernel of a launch. If its own kernel would have to be compiled and another program has a more general
 * one, that one stands in, and its own is compiled in the background. */
static ts_status choose_kernel(void *context, ts_arena *arena, ts_launch *launch) {
  ts_chooser *c = context;
  char *text;
  ts_kernel_source source;
  ts_chosen *chosen;
  ts_own_kernel *own = NULL;
  uint32_t kernel;
  if (c->cached) TS_TRY(keep_cached(arena, launch));
  if (c->in_place) {
    TS_TRY(TS_VEC_PUSH(&c->owns, NULL));
    return TS_VEC_PUSH(&c->kernels, TS_NO_ID);
  }
  const ts_launch plain = *launch;
  TS_TRY(own_launch(c, arena, launch, &text, &source));
  TS_TRY(add_chosen(c, text, &source, &chosen));
  chosen->own = true;
  if (chosen->requested == TS_NO_ID) TS_TRY(find_stand_in(c, arena, &plain, &source, launch, &own));
  if (own) {
    TS_TRY(make_source(arena, launch, &text, &source));
    TS_TRY(add_chosen(c, text, &source, &chosen));
  }
  TS_TRY(request(c, chosen, &source, &kernel));
  TS_TRY(TS_VEC_PUSH(&c->owns, own));
  return TS_VEC_PUSH(&c->kernels, kernel);
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
  TS_TRY(ts_keys_put(&c->known, (uint64_t)c->in_place << 1 | c->cached));
  TS_TRY(ts_keys_put_op(&c->known, op, NULL));
  for (uint32_t i = 0; i < op->operand_count; i++) TS_TRY(put_operand(c, op, i));
  return TS_SUCCESS;
}

/* A launch costs what it costs with its own kernel. */
static void plan_own(ts_own_kernel *own, ts_step_launch *launch) {
  ts_step_launch planned = {.launch = &own->launch};
  ts_tasks_plan(&planned, ts_kernel_point_cost(&own->launch.desc));
  own->tasks = planned.tasks;
  launch->cost_ns = planned.cost_ns;
}

static ts_status plan_launches(const ts_chooser *c, ts_work *work) {
  const ts_lowered *lowered = &work->lowered;
  TS_TRY(TS_ARENA_ARRAY(c->arena, (size_t)lowered->launch_count, &work->launches));
  for (int32_t i = 0; i < lowered->launch_count; i++) {
    const ts_launch *launch = &lowered->launches[i];
    ts_step_launch *l = &work->launches[i];
    l->launch = launch;
    l->kernel = c->kernels.data[i];
    l->own = c->owns.data[i];
    ts_tasks_plan(l, ts_kernel_point_cost(&launch->desc));
    if (c->owns.data[i]) plan_own(c->owns.data[i], l);
    work->cost_ns += l->cost_ns;
    int64_t scratch = l->own ? l->own->launch.scratch : launch->scratch;
    if (scratch > work->scratch_bytes) work->scratch_bytes = scratch;
  }
  work->scratch_bytes = (work->scratch_bytes + 63) & ~(int64_t)63;
  return TS_SUCCESS;
}

static ts_status lower(ts_chooser *c, ts_op_id id, ts_work **out) {
  const ts_lower_options options = {.visit = choose_kernel, .context = c, .in_place = c->in_place};
  TS_TRY(TS_ARENA_ARRAY(c->arena, 1, out));
  c->kernels.count = c->owns.count = 0;
  TS_TRY(ts_lower_op(c->graph, id, c->arena, &options, &(*out)->lowered));
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
