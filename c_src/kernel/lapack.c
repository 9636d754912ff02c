/* LAPACK has matrices by columns, and Tessera by rows: each is copied. Matrices of a batch are computed one after the
 * other. The library's own threads are turned off. */
#include "kernel/lapack.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the library */

#define MISSING                                                                                                       \
  "LAPACK cannot be opened: install the package libopenblas0, or name a library with it in the environment variable " \
  "TESSERA_LAPACK"

static struct {
  pthread_mutex_t lock;
  void *object;
} library = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Its calls may run in many threads at once, so each is one thread. */
static void use_one_thread(void *object) {
  void (*set)(int);
  *(void **)&set = dlsym(object, "openblas_set_num_threads");
  if (set) set(1);
}

static void *open_library(void) {
  static const char *const names[] = {"libopenblas.so.0", "liblapack.so.3"};
  const char *own = getenv("TESSERA_LAPACK");
  void *object = own ? dlopen(own, RTLD_NOW | RTLD_LOCAL) : NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names && !own && !object; i++)
    object = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  if (object && !dlsym(object, "dgeev_")) {
    dlclose(object);
    object = NULL;
  }
  if (object) use_one_thread(object);
  return object;
}

typedef void (*routine)(void);

/* NULL: the library or the routine is missing. */
static routine find(const char *name) {
  routine found = NULL;
  pthread_mutex_lock(&library.lock);
  if (!library.object) library.object = open_library();
  if (library.object) *(void **)&found = dlsym(library.object, name);
  pthread_mutex_unlock(&library.lock);
  return found;
}

/* ---- one matrix */

/* A matrix while LAPACK computes it. The workspace has LAPACK's matrices, by columns, and its own room. */
typedef struct problem {
  const tessera_call *call;
  routine run;
  bool is_complex;
  int n;
  size_t element, part; /* bytes of an element, and of a real part */
  char *a, *left, *right, *values, *work;
  char *beside; /* a second line: the imaginary parts of a real matrix's values, or room for a complex one */
  int room;     /* elements of `work` */
} problem;

enum { BLOCK = 64 };

/* Elements of the workspace: three matrices, two lines of values, and LAPACK's own room. */
static int64_t room_of(int64_t n) { return 3 * n * n + 2 * n + (BLOCK + 8) * n + 64; }

static bool flag(const tessera_call *call, const char *name) {
  const tessera_attribute *found = tessera_find(call, name);
  return found && found->integer != 0;
}

static char letter(const tessera_call *call, const char *name) { return flag(call, name) ? 'V' : 'N'; }

static void lay_out(problem *p) {
  const size_t matrix = (size_t)p->n * (size_t)p->n * p->element, line = (size_t)p->n * p->element;
  p->a = p->call->workspace;
  p->left = p->a + matrix;
  p->right = p->left + matrix;
  p->values = p->right + matrix;
  p->beside = p->values + line;
  p->work = p->beside + line;
  p->room = BLOCK * p->n + 1;
}

/* Element (i, j) of `from` becomes (j, i) of `to`. */
static void turn(const problem *p, const char *from, char *to) {
  const size_t n = (size_t)p->n, size = p->element;
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++) memcpy(to + (j * n + i) * size, from + (i * n + j) * size, size);
}

static double number_at(const problem *p, const char *data, size_t i) {
  float f;
  double d;
  if (p->part == sizeof f) {
    memcpy(&f, data + i * sizeof f, sizeof f);
    return (double)f;
  }
  memcpy(&d, data + i * sizeof d, sizeof d);
  return d;
}

static void put_number(const problem *p, double x, char *to) {
  const float f = (float)x;
  memcpy(to, p->part == sizeof f ? (const void *)&f : (const void *)&x, p->part);
}

static bool is_finite(const problem *p, const char *data) {
  const size_t count = (size_t)p->n * (size_t)p->n * (p->is_complex ? 2 : 1);
  for (size_t i = 0; i < count; i++)
    if (!isfinite(number_at(p, data, i))) return false;
  return true;
}

/* ---- results */

static int32_t type_bytes(int32_t type) {
  switch (type) {
  case TESSERA_F32:
  case TESSERA_S32: return 4;
  case TESSERA_F64:
  case TESSERA_C64: return 8;
  default: return 16;
  }
}

static int64_t batches(const tessera_call *call) {
  const tessera_tensor *a = &call->operands[0];
  int64_t count = 1;
  for (int32_t d = 0; d < a->rank - 2; d++) count *= a->dims[d];
  return count;
}

/* The part of result `i` that belongs to matrix `b`. */
static char *result_at(const problem *p, int32_t i, int64_t b) {
  const tessera_tensor *result = &p->call->results[i];
  return (char *)result->data + b * (result->bytes / batches(p->call));
}

