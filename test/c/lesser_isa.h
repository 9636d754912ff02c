/* The instruction set is chosen once per process: the others take another one. */
#ifndef TS_TEST_LESSER_ISA_H
#define TS_TEST_LESSER_ISA_H

#include <check.h>

/* Where TESSERA_EVERY_ISA is set, as by `make test-all`: adds tests that run this whole program again, with each
 * instruction set below this machine's. */
void test_add_lesser_isas(TCase *tests);

/* Always adds the test with AVX-512, which a machine with AMX would not run otherwise. */
void test_add_avx512(TCase *tests);

#endif
