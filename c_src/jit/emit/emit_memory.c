/* Loads and stores of whole vectors. If the target has no masked access for an element size, a tail is copied to a
 * padded buffer on the stack. So the vector code is the same on all targets. */
#include "jit/emit/emit_cell.h"

static LLVMTypeRef i64_of(ts_emit *e) { return LLVMInt64TypeInContext(e->context); }
static LLVMTypeRef i8_of(ts_emit *e) { return LLVMInt8TypeInContext(e->context); }
static LLVMTypeRef vector_of(ts_emit *e, LLVMTypeRef element) { return LLVMVectorType(element, (unsigned)e->lanes); }
static ts_v number(ts_emit *e, uint64_t value) { return LLVMConstInt(i64_of(e), value, 0); }

static LLVMTypeRef memory_vector(ts_emit *e, ts_dtype type) { return vector_of(e, ts_emit_memory_type(e, type)); }

ts_v ts_emit_to_register(ts_emit *e, ts_dtype type, ts_v memory) {
  if (type == TS_C128) return LLVMBuildBitCast(e->b, memory, ts_emit_vector_type(e, type), "");
  return ts_dtype_is_narrow(type) && !ts_dtype_is_small(type) ? ts_emit_half_value(e, type, memory) : memory;
}

/* Half values in registers are rounded already, so the bf16 bits are the upper half. */
ts_v ts_emit_to_memory(ts_emit *e, ts_dtype type, ts_v value) {
  if (type == TS_C128) return LLVMBuildBitCast(e->b, value, memory_vector(e, type), "");
  if (type != TS_BF16) return type == TS_F16 ? ts_emit_half_bits(e, type, value) : value;
  LLVMTypeRef words = vector_of(e, LLVMInt32TypeInContext(e->context));
  ts_v bits = LLVMBuildBitCast(e->b, value, words, "");
  bits = LLVMBuildLShr(e->b, bits, ts_emit_const_bits(e, TS_U32, 16), "");
  return LLVMBuildTrunc(e->b, bits, vector_of(e, LLVMInt16TypeInContext(e->context)), "bf16");
}

static bool has_masked_moves(const ts_emit *e, ts_dtype type) {
  return ts_dtype_size(type) >= 4 ? e->target->masked : e->target->masked_small;
}

/* The instruction sets have gathers of 4 and 8 bytes only. */
static bool has_gather(const ts_emit *e, ts_dtype type) {
  return ts_dtype_size(type) >= 4 && ts_dtype_size(type) <= 8 && e->target->masked;
}

static bool has_scatter(const ts_emit *e, ts_dtype type) {
  return ts_dtype_size(type) >= 4 && ts_dtype_size(type) <= 8 && e->target->isa == TS_ISA_AVX512;
}

bool ts_emit_moves_under_masks(const ts_emit *e, ts_dtype type) {
  return !ts_dtype_is_complex(type) && has_masked_moves(e, type);
}

bool ts_emit_has_masks(const ts_emit *e, ts_dtype type, bool strided) {
  return e->target->isa == TS_ISA_AVX512 && (!strided || has_scatter(e, type));
}

static ts_v byte_offset(ts_emit *e, ts_v base, ts_v offset) {
  return LLVMBuildGEP2(e->b, i8_of(e), base, &offset, 1, "");
}

/* Tensors are aligned to their element type only. */
static ts_v load_aligned(ts_emit *e, LLVMTypeRef type, ts_v address, size_t alignment) {
  ts_v value = LLVMBuildLoad2(e->b, type, address, "");
  LLVMSetAlignment(value, (unsigned)alignment);
  return value;
}

static void store_aligned(ts_emit *e, ts_v value, ts_v address, size_t alignment) {
  LLVMSetAlignment(LLVMBuildStore(e->b, value, address), (unsigned)alignment);
}

static ts_v element_load(ts_emit *e, ts_dtype type, ts_v address) {
  return load_aligned(e, ts_emit_memory_type(e, type), address, ts_dtype_alignment(type));
}

/* ---- loops over single elements ---- */

typedef struct lane_loop {
  ts_v lane; /* i64 */
  LLVMBasicBlockRef body, after;
} lane_loop;

