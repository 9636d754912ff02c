/* The plugin of docs/plugins.md and of the tests. */
#include "tessera_plugin.h"

#include <stdio.h>
#include <threads.h>
#include <time.h>

static int refuse(const tessera_core *core, const tessera_call *call, const char *text) {
  core->set_error(call, text);
  return TESSERA_FAILED;
}

/* ---- scale: f32 or f64, times the attribute `factor` ---- */

static bool same_form(const tessera_tensor *a, const tessera_tensor *b) {
  if (a->type != b->type || a->rank != b->rank) return false;
  for (int32_t i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i]) return false;
  return true;
}

static int scale_check(const tessera_core *core, const tessera_call *call, tessera_needs *needs) {
  const tessera_attribute *factor = tessera_find(call, "factor");
  char text[100];
  if (call->operand_count != 1 || call->result_count != 1)
    return refuse(core, call, "expected one operand and one result");
  if (!same_form(&call->operands[0], &call->results[0]))
    return refuse(core, call, "the result has another form than the operand");
  if (call->operands[0].type != TESSERA_F32 && call->operands[0].type != TESSERA_F64) {
    snprintf(text, sizeof text, "expected f32 or f64, got type %d of rank %d", call->operands[0].type,
             call->operands[0].rank);
    return refuse(core, call, text);
  }
  if (!factor || factor->kind > TESSERA_NUMBER) return refuse(core, call, "expected a number as attribute factor");
  needs->nanoseconds = 500 + call->operands[0].elements;
  return TESSERA_OK;
}

enum { PART = 4096 };

typedef struct scale_job {
  const tessera_tensor *from, *to;
  double factor;
} scale_job;

static void scale_part(void *arg, int64_t part, int thread) {
  const scale_job *job = arg;
  int64_t end = (part + 1) * PART < job->from->elements ? (part + 1) * PART : job->from->elements;
  (void)thread;
  for (int64_t i = part * PART; i < end; i++) {
    if (job->from->type == TESSERA_F32)
      ((float *)job->to->data)[i] = ((const float *)job->from->data)[i] * (float)job->factor;
    else
      ((double *)job->to->data)[i] = ((const double *)job->from->data)[i] * job->factor;
  }
}

static int scale_run(const tessera_core *core, const tessera_call *call) {
  scale_job job = {&call->operands[0], &call->results[0], tessera_find(call, "factor")->number};
  core->run_parts(call, (job.from->elements + PART - 1) / PART, scale_part, &job);
  return TESSERA_OK;
}

/* ---- extremes: the least and the greatest element of s32, through a workspace ---- */

static int extremes_check(const tessera_core *core, const tessera_call *call, tessera_needs *needs) {
  if (call->operand_count != 1 || call->operands[0].type != TESSERA_S32 || call->operands[0].elements == 0 ||
      call->result_count != 2)
    return refuse(core, call, "expected one operand of s32 with elements, and two results");
  for (int i = 0; i < 2; i++)
    if (call->results[i].type != TESSERA_S32 || call->results[i].rank != 0)
      return refuse(core, call, "expected results s32[]");
  const tessera_attribute *extra = tessera_find(call, "extra");
  needs->workspace = call->operands[0].bytes + (extra ? extra->integer : 0);
  return TESSERA_OK;
}

static int extremes_run(const tessera_core *core, const tessera_call *call) {
  const int32_t *from = call->operands[0].data;
  int32_t *copy = call->workspace;
  if ((uintptr_t)from % 64 != 0) return refuse(core, call, "the operand is not aligned");
  if ((uintptr_t)copy % 64 != 0 || call->workspace_bytes < call->operands[0].bytes)
    return refuse(core, call, "the workspace is not what was asked for");
  for (int64_t i = 0; i < call->operands[0].elements; i++) copy[i] = from[i];
  int32_t least = copy[0], greatest = copy[0];
  for (int64_t i = 1; i < call->operands[0].elements; i++) {
    if (copy[i] < least) least = copy[i];
    if (copy[i] > greatest) greatest = copy[i];
  }
  *(int32_t *)call->results[0].data = least;
  *(int32_t *)call->results[1].data = greatest;
  return TESSERA_OK;
}

/* ---- attributes: the values that were read of each, as f64: kind, number, count, and the sum of characters or
 * integers ---- */

