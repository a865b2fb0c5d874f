// The HTTP server: one thread that moves bytes between sockets and the service and computes nothing.
#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "apps/serve/api/service.h"
#include "apps/serve/http/access.h"
#include "apps/serve/http/bound_address.h"
#include "apps/serve/http/http_reader.h"
#include "apps/serve/http/request_log.h"

namespace braid::apps::serve {

struct ServerOptions {
  Access access;
  HttpLimits http;
  int64_t requests = 256;                       // answered at a time; the next ones get 503
  int64_t spare_connections = 16;               // beyond `requests`; the one that waits longest is closed for a new one
  int64_t held_bytes = int64_t{64} << 20;       // of all bodies together; further ones get 503
  int64_t unread_bytes = int64_t{1} << 20;      // of a stream that its client does not read; then it is closed
  int64_t pipelined_bytes = int64_t{64} << 10;  // sent behind a request that is being answered; then it is closed
  int send_buffer = 256 << 10;                  // of the system, for each connection
  // Deadlines of the whole head, the whole body, the next request, and of writing what is there to write.
  std::chrono::milliseconds head_time{10000}, body_time{60000}, idle_time{60000}, write_time{30000}, linger_time{2000};
  LogForm log = LogForm::none;  // a line on stderr for each answer
};

class Server {
 public:
  // Listens and begins its thread. The service must outlive it. Error(setting) where another program listens by now.
  Server(Service& service, ServerOptions options, BoundAddress address = {"127.0.0.1", 0});
  ~Server();  // stop() without grace

  int port() const;
  // No connection is accepted any more, requests that are being answered may end within `grace`; then all is closed.
  // Returns whether all of them ended by themselves.
  bool stop(std::chrono::milliseconds grace);

 private:
  struct Listener;
  std::unique_ptr<Listener> listener_;
};

}  // namespace braid::apps::serve