/* Opens a loop over lanes 0 .. count-1; count may be 0. */
static lane_loop loop_begin(ts_emit *e, ts_v count) {
  LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
  lane_loop loop = {
      .body = LLVMAppendBasicBlockInContext(e->context, e->function, "lane"),
      .after = LLVMAppendBasicBlockInContext(e->context, e->function, "lanes.end"),
  };
  ts_v none = LLVMBuildICmp(e->b, LLVMIntEQ, count, number(e, 0), "");
  LLVMBuildCondBr(e->b, none, loop.after, loop.body);
  LLVMPositionBuilderAtEnd(e->b, loop.body);
  loop.lane = LLVMBuildPhi(e->b, i64_of(e), "lane");
  ts_v zero = number(e, 0);
  LLVMAddIncoming(loop.lane, &zero, &before, 1);
  return loop;
}

static void loop_end(ts_emit *e, lane_loop *loop, ts_v count) {
  ts_v next = LLVMBuildAdd(e->b, loop->lane, number(e, 1), "");
  LLVMAddIncoming(loop->lane, &next, &loop->body, 1);
  ts_v more = LLVMBuildICmp(e->b, LLVMIntULT, next, count, "");
  LLVMBuildCondBr(e->b, more, loop->body, loop->after);
  LLVMPositionBuilderAtEnd(e->b, loop->after);
}

/* Elements in memory, `stride` bytes apart. */
typedef struct element_list {
  ts_v address, stride;
} element_list;

static void copy_elements(ts_emit *e, ts_dtype type, element_list to, element_list from, ts_v count) {
  lane_loop loop = loop_begin(e, count);
  ts_v source = byte_offset(e, from.address, LLVMBuildMul(e->b, loop.lane, from.stride, ""));
  ts_v target = byte_offset(e, to.address, LLVMBuildMul(e->b, loop.lane, to.stride, ""));
  store_aligned(e, element_load(e, type, source), target, ts_dtype_alignment(type));
  loop_end(e, &loop, count);
}

static ts_v zeroed_slot(ts_emit *e, LLVMTypeRef type) {
  ts_v slot = ts_emit_alloca(e, type);
  store_aligned(e, LLVMConstNull(type), slot, 64);
  return slot;
}

static ts_v element_stride(ts_emit *e, ts_dtype type) { return number(e, ts_dtype_size(type)); }

/* ---- contiguous ---- */

ts_v ts_emit_load_memory(ts_emit *e, ts_dtype type, ts_v address) {
  return load_aligned(e, memory_vector(e, type), address, ts_dtype_alignment(type));
}

void ts_emit_store_memory(ts_emit *e, ts_dtype type, ts_v memory, ts_v address) {
  store_aligned(e, memory, address, ts_dtype_alignment(type));
}

ts_v ts_emit_load(ts_emit *e, ts_dtype type, ts_v address) {
  ts_v cell = ts_emit_cell_load(e, &(ts_emit_access){type, address, NULL, NULL});
  if (cell) return ts_emit_to_register(e, type, cell);
  return ts_emit_to_register(e, type, ts_emit_load_memory(e, type, address));
}

void ts_emit_store(ts_emit *e, ts_dtype type, ts_v value, ts_v address) {
  ts_v memory = ts_emit_to_memory(e, type, value);
  if (ts_emit_cell_store(e, &(ts_emit_access){type, address, NULL, NULL}, memory)) return;
  ts_emit_store_memory(e, type, memory, address);
}

void ts_emit_store_stream(ts_emit *e, ts_dtype type, ts_v value, ts_v address) {
  size_t bytes = (size_t)e->lanes * ts_dtype_size(type);
  ts_v store = LLVMBuildStore(e->b, ts_emit_to_memory(e, type, value), address);
  LLVMMetadataRef one = LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(e->context), 1, 0));
  LLVMSetAlignment(store, (unsigned)(bytes < 64 ? bytes : 64));
  LLVMSetMetadata(store, LLVMGetMDKindIDInContext(e->context, "nontemporal", 11),
                  LLVMMetadataAsValue(e->context, LLVMMDNodeInContext2(e->context, &one, 1)));
}

