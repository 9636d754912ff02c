/* Products of small matrices inside of a native loop. Each element is one chain of fused multiply-adds from +0, as
 * tensor/contract_order.h has it for so few terms. Vectors have the elements of one dim of the result; where the
 * operand is not contiguous along a dim of the result, single elements are computed. Several elements of the other dim
 * are computed at once, to hide the latency of a chain. */
#include "jit/flow/flow_dot.h"

/* Chains at once: of vectors, of single elements. */
#define VECTORS 4
#define SINGLES 8
/* More terms than this make a loop, and so do more blocks. */
#define UNROLLED_TERMS 16
#define UNROLLED_BLOCKS 4

/* One dim of the result: its operand's strides along it and along the terms, and the result's stride. In bytes. */
typedef struct side {
  ts_v at; /* the operand */
  int64_t count, stride, term, out;
} side;

typedef struct product {
  ts_emit *e;
  const ts_flow_dot *d;
  LLVMTypeRef i8, i64, element;
  side scalars, vectors; /* one element of `scalars` is multiplied with several of `vectors` */
  ts_v out;
} product;

typedef struct block {
  ts_v scalar, vector, out; /* addresses of the first elements */
  int count, lanes;         /* elements of each side */
} block;

static ts_v number(product *p, int64_t value) { return LLVMConstInt(p->i64, (unsigned long long)value, 1); }

static ts_v moved(product *p, ts_v at, ts_v by) { return LLVMBuildGEP2(p->e->b, p->i8, at, &by, 1, ""); }

static ts_v moved_by(product *p, ts_v at, int64_t bytes) { return bytes == 0 ? at : moved(p, at, number(p, bytes)); }

static LLVMTypeRef vector_type(product *p, int lanes) {
  return lanes == 1 ? p->element : LLVMVectorType(p->element, (unsigned)lanes);
}

static ts_v load(product *p, LLVMTypeRef type, ts_v at) {
  ts_v value = LLVMBuildLoad2(p->e->b, type, at, "");
  LLVMSetAlignment(value, (unsigned)ts_dtype_alignment(p->d->type));
  return value;
}

static ts_v splat(product *p, ts_v scalar, int lanes) {
  int machine = p->e->lanes;
  if (lanes == 1) return scalar;
  p->e->lanes = lanes;
  ts_v vector = ts_emit_splat(p->e, scalar);
  p->e->lanes = machine;
  return vector;
}

static ts_v multiply_add(product *p, ts_v a, ts_v b, ts_v sum) {
  if (p->e->target->fma) return ts_emit_intrinsic(p->e, "llvm.fma", NULL, (ts_v[]){a, b, sum}, 3);
  return LLVMBuildFAdd(p->e->b, sum, LLVMBuildFMul(p->e->b, a, b, ""), "");
}

/* ---- loops ---- */

typedef struct counted {
  LLVMBasicBlockRef before, body;
  ts_v index;
} counted;

static counted begin_count(product *p) {
  LLVMBuilderRef b = p->e->b;
  counted c = {.before = LLVMGetInsertBlock(b)};
  ts_v zero = number(p, 0);
  c.body = LLVMAppendBasicBlockInContext(p->e->context, p->e->function, "dot");
  LLVMBuildBr(b, c.body);
  LLVMPositionBuilderAtEnd(b, c.body);
  c.index = LLVMBuildPhi(b, p->i64, "");
  LLVMAddIncoming(c.index, &zero, &c.before, 1);
  return c;
}

static void end_count(product *p, counted *c, int64_t count) {
  LLVMBuilderRef b = p->e->b;
  LLVMBasicBlockRef here = LLVMGetInsertBlock(b), done;
  ts_v next = LLVMBuildAdd(b, c->index, number(p, 1), "");
  LLVMAddIncoming(c->index, &next, &here, 1);
  done = LLVMAppendBasicBlockInContext(p->e->context, p->e->function, "dot_done");
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, next, number(p, count), ""), c->body, done);
  LLVMPositionBuilderAtEnd(b, done);
}

