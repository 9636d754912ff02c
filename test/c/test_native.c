/* Loops of small tensors as one native function: which loops qualify, and results against the interpreter and against
 * launches one by one. test_cancel pauses and cancels such loops, and test_compiled makes random ones. */
#include "exec/executable.h"
#include "jit/jit.h"
#include "kernel/ref/ref.h"
#include "tensors.h"
#include "testing.h"
#include "tool/compare.h"
#include "tool/random_args.h"

/* A loop over a counter and a state: `next` makes %30 from the state %9 and the counter %8. */
#define LOOP(type, trips, next)                                                                                    \
  "graph @main(%0: " type ") -> (" type ", s32[]) {\n%1 = constant 0 : s32[]\n%2, %3 = while %1, %0 {\n"           \
  "condition(%4: s32[], %5: " type ") {\n%6 = constant " trips " : s32[]\n%7 = less %4, %6 : u8[]\nreturn %7\n}\n" \
  "body(%8: s32[], %9: " type ") {\n%10 = constant 1 : s32[]\n%11 = add %8, %10 : s32[]\n" next                    \
  "return %11, %30\n}\n} : s32[], " type "\nreturn %3, %2\n}\n"

static const struct {
  const char *name, *text;
} loops[] = {
    {"one vector and a rest", LOOP("f32[37]", "9",
                                   "%12 = constant 0.5 : f32[37]\n%13 = multiply %9, %12 : f32[37]\n"
                                   "%30 = add %13, %12 : f32[37]\n")},
    {"many vectors", LOOP("f32[1000]", "5", "%12 = sqrt %9 : f32[1000]\n%30 = add %12, %9 : f32[1000]\n")},
    {"bytes", LOOP("s8[21]", "6", "%12 = constant 3 : s8[21]\n%30 = multiply %9, %12 : s8[21]\n")},
    {"halves", LOOP("f16[11]", "6", "%12 = constant 0.75 : f16[11]\n%30 = multiply %9, %12 : f16[11]\n")},
    {"wide", LOOP("f64[5]", "6", "%12 = constant 0.75 : f64[5]\n%30 = multiply %9, %12 : f64[5]\n")},
    {"no elements", LOOP("f32[0]", "6", "%30 = add %9, %9 : f32[0]\n")},
    {"no round", LOOP("f32[3]", "0", "%30 = add %9, %9 : f32[3]\n")},
    {"sums of rows", LOOP("f32[5,19]", "4",
                          "%12 = reduce_sum %9 {axes = [1]} : f32[5]\n"
                          "%13 = broadcast %12 {shape = [5,19], axes = [0]} : f32[5,19]\n"
                          "%14 = constant 0.03 : f32[5,19]\n%15 = multiply %13, %14 : f32[5,19]\n"
                          "%30 = add %9, %15 : f32[5,19]\n")},
    {"sums of columns", LOOP("f32[9,70]", "4",
                             "%12 = reduce_sum %9 {axes = [0]} : f32[70]\n"
                             "%13 = broadcast %12 {shape = [9,70], axes = [1]} : f32[9,70]\n"
                             "%14 = constant 0.05 : f32[9,70]\n%15 = multiply %13, %14 : f32[9,70]\n"
                             "%30 = subtract %9, %15 : f32[9,70]\n")},
    /* as large as they may be: outside of loops, groups and short rows have kernels of their own from 2048 points on */
    {"sums of pairs", LOOP("f32[2000,2]", "3",
                           "%12 = reduce_sum %9 {axes = [1]} : f32[2000]\n"
                           "%13 = broadcast %12 {shape = [2000,2], axes = [0]} : f32[2000,2]\n"
                           "%14 = constant 0.3 : f32[2000,2]\n%15 = multiply %13, %14 : f32[2000,2]\n"
                           "%30 = subtract %9, %15 : f32[2000,2]\n")},
    {"sums of many triples", LOOP("s8[5461,3]", "3",
                                  "%12 = reduce_max %9 {axes = [1]} : s8[5461]\n"
                                  "%13 = broadcast %12 {shape = [5461,3], axes = [0]} : s8[5461,3]\n"
                                  "%30 = subtract %9, %13 : s8[5461,3]\n")},
    {"pairs of planes", LOOP("u8[8192,2]", "4",
                             "%12 = reshape %9 {shape = [2,8192]} : u8[2,8192]\n"
                             "%13 = transpose %12 {axes = [1,0]} : u8[8192,2]\n"
                             "%30 = subtract %9, %13 : u8[8192,2]\n")},
    {"many short rows", LOOP("u8[1000,16]", "4",
                             "%12 = slice %9 {start = [0,0], limit = [1000,5], stride = [1,1]} : u8[1000,5]\n"
                             "%13 = slice %9 {start = [0,5], limit = [1000,16], stride = [1,1]} : u8[1000,11]\n"
                             "%14 = add %13, %13 : u8[1000,11]\n%15 = reverse %14 {axes = [1]} : u8[1000,11]\n"
                             "%16 = constant 7 : u8[1000,5]\n%17 = multiply %12, %16 : u8[1000,5]\n"
                             "%30 = concatenate %15, %17 {axis = 1} : u8[1000,16]\n")},
    {"positions", LOOP("s32[40]", "7",
                       "%12 = argmax %9 {axis = 0, high = false} : s32[]\n"
                       "%13 = broadcast %12 {shape = [40], axes = []} : s32[40]\n"
                       "%14 = iota {axis = 0} : s32[40]\n%15 = bitwise_xor %13, %14 : s32[40]\n"
                       "%30 = subtract %9, %15 : s32[40]\n")},
    {"transposed",
     LOOP("f32[6,6]", "5", "%12 = transpose %9 {axes = [1,0]} : f32[6,6]\n%30 = subtract %12, %9 : f32[6,6]\n")},
    {"turned", LOOP("s16[19]", "5",
                    "%12 = slice %9 {start = [1], limit = [19], stride = [1]} : s16[18]\n"
                    "%13 = slice %9 {start = [0], limit = [1], stride = [1]} : s16[1]\n"
                    "%30 = concatenate %12, %13 {axis = 0} : s16[19]\n")},
    /* starts outside of the tensor are clamped; in the end the rows begin past the last one */
    {"a part of much", LOOP("f32[6000,3]", "40",
                            "%12 = constant 300 : s32[]\n%13 = multiply %8, %12 : s32[]\n"
                            "%14 = constant -700 : s32[]\n%15 = add %13, %14 : s32[]\n%16 = constant 1 : s32[]\n"
                            "%17 = dynamic_slice %9, %15, %16 {shape = [2,2]} : f32[2,2]\n"
                            "%18 = add %17, %17 : f32[2,2]\n%19 = subtract %12, %15 : s32[]\n"
                            "%30 = put_slice %9, %18, %19, %16 : f32[6000,3]\n")},
    {"gathered", LOOP("s32[30]", "5",
                      "%12 = constant 40 : s32[30]\n%13 = remainder %9, %12 : s32[30]\n"
                      "%14 = take %9, %13 {axis = 0} : s32[30]\n%30 = add %14, %9 : s32[30]\n")},
    {"routines", LOOP("f32[8,8]", "3",
                      "%12 = sort %9 {axis = 1, descending = false} : f32[8,8]\n"
                      "%13 = cumulative_sum %12 {axis = 0, reverse = false} : f32[8,8]\n"
                      "%14 = dot_general %13, %9 {lhs_contract = [1], lhs_batch = [], rhs_contract = "
                      "[0], rhs_batch = []} : f32[8,8]\n%15 = constant 0.01 : f32[8,8]\n"
                      "%30 = multiply %14, %15 : f32[8,8]\n")},
    /* a product of each form: vectors along the columns, along the rows, and single elements */
    {"a product", LOOP("f32[7,7]", "3",
                       "%12 = dot_general %9, %9 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], "
                       "rhs_batch = []} : f32[7,7]\n%13 = constant 0.1 : f32[7,7]\n"
                       "%30 = multiply %12, %13 : f32[7,7]\n")},
    {"a product with a transposed matrix",
     LOOP("f64[11,11]", "3",
          "%12 = dot_general %9, %9 {lhs_contract = [1], lhs_batch = [], rhs_contract = [1], "
          "rhs_batch = []} : f64[11,11]\n%13 = constant 0.1 : f64[11,11]\n"
          "%30 = multiply %12, %13 : f64[11,11]\n")},
    {"a batch of products", LOOP("f32[3,20,20]", "2",
                                 "%12 = dot_general %9, %9 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [1], "
                                 "rhs_batch = [0]} : f32[3,20,20]\n%13 = constant 0.1 : f32[3,20,20]\n"
                                 "%30 = multiply %12, %13 : f32[3,20,20]\n")},
    {"a matrix times a vector",
     LOOP("f32[19]", "3",
          "%12 = iota {axis = 0} : f32[19,19]\n%13 = dot_general %12, %9 {lhs_contract = [1], "
          "lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[19]\n"
          "%14 = dot_general %12, %13 {lhs_contract = [0], lhs_batch = [], rhs_contract = [0], "
          "rhs_batch = []} : f32[19]\n%15 = dot_general %14, %12 {lhs_contract = [0], lhs_batch = [], "
          "rhs_contract = [0], rhs_batch = []} : f32[19]\n%16 = constant 0.001 : f32[19]\n"
          "%30 = multiply %15, %16 : f32[19]\n")},
    {"a matrix times a vector, by rows of vectors",
     LOOP("f32[20]", "3",
          "%12 = iota {axis = 1} : f32[20,20]\n%13 = dot_general %12, %9 {lhs_contract = [1], "
          "lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[20]\n"
          "%14 = constant 0.001 : f32[20]\n%30 = multiply %13, %14 : f32[20]\n")},
    {"a few terms of a matrix",
     LOOP("f32[9,12]", "3",
          "%12 = dot_general %9, %9 {lhs_contract = [1], lhs_batch = [], rhs_contract = [1], "
          "rhs_batch = []} : f32[9,9]\n%13 = dot_general %12, %9 {lhs_contract = [1], "
          "lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[9,12]\n"
          "%14 = constant 0.01 : f32[9,12]\n%30 = multiply %13, %14 : f32[9,12]\n")},
    {"many terms", LOOP("f32[2,128]", "3",
                        "%12 = dot_general %9, %9 {lhs_contract = [1], lhs_batch = [], rhs_contract = [1], "
                        "rhs_batch = []} : f32[2,2]\n%13 = dot_general %12, %9 {lhs_contract = [1], "
                        "lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[2,128]\n"
                        "%14 = constant 0.001 : f32[2,128]\n%30 = multiply %13, %14 : f32[2,128]\n")},
    {"more terms than a chain has",
     LOOP("f32[2,300]", "2",
          "%12 = dot_general %9, %9 {lhs_contract = [1], lhs_batch = [], rhs_contract = [1], "
          "rhs_batch = []} : f32[2,2]\n%13 = dot_general %12, %9 {lhs_contract = [1], "
          "lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[2,300]\n"
          "%14 = constant 0.001 : f32[2,300]\n%30 = multiply %13, %14 : f32[2,300]\n")},
    {"a choice",
     LOOP("f32[10]", "9",
          "%12 = reduce_sum %9 {axes = [0]} : f32[]\n%13 = constant 4 : f32[]\n"
          "%14 = less %12, %13 : u8[]\n%30 = cond %14, %9 {\ntrue(%15: f32[10]) {\n"
          "%16 = constant 1.5 : f32[10]\n%17 = multiply %15, %16 : f32[10]\n"
          "%18 = add %17, %16 : f32[10]\nreturn %18\n}\n"
          "false(%19: f32[10]) {\n%20 = reverse %19 {axes = [0]} : f32[10]\n"
          "%21 = constant 0.25 : f32[10]\n%22 = multiply %20, %21 : f32[10]\nreturn %22\n}\n} : f32[10]\n")},
    {"a loop in a loop",
     LOOP("f32[10]", "4",
          "%12, %30 = while %8, %9 {\ncondition(%13: s32[], %14: f32[10]) {\n%15 = constant 5 : s32[]\n"
          "%16 = less %13, %15 : u8[]\nreturn %16\n}\nbody(%17: s32[], %18: f32[10]) {\n"
          "%19 = constant 1 : s32[]\n%20 = add %17, %19 : s32[]\n"
          "%21 = reverse %18 {axes = [0]} : f32[10]\n%22 = subtract %21, %18 : f32[10]\n"
          "return %20, %22\n}\n} : s32[], f32[10]\n")},
    /* values that stay in registers from one step to the next, and in parts */
    {"turned in registers", LOOP("f32[16]", "5",
                                 "%12 = slice %9 {start = [1], limit = [16], stride = [1]} : f32[15]\n"
                                 "%13 = constant 1.25 : f32[15]\n%14 = multiply %12, %13 : f32[15]\n"
                                 "%15 = slice %9 {start = [0], limit = [1], stride = [1]} : f32[1]\n"
                                 "%30 = concatenate %14, %15 {axis = 0} : f32[16]\n")},
    {"bytes in parts", LOOP("u8[11]", "7",
                            "%12 = slice %9 {start = [4], limit = [11], stride = [1]} : u8[7]\n"
                            "%13 = slice %9 {start = [0], limit = [4], stride = [1]} : u8[4]\n"
                            "%14 = add %13, %13 : u8[4]\n%30 = concatenate %12, %14 {axis = 0} : u8[11]\n")},
    {"every second element", LOOP("s64[6]", "7",
                                  "%12 = slice %9 {start = [0], limit = [6], stride = [2]} : s64[3]\n"
                                  "%13 = slice %9 {start = [1], limit = [6], stride = [2]} : s64[3]\n"
                                  "%14 = subtract %12, %13 : s64[3]\n%15 = reverse %13 {axes = [0]} : s64[3]\n"
                                  "%30 = concatenate %14, %15 {axis = 0} : s64[6]\n")},
    {"four by four", LOOP("s16[4,4]", "5",
                          "%12 = transpose %9 {axes = [1,0]} : s16[4,4]\n%13 = reduce_sum %9 {axes = [1]} : s16[4]\n"
                          "%14 = broadcast %13 {shape = [4,4], axes = [0]} : s16[4,4]\n"
                          "%15 = reverse %14 {axes = [0]} : s16[4,4]\n%30 = subtract %12, %15 : s16[4,4]\n")},
    {"the same bits of another type", LOOP("s32[9]", "5",
                                           "%12 = convert %9 : f32[9]\n%13 = bitcast %12 : s32[9]\n"
                                           "%14 = convert %9 : s8[9]\n%15 = convert %14 : s32[9]\n"
                                           "%30 = bitwise_xor %13, %15 : s32[9]\n")},
    {"read and written at a start that varies",
     LOOP("f32[12]", "15",
          "%12 = constant 6 : s32[]\n%13 = subtract %12, %8 : s32[]\n"
          "%14 = dynamic_slice %9, %13 {shape = [3]} : f32[3]\n%15 = constant 2.5 : f32[3]\n"
          "%16 = multiply %14, %15 : f32[3]\n%30 = put_slice %9, %16, %8 : f32[12]\n")},
    {"a scan", LOOP("f32[16]", "4",
                    "%12 = cumulative_sum %9 {axis = 0, reverse = false} : f32[16]\n"
                    "%13 = constant 0.25 : f32[16]\n%30 = multiply %12, %13 : f32[16]\n")},
    {"a scan of a part, in reverse", LOOP("f64[7]", "4",
                                          "%12 = cumulative_sum %9 {axis = 0, reverse = true} : f64[7]\n"
                                          "%13 = constant 0.25 : f64[7]\n%30 = multiply %12, %13 : f64[7]\n")},
    {"scans of lines", LOOP("f32[3,5]", "4",
                            "%12 = cumulative_product %9 {axis = 1, reverse = true} : f32[3,5]\n"
                            "%13 = constant 0.25 : f32[3,5]\n%30 = multiply %12, %13 : f32[3,5]\n")},
    {"scans of integers", LOOP("u32[2,6,1]", "4",
                               "%12 = cumulative_product %9 {axis = 1, reverse = false} : u32[2,6,1]\n"
                               "%30 = subtract %12, %9 : u32[2,6,1]\n")},
    {"a scan of long integers", LOOP("s64[11]", "4",
                                     "%12 = cumulative_sum %9 {axis = 0, reverse = false} : s64[11]\n"
                                     "%30 = subtract %12, %9 : s64[11]\n")},
    {"scans of columns", LOOP("f32[4,5]", "4",
                              "%12 = cumulative_sum %9 {axis = 0, reverse = false} : f32[4,5]\n"
                              "%13 = constant 0.25 : f32[4,5]\n%30 = multiply %12, %13 : f32[4,5]\n")},
    /* scatters: the index is the counter, which begins and ends outside of the target in the first ones */
    {"a row that is put",
     LOOP("f32[5,3]", "9",
          "%12 = constant 2 : s32[]\n%13 = subtract %8, %12 : s32[]\n"
          "%14 = reshape %13 {shape = [1,1]} : s32[1,1]\n"
          "%15 = reduce_sum %9 {axes = [0]} : f32[3]\n%16 = reshape %15 {shape = [1,3]} : f32[1,3]\n"
          "%30 = indexed_put %9, %14, %16 {axes = [0]} : f32[5,3]\n")},
    {"an element that is added",
     LOOP("s64[6]", "9",
          "%12 = constant 2 : s32[]\n%13 = subtract %8, %12 : s32[]\n"
          "%14 = reshape %13 {shape = [1,1]} : s32[1,1]\n"
          "%15 = reduce_max %9 {axes = [0]} : s64[]\n%16 = reshape %15 {shape = [1]} : s64[1]\n"
          "%30 = indexed_add %9, %14, %16 {axes = [0]} : s64[6]\n")},
    {"rows that are added, one of them twice",
     LOOP("f32[4,37]", "3",
          "%12 = iota {axis = 0} : u8[6,1]\n%13 = constant 4 : u8[6,1]\n%14 = remainder %12, %13 : u8[6,1]\n"
          "%15 = constant 0.5 : f32[6,37]\n%16 = iota {axis = 0} : f32[6,37]\n%17 = multiply %15, %16 : f32[6,37]\n"
          "%18 = slice %9 {start = [1,0], limit = [2,37], stride = [1,1]} : f32[1,37]\n"
          "%19 = reshape %18 {shape = [37]} : f32[37]\n%20 = broadcast %19 {shape = [6,37], axes = [1]} : f32[6,37]\n"
          "%21 = add %17, %20 : f32[6,37]\n%30 = indexed_add %9, %14, %21 {axes = [0]} : f32[4,37]\n")},
    {"parts of rows by two numbers",
     LOOP("f64[3,2,4,5]", "4",
          "%12 = constant 1 : s32[]\n%13 = subtract %8, %12 : s32[]\n"
          "%14 = broadcast %13 {shape = [2,2], axes = []} : s32[2,2]\n%15 = iota {axis = 0} : s32[2,2]\n"
          "%16 = add %14, %15 : s32[2,2]\n%17 = slice %9 {start = [1,0,0,0], limit = [3,2,1,5], stride = [1,1,1,1]} "
          ": f64[2,2,1,5]\n%18 = reshape %17 {shape = [2,2,5]} : f64[2,2,5]\n"
          "%30 = indexed_add %9, %16, %18 {axes = [0,2]} : f64[3,2,4,5]\n")},
    {"a row of a kept value",
     LOOP("f32[8]", "5",
          "%12 = constant 0.5 : f32[8]\n%13 = multiply %9, %12 : f32[8]\n%14 = reshape %8 {shape = [1,1]} : s32[1,1]\n"
          "%15 = slice %9 {start = [7], limit = [8], stride = [1]} : f32[1]\n"
          "%16 = indexed_put %9, %14, %15 {axes = [0]} : f32[8]\n%30 = subtract %16, %13 : f32[8]\n")},
    /* reductions of few rows, and of many short ones */
    {"few rows", LOOP("f32[3,37]", "4",
                      "%12 = reduce_sum %9 {axes = [0]} : f32[37]\n%13 = reduce_max %9 {axes = [0]} : f32[37]\n"
                      "%14 = subtract %12, %13 : f32[37]\n%15 = argmin %9 {axis = 0, high = true} : s32[37]\n"
                      "%16 = convert %15 : f32[37]\n%17 = multiply %14, %16 : f32[37]\n"
                      "%18 = broadcast %17 {shape = [3,37], axes = [1]} : f32[3,37]\n"
                      "%19 = constant 0.25 : f32[3,37]\n%20 = multiply %18, %19 : f32[3,37]\n"
                      "%30 = subtract %20, %9 : f32[3,37]\n")},
    {"short rows", LOOP("f32[11,3]", "4",
                        "%12 = multiply %9, %9 : f32[11,3]\n%13 = reduce_sum %12 {axes = [1]} : f32[11]\n"
                        "%14 = sqrt %13 : f32[11]\n%15 = broadcast %14 {shape = [11,3], axes = [0]} : f32[11,3]\n"
                        "%30 = divide %9, %15 : f32[11,3]\n")},
    {"short rows of pairs", LOOP("f64[9,2]", "3",
                                 "%12 = broadcast %9 {shape = [9,9,2], axes = [0,2]} : f64[9,9,2]\n"
                                 "%13 = broadcast %9 {shape = [9,9,2], axes = [1,2]} : f64[9,9,2]\n"
                                 "%14 = subtract %12, %13 : f64[9,9,2]\n%15 = multiply %14, %14 : f64[9,9,2]\n"
                                 "%16 = reduce_sum %15 {axes = [2]} : f64[9,9]\n"
                                 "%17 = reduce_product %16 {axes = [0]} : f64[9]\n"
                                 "%18 = broadcast %17 {shape = [9,2], axes = [0]} : f64[9,2]\n"
                                 "%30 = subtract %18, %9 : f64[9,2]\n")},
    {"short rows of halves and of columns",
     LOOP("bf16[2,16,4]", "3",
          "%12 = iota {axis = 2} : bf16[2,16,4]\n%13 = multiply %9, %12 : bf16[2,16,4]\n"
          "%14 = reduce_sum %13 {axes = [2]} : bf16[2,16]\n%15 = reduce_any %9 {axes = [0]} : u8[16,4]\n"
          "%16 = convert %15 : bf16[16,4]\n%17 = broadcast %16 {shape = [2,16,4], axes = [1,2]} : bf16[2,16,4]\n"
          "%18 = broadcast %14 {shape = [2,16,4], axes = [0,1]} : bf16[2,16,4]\n"
          "%30 = subtract %17, %18 : bf16[2,16,4]\n")},
    {"a choice of parts",
     LOOP("s32[5]", "9",
          "%12 = constant 4 : s32[]\n%14 = less %8, %12 : u8[]\n%13 = argmax %9 {axis = 0, high = false} : s32[]\n"
          "%15, %30 = cond %14, %9, %13 {\ntrue(%16: s32[5], %17: s32[]) {\n"
          "%18 = slice %16 {start = [2], limit = [5], stride = [1]} : s32[3]\n"
          "%19 = slice %16 {start = [0], limit = [2], stride = [1]} : s32[2]\n"
          "%20 = concatenate %18, %19 {axis = 0} : s32[5]\nreturn %17, %20\n}\n"
          "false(%21: s32[5], %22: s32[]) {\n%23 = broadcast %22 {shape = [5], axes = []} : s32[5]\n"
          "%24 = subtract %21, %23 : s32[5]\nreturn %22, %24\n}\n} : s32[], s32[5]\n")},
    /* read after its next value is known, so the two need memory each */
    {"read later", LOOP("f32[12]", "6",
                        "%12 = reverse %9 {axes = [0]} : f32[12]\n%13 = add %12, %9 : f32[12]\n"
                        "%14 = reduce_max %9 {axes = [0]} : f32[]\n"
                        "%15 = broadcast %14 {shape = [12], axes = []} : f32[12]\n"
                        "%30 = divide %13, %15 : f32[12]\n")},
};