static ts_v alignment_argument(ts_emit *e, ts_dtype type) {
  return LLVMConstInt(LLVMInt32TypeInContext(e->context), ts_dtype_alignment(type), 0);
}

/* No machine has masks of 16 bytes: such an element is two of 8 bytes. */
static LLVMTypeRef masked_vector(ts_emit *e, ts_dtype type) {
  return type == TS_C128 ? LLVMVectorType(i64_of(e), 2 * (unsigned)e->lanes) : memory_vector(e, type);
}

static ts_v element_mask(ts_emit *e, ts_dtype type, ts_v mask) {
  return type == TS_C128 ? ts_emit_wide_mask(e, mask) : mask;
}

static ts_v masked_load(ts_emit *e, ts_dtype type, ts_v address, ts_v mask) {
  LLVMTypeRef vector = masked_vector(e, type);
  LLVMTypeRef overloads[] = {vector, LLVMTypeOf(address)};
  ts_v args[] = {address, alignment_argument(e, type), element_mask(e, type, mask), LLVMConstNull(vector)};
  ts_v value = ts_emit_intrinsic_of(e, "llvm.masked.load", overloads, 2, args, 4);
  return LLVMBuildBitCast(e->b, value, memory_vector(e, type), "");
}

static void masked_store(ts_emit *e, ts_dtype type, ts_v memory, ts_v address, ts_v mask) {
  memory = LLVMBuildBitCast(e->b, memory, masked_vector(e, type), "");
  LLVMTypeRef overloads[] = {LLVMTypeOf(memory), LLVMTypeOf(address)};
  ts_v args[] = {memory, address, alignment_argument(e, type), element_mask(e, type, mask)};
  ts_emit_intrinsic_of(e, "llvm.masked.store", overloads, 2, args, 4);
}

/* Elements one behind the other: a piece of a power of two for each bit of `count`, the largest first. */
static void copy_pieces(ts_emit *e, ts_dtype type, ts_v to, ts_v from, ts_v count) {
  LLVMTypeRef element = ts_emit_memory_type(e, type);
  for (int piece = e->lanes; piece > 0; piece /= 2) {
    LLVMBasicBlockRef copy = LLVMAppendBasicBlockInContext(e->context, e->function, "piece"),
                      next = LLVMAppendBasicBlockInContext(e->context, e->function, "next");
    ts_v bit = LLVMBuildAnd(e->b, count, number(e, (uint64_t)piece), "");
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntNE, bit, number(e, 0), ""), copy, next);
    LLVMPositionBuilderAtEnd(e->b, copy);
    ts_v before = LLVMBuildAnd(e->b, count, number(e, (uint64_t)-2 * (uint64_t)piece), "");
    ts_v source = LLVMBuildGEP2(e->b, element, from, &before, 1, "");
    ts_v target = LLVMBuildGEP2(e->b, element, to, &before, 1, "");
    ts_v value = load_aligned(e, LLVMVectorType(element, (unsigned)piece), source, ts_dtype_alignment(type));
    store_aligned(e, value, target, ts_dtype_alignment(type));
    LLVMBuildBr(e->b, next);
    LLVMPositionBuilderAtEnd(e->b, next);
  }
}

#define PAGE_BYTES 4096 /* pages are no smaller */

/* True where a whole vector can be read: some of it may be, and the rest is on the same page. */
static ts_v is_on_page(ts_emit *e, ts_dtype type, ts_v address, ts_v count) {
  const uint64_t bytes = (uint64_t)e->lanes * ts_dtype_size(type);
  ts_v at = LLVMBuildAnd(e->b, LLVMBuildPtrToInt(e->b, address, i64_of(e), ""), number(e, PAGE_BYTES - 1), "");
  ts_v inside = LLVMBuildICmp(e->b, LLVMIntULE, at, number(e, PAGE_BYTES - bytes), "");
  ts_v some = LLVMBuildICmp(e->b, LLVMIntNE, count, number(e, 0), "");
  return LLVMBuildAnd(e->b, inside, some, "");
}

/* A load from a buffer that has just been stored in pieces would wait for all of them. So it is for the ends of pages.
 */