/* ---- one block ---- */

static void add_term(product *p, const block *k, ts_v term, ts_v *sums) {
  ts_v vector = load(p, vector_type(p, k->lanes),
                     moved(p, k->vector, LLVMBuildMul(p->e->b, term, number(p, p->vectors.term), "")));
  ts_v scalar = moved(p, k->scalar, LLVMBuildMul(p->e->b, term, number(p, p->scalars.term), ""));
  for (int i = 0; i < k->count; i++) {
    ts_v one = load(p, p->element, moved_by(p, scalar, i * p->scalars.stride));
    sums[i] = multiply_add(p, splat(p, one, k->lanes), vector, sums[i]);
  }
}

static void add_terms_in_loop(product *p, const block *k, ts_v *sums) {
  ts_v phis[SINGLES];
  counted c = begin_count(p);
  for (int i = 0; i < k->count; i++) {
    phis[i] = LLVMBuildPhi(p->e->b, LLVMTypeOf(sums[i]), "");
    LLVMAddIncoming(phis[i], &sums[i], &c.before, 1);
    sums[i] = phis[i];
  }
  add_term(p, k, c.index, sums);
  LLVMBasicBlockRef here = LLVMGetInsertBlock(p->e->b);
  for (int i = 0; i < k->count; i++) LLVMAddIncoming(phis[i], &sums[i], &here, 1);
  end_count(p, &c, p->d->terms);
}

/* Neighbours of single elements are one vector: a later load of a vector gets its bytes from that store. */
static void store_singles(product *p, const block *k, const ts_v *sums) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(p->e->context);
  int machine = p->e->lanes, lanes = 1;
  while (lanes < k->count) lanes *= 2;
  ts_v vector = LLVMConstNull(vector_type(p, lanes));
  for (int i = 0; i < k->count; i++)
    vector = LLVMBuildInsertElement(p->e->b, vector, sums[i], LLVMConstInt(i32, (unsigned)i, 0), "");
  p->e->lanes = lanes;
  if (lanes == k->count)
    ts_emit_store(p->e, p->d->type, vector, k->out);
  else
    ts_emit_store_tail(p->e, p->d->type, vector, k->out, number(p, k->count));
  p->e->lanes = machine;
}

static void write_rows(product *p, const block *k);
static bool has_row_vectors(const product *p, const block *k);

static void write_block(product *p, const block *k) {
  ts_v sums[SINGLES];
  if (has_row_vectors(p, k)) {
    write_rows(p, k);
    return;
  }
  for (int i = 0; i < k->count; i++) sums[i] = LLVMConstNull(vector_type(p, k->lanes));
  if (p->d->terms > UNROLLED_TERMS)
    add_terms_in_loop(p, k, sums);
  else
    for (int64_t t = 0; t < p->d->terms; t++) add_term(p, k, number(p, t), sums);
  if (k->lanes == 1 && k->count > 1 && p->scalars.out == (int64_t)ts_dtype_size(p->d->type)) {
    store_singles(p, k, sums);
    return;
  }
  for (int i = 0; i < k->count; i++) {
    ts_v store = LLVMBuildStore(p->e->b, sums[i], moved_by(p, k->out, i * p->scalars.out));
    LLVMSetAlignment(store, (unsigned)ts_dtype_alignment(p->d->type));
  }
}

static block block_at(product *p, const block *k, int64_t i) {
  block at = *k;
  at.scalar = moved_by(p, k->scalar, i * p->scalars.stride);
  at.out = moved_by(p, k->out, i * p->scalars.out);
  return at;
}

/* ---- eight rows that are contiguous along the terms: transposed in registers, four terms at a time ---- */

#define ROWS 8
#define TERMS 4

static bool has_row_vectors(const product *p, const block *k) {
  const int64_t size = (int64_t)ts_dtype_size(p->d->type);
  return p->d->type == TS_F32 && p->e->target->lanes >= ROWS && k->lanes == 1 && k->count == ROWS &&
         p->d->terms % TERMS == 0 && p->scalars.term == size && p->scalars.out == size;
}