static size_t result_bytes(const problem *p, int32_t i) {
  return (size_t)(p->call->results[i].bytes / batches(p->call));
}

static void fill_nan(const problem *p, int64_t b) {
  for (int32_t i = 0; i + 1 < p->call->result_count; i++) {
    char *to = result_at(p, i, b);
    const size_t bytes = result_bytes(p, i);
    memset(to, 0, bytes);
    if (p->call->results[i].type == TESSERA_S32) continue;
    for (size_t at = 0; at < bytes; at += p->part) put_number(p, (double)NAN, to + at);
  }
}

/* Vectors of a real matrix: column j has a pair's real parts, and column j + 1 its imaginary parts. */
static void write_pairs(const problem *p, const char *columns, char *to) {
  const size_t n = (size_t)p->n, part = p->part;
  for (size_t j = 0; j < n; j++) {
    const bool is_pair = number_at(p, p->beside, j) != 0 && j + 1 < n;
    for (size_t i = 0; i < n; i++) {
      char *first = to + 2 * part * (i * n + j);
      memcpy(first, columns + part * (j * n + i), part);
      memset(first + part, 0, part);
      if (!is_pair) continue;
      const char *next = columns + part * ((j + 1) * n + i);
      memcpy(first + part, next, part);
      memcpy(first + 2 * part, first, part);
      put_number(p, -number_at(p, next, 0), first + 3 * part);
    }
    j += is_pair;
  }
}

/* ---- routines. The last arguments are the lengths of letters. */

typedef void (*real_geev)(const char *, const char *, const int *, void *, const int *, void *, void *, void *,
                          const int *, void *, const int *, void *, const int *, int *, size_t, size_t);
typedef void (*complex_geev)(const char *, const char *, const int *, void *, const int *, void *, void *, const int *,
                             void *, const int *, void *, const int *, void *, int *, size_t, size_t);

static int run_geev(problem *p) {
  const char left = letter(p->call, "left"), right = letter(p->call, "right");
  int info = 0;
  if (p->is_complex) {
    complex_geev run = (complex_geev)p->run;
    run(&left, &right, &p->n, p->a, &p->n, p->values, p->left, &p->n, p->right, &p->n, p->work, &p->room, p->beside,
        &info, 1, 1);
  } else {
    real_geev run = (real_geev)p->run;
    run(&left, &right, &p->n, p->a, &p->n, p->values, p->beside, p->left, &p->n, p->right, &p->n, p->work, &p->room,
        &info, 1, 1);
  }
  return info;
}

/* Complex values: two results of a real matrix. Returns the next result. */
static int32_t write_values(const problem *p, int32_t first, int64_t b) {
  const size_t line = (size_t)p->n * p->element;
  memcpy(result_at(p, first, b), p->values, line);
  if (p->is_complex) return first + 1;
  memcpy(result_at(p, first + 1, b), p->beside, line);
  return first + 2;
}

static void write_geev(const problem *p, int64_t b) {
  const int32_t vectors = write_values(p, 0, b);
  for (int32_t i = 0; i < 2; i++) {
    char *to = result_at(p, vectors + i, b);
    const char *from = i ? p->right : p->left;
    if (!flag(p->call, i ? "right" : "left"))
      memset(to, 0, result_bytes(p, vectors + i));
    else if (p->is_complex)
      turn(p, from, to);
    else
      write_pairs(p, from, to);
  }
}

typedef void (*real_gees)(const char *, const char *, void *, const int *, void *, const int *, int *, void *, void *,
                          void *, const int *, void *, const int *, void *, int *, size_t, size_t);
typedef void (*complex_gees)(const char *, const char *, void *, const int *, void *, const int *, int *, void *,
                             void *, const int *, void *, const int *, void *, void *, int *, size_t, size_t);

static int run_gees(problem *p) {
  const char vectors = letter(p->call, "vectors"), no_sort = 'N';
  int info = 0, sorted = 0;
  if (p->is_complex) {
    complex_gees run = (complex_gees)p->run;
    run(&vectors, &no_sort, NULL, &p->n, p->a, &p->n, &sorted, p->values, p->right, &p->n, p->work, &p->room, p->beside,
        NULL, &info, 1, 1);
  } else {
    real_gees run = (real_gees)p->run;
    run(&vectors, &no_sort, NULL, &p->n, p->a, &p->n, &sorted, p->values, p->beside, p->right, &p->n, p->work, &p->room,
        NULL, &info, 1, 1);
  }
  return info;
}

static void write_gees(const problem *p, int64_t b) {
  turn(p, p->a, result_at(p, 0, b));
  if (flag(p->call, "vectors"))
    turn(p, p->right, result_at(p, 1, b));
  else
    memset(result_at(p, 1, b), 0, result_bytes(p, 1));
  const int32_t sorted = write_values(p, 2, b);
  memset(result_at(p, sorted, b), 0, result_bytes(p, sorted));
}

