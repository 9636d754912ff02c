#include "pjrt/wire.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* A message that says it has more is broken. */
#define MOST_BYTES (UINT64_C(1) << 46)

typedef union control {
  struct cmsghdr head;
  char bytes[CMSG_SPACE(sizeof(int))];
} control;

static void attach(struct msghdr *message, control *c, int file) {
  memset(c, 0, sizeof *c);
  message->msg_control = c;
  message->msg_controllen = sizeof c->bytes;
  c->head.cmsg_level = SOL_SOCKET;
  c->head.cmsg_type = SCM_RIGHTS;
  c->head.cmsg_len = CMSG_LEN(sizeof file);
  memcpy(CMSG_DATA(&c->head), &file, sizeof file);
}

/* The parts that are left after `sent` bytes. */
static void skip(struct msghdr *message, size_t sent) {
  while (message->msg_iovlen > 0 && sent >= message->msg_iov->iov_len) {
    sent -= message->msg_iov->iov_len;
    message->msg_iov++;
    message->msg_iovlen--;
  }
  if (message->msg_iovlen == 0) return;
  message->msg_iov->iov_base = (char *)message->msg_iov->iov_base + sent;
  message->msg_iov->iov_len -= sent;
}

bool pj_wire_send(int socket, const pj_wire_head *head, const char *fields, int file) {
  control c;
  struct iovec parts[2] = {{(void *)(uintptr_t)head, sizeof *head}, {(void *)(uintptr_t)fields, head->size}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  if (file >= 0) attach(&message, &c, file);
  while (message.msg_iovlen > 0) {
    ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    message.msg_control = NULL;
    message.msg_controllen = 0;
    skip(&message, (size_t)sent);
  }
  return true;
}

static void take_file(struct msghdr *message, int *out) {
  struct cmsghdr *c = CMSG_FIRSTHDR(message);
  if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) memcpy(out, CMSG_DATA(c), sizeof *out);
}

/* A file comes with the first byte of a message. */
static bool receive(int socket, void *to, size_t size, int *out_file) {
  for (char *at = to; size > 0;) {
    control c;
    struct iovec part = {at, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (out_file) {
      message.msg_control = &c;
      message.msg_controllen = sizeof c.bytes;
    }
    ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    if (out_file && *out_file < 0) take_file(&message, out_file);
    at += got;
    size -= (size_t)got;
  }
  return true;
}

void pj_wire_free(pj_wire_message *m) {
  if (m->file >= 0) close(m->file);
  ts_free(m->fields);
  *m = (pj_wire_message){.file = -1};
}

bool pj_wire_receive(int socket, pj_wire_message *out) {
  *out = (pj_wire_message){.file = -1};
  if (!receive(socket, &out->head, sizeof out->head, &out->file)) return false;
  bool whole = out->head.size < MOST_BYTES &&
               ts_status_consume_ok(ts_alloc(out->head.size + 1, (void **)&out->fields)) &&
               receive(socket, out->fields, out->head.size, NULL);
  if (!whole) pj_wire_free(out);
  return whole;
}

/* ---- fields */

uint64_t pj_take(pj_fields *f) {
  uint64_t number = 0;
  if (f->left < sizeof number) {
    f->left = 0;
    f->is_cut = true;
    return 0;
  }
  memcpy(&number, f->at, sizeof number);
  f->at += sizeof number;
  f->left -= sizeof number;
  return number;
}

const char *pj_take_bytes(pj_fields *f, size_t *out_size) {
  uint64_t size = pj_take(f);
  f->is_cut = f->is_cut || size > f->left;
  *out_size = f->is_cut ? 0 : size;
  if (f->is_cut) return "";
  const char *bytes = f->at;
  f->at += size;
  f->left -= size;
  return bytes;
}