static ts_v load_some(ts_emit *e, ts_dtype type, ts_v address, ts_v count) {
  LLVMTypeRef vector = memory_vector(e, type);
  LLVMBasicBlockRef whole = LLVMAppendBasicBlockInContext(e->context, e->function, "on_page"),
                    pieces = LLVMAppendBasicBlockInContext(e->context, e->function, "page_end"),
                    done = LLVMAppendBasicBlockInContext(e->context, e->function, "loaded");
  LLVMBuildCondBr(e->b, is_on_page(e, type, address, count), whole, pieces);
  LLVMPositionBuilderAtEnd(e->b, whole);
  ts_v loaded = ts_emit_load_memory(e, type, address), none = LLVMConstNull(vector);
  LLVMBuildBr(e->b, done);
  LLVMPositionBuilderAtEnd(e->b, pieces);
  ts_v slot = ts_emit_alloca(e, vector);
  copy_pieces(e, type, slot, address, count);
  ts_v collected = load_aligned(e, vector, slot, 64);
  LLVMBasicBlockRef collected_end = LLVMGetInsertBlock(e->b);
  LLVMBuildBr(e->b, done);
  LLVMPositionBuilderAtEnd(e->b, done);
  ts_v value = LLVMBuildPhi(e->b, vector, "");
  LLVMAddIncoming(value, &loaded, &whole, 1);
  LLVMAddIncoming(value, &collected, &collected_end, 1);
  return LLVMBuildSelect(e->b, ts_emit_lane_mask(e, count), value, none, "");
}

static void store_some(ts_emit *e, ts_dtype type, ts_v memory, ts_v address, ts_v count) {
  ts_v slot = ts_emit_alloca(e, LLVMTypeOf(memory));
  store_aligned(e, memory, slot, 64);
  copy_pieces(e, type, address, slot, count);
}

static ts_v load_elements(ts_emit *e, ts_dtype type, ts_v address, ts_v stride, ts_v count) {
  LLVMTypeRef vector = memory_vector(e, type);
  ts_v slot = zeroed_slot(e, vector);
  copy_elements(e, type, (element_list){slot, element_stride(e, type)}, (element_list){address, stride}, count);
  return load_aligned(e, vector, slot, 64);
}

static void store_elements(ts_emit *e, ts_dtype type, ts_v memory, ts_v address, ts_v stride, ts_v count) {
  ts_v slot = ts_emit_alloca(e, LLVMTypeOf(memory));
  store_aligned(e, memory, slot, 64);
  copy_elements(e, type, (element_list){address, stride}, (element_list){slot, element_stride(e, type)}, count);
}

static ts_v lane_index(ts_emit *e, int lane) {
  return LLVMConstInt(LLVMInt32TypeInContext(e->context), (unsigned)lane, 0);
}

/* ---- parts of a known number of lanes: pieces of powers of two, the largest first ---- */

static int known_count(const ts_emit *e, ts_dtype type, ts_v part) {
  if (type == TS_C128 || !LLVMIsAConstantInt(part)) return 0;
  uint64_t count = LLVMConstIntGetZExtValue(part);
  return count < (uint64_t)e->lanes ? (int)count : 0;
}

static int piece_of(int rest) { return 1 << (31 - __builtin_clz((unsigned)rest)); }

/* Lanes [first, first + count) of a vector, and undefined ones up to `lanes`. */
static ts_v take_lanes(ts_emit *e, ts_v vector, int first, int count, int lanes) {
  LLVMValueRef from[64], none = LLVMGetPoison(LLVMInt32TypeInContext(e->context));
  for (int i = 0; i < lanes; i++) from[i] = i < count ? lane_index(e, first + i) : none;
  return LLVMBuildShuffleVector(e->b, vector, LLVMGetPoison(LLVMTypeOf(vector)), LLVMConstVector(from, (unsigned)lanes),
                                "");
}

/* `vector` with `piece`, of `count` lanes, in its lanes from `first` on. */
static ts_v put_lanes(ts_emit *e, ts_v vector, ts_v piece, int first, int count) {
  LLVMValueRef from[64];
  for (int i = 0; i < e->lanes; i++)
    from[i] = lane_index(e, i >= first && i < first + count ? e->lanes + i - first : i);
  return LLVMBuildShuffleVector(e->b, vector, take_lanes(e, piece, 0, count, e->lanes),
                                LLVMConstVector(from, (unsigned)e->lanes), "");
}