typedef void (*any_gehrd)(const int *, const int *, const int *, void *, const int *, void *, void *, const int *,
                          int *);

static int index_of(const tessera_call *call, const char *name, int otherwise) {
  const tessera_attribute *found = tessera_find(call, name);
  return found && found->kind == TESSERA_INTEGER ? (int)found->integer : otherwise;
}

static int run_gehrd(problem *p) {
  const int low = index_of(p->call, "low", 1), high = index_of(p->call, "high", p->n);
  any_gehrd run = (any_gehrd)p->run;
  int info = 0;
  memset(p->values, 0, (size_t)p->n * p->element);
  run(&p->n, &low, &high, p->a, &p->n, p->values, p->work, &p->room, &info);
  return info;
}

static void write_gehrd(const problem *p, int64_t b) {
  turn(p, p->a, result_at(p, 0, b));
  memcpy(result_at(p, 1, b), p->values, result_bytes(p, 1));
}

typedef void (*any_sytrd)(const char *, const int *, void *, const int *, void *, void *, void *, void *, const int *,
                          int *, size_t);

/* Diagonal and numbers beside it are real: they lie in the room of the vectors. */
static int run_sytrd(problem *p) {
  const char triangle = flag(p->call, "upper") ? 'U' : 'L';
  any_sytrd run = (any_sytrd)p->run;
  int info = 0;
  run(&triangle, &p->n, p->a, &p->n, p->left, p->right, p->values, p->work, &p->room, &info, 1);
  return info;
}

static void write_sytrd(const problem *p, int64_t b) {
  turn(p, p->a, result_at(p, 0, b));
  memcpy(result_at(p, 1, b), p->left, result_bytes(p, 1));
  memcpy(result_at(p, 2, b), p->right, result_bytes(p, 2));
  memcpy(result_at(p, 3, b), p->values, result_bytes(p, 3));
}

/* ---- targets */

/* A result's shape and type, for n by n matrices. */
typedef enum shape { MATRIX, LINE, LESS_ONE, ONE } shape; /* n by n, n, n - 1, and a number */
typedef enum kind { SAME, REAL, COMPLEX, INT } kind;      /* of the operand's type, its real or complex one, s32 */

typedef struct result_row {
  shape shape;
  kind kind;
} result_row;

typedef struct target_row {
  const char *name, *real, *complex; /* of the routines, after their first letter */
  int count;                         /* of the results, without info; `values` in the place of a line are two */
  result_row results[4];
  int values; /* index of the complex values, which are two results of a real matrix; -1: none */
  int (*run)(problem *p);
  void (*write)(const problem *p, int64_t b);
} target_row;

static const target_row rows[] = {
    {"lapack.geev", "geev_", "geev_", 3, {{LINE, SAME}, {MATRIX, COMPLEX}, {MATRIX, COMPLEX}}, 0, run_geev, write_geev},
    {"lapack.gees",
     "gees_",
     "gees_",
     4,
     {{MATRIX, SAME}, {MATRIX, SAME}, {LINE, SAME}, {ONE, INT}},
     2,
     run_gees,
     write_gees},
    {"lapack.gehrd", "gehrd_", "gehrd_", 2, {{MATRIX, SAME}, {LESS_ONE, SAME}}, -1, run_gehrd, write_gehrd},
    {"lapack.sytrd",
     "sytrd_",
     "hetrd_",
     4,
     {{MATRIX, SAME}, {LINE, REAL}, {LESS_ONE, REAL}, {LESS_ONE, SAME}},
     -1,
     run_sytrd,
     write_sytrd}};

static const target_row *row_of(const char *name) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(rows[i].name, name) == 0) return &rows[i];
  return NULL;
}

static int32_t part_of(int32_t type) {
  return type == TESSERA_C64 ? TESSERA_F32 : type == TESSERA_C128 ? TESSERA_F64 : type;
}

static int32_t type_of(kind wanted, int32_t operand) {
  switch (wanted) {
  case SAME: return operand;
  case REAL: return part_of(operand);
  case COMPLEX: return part_of(operand) == TESSERA_F32 ? TESSERA_C64 : TESSERA_C128;
  case INT: return TESSERA_S32;
  }
  return operand;
}