/* Two states that change places, one of them changed. */
static const char exchanged[] =
    "graph @main(%0: f32[9]) -> (f32[9], f32[9]) {\n%1 = constant 0 : s32[]\n%2 = add %0, %0 : f32[9]\n"
    "%3, %4, %5 = while %1, %0, %2 {\ncondition(%6: s32[], %7: f32[9], %8: f32[9]) {\n%9 = constant 5 : s32[]\n"
    "%10 = less %6, %9 : u8[]\nreturn %10\n}\nbody(%11: s32[], %12: f32[9], %13: f32[9]) {\n"
    "%14 = constant 1 : s32[]\n%15 = add %11, %14 : s32[]\n%16 = add %12, %13 : f32[9]\nreturn %15, %13, %16\n}\n"
    "} : s32[], f32[9], f32[9]\nreturn %4, %5\n}\n";

static const char *loop_named(const char *name) {
  for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
    if (strcmp(loops[i].name, name) == 0) return loops[i].text;
  ck_abort_msg("no loop has the name %s", name);
}

static ts_graph *parse(const char *text) {
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  ck_assert_ok(ts_graph_verify(graph));
  return graph;
}

static bool explains(const ts_executable *exe, const char *what) {
  ts_text text = {0};
  ck_assert_ok(ts_executable_explain(exe, &text));
  bool found = strstr(text.data, what);
  ts_text_deinit(&text);
  return found;
}

