// Clients that send a byte a second, and clients that do not read: all are held at once, and one that the server closes
// is followed by another.
#include <chrono>
#include <memory>
#include <thread>

#include "tests/apps/serve/client.h"
#include "tests/soak/phases.h"

namespace braid::soak {
namespace {

using Clock = std::chrono::steady_clock;
using test::Client;

struct SlowClient {
  enum class Kind { head, body, reader } kind;
  std::unique_ptr<Client> connection;
  std::string rest;  // to be sent byte by byte
  size_t at = 0;

  // Sends the next byte; false: the server has closed the connection.
  bool step() {
    char byte = at < rest.size() ? rest[at] : ' ';
    ++at;
    if (::send(connection->descriptor(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN) return false;
    if (kind == Kind::reader) return true;
    return ::recv(connection->descriptor(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) != 0;
  }
};

SlowClient make(const Plan& plan, Random& random, SlowClient::Kind kind) {
  using Kind = SlowClient::Kind;
  SlowClient client{
      .kind = kind, .connection = std::make_unique<Client>(plan.port, 4096, some_address(random)), .rest = {}};
  const std::string stream = Client::post_text(
      "/v1/completions", R"({"prompt": "slow", "max_tokens": 20, "ignore_eos": true, "stream": true, "logprobs": 5})");
  const size_t head = stream.find("\r\n\r\n") + 4;
  if (kind == Kind::head) client.rest = stream;
  if (kind == Kind::body) {
    client.connection->send(stream.substr(0, head));
    client.rest = std::string(1000, ' ') + stream.substr(head);
  }
  if (kind == Kind::reader) {  // the answers are more than the buffers of both systems hold
    std::string requests = stream;
    for (int i = 0; i < 200; ++i) requests += "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    client.connection->send(requests + stream);
  }
  return client;
}

}  // namespace

void slow_clients(const Plan& plan, Report& report) {
  Random random(plan.seed);
  std::vector<SlowClient> clients;
  for (int64_t i = 0; i < plan.count; ++i) clients.push_back(make(plan, random, static_cast<SlowClient::Kind>(i % 3)));
  report.add("clients at once", plan.count);
  const auto begin = Clock::now(),
             end = begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(plan.seconds));
  for (int64_t second = 1; Clock::now() < end; ++second) {
    for (SlowClient& client : clients) {
      if (client.step()) continue;
      const char* names[] = {"closed in the head", "closed in the body", "closed as it did not read"};
      report.add(names[static_cast<int>(client.kind)]);
      client = make(plan, random, client.kind);
      if (!client.connection->connected()) report.fault("no connection");
    }
    std::this_thread::sleep_until(std::min(end, begin + std::chrono::seconds(second)));
  }
}

}  // namespace braid::soak
