/* Runs the programs that xla_cases wrote (test/xla/cases.c) on the first device of a plugin:
 *   pjrt_cases FOLDER PLUGIN NAME...
 * Of each program it writes the results, one after the other, to NAME.got, or the error to NAME.err. A plugin that ends
 * the process ends a child, and the next program has another one. test/xla/run.py compares. */
#include "operation_end.h"
#include "pjrt/pjrt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *folder;

static FILE *open_file(const char *name, const char *ending, const char *mode) {
  char path[1200];
  snprintf(path, sizeof path, "%s/%s%s", folder, name, ending);
  return fopen(path, mode);
}

static ts_status read_file(const char *name, const char *ending, ts_text *out) {
  char chunk[1 << 14];
  size_t count;
  FILE *file = open_file(name, ending, "rb");
  if (!file) return ts_error(TS_INVALID_ARGUMENT, "there is no %s%s", name, ending);
  while ((count = fread(chunk, 1, sizeof chunk, file)) > 0) ts_text_append_n(out, chunk, count);
  fclose(file);
  return out->failed ? ts_error_no_memory() : TS_SUCCESS;
}

static void write_error(const char *name, const char *message) {
  FILE *file = open_file(name, ".err", "wb");
  if (!file) abort();
  fprintf(file, "%s\n", message);
  fclose(file);
}

/* ---- operations of the platform; the caller waits for each */

static const ts_platform *const platform = &ts_platform_pjrt;

typedef struct program {
  void *client;
  ts_graph *graph;
  ts_program made;
  void **args, **results;
} program;

static int64_t bytes_of(const ts_type *type) { return ts_shape_bytes(&type->shape, type->dtype); }

static ts_status place_args(program *p, const ts_text *bytes) {
  size_t at = 0;
  for (size_t i = 0; i < p->made.param_count; i++) {
    end e = {0};
    const ts_type *type = p->made.param_types[i];
    ts_placement where = {.client = p->client, .dtype = type->dtype, .shape = &type->shape, .bytes = bytes_of(type)};
    if (bytes->length - at < (size_t)where.bytes) return ts_error(TS_INVALID_ARGUMENT, "the arguments end too early");
    platform->from_host(&where, bytes->data + at, &p->args[i], DONE(&e));
    TS_TRY(wait_for(&e));
    at += (size_t)where.bytes;
  }
  return TS_SUCCESS;
}

static ts_status write_result(const program *p, size_t i, FILE *file) {
  end e = {0};
  int64_t bytes = bytes_of(p->made.result_types[i]);
  void *data;
  TS_TRY(ts_alloc((size_t)bytes, &data));
  platform->to_host(p->results[i], bytes, data, DONE(&e));
  ts_status status = wait_for(&e);
  if (!status && fwrite(data, 1, (size_t)bytes, file) != (size_t)bytes)
    status = ts_error(TS_UNAVAILABLE, "the results cannot be written");
  ts_free(data);
  return status;
}

static ts_status run_once(program *p) {
  end e = {0};
  static const int32_t first;
  ts_run_request request = {.program = p->made.program,
                            .client = p->client,
                            .devices = &first,
                            .device_count = 1,
                            .args = p->args,
                            .arg_count = p->made.param_count,
                            .results = p->results};
  platform->run(&request, DONE(&e));
  return wait_for(&e);
}

static ts_status run(program *p, const char *name, const ts_text *bytes) {
  end e = {0};
  platform->compile(p->client, p->graph, &(ts_program_options){0}, &p->made, DONE(&e));
  TS_TRY(wait_for(&e));
  TS_TRY(TS_NEW_ARRAY(p->made.param_count, &p->args));
  TS_TRY(TS_NEW_ARRAY(p->made.result_count, &p->results));
  TS_TRY(place_args(p, bytes));
  TS_TRY(run_once(p));
  FILE *file = open_file(name, ".got", "wb");
  if (!file) return ts_error(TS_UNAVAILABLE, "%s.got cannot be written", name);
  ts_status status = TS_SUCCESS;
  for (size_t i = 0; !status && i < p->made.result_count; i++) status = write_result(p, i, file);
  fclose(file);
  return status;
}

static void release_all(void **memories, size_t count) {
  for (size_t i = 0; memories && i < count; i++)
    if (memories[i]) platform->release_memory(memories[i]);
  ts_free(memories);
}

static ts_status run_program(void *client, const char *name) {
  program p = {.client = client};
  ts_text text = {0}, bytes = {0};
  ts_status status = read_file(name, ".ts", &text);
  if (!status) status = read_file(name, ".bin", &bytes);
  if (!status) status = ts_graph_parse(text.data, text.length, &p.graph);
  if (!status) status = run(&p, name, &bytes);
  release_all(p.args, p.made.param_count);
  release_all(p.results, p.made.result_count);
  if (p.made.program) platform->release_program(p.made.program);
  ts_graph_destroy(p.graph);
  ts_text_deinit(&text);
  ts_text_deinit(&bytes);
  return status;
}

/* ---- children */

static bool is_left_out(const char *name) {
  char line[16] = "";
  FILE *file = open_file(name, ".txt", "rb");
  if (!file) return true;
  bool left_out = fgets(line, sizeof line, file) && strncmp(line, "left out", 8) == 0;
  fclose(file);
  return left_out;
}

/* Each program that is begun is a byte in the pipe. */
static int work(const char *plugin, char **names, int count, int pipe) {
  end e = {0};
  ts_opened opened = {0};
  ts_open_options options = {
      .name = "plugin", .memory_limit = -1, .settings = {&(ts_setting){.name = "plugin_path", .text = plugin}, 1}};
  platform->open(&options, &opened, DONE(&e));
  ts_status status = wait_for(&e);
  if (status) {
    fprintf(stderr, "error: %s\n", ts_status_message(status));
    return 3;
  }
  for (int i = 0; i < count; i++) {
    if (write(pipe, "", 1) != 1) return 4;
    status = is_left_out(names[i]) ? TS_SUCCESS : run_program(opened.client, names[i]);
    if (status) write_error(names[i], ts_status_message(status));
    ts_status_free(status);
  }
  return 0;
}

/* The number of programs that a child began, and how it ended. */
static int begun_by_child(const char *plugin, char **names, int count, int *out_status) {
  int ends[2], begun = 0;
  char byte;
  if (pipe(ends) != 0) abort();
  pid_t child = fork();
  if (child < 0) abort();
  if (child == 0) {
    close(ends[0]);
    _exit(work(plugin, names, count, ends[1]));
  }
  close(ends[1]);
  while (read(ends[0], &byte, 1) == 1) begun++;
  close(ends[0]);
  if (waitpid(child, out_status, 0) != child) abort();
  return begun;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  folder = argv[1];
  char **names = argv + 3;
  for (int at = 0, count = argc - 3, status; at < count;) {
    int begun = begun_by_child(argv[2], names + at, count - at, &status);
    at += begun;
    if (status == 0) break;
    if (begun == 0) return 1; /* it was not opened */
    char message[64];
    snprintf(message, sizeof message, "the plugin ended its process with status %d", status);
    write_error(names[at - 1], message);
  }
  return 0;
}