static bool is_native(const char *text) {
  ts_graph *graph = parse(text);
  ts_executable *exe;
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  bool native = explains(exe, "native    while");
  ts_executable_release(exe);
  ts_graph_destroy(graph);
  return native;
}

/* ---- which loops ---- */

#define ADDED(type) "%30 = add %9, %9 : " type "\n"

/* A matrix times a vector in each round. */
static const char *with_factor(const char *n) {
  static char text[800];
  snprintf(text, sizeof text,
           "graph @main(%%0: f32[%s,%s], %%1: f32[%s]) -> (f32[%s]) {\n%%2 = constant 0 : s32[]\n"
           "%%3, %%4, %%5 = while %%2, %%0, %%1 {\ncondition(%%6: s32[], %%7: f32[%s,%s], %%8: f32[%s]) {\n"
           "%%9 = constant 3 : s32[]\n%%10 = less %%6, %%9 : u8[]\nreturn %%10\n}\n"
           "body(%%11: s32[], %%12: f32[%s,%s], %%13: f32[%s]) {\n%%14 = constant 1 : s32[]\n"
           "%%15 = add %%11, %%14 : s32[]\n%%16 = dot_general %%12, %%13 {lhs_contract = [1], lhs_batch = [], "
           "rhs_contract = [0], rhs_batch = []} : f32[%s]\nreturn %%15, %%12, %%16\n}\n"
           "} : s32[], f32[%s,%s], f32[%s]\nreturn %%5\n}\n",
           n, n, n, n, n, n, n, n, n, n, n, n, n, n);
  return text;
}

