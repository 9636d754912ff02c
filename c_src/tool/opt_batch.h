/* Many runs of tessera-opt in one process, which starts LLVM once. For one thread. */
#ifndef TS_TOOL_OPT_BATCH_H
#define TS_TOOL_OPT_BATCH_H

/* Runs one command line, whose program's name is left out, and returns its exit code. */
typedef int (*ts_opt_command)(int argc, char **argv);

/* Each line of the file at `path` is "OUTPUT ARGUMENT ...", with single spaces. The file OUTPUT gets what that run
 * prints to standard output and to standard error. Prints "CODE OUTPUT" after each run. Returns an exit code: 0 when
 * all runs have taken place, even if some have failed. */
int ts_opt_batch(const char *path, ts_opt_command command);

#endif
