/* Files of plugins that the tests use, which are beside the programs of the tests. */
#ifndef TS_TEST_PJRT_FILE_H
#define TS_TEST_PJRT_FILE_H

/* The path of a file there, which is valid until the next call. */
const char *test_pjrt_file(const char *name);
/* Where no other plugin is named by TESSERA_PJRT_PLUGIN, names that of the tests. */
void test_pjrt_use(void);

#endif