static bool has_form(const tessera_tensor *got, const tessera_tensor *a, result_row row) {
  const int64_t n = a->dims[a->rank - 1], less = n > 0 ? n - 1 : 0;
  const int32_t own = row.shape == MATRIX ? 2 : row.shape == ONE ? 0 : 1;
  if (got->type != type_of(row.kind, a->type) || got->rank != a->rank - 2 + own) return false;
  for (int32_t d = 0; d < a->rank - 2; d++)
    if (got->dims[d] != a->dims[d]) return false;
  for (int32_t d = a->rank - 2; d < got->rank; d++)
    if (got->dims[d] != (row.shape == LESS_ONE ? less : n)) return false;
  return true;
}

static bool have_form(const tessera_call *call, const target_row *row) {
  const tessera_tensor *a = &call->operands[0];
  const bool split = row->values >= 0 && part_of(a->type) == a->type;
  int32_t next = 0;
  if (call->result_count != row->count + split + 1) return false;
  for (int i = 0; i < row->count; i++) {
    if (!has_form(&call->results[next++], a, row->results[i])) return false;
    if (split && i == row->values && !has_form(&call->results[next++], a, row->results[i])) return false;
  }
  return has_form(&call->results[next], a, (result_row){ONE, INT});
}

/* "sgeev_" */
static routine find_routine(const target_row *row, int32_t type) {
  char name[16];
  const char first = type == TESSERA_F32 ? 's' : type == TESSERA_F64 ? 'd' : type == TESSERA_C64 ? 'c' : 'z';
  snprintf(name, sizeof name, "%c%s", first, part_of(type) == type ? row->real : row->complex);
  return find(name);
}

static int refuse(const tessera_core *core, const tessera_call *call, const char *why) {
  core->set_error(call, why);
  return TESSERA_FAILED;
}

/* Products of two indices are C's int in LAPACK. */
#define MOST_ROWS 46340

static int check(const tessera_core *core, const tessera_call *call, tessera_needs *needs) {
  const target_row *row = row_of(call->target);
  const tessera_tensor *a = &call->operands[0];
  if (!row || call->operand_count != 1 || a->rank < 2 || a->dims[a->rank - 1] != a->dims[a->rank - 2])
    return refuse(core, call, "expected square matrices in the last two dims of one operand");
  const int64_t n = a->dims[a->rank - 1];
  if (a->type != TESSERA_F32 && a->type != TESSERA_F64 && a->type != TESSERA_C64 && a->type != TESSERA_C128)
    return refuse(core, call, "expected f32, f64, c64 or c128");
  if (n > MOST_ROWS) return refuse(core, call, "a matrix has more than 46340 rows");
  if (!have_form(call, row)) return refuse(core, call, "its results have other types or shapes than LAPACK's");
  const int low = index_of(call, "low", 1), high = index_of(call, "high", (int)n);
  if (row->run == run_gehrd && n > 0 && (low < 1 || high > n || low > high))
    return refuse(core, call, "low and high are no rows of the matrices");
  if (!find_routine(row, a->type)) return refuse(core, call, MISSING);
  needs->workspace = room_of(n) * type_bytes(a->type);
  /* about 25 n^3 steps; never on a scheduler, because it cannot be left */
  needs->nanoseconds = 1000000 + (int64_t)((double)batches(call) * 25.0 * (double)n * (double)n * (double)n);
  return TESSERA_OK;
}

static int run(const tessera_core *core, const tessera_call *call) {
  const target_row *row = row_of(call->target);
  const tessera_tensor *a = &call->operands[0];
  const int32_t info = call->result_count - 1;
  problem p = {.call = call, .run = find_routine(row, a->type), .n = (int)a->dims[a->rank - 1]};
  if (!p.run) return refuse(core, call, MISSING);
  p.element = (size_t)type_bytes(a->type);
  p.part = (size_t)type_bytes(part_of(a->type));
  p.is_complex = p.part != p.element;
  lay_out(&p);
  for (int64_t b = 0; b < batches(call); b++) {
    const char *from = (const char *)a->data + (size_t)b * (size_t)p.n * (size_t)p.n * p.element;
    if (core->is_cancelled(call)) return TESSERA_OK; /* the core says so */
    int found = -4;
    if (p.n == 0) {
      found = 0;
    } else if (is_finite(&p, from)) {
      turn(&p, from, p.a);
      found = row->run(&p);
      row->write(&p, b);
    } else {
      fill_nan(&p, b);
    }
    memcpy(result_at(&p, info, b), &(int32_t){found}, sizeof(int32_t));
  }
  return TESSERA_OK;
}

const tessera_plugin *ts_lapack_plugin(void) {
  static const tessera_target targets[] = {{"lapack.geev", check, run},
                                           {"lapack.gees", check, run},
                                           {"lapack.gehrd", check, run},
                                           {"lapack.sytrd", check, run}};
  static const tessera_plugin plugin = {TESSERA_PLUGIN_VERSION, "lapack", sizeof(tessera_call),
                                        sizeof targets / sizeof *targets, targets};
  return &plugin;
}