static ts_v element_address(ts_emit *e, ts_dtype type, ts_v address, int at) {
  return at == 0 ? address : byte_offset(e, address, number(e, (uint64_t)at * ts_dtype_size(type)));
}

static ts_v load_pieces(ts_emit *e, ts_dtype type, ts_v address, int count) {
  LLVMTypeRef element = ts_emit_memory_type(e, type);
  ts_v vector = LLVMConstNull(memory_vector(e, type));
  for (int at = 0; at < count;) {
    int piece = piece_of(count - at);
    ts_v from = element_address(e, type, address, at);
    LLVMTypeRef of = piece == 1 ? element : LLVMVectorType(element, (unsigned)piece);
    ts_v value = load_aligned(e, of, from, ts_dtype_alignment(type));
    vector = piece == 1 ? LLVMBuildInsertElement(e->b, vector, value, lane_index(e, at), "")
                        : put_lanes(e, vector, value, at, piece);
    at += piece;
  }
  return vector;
}

static void store_pieces(ts_emit *e, ts_dtype type, ts_v memory, ts_v address, int count) {
  for (int at = 0; at < count;) {
    int piece = piece_of(count - at);
    ts_v value = piece == 1 ? LLVMBuildExtractElement(e->b, memory, lane_index(e, at), "")
                            : take_lanes(e, memory, at, piece, piece);
    store_aligned(e, value, element_address(e, type, address, at), ts_dtype_alignment(type));
    at += piece;
  }
}

ts_v ts_emit_load_tail(ts_emit *e, ts_dtype type, ts_v address, ts_v part) {
  int known = known_count(e, type, part);
  ts_v cell = ts_emit_cell_load(e, &(ts_emit_access){type, address, part, NULL});
  ts_v memory = cell                        ? cell
                : known                     ? load_pieces(e, type, address, known)
                : has_masked_moves(e, type) ? masked_load(e, type, address, ts_emit_lane_mask(e, part))
                                            : load_some(e, type, address, part);
  return ts_emit_to_register(e, type, memory);
}

void ts_emit_store_tail(ts_emit *e, ts_dtype type, ts_v value, ts_v address, ts_v part) {
  ts_v memory = ts_emit_to_memory(e, type, value);
  int known = known_count(e, type, part);
  if (ts_emit_cell_store(e, &(ts_emit_access){type, address, part, NULL}, memory)) return;
  if (known) {
    store_pieces(e, type, memory, address, known);
  } else if (has_masked_moves(e, type)) {
    masked_store(e, type, memory, address, ts_emit_lane_mask(e, part));
  } else {
    store_some(e, type, memory, address, part);
  }
}

ts_v ts_emit_load_splat(ts_emit *e, ts_dtype type, ts_v address) {
  ts_v cell = ts_emit_cell_load(e, &(ts_emit_access){type, address, NULL, number(e, 0)}), at[64];
  for (int i = 0; i < e->lanes; i++) at[i] = address;
  if (type == TS_C128) return ts_emit_to_register(e, type, ts_emit_load_wide(e, type, at));
  if (cell) return ts_emit_to_register(e, type, cell);
  return ts_emit_to_register(e, type, ts_emit_splat(e, element_load(e, type, address)));
}

/* ---- gathers and scatters ---- */

static ts_v full_mask(ts_emit *e) { return LLVMConstAllOnes(vector_of(e, LLVMInt1TypeInContext(e->context))); }

static ts_v addresses(ts_emit *e, ts_v base, ts_v offsets) {
  return LLVMBuildGEP2(e->b, i8_of(e), base, &offsets, 1, "addresses");
}

static ts_v gather_from(ts_emit *e, ts_dtype type, ts_v where, ts_v part) {
  LLVMTypeRef vector = memory_vector(e, type);
  LLVMTypeRef overloads[] = {vector, LLVMTypeOf(where)};
  ts_v mask = part ? ts_emit_lane_mask(e, part) : full_mask(e);
  ts_v args[] = {where, alignment_argument(e, type), mask, LLVMConstNull(vector)};
  return ts_emit_intrinsic_of(e, "llvm.masked.gather", overloads, 2, args, 4);
}