static int attributes_run(const tessera_core *core, const tessera_call *call) {
  double *to = call->results[0].data;
  if (call->results[0].type != TESSERA_F64 || call->results[0].elements != 4 * call->attribute_count)
    return refuse(core, call, "expected four numbers for each attribute");
  for (int32_t i = 0; i < call->attribute_count; i++, to += 4) {
    const tessera_attribute *a = &call->attributes[i];
    to[0] = a->kind;
    to[1] = a->kind == TESSERA_INTEGER || a->kind == TESSERA_BOOLEAN ? (double)a->integer : a->number;
    to[2] = (double)a->count;
    to[3] = 0;
    for (int64_t k = 0; k < a->count; k++)
      to[3] += a->kind == TESSERA_TEXT ? (double)(unsigned char)a->text[k] : (double)a->integers[k];
  }
  return TESSERA_OK;
}

/* ---- type: of the operand, as s32, the number of its type and the bytes of its elements; then the first element's
 * ---- */

static int type_run(const tessera_core *core, const tessera_call *call) {
  const tessera_tensor *operand = &call->operands[0], *result = &call->results[0];
  int32_t *to = result->data;
  if (call->operand_count != 1 || operand->elements == 0 || result->type != TESSERA_S32 || result->elements != 3)
    return refuse(core, call, "expected an operand with elements, and s32[3] as result");
  to[0] = operand->type;
  to[1] = (int32_t)(operand->bytes / operand->elements);
  to[2] = *(const uint8_t *)operand->data;
  return TESSERA_OK;
}

/* ---- fail, silent, wait: what goes wrong ---- */

static int fail_run(const tessera_core *core, const tessera_call *call) {
  return refuse(core, call, "the moon is full");
}

/* A text that is not UTF-8. */
static int latin_run(const tessera_core *core, const tessera_call *call) {
  return refuse(core, call, "caf\xe9 \xc3\xa9 \xf0\x9f");
}

/* More than is kept, of characters of two bytes. */
static int wordy_run(const tessera_core *core, const tessera_call *call) {
  char text[2001] = "x";
  for (int i = 1; i + 1 < 2000; i += 2) text[i] = '\xc3', text[i + 1] = '\xa9';
  return refuse(core, call, text);
}

static int silent_run(const tessera_core *core, const tessera_call *call) {
  (void)core, (void)call;
  return TESSERA_FAILED;
}

static _Atomic int32_t waiting;

static void wait(const tessera_core *core, const tessera_call *call) {
  const struct timespec moment = {.tv_nsec = 1000000};
  waiting++;
  while (!core->is_cancelled(call)) thrd_sleep(&moment, NULL);
  waiting--;
}

/* Until it is cancelled. */
static int wait_run(const tessera_core *core, const tessera_call *call) {
  wait(core, call);
  return refuse(core, call, "cancelled");
}

typedef struct wait_job {
  const tessera_core *core;
  const tessera_call *call;
} wait_job;

static void wait_part(void *arg, int64_t part, int thread) {
  const wait_job *job = arg;
  (void)part, (void)thread;
  wait(job->core, job->call);
}

/* The same on every thread that helps. */
static int wait_parts_run(const tessera_core *core, const tessera_call *call) {
  wait_job job = {core, call};
  core->run_parts(call, 1000, wait_part, &job);
  return refuse(core, call, "cancelled");
}

static int short_check(const tessera_core *core, const tessera_call *call, tessera_needs *needs) {
  (void)core, (void)call;
  needs->nanoseconds = 100;
  return TESSERA_OK;
}

/* How many calls and parts wait now, as s32[]. */
static int waiting_run(const tessera_core *core, const tessera_call *call) {
  (void)core;
  *(int32_t *)call->results[0].data = waiting;
  return TESSERA_OK;
}

static int greedy_check(const tessera_core *core, const tessera_call *call, tessera_needs *needs) {
  (void)core, (void)call;
  needs->workspace = -1;
  return TESSERA_OK;
}

static int endless_check(const tessera_core *core, const tessera_call *call, tessera_needs *needs) {
  (void)core, (void)call;
  needs->workspace = INT64_MAX;
  needs->nanoseconds = INT64_MAX;
  return TESSERA_OK;
}

static const tessera_target targets[] = {
    {"scale", scale_check, scale_run},
    {"extremes", extremes_check, extremes_run},
    {"attributes", NULL, attributes_run},
    {"fail", NULL, fail_run},
    {"silent", NULL, silent_run},
    {"wait", NULL, wait_run},
    {"greedy", greedy_check, fail_run},
    {"type", NULL, type_run},
    {"latin", NULL, latin_run},
    {"wordy", NULL, wordy_run},
    {"endless", endless_check, fail_run},
    {"wait_parts", NULL, wait_parts_run},
    {"waiting", short_check, waiting_run},
};

const tessera_plugin *tessera_plugin_get(void) {
  static const tessera_plugin plugin = {TESSERA_PLUGIN_VERSION, "example", sizeof(tessera_call),
                                        sizeof targets / sizeof *targets, targets};
  return &plugin;
}
