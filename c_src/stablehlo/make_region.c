/* Checks the types of the parameters of an op's regions. The function that makes the op checks their number. */
#include "stablehlo/make.h"

typedef enum params_form {
  OPERANDS, /* each operand as it is */
  NUMBERS,  /* a number of each operand */
  HALVES,   /* numbers of the first half of the operands, and then again */
  PAIRS,    /* two numbers of each operand */
  SHARED,   /* numbers of every operand: all of them have one type */
} params_form;

static const struct {
  const char *op;
  params_form form;
} forms[] = {
    {"stablehlo.while", OPERANDS},
    {"stablehlo.map", NUMBERS},
    {"stablehlo.reduce", HALVES},
    {"stablehlo.reduce_window", HALVES},
    {"stablehlo.scatter", HALVES},
    {"stablehlo.sort", PAIRS},
    {"stablehlo.all_reduce", SHARED},
    {"stablehlo.reduce_scatter", SHARED},
    {"stablehlo.collective_reduce", SHARED},
    {"stablehlo.select_and_scatter", SHARED},
};

/* The operand that gives parameter `i` its type, or the first such operand. `count` or more means no operand. */
static size_t operand_of(params_form form, size_t i, size_t count) {
  switch (form) {
  case OPERANDS:
  case NUMBERS: return i;
  case HALVES: return count < 2 ? count : i % (count / 2);
  case PAIRS: return i / 2;
  case SHARED: return 0;
  }
  return count;
}

/* StableHLO lets a region compute with wider numbers. */
static bool is_wider(ts_dtype type, ts_dtype than) {
  return ts_dtype_get_kind(type) == ts_dtype_get_kind(than) && ts_dtype_bits(type) > ts_dtype_bits(than);
}

static ts_status check_param(const make_call *m, params_form form, const mlir_region *region, size_t i,
                             size_t operand) {
  const mlir_type *type = &region->param_types.data[i];
  const ts_value *value = make_operand_of(m, operand);
  static const ts_shape number = {.rank = 0};
  if (!type->shape)
    return make_error(m, TS_UNIMPLEMENTED, "parameter %zu of a region is no tensor that Tessera has", i);
  const bool has_shape = form == OPERANDS ? make_fits(m->r, value, type) : type->shape->rank == 0;
  if (has_shape && value->dtype == type->dtype && m->operands[operand].is_bool == type->is_bool) return TS_SUCCESS;
  if (form != OPERANDS && has_shape && is_wider(type->dtype, value->dtype))
    return make_error(m, TS_UNIMPLEMENTED, "a region of wider numbers than those of its operands cannot be read");
  return make_error(m, TS_INVALID_ARGUMENT, "parameter %zu of a region is %s%s, expected %s%s", i,
                    TS_SHAPE_STR(type->dtype, type->shape), type->is_bool ? " of truth values" : "",
                    TS_SHAPE_STR(value->dtype, form == OPERANDS ? value->shape : &number),
                    m->operands[operand].is_bool ? " of truth values" : "");
}

static ts_status check_region(const make_call *m, params_form form, const mlir_region *region) {
  const size_t count = m->op->operand_count;
  for (size_t i = 0; i < region->param_count; i++) {
    const size_t first = operand_of(form, i, count), end = form == SHARED ? count : first + 1;
    for (size_t operand = first; operand < end && operand < count; operand++)
      TS_TRY(check_param(m, form, region, i, operand));
  }
  return TS_SUCCESS;
}

ts_status make_check_regions(const make_call *m) {
  for (size_t f = 0; m->op->region_count && f < sizeof forms / sizeof *forms; f++) {
    if (!mlir_token_is(m->op->name, forms[f].op)) continue;
    for (size_t i = 0; i < m->op->region_count; i++) TS_TRY(check_region(m, forms[f].form, &m->op->regions[i]));
  }
  return TS_SUCCESS;
}
