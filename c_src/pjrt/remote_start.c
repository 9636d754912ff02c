/* Starts the process of a plugin. */
#include "pjrt/remote.h"

#include "base/system.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

static const char program[] = "tessera_plugin";

/* The program is in the folder of the library, or of the executable into which this is linked. */
static ts_status find_program(char out[PATH_MAX]) {
  Dl_info info;
  char real[PATH_MAX];
  if (!dladdr(program, &info) || !info.dli_fname || !realpath(info.dli_fname, real)) {
    ssize_t length = readlink("/proc/self/exe", real, sizeof real - 1);
    if (length < 0) return ts_error(TS_UNAVAILABLE, "isolated: the folder of the library is not known");
    real[length] = '\0';
  }
  *strrchr(real, '/') = '\0';
  if (snprintf(out, PATH_MAX, "%s/%s", real, program) >= PATH_MAX || access(out, X_OK) != 0)
    return ts_error(TS_UNAVAILABLE, "isolated: the program %s/%s is not there, or cannot be started", real, program);
  return TS_SUCCESS;
}

/* The other end is file 3 of the process. Signals are as they are by default, and the process is of a group of its own:
 * it stays when a key of the terminal interrupts the VM, and is killed with all that it has started. */
static int spawn(const char *path, int socket, pid_t *out) {
  char *arguments[] = {(char *)(uintptr_t)program, NULL};
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, socket, 3);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  int error = posix_spawn(out, path, &files, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

/* The longest time between two parts of a message: the reader looks for deadlines between messages. */
static void limit_gaps(const pj_remote *r) {
  struct timeval gap = {.tv_sec = (time_t)(r->answer_ns / 1000000000), .tv_usec = r->answer_ns % 1000000000 / 1000};
  if (r->answer_ns < INT64_MAX) (void)setsockopt(r->socket, SOL_SOCKET, SO_RCVTIMEO, &gap, sizeof gap);
}

static ts_status start(pj_remote *r) {
  char path[PATH_MAX];
  int ends[2];
  pid_t pid;
  TS_TRY(find_program(path));
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return ts_error(TS_RESOURCE_EXHAUSTED, "isolated: no socket: %s", strerror(errno));
  int error = spawn(path, ends[1], &pid);
  close(ends[1]);
  r->socket = ends[0];
  limit_gaps(r);
  if (error) return ts_error(TS_UNAVAILABLE, "isolated: %s cannot be started: %s", path, strerror(error));
  r->pid = pid;
  return pj_remote_watch(r);
}

static int64_t nanoseconds(int64_t ms) { return ms > 0 ? ms * 1000000 : INT64_MAX; }

ts_status pj_remote_start(const pj_deadlines *deadlines, pj_remote **out) {
  pj_remote *r;
  TS_TRY(TS_NEW(&r));
  *r = (pj_remote){.refs = 1,
                   .socket = -1,
                   .bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                   .open_by_ns = deadlines->open_ms > 0 ? ts_system_ns() + nanoseconds(deadlines->open_ms) : INT64_MAX,
                   .answer_ns = nanoseconds(deadlines->answer_ms),
                   .compile_ns = nanoseconds(deadlines->compile_ms),
                   .wakes_ns = INT64_MAX};
  pthread_mutex_init(&r->lock, NULL);
  pthread_mutex_init(&r->sending, NULL);
  pthread_cond_init(&r->ended, NULL);
  ts_status status = r->bell < 0 ? ts_error(TS_RESOURCE_EXHAUSTED, "isolated: no file for events") : start(r);
  if (status)
    pj_remote_end(r);
  else
    *out = r;
  return status;
}