static ts_v masked_gather(ts_emit *e, ts_dtype type, ts_v base, ts_v offsets, ts_v part) {
  return gather_from(e, type, addresses(e, base, offsets), part);
}

/* Elements of 1 or 2 bytes, from the aligned words of 4 bytes that they lie in: such a word is on the element's page,
 * so it can be read. With AVX2, whose gathers are slower, scalar loads take less time. */
static ts_v gather_words(ts_emit *e, ts_dtype type, ts_v base, ts_v offsets, ts_v part) {
  LLVMTypeRef words = memory_vector(e, TS_U32);
  ts_v bytes = ts_emit_splat(e, number(e, 3));
  ts_v start = LLVMBuildPtrToInt(e->b, base, i64_of(e), "");
  ts_v at = LLVMBuildAnd(e->b, LLVMBuildAdd(e->b, offsets, ts_emit_splat(e, start), ""), bytes, "");
  ts_v word = gather_from(e, TS_U32, addresses(e, base, LLVMBuildSub(e->b, offsets, at, "")), part);
  ts_v shift = LLVMBuildShl(e->b, LLVMBuildTrunc(e->b, at, words, ""), ts_emit_const_bits(e, TS_U32, 3), "");
  ts_v bits = LLVMBuildLShr(e->b, word, shift, "");
  ts_v narrow =
      LLVMBuildTrunc(e->b, bits, vector_of(e, LLVMIntTypeInContext(e->context, 8 * (unsigned)ts_dtype_size(type))), "");
  return LLVMBuildBitCast(e->b, narrow, memory_vector(e, type), "");
}

static void masked_scatter(ts_emit *e, ts_dtype type, ts_v memory, ts_v base, ts_v offsets, ts_v part) {
  ts_v where = addresses(e, base, offsets);
  LLVMTypeRef overloads[] = {LLVMTypeOf(memory), LLVMTypeOf(where)};
  ts_v mask = part ? ts_emit_lane_mask(e, part) : full_mask(e);
  ts_v args[] = {memory, where, alignment_argument(e, type), mask};
  ts_emit_intrinsic_of(e, "llvm.masked.scatter", overloads, 2, args, 4);
}

static ts_v stride_offsets(ts_emit *e, ts_v stride) {
  return LLVMBuildMul(e->b, ts_emit_lane_numbers(e), ts_emit_splat(e, stride), "offsets");
}

/* Builds all lanes from scalar loads, at lane * stride or at the given offsets. */
static ts_v insert_elements(ts_emit *e, ts_dtype type, ts_v base, ts_v stride, ts_v offsets) {
  ts_v vector = LLVMGetPoison(memory_vector(e, type)), at[64];
  for (int i = 0; i < e->lanes; i++) {
    ts_v offset = offsets ? LLVMBuildExtractElement(e->b, offsets, lane_index(e, i), "")
                          : LLVMBuildMul(e->b, stride, number(e, (uint64_t)i), "");
    at[i] = byte_offset(e, base, offset);
  }
  if (type == TS_C128) return ts_emit_load_wide(e, type, at);
  for (int i = 0; i < e->lanes; i++)
    vector = LLVMBuildInsertElement(e->b, vector, element_load(e, type, at[i]), lane_index(e, i), "");
  return vector;
}

ts_v ts_emit_load_strided(ts_emit *e, ts_dtype type, ts_v address, ts_v stride, ts_v part) {
  ts_v memory = ts_emit_cell_load(e, &(ts_emit_access){type, address, part, stride});
  if (memory) return ts_emit_to_register(e, type, memory);
  if (has_gather(e, type)) {
    memory = masked_gather(e, type, address, stride_offsets(e, stride), part);
  } else if (part) {
    memory = load_elements(e, type, address, stride, part);
  } else {
    memory = insert_elements(e, type, address, stride, NULL);
  }
  return ts_emit_to_register(e, type, memory);
}

/* ---- downwards: whole vectors, whose lanes are then reversed ---- */