START_TEST(small_tensors_qualify)
{
  ck_assert(is_native(LOOP("f32[4096]", "3", ADDED("f32[4096]"))));
  ck_assert(!is_native(LOOP("f32[4097]", "3", ADDED("f32[4097]"))));
  /* factors of products may be larger, and values that the loop does not change */
  ck_assert(is_native(with_factor("256")));
  ck_assert(!is_native(with_factor("1024")));
  /* single elements are compiled whole, in registers */
  ck_assert(!is_native(LOOP("f32[]", "3", ADDED("f32[]"))));
}
END_TEST

START_TEST(long_bodies_do_not_qualify)
{
  for (int count = 400; count <= 600; count += 200) {
    ts_text text = {0};
    char *string;
    ts_text_append(&text, "graph @main(%0: s32[2]) -> (s32[2]) {\n%1 = while %0 {\ncondition(%2: s32[2]) {\n"
                          "%4 = constant 0 : u8[]\nreturn %4\n}\nbody(%3: s32[2]) {\n%5 = add %3, %3 : s32[2]\n");
    for (int i = 1; i < count; i++) ts_text_format(&text, "%%%d = multiply %%%d, %%3 : s32[2]\n", i + 5, i + 4);
    ts_text_format(&text, "return %%%d\n}\n} : s32[2]\nreturn %%1\n}\n", count + 4);
    ck_assert_ok(ts_text_finish(&text, &string));
    ck_assert_int_eq(is_native(string), count == 400);
    ts_text_deinit(&text);
    ts_free(string);
  }
}
END_TEST