static ts_v shuffle(product *p, ts_v a, ts_v b, const int *lanes) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(p->e->context);
  LLVMValueRef mask[ROWS];
  for (int i = 0; i < ROWS; i++) mask[i] = LLVMConstInt(i32, (unsigned)lanes[i], 0);
  return LLVMBuildShuffleVector(p->e->b, a, b, LLVMConstVector(mask, ROWS), "");
}

/* `columns[i]`: the rows' elements of term i. */
static void load_columns(product *p, ts_v at, ts_v *columns) {
  static const int joined[] = {0, 1, 2, 3, 4, 5, 6, 7};
  static const int low[] = {0, 8, 1, 9, 4, 12, 5, 13}, high[] = {2, 10, 3, 11, 6, 14, 7, 15};
  static const int first[] = {0, 1, 8, 9, 4, 5, 12, 13}, second[] = {2, 3, 10, 11, 6, 7, 14, 15};
  LLVMTypeRef four = vector_type(p, TERMS);
  ts_v v[TERMS];
  for (int i = 0; i < TERMS; i++) {
    ts_v upper = load(p, four, moved_by(p, at, (i + TERMS) * p->scalars.stride));
    v[i] = shuffle(p, load(p, four, moved_by(p, at, i * p->scalars.stride)), upper, joined);
  }
  ts_v low01 = shuffle(p, v[0], v[1], low), high01 = shuffle(p, v[0], v[1], high);
  ts_v low23 = shuffle(p, v[2], v[3], low), high23 = shuffle(p, v[2], v[3], high);
  columns[0] = shuffle(p, low01, low23, first);
  columns[1] = shuffle(p, low01, low23, second);
  columns[2] = shuffle(p, high01, high23, first);
  columns[3] = shuffle(p, high01, high23, second);
}

static ts_v add_columns(product *p, const block *k, ts_v first, ts_v sums) {
  ts_v columns[TERMS];
  load_columns(p, moved(p, k->scalar, LLVMBuildMul(p->e->b, first, number(p, p->scalars.term), "")), columns);
  ts_v other = moved(p, k->vector, LLVMBuildMul(p->e->b, first, number(p, p->vectors.term), ""));
  for (int i = 0; i < TERMS; i++) {
    ts_v one = splat(p, load(p, p->element, moved_by(p, other, i * p->vectors.term)), ROWS);
    sums = multiply_add(p, columns[i], one, sums);
  }
  return sums;
}

static void write_rows(product *p, const block *k) {
  ts_v sums = LLVMConstNull(vector_type(p, ROWS));
  if (p->d->terms > UNROLLED_TERMS) {
    counted c = begin_count(p);
    ts_v phi = LLVMBuildPhi(p->e->b, LLVMTypeOf(sums), "");
    LLVMAddIncoming(phi, &sums, &c.before, 1);
    sums = add_columns(p, k, LLVMBuildMul(p->e->b, c.index, number(p, TERMS), ""), phi);
    LLVMBasicBlockRef here = LLVMGetInsertBlock(p->e->b);
    LLVMAddIncoming(phi, &sums, &here, 1);
    end_count(p, &c, p->d->terms / TERMS);
  } else {
    for (int64_t t = 0; t < p->d->terms; t += TERMS) sums = add_columns(p, k, number(p, t), sums);
  }
  LLVMSetAlignment(LLVMBuildStore(p->e->b, sums, k->out), (unsigned)ts_dtype_alignment(p->d->type));
}

/* ---- all blocks ---- */

/* As many as a vector has. */
static int64_t singles(const product *p) {
  int64_t lanes = (int64_t)p->e->target->lanes * 4 / (int64_t)ts_dtype_size(p->d->type);
  return lanes < SINGLES ? lanes : SINGLES;
}

