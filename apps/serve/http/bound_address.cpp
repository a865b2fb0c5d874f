#include "apps/serve/http/bound_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "braid/tensor/error.h"

namespace braid::apps::serve {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// Digits alone are read: a name may have several addresses, and would be asked of other machines.
Addresses parse(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string digits = address == "localhost" ? "127.0.0.1" : address;
  const int code = ::getaddrinfo(digits.c_str(), std::to_string(port).c_str(), &hints, &found);
  check(code == 0, ErrorKind::setting, [&] {
    return "cannot listen: expected an IP address of this machine, for example 127.0.0.1, found '" + address + "'";
  });
  return {found, &::freeaddrinfo};
}

int port_of(int socket) {
  sockaddr_storage end{};
  socklen_t size = sizeof end;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&end), &size);
  return ntohs(end.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(end).sin6_port
                                         : reinterpret_cast<const sockaddr_in&>(end).sin_port);
}

}  // namespace

BoundAddress::BoundAddress(const std::string& address, int port) {
  const Addresses addresses = parse(address, port);
  const addrinfo& end = *addresses;
  v6_ = end.ai_family == AF_INET6;
  socket_ = ::socket(end.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;  // a port whose last connections are still being closed
  const bool bound = socket_ >= 0 && ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                     ::bind(socket_, end.ai_addr, end.ai_addrlen) == 0;
  const int error = errno;
  if (!bound && socket_ >= 0) ::close(std::exchange(socket_, -1));
  check(bound, ErrorKind::setting, [&] {
    return str("cannot listen on ", address, " port ", port, ": ", std::strerror(error),
               error == EADDRINUSE ? "; another program has this port: choose another one" : "");
  });
  port_ = port_of(socket_);
}

BoundAddress::~BoundAddress() {
  if (socket_ >= 0) ::close(socket_);
}

BoundAddress::BoundAddress(BoundAddress&& other) noexcept
    : socket_(other.release()), port_(other.port_), v6_(other.v6_) {}

int BoundAddress::release() { return std::exchange(socket_, -1); }

}  // namespace braid::apps::serve
