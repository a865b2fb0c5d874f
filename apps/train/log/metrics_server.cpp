#include "apps/train/log/metrics_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "apps/serve/http/http_reader.h"
#include "apps/serve/http/http_text.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/file_system.h"

namespace braid::apps {

namespace {

using namespace serve;
using Clock = std::chrono::steady_clock;

// The text for a request; ApiError for all that is not GET /metrics of this machine.
Response response_to(const RequestHead& head, const std::function<std::string()>& text) {
  try {
    check_host({}, head, "127.0.0.1");
  } catch (const ApiError& e) {
    throw ApiError(e.status(), "expected a field Host that names this machine, such as localhost");
  }
  if (head.target.substr(0, head.target.find('?')) != "/metrics")
    throw ApiError(404, "there is no such route; routes: GET /metrics");
  if (head.method != "GET" && head.method != "HEAD") {
    Response response = Response::of(ApiError(405, "expected the method GET"));
    response.allow = "GET";
    return response;
  }
  return {.body = text(), .type = "text/plain; version=0.0.4; charset=utf-8"};
}

}  // namespace

MetricsServer::MetricsServer(BoundAddress address, std::function<std::string()> text) : text_(std::move(text)) {
  const int port = address.port();
  listener_ = address.release();
  stop_ = ::eventfd(0, EFD_CLOEXEC);
  const bool listens = stop_ >= 0 && ::fcntl(listener_, F_SETFL, O_NONBLOCK) == 0 && ::listen(listener_, 16) == 0;
  const std::string reason = io::system_message();
  if (!listens) ::close(listener_), ::close(stop_);
  check(listens, ErrorKind::setting, [&] { return str("cannot listen on 127.0.0.1 port ", port, ": ", reason); });
  thread_ = std::thread([this] { run(); });
}

MetricsServer::~MetricsServer() {
  const uint64_t one = 1;
  while (::write(stop_, &one, sizeof one) < 0 && errno == EINTR) continue;
  thread_.join();
  ::close(listener_), ::close(stop_);
}

// Whether the descriptor is ready within the time; false at once where the thread must end.
bool MetricsServer::ready(int descriptor, short events, int milliseconds) const {
  pollfd both[] = {{.fd = descriptor, .events = events, .revents = 0}, {.fd = stop_, .events = POLLIN, .revents = 0}};
  return ::poll(both, 2, milliseconds) > 0 && both[1].revents == 0 && both[0].revents != 0;
}

void MetricsServer::run() {
  for (pollfd stop{.fd = stop_, .events = POLLIN, .revents = 0}; ::poll(&stop, 1, 0) == 0;) {
    if (!ready(listener_, POLLIN, -1)) continue;
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection < 0) {  // the client has left, or there is no descriptor now
      ready(stop_, POLLIN, 50);
      continue;
    }
    try {
      answer(connection);
    } catch (const std::exception&) {  // such as memory that is short: this scrape fails, the run continues
    }
    ::close(connection);
  }
}

void MetricsServer::answer(int connection) {
  const auto end = Clock::now() + std::chrono::seconds(2);
  const auto ready_in_time = [&](short events) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    return left > 0 && ready(connection, events, static_cast<int>(left));
  };
  char buffer[4096];
  std::string in, out;
  bool head = false;
  try {
    HttpReader reader({.head_bytes = 8 << 10, .body_bytes = 0});
    for (auto state = HttpReader::State::head; state == HttpReader::State::head; state = reader.put(in)) {
      const ssize_t n = ready_in_time(POLLIN) ? ::recv(connection, buffer, sizeof buffer, 0) : 0;
      if (n <= 0) return;
      in.append(buffer, static_cast<size_t>(n));
    }
    head = reader.head().method == "HEAD";
    out = answer_text(response_to(reader.head(), text_), {.without_body = head});
  } catch (const ApiError& e) {
    out = answer_text(Response::of(e), {.without_body = head});
  }
  for (size_t at = 0; at < out.size();) {
    const ssize_t n = ready_in_time(POLLOUT) ? ::send(connection, out.data() + at, out.size() - at, MSG_NOSIGNAL) : 0;
    if (n <= 0) return;
    at += static_cast<size_t>(n);
  }
  // What the client has sent beyond the head is read, or the system would take the answer back.
  ::shutdown(connection, SHUT_WR);
  while (ready_in_time(POLLIN) && ::recv(connection, buffer, sizeof buffer, 0) > 0) continue;
}

}  // namespace braid::apps
