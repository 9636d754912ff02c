/* Cases of inference: lines of the text form, because there the parser checks the inferred type against the written
 * one. A line is the body of a graph whose parameters infer_case.c lists. */
#ifndef TS_TEST_INFER_CASE_H
#define TS_TEST_INFER_CASE_H

#include "ir/graph.h"
#include "testing.h"

typedef struct error_case {
  const char *line, *message;
} error_case;

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

void check_ok(const char *line);
/* The line is an error whose message has `message` in it: of any code, or of INVALID_ARGUMENT. */
void check_code(const char *line, ts_code code, const char *message);
void check_error(const char *line, const char *message);
void check_all_ok(const char *const *lines, int count);
void check_all_errors(const error_case *cases, int count);
/* Whether each op has had a line that is right and one that is an error, in this process. */
void check_every_op_was_tried(void);

/* The tests of test_infer by families of ops. */
void infer_add_shapes(TCase *tests);
void infer_add_reductions(TCase *tests);
void infer_add_control(TCase *tests);

#endif
