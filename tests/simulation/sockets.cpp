// Functions of the C library on sockets, as in system_calls.cpp. Where nothing is ready, the thread waits in the
// scheduler for any call that may change it.
#include "tests/simulation/sockets.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tests/simulation/system_calls.h"

namespace braid::simulation {

namespace {

constexpr uint16_t kPort = 8000;

// The name for a process, which no file has.
sockaddr_un address() {
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "braid-sim-%ld", ::syscall(SYS_getpid));
  return name;
}

int tcp_address(sockaddr* into, socklen_t* size) {
  sockaddr_in end{};
  end.sin_family = AF_INET;
  end.sin_port = htons(kPort);
  end.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::memcpy(into, &end, sizeof end);
  *size = sizeof end;
  return 0;
}

// call(half) as the world decides. changes: whether others may wait for what it does.
template <class Call>
ssize_t on_socket(const char* name, const Call& call, bool changes = true) {
  World* w = entered();
  if (!w || !w->sockets) return call(false);
  w->scheduler.point();
  const Outcome outcome = decide(*w, name, kSocket);
  if (outcome.error != 0) return errno = outcome.error, -1;
  const ssize_t result = call(outcome.half);
  if (result > 0 && changes) w->scheduler.notify(w);
  return result;
}

// A message whose first buffer is shortened.
msghdr shortened(const msghdr* message, iovec& first) {
  msghdr part = *message;
  first = part.msg_iov[0];
  first.iov_len = (first.iov_len + 1) / 2;
  part.msg_iov = &first, part.msg_iovlen = 1;
  return part;
}

}  // namespace

int connect_to_server() {
  World& w = *entered();
  const sockaddr_un name = address();
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const int fd = static_cast<int>(::syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::syscall(SYS_connect, fd, &name, sizeof name) == 0) return w.scheduler.notify(&w), fd;
    ::syscall(SYS_close, fd);
    w.scheduler.sleep_until(w.scheduler.now() + 0.01);
  }
  return -1;
}

}  // namespace braid::simulation

using namespace braid::simulation;

extern "C" {

int socket(int domain, int type, int protocol) noexcept {
  World* w = entered();
  const bool simulated = w && w->sockets && domain == AF_INET;
  return static_cast<int>(::syscall(SYS_socket, simulated ? AF_UNIX : domain, type, simulated ? 0 : protocol));
}

int bind(int fd, const sockaddr* of, socklen_t size) noexcept {
  if (const World* w = entered(); !w || !w->sockets) return static_cast<int>(::syscall(SYS_bind, fd, of, size));
  const sockaddr_un name = address();
  return static_cast<int>(::syscall(SYS_bind, fd, &name, sizeof name));
}

int getsockname(int fd, sockaddr* into, socklen_t* size) noexcept {
  if (const World* w = entered(); w && w->sockets) return tcp_address(into, size);
  return static_cast<int>(::syscall(SYS_getsockname, fd, into, size));
}

int getpeername(int fd, sockaddr* into, socklen_t* size) noexcept {
  if (const World* w = entered(); w && w->sockets) return tcp_address(into, size);
  return static_cast<int>(::syscall(SYS_getpeername, fd, into, size));
}

int accept(int fd, sockaddr* from, socklen_t* size) {
  const World* w = entered();
  const bool simulated = w && w->sockets;
  const auto result = static_cast<int>(on_socket("accept", [&](bool) -> ssize_t {
    return ::syscall(SYS_accept, fd, simulated ? nullptr : from, simulated ? nullptr : size);
  }));
  if (simulated && result < 0 && errno == ECONNABORTED) {  // the client has gone
    ::syscall(SYS_close, ::syscall(SYS_accept, fd, nullptr, nullptr));
    errno = ECONNABORTED;
  }
  if (simulated && result >= 0 && from) tcp_address(from, size);
  return result;
}

ssize_t recv(int fd, void* bytes, size_t n, int flags) {
  return on_socket("recv", [&](bool half) -> ssize_t {
    return ::syscall(SYS_recvfrom, fd, bytes, half ? (n + 1) / 2 : n, flags, nullptr, nullptr);
  });
}

ssize_t send(int fd, const void* bytes, size_t n, int flags) {
  return on_socket("send", [&](bool half) -> ssize_t {
    return ::syscall(SYS_sendto, fd, bytes, half ? (n + 1) / 2 : n, flags, nullptr, 0);
  });
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  return on_socket("recv", [&](bool half) -> ssize_t {
    iovec first;
    msghdr part = half ? shortened(message, first) : *message;
    return ::syscall(SYS_recvmsg, fd, half ? &part : message, flags);
  });
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  return on_socket("send", [&](bool half) -> ssize_t {
    iovec first;
    const msghdr part = half ? shortened(message, first) : *message;
    return ::syscall(SYS_sendmsg, fd, half ? &part : message, flags);
  });
}

int shutdown(int fd, int how) noexcept {
  const long result = ::syscall(SYS_shutdown, fd, how);
  if (World* w = entered()) w->scheduler.notify(w);
  return static_cast<int>(result);
}

int timerfd_create(int clock, int flags) noexcept {  // Asio then asks the simulated clock
  const World* w = entered();
  if (w && w->sockets) return errno = EINVAL, -1;
  return static_cast<int>(::syscall(SYS_timerfd_create, clock, flags));
}

int epoll_ctl(int fd, int operation, int of, epoll_event* event) noexcept {  // Asio wakes its thread by one
  const long result = ::syscall(SYS_epoll_ctl, fd, operation, of, event);
  if (World* w = entered(); w && w->sockets) w->scheduler.notify(w);
  return static_cast<int>(result);
}

int epoll_wait(int fd, epoll_event* events, int max, int timeout) {
  World* w = entered();
  if (!w || !w->sockets) return static_cast<int>(::syscall(SYS_epoll_pwait, fd, events, max, timeout, nullptr, 8));
  const double end = timeout < 0 ? kNever : w->scheduler.now() + timeout * 1e-3;
  for (;;) {
    const auto ready = static_cast<int>(on_socket(
        "epoll", [&](bool) -> ssize_t { return ::syscall(SYS_epoll_pwait, fd, events, max, 0, nullptr, 8); }, false));
    if (ready != 0 || w->scheduler.now() >= end) return ready;
    w->scheduler.wait_on(w, end);
  }
}

}  // extern "C"
