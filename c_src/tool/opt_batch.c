#include "tool/opt_batch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_ARGUMENTS = 32 };

static int fail(const char *what) {
  fprintf(stderr, "error: --batch: %s: %s\n", what, strerror(errno));
  return 1;
}

/* Splits the line in place. */
static int split(char *line, char **out) {
  int count = 0;
  for (char *at = strtok(line, " \n"); at && count < MOST_ARGUMENTS; at = strtok(NULL, " \n")) out[count++] = at;
  return count;
}

/* Standard output and standard error go to the file at `path`. */
static int redirect(const char *path) {
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return -1;
  const int result = dup2(file, STDOUT_FILENO) < 0 ? -1 : dup2(file, STDERR_FILENO);
  close(file);
  return result;
}

static int restore(const int *before) {
  fflush(stdout);
  fflush(stderr);
  return dup2(before[0], STDOUT_FILENO) < 0 ? -1 : dup2(before[1], STDERR_FILENO);
}

static int run_line(char *line, ts_opt_command command, const int *before) {
  char *arguments[MOST_ARGUMENTS];
  const int count = split(line, arguments);
  if (count == 0) return 0;
  fflush(stdout);
  if (redirect(arguments[0]) < 0) return fail(arguments[0]);
  const int code = command(count - 1, arguments + 1);
  if (restore(before) < 0) return fail(arguments[0]);
  printf("%d %s\n", code, arguments[0]);
  fflush(stdout);
  return 0;
}

int ts_opt_batch(const char *path, ts_opt_command command) {
  const int before[] = {fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)};
  char *line = NULL;
  size_t room = 0;
  int result = 0;
  FILE *file = fopen(path, "re");
  if (!file || before[0] < 0 || before[1] < 0) result = fail(path);
  while (result == 0 && getline(&line, &room, file) >= 0) result = run_line(line, command, before);
  free(line);
  if (file) fclose(file);
  for (int i = 0; i < 2; i++)
    if (before[i] >= 0) close(before[i]);
  return result;
}
