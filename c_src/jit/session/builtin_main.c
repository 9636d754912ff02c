/* A build tool: prints the C source of the table of builtin.h. */
#include "jit/emit/gemm_emit.h"
#include "jit/session/builtin.h"

#include <stdio.h>

/* The build tool itself has no built-in kernels. */
const ts_builtin ts_builtin_table[1] = {{0}};
const size_t ts_builtin_count = 0;

#define BYTES_PER_LINE 32

static void print_object(const ts_object *object, int index) {
  const uint8_t *bytes = object->data;
  printf("static _Alignas(8) const uint8_t object_%d[] = {", index);
  for (size_t i = 0; i < object->size; i++) printf("%s%d,", i % BYTES_PER_LINE ? "" : "\n", bytes[i]);
  printf("\n};\n\n");
}

static ts_status print_kernel(ts_compiler *compiler, const ts_kernel_source *source, int index) {
  char name[TS_KERNEL_NAME_BYTES];
  ts_kernel_make_name(source->text, source->length, name);
  ts_object object;
  TS_TRY(ts_compiler_run(compiler, source, name, &object));
  print_object(&object, index);
  ts_free(object.data);
  return TS_SUCCESS;
}

/* Visits one kernel of each kind, type and class of machine. With a compiler it prints the object, without one the
 * table's entry. */
static ts_status print_class(const ts_target *target, ts_compiler *compiler, int *index) {
  for (int kernel = 0; kernel < TS_GEMM_BUILTINS; kernel++, ++*index) {
    ts_gemm_request request;
    ts_kernel_source source;
    ts_gemm_make_builtin(kernel, target, &request, &source);
    if (compiler) {
      TS_TRY(print_kernel(compiler, &source, *index));
    } else {
      printf("  {\"%s\", \"%s\", object_%d, sizeof(object_%d)},\n", target->cpu, source.text, *index, *index);
    }
  }
  return TS_SUCCESS;
}

static ts_status print_objects(const ts_target *target, int *index) {
  ts_compiler *compiler;
  TS_TRY(ts_compiler_create(target, &compiler));
  ts_status status = print_class(target, compiler, index);
  ts_compiler_destroy(compiler);
  return status;
}

static ts_status print_all(void) {
  size_t count;
  const ts_target *targets = ts_target_all(&count);
  int index = 0;
  printf("/* Made by builtin_main.c. */\n#include \"jit/session/builtin.h\"\n\n");
  for (size_t i = 0; i < count; i++) TS_TRY(print_objects(&targets[i], &index));
  index = 0;
  printf("const ts_builtin ts_builtin_table[] = {\n");
  for (size_t i = 0; i < count; i++) TS_TRY(print_class(&targets[i], NULL, &index));
  printf("};\nconst size_t ts_builtin_count = %d;\n", index);
  return TS_SUCCESS;
}

int main(void) {
  ts_status status = print_all();
  if (!status) return fflush(stdout) == 0 ? 0 : 1;
  fprintf(stderr, "%s\n", ts_status_message(status));
  ts_status_free(status);
  return 1;
}
