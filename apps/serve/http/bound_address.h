// An address that a server is going to listen on.
#pragma once
#include <string>

namespace braid::apps::serve {

// Taken before the model is loaded: a port that is in use is told at once. Until a server listens, no client can
// connect.
class BoundAddress {
 public:
  // address: of this machine, such as 127.0.0.1, ::1 or localhost; port 0: any free one. Error(setting) where they
  // cannot be used.
  BoundAddress(const std::string& address, int port);
  ~BoundAddress();
  BoundAddress(BoundAddress&& other) noexcept;
  BoundAddress& operator=(BoundAddress&&) = delete;

  int port() const { return port_; }
  bool v6() const { return v6_; }
  int release();  // the socket, which is the caller's now

 private:
  int socket_ = -1, port_ = 0;
  bool v6_ = false;
};

}  // namespace braid::apps::serve