/* ---- results ---- */

static void run(const ts_graph *graph, const ts_compile_options *options, ts_buffer **args, ts_buffer **out) {
  ts_executable *exe;
  ck_assert_ok(ts_executable_create(graph, options, &exe));
  ck_assert_int_eq(explains(exe, "native    while"), !options);
  for (int i = 0; i < 3; i++) { /* runs may get the memory of an earlier run */
    ck_assert_ok(ts_executable_run(exe, args, 1, NULL, out));
    for (int r = 0; r < 2 && i < 2; r++) ts_buffer_release(out[r]);
  }
  ts_executable_release(exe);
}

static void check_text(const char *name, const char *text, bool exact) {
  static const ts_compile_options unfused = {.no_fusion = true};
  ts_graph *graph = parse(text);
  ts_buffer **args, *expected[2], *got[2], *plain[2];
  char message[TS_COMPARE_TEXT];
  ck_assert_ok(ts_random_args(7, graph, ts_pool_default(), &args));
  ck_assert_ok(ts_ref_run(graph, args, 1, ts_pool_default(), expected));
  run(graph, NULL, args, got);
  run(graph, &unfused, args, plain);
  for (int r = 0; r < 2; r++) {
    ck_assert_msg(!exact || ts_compare_buffers(got[r], expected[r], 0, message), "%s: %s", name, message);
    ck_assert_msg(ts_compare_buffers(got[r], plain[r], 0, message), "%s, launches: %s", name, message);
    ts_buffer_release(expected[r]);
    ts_buffer_release(got[r]);
    ts_buffer_release(plain[r]);
  }
  ts_random_args_free(args, 1);
  ts_graph_destroy(graph);
}

