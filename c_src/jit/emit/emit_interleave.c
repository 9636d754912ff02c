/* A group of a composite number of elements is taken apart by one prime factor after the other. For a prime p, a vector
 * is joined from p others by p - 1 shuffles of two vectors; instruction selection finds the instructions. */
#include "jit/emit/emit_interleave.h"

static bool takes_from(const ts_emit *e, const ts_emit_origin *from, int vector) {
  for (int i = 0; i < e->lanes; i++)
    if (from->vector[i] == vector) return true;
  return false;
}

/* `so_far` (NULL: nothing) has the lanes of vectors below `vector`; adds those of that vector. */
static ts_v add_lanes(ts_emit *e, ts_v so_far, ts_v from, const ts_emit_origin *of, int vector) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
  LLVMValueRef mask[64];
  for (int i = 0; i < e->lanes; i++) {
    const int lane = of->vector[i] == vector ? e->lanes + of->lane[i] : of->vector[i] < vector ? i : -1;
    mask[i] = lane < 0 ? LLVMGetPoison(i32) : LLVMConstInt(i32, (unsigned)lane, 0);
  }
  if (!so_far) so_far = LLVMGetPoison(LLVMTypeOf(from));
  return LLVMBuildShuffleVector(e->b, so_far, from, LLVMConstVector(mask, (unsigned)e->lanes), "");
}

/* The first two vectors are joined by one shuffle, each further one by one more. */
ts_v ts_emit_join(ts_emit *e, const ts_v *vectors, int count, const ts_emit_origin *of) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
  LLVMValueRef mask[64];
  int next = 0, first, second;
  while (!takes_from(e, of, next)) next++;
  first = next++;
  while (next < count && !takes_from(e, of, next)) next++;
  second = next++;
  if (second >= count) return add_lanes(e, NULL, vectors[first], of, first);
  for (int i = 0; i < e->lanes; i++) {
    const int lane = of->vector[i] == first ? of->lane[i] : of->vector[i] == second ? e->lanes + of->lane[i] : -1;
    mask[i] = lane < 0 ? LLVMGetPoison(i32) : LLVMConstInt(i32, (unsigned)lane, 0);
  }
  ts_v joined =
      LLVMBuildShuffleVector(e->b, vectors[first], vectors[second], LLVMConstVector(mask, (unsigned)e->lanes), "");
  for (; next < count; next++)
    if (takes_from(e, of, next)) joined = add_lanes(e, joined, vectors[next], of, next);
  return joined;
}

/* Of `p` vectors with groups of p elements. */
static void split_prime(ts_emit *e, const ts_v *in, int p, ts_v *out) {
  for (int k = 0; k < p; k++) {
    ts_emit_origin of;
    for (int i = 0; i < e->lanes; i++) {
      of.vector[i] = (i * p + k) / e->lanes;
      of.lane[i] = (i * p + k) % e->lanes;
    }
    out[k] = ts_emit_join(e, in, p, &of);
  }
}

static void merge_prime(ts_emit *e, const ts_v *in, int p, ts_v *out) {
  for (int k = 0; k < p; k++) {
    ts_emit_origin of;
    for (int i = 0; i < e->lanes; i++) {
      of.vector[i] = (k * e->lanes + i) % p;
      of.lane[i] = (k * e->lanes + i) / p;
    }
    out[k] = ts_emit_join(e, in, p, &of);
  }
}

void ts_emit_cut_block(ts_emit *e, const ts_emit_cut *cut) {
  LLVMBasicBlockRef next = LLVMAppendBasicBlockInContext(e->context, e->function, "next");
  LLVMBuildCondBr(e->b, cut->always, next, cut->never);
  LLVMPositionBuilderAtEnd(e->b, next);
}

/* Of p * q elements, every p-th one is a member of one of p streams, whose groups have q elements. */
void ts_emit_deinterleave(ts_emit *e, ts_v *vectors, int count, const ts_emit_cut *cut) {
  ts_v streams[TS_MOST_INTERLEAVED], parts[TS_MOST_INTERLEAVED];
  if (count == 1) return;
  ts_emit_cut_block(e, cut);
  const int p = ts_interleave_factor(count), q = count / p;
  for (int b = 0; b < q; b++) {
    split_prime(e, vectors + b * p, p, parts);
    for (int s = 0; s < p; s++) streams[s * q + b] = parts[s];
  }
  for (int s = 0; s < p; s++) {
    ts_emit_deinterleave(e, streams + s * q, q, cut);
    for (int k = 0; k < q; k++) vectors[s + p * k] = streams[s * q + k];
  }
}

void ts_emit_interleave(ts_emit *e, ts_v *vectors, int count, const ts_emit_cut *cut) {
  ts_v streams[TS_MOST_INTERLEAVED], parts[TS_MOST_INTERLEAVED];
  if (count == 1) return;
  const int p = ts_interleave_factor(count), q = count / p;
  for (int s = 0; s < p; s++) {
    for (int k = 0; k < q; k++) streams[s * q + k] = vectors[s + p * k];
    ts_emit_interleave(e, streams + s * q, q, cut);
  }
  ts_emit_cut_block(e, cut);
  for (int b = 0; b < q; b++) {
    for (int s = 0; s < p; s++) parts[s] = streams[s * q + b];
    merge_prime(e, parts, p, vectors + b * p);
  }
}