ts_v ts_emit_reverse(ts_emit *e, ts_v vector) {
  LLVMValueRef from[64];
  LLVMTypeRef element = LLVMGetElementType(LLVMTypeOf(vector));
  if (LLVMGetTypeKind(element) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(element) == 128)
    return ts_emit_wide_reverse(e, vector);
  for (int i = 0; i < e->lanes; i++) from[i] = lane_index(e, e->lanes - 1 - i);
  return LLVMBuildShuffleVector(e->b, vector, LLVMGetPoison(LLVMTypeOf(vector)),
                                LLVMConstVector(from, (unsigned)e->lanes), "reversed");
}

ts_v ts_emit_load_down(ts_emit *e, ts_dtype type, ts_v address, ts_v part) {
  int64_t size = (int64_t)ts_dtype_size(type);
  ts_v stride = number(e, (uint64_t)-size),
       lowest = byte_offset(e, address, number(e, (uint64_t)(size - e->lanes * size)));
  ts_v memory = ts_emit_cell_load(e, &(ts_emit_access){type, address, part, stride});
  if (memory) return ts_emit_to_register(e, type, memory);
  if (!part)
    memory = ts_emit_reverse(e, ts_emit_load_memory(e, type, lowest));
  else if (has_masked_moves(e, type))
    memory = ts_emit_reverse(e, masked_load(e, type, lowest, ts_emit_reverse(e, ts_emit_lane_mask(e, part))));
  else
    memory = load_elements(e, type, address, stride, part);
  return ts_emit_to_register(e, type, memory);
}

static void extract_elements(ts_emit *e, ts_dtype type, ts_v memory, ts_v base, ts_v stride) {
  ts_v at[64];
  for (int i = 0; i < e->lanes; i++)
    at[i] = byte_offset(e, base, LLVMBuildMul(e->b, stride, number(e, (uint64_t)i), ""));
  if (type == TS_C128) {
    ts_emit_store_wide(e, type, memory, at);
    return;
  }
  for (int i = 0; i < e->lanes; i++)
    store_aligned(e, LLVMBuildExtractElement(e->b, memory, lane_index(e, i), ""), at[i], ts_dtype_alignment(type));
}

void ts_emit_store_strided(ts_emit *e, ts_dtype type, ts_v value, ts_v address, ts_v stride, ts_v part) {
  ts_v memory = ts_emit_to_memory(e, type, value);
  if (ts_emit_cell_store(e, &(ts_emit_access){type, address, part, stride}, memory)) return;
  if (has_scatter(e, type)) {
    masked_scatter(e, type, memory, address, stride_offsets(e, stride), part);
  } else if (part) {
    store_elements(e, type, memory, address, stride, part);
  } else {
    extract_elements(e, type, memory, address, stride);
  }
}

/* Lanes outside of the part must not be read: their offsets may be invalid. */
static ts_v gather_elements(ts_emit *e, ts_dtype type, ts_v base, ts_v offsets, ts_v part) {
  LLVMTypeRef vector = memory_vector(e, type);
  ts_v result = zeroed_slot(e, vector);
  ts_v table = ts_emit_alloca(e, LLVMTypeOf(offsets));
  store_aligned(e, offsets, table, 64);
  lane_loop loop = loop_begin(e, part);
  ts_v offset = load_aligned(e, i64_of(e), LLVMBuildGEP2(e->b, i64_of(e), table, &loop.lane, 1, ""), 8);
  ts_v element = element_load(e, type, byte_offset(e, base, offset));
  ts_v slot = LLVMBuildGEP2(e->b, ts_emit_memory_type(e, type), result, &loop.lane, 1, "");
  store_aligned(e, element, slot, ts_dtype_alignment(type));
  loop_end(e, &loop, part);
  return load_aligned(e, vector, result, 64);
}

ts_v ts_emit_gather(ts_emit *e, ts_dtype type, ts_v base, ts_v offsets, ts_v part) {
  ts_v memory;
  if (has_gather(e, type)) {
    memory = masked_gather(e, type, base, offsets, part);
  } else if (ts_dtype_size(type) < 4 && e->target->isa == TS_ISA_AVX512) {
    memory = gather_words(e, type, base, offsets, part);
  } else if (part) {
    memory = gather_elements(e, type, base, offsets, part);
  } else {
    memory = insert_elements(e, type, base, NULL, offsets);
  }
  return ts_emit_to_register(e, type, memory);
}