START_TEST(gives_the_bits_of_launches)
{ check_text(loops[_i].name, loops[_i].text, true); }
END_TEST

START_TEST(states_change_places)
{ check_text("exchanged", exchanged, true); }
END_TEST

START_TEST(a_large_state_is_updated_in_place)
{
  ts_executable *exe = test_compile(loop_named("a part of much"));
  ts_executable_stats stats;
  ts_executable_get_stats(exe, &stats);
  ck_assert_int_lt(stats.temp_bytes, 6000 * 3 * 4);
  ts_executable_release(exe);
}
END_TEST

/* Functions of the vector math have the bits here that they have in a launch, whatever the number of elements. */
START_TEST(bits_of_functions)
{
  check_text("five", LOOP("f32[5]", "3", "%12 = tanh %9 : f32[5]\n%13 = exp %12 : f32[5]\n%30 = sin %13 : f32[5]\n"),
             false);
  check_text("fifty", LOOP("f64[50]", "3", "%12 = tanh %9 : f64[50]\n%30 = log1p %12 : f64[50]\n"), false);
}
END_TEST

static void try_loop(void) {
  ts_executable *exe;
  ts_buffer *results[2];
  ts_graph *graph = NULL;
  const char *text = loop_named("routines");
  ts_buffer **args = NULL;
  ts_status status = ts_graph_parse(text, strlen(text), &graph);
  if (!status) status = ts_random_args(7, graph, ts_pool_default(), &args);
  if (!status) status = ts_executable_create(graph, NULL, &exe);
  if (!status) {
    status = ts_executable_run(exe, args, 1, NULL, results);
    for (int i = 0; i < 2 && !status; i++) ts_buffer_release(results[i]);
    ts_executable_release(exe);
  }
  ts_status_free(status);
  if (args) ts_random_args_free(args, 1);
  ts_graph_destroy(graph);
}

START_TEST(failing_allocations)
{
  try_loop();
  CK_FAIL_EACH_ALLOCATION(try_loop());
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("native");
  TCase *t = tcase_create("native");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, small_tensors_qualify);
  tcase_add_test(t, long_bodies_do_not_qualify);
  tcase_add_loop_test(t, gives_the_bits_of_launches, 0, sizeof loops / sizeof *loops);
  tcase_add_test(t, states_change_places);
  tcase_add_test(t, a_large_state_is_updated_in_place);
  tcase_add_test(t, bits_of_functions);
  tcase_add_test(t, failing_allocations);
  suite_add_tcase(s, t);
  return s;
}

int main(void) {
  ts_jit_configure(&(ts_jit_options){.cache_dir = ""});
  return testing_run(suite());
}