/* All elements of `scalars` with the vector of `k`. */
static void write_blocks(product *p, const block *k) {
  int64_t size = k->lanes == 1 ? singles(p) : VECTORS, whole = p->scalars.count / size, from = 0;
  if (whole > UNROLLED_BLOCKS) {
    counted c = begin_count(p);
    block at = *k;
    at.count = (int)size;
    at.scalar = moved(p, k->scalar, LLVMBuildMul(p->e->b, c.index, number(p, size * p->scalars.stride), ""));
    at.out = moved(p, k->out, LLVMBuildMul(p->e->b, c.index, number(p, size * p->scalars.out), ""));
    write_block(p, &at);
    end_count(p, &c, whole);
    from = whole * size;
  }
  for (; from < p->scalars.count; from += size) {
    block at = block_at(p, k, from);
    at.count = (int)(p->scalars.count - from < size ? p->scalars.count - from : size);
    write_block(p, &at);
  }
}

static block vectors_at(const product *p, int lanes) {
  return (block){.scalar = p->scalars.at, .vector = p->vectors.at, .out = p->out, .lanes = lanes};
}

/* `count` vectors of so many lanes, from the element `from` on. */
static void write_vectors(product *p, int64_t from, int64_t count, int lanes) {
  block k = vectors_at(p, lanes);
  k.vector = moved_by(p, k.vector, from * p->vectors.stride);
  k.out = moved_by(p, k.out, from * p->vectors.out);
  if (count == 1) {
    write_blocks(p, &k);
    return;
  }
  counted c = begin_count(p);
  k.vector = moved(p, k.vector, LLVMBuildMul(p->e->b, c.index, number(p, lanes * p->vectors.stride), ""));
  k.out = moved(p, k.out, LLVMBuildMul(p->e->b, c.index, number(p, lanes * p->vectors.out), ""));
  write_blocks(p, &k);
  end_count(p, &c, count);
}

static void write_matrix(product *p) {
  int64_t size = (int64_t)ts_dtype_size(p->d->type), from = 0;
  bool contiguous = p->vectors.stride == size && p->vectors.out == size;
  for (int lanes = contiguous ? p->e->lanes * 4 / (int)size : 1; lanes > 0; lanes /= 2) {
    int64_t count = (p->vectors.count - from) / lanes;
    if (count > 0) write_vectors(p, from, count, lanes);
    from += count * lanes;
  }
}

/* Vectors are along the columns, along the rows of a single column, or have one element. */
static void choose_sides(product *p, ts_v lhs, ts_v rhs) {
  const ts_flow_dot *d = p->d;
  int64_t size = (int64_t)ts_dtype_size(d->type);
  side rows = {lhs, d->rows, d->lhs.along, d->lhs.term, size * d->columns};
  side columns = {rhs, d->columns, d->rhs.along, d->rhs.term, size};
  bool by_rows = columns.stride != size || columns.count == 1;
  if (by_rows && (rows.stride != size || rows.out != size)) by_rows = rows.count < columns.count;
  p->vectors = by_rows ? rows : columns;
  p->scalars = by_rows ? columns : rows;
}

void ts_flow_emit_dot(ts_emit *e, const ts_flow_dot *d, const ts_v *at) {
  product p = {.e = e, .d = d, .i8 = LLVMInt8TypeInContext(e->context), .i64 = LLVMInt64TypeInContext(e->context)};
  p.element = ts_emit_memory_type(e, d->type);
  choose_sides(&p, at[0], at[1]);
  p.out = at[2];
  if (d->batch == 1) {
    write_matrix(&p);
    return;
  }
  counted c = begin_count(&p);
  ts_v lhs = moved(&p, at[0], LLVMBuildMul(e->b, c.index, number(&p, d->lhs.batch), ""));
  ts_v rhs = moved(&p, at[1], LLVMBuildMul(e->b, c.index, number(&p, d->rhs.batch), ""));
  choose_sides(&p, lhs, rhs);
  int64_t bytes = d->rows * d->columns * (int64_t)ts_dtype_size(d->type);
  p.out = moved(&p, at[2], LLVMBuildMul(e->b, c.index, number(&p, bytes), ""));
  write_matrix(&p);
  end_count(&p, &c, d->batch);
}
