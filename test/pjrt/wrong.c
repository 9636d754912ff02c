/* Files that are no plugins that the client can use: each WRONG is one of them. */
#include "pjrt/abi.h"

#include <unistd.h>

#define SYMBOL 1
#define NOTHING 2
#define TINY 3
#define MAJOR 4
#define OLD 5
#define SHORT 6
#define NOERRORS 7
#define BEGINS 8
#define HANGS 9

#if WRONG != SYMBOL
static struct pj_error { int none; } failure;

static void error_destroy(pj_args *args) { (void)args; }
static void error_message(pj_args *args) {
  args->message.text = "it will not begin";
  args->message.text_size = 17;
}
static pj_error *error_code(pj_args *args) {
  args->code.code = PJ_FAILED_PRECONDITION;
  return NULL;
}
static pj_error *initialize(pj_args *args) {
  (void)args;
  while (WRONG == HANGS) pause();
  return &failure;
}

static struct {
  size_t size;
  void *extensions;
  pj_version version;
  void *functions[PJ_TABLE];
} table = {.size = WRONG == TINY    ? 16
                   : WRONG == SHORT ? sizeof table - sizeof(void *)
                                    : sizeof table,
           .version = {24, NULL, WRONG == MAJOR ? 1 : 0, WRONG == OLD ? 80 : 120},
           .functions = {[PJ_ERROR_DESTROY] = WRONG == NOERRORS ? NULL : (void *)error_destroy,
                         [PJ_ERROR_MESSAGE] = (void *)error_message,
                         [PJ_ERROR_CODE] = (void *)error_code,
                         [PJ_INITIALIZE] = (void *)initialize}};

__attribute__((visibility("default"))) void *GetPjrtApi(void);
void *GetPjrtApi(void) { return WRONG == NOTHING ? NULL : (void *)&table; }
#endif
