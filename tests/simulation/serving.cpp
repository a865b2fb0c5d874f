#include "tests/simulation/serving.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/cli/commands.h"
#include "braid/tensor/error.h"
#include "tests/simulation/disk.h"
#include "tests/simulation/sockets.h"

namespace braid::simulation {

namespace {

constexpr int kGrace = 3;  // --grace

std::string request_text(const std::string& body) {
  return str("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ",
             body.size(), "\r\n\r\n", body);
}

std::string request(int kind) {
  return request_text(nlohmann::json{
      {"prompt", str(17 * kind, " ", kind)},
      {"max_tokens", 4 + 4 * kind},
      {"seed", kind},
      {"n", kind % 3 == 0 ? 2 : 1},
      {"ignore_eos", true},
      {"stream",
       kind % 2 == 1}}.dump());
}

// Texts and reasons of an answer, or of the events of a stream.
std::string texts_of(const std::string& answer) {
  std::map<int, std::string> texts;
  for (size_t at = answer.find('{'); at != std::string::npos; at = answer.find('{', at)) {
    const size_t end = answer.find('\n', at);
    const nlohmann::json part = nlohmann::json::parse(answer.substr(at, end - at));
    for (const auto& choice : part.at("choices"))
      texts[choice.at("index")] += choice.at("text").get<std::string>() + choice.at("finish_reason").dump();
    at = end;
  }
  std::string all;
  for (const auto& [index, text] : texts) all += str(index, ": ", text, "\n");
  return all;
}

}  // namespace

// The client's end.
class Connection {
 public:
  explicit Connection(World& world) : world_(world), fd_(connect_to_server()) {}
  ~Connection() { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  bool open() const { return fd_ >= 0; }
  void close() {
    if (fd_ >= 0) ::syscall(SYS_close, std::exchange(fd_, -1));
    world_.scheduler.notify(&world_);
  }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const long n = ::syscall(SYS_sendto, fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT, nullptr, 0);
      if (!proceeds(n)) return false;
      if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  bool receive(std::string& in, size_t max) {  // false: the end
    for (char block[4096];;) {
      const long n = ::syscall(SYS_recvfrom, fd_, block, std::min(max, sizeof block), MSG_DONTWAIT, nullptr, nullptr);
      if (!proceeds(n)) return false;
      if (n > 0) return in.append(block, static_cast<size_t>(n)), true;
    }
  }

 private:
  // After a call: false where the connection has ended. Others run before the next one.
  bool proceeds(long n) {
    const bool waits = n < 0 && (errno == EAGAIN || errno == EINTR);
    if (n > 0) world_.scheduler.notify(&world_);
    if (waits) world_.scheduler.wait_on(&world_, world_.scheduler.now() + 1);
    world_.scheduler.point();
    return n > 0 || waits;
  }

  World& world_;
  int fd_;
};

void Serving::wrong(const std::string& what) {
  std::snprintf(shared_.message, sizeof shared_.message, "%s", what.c_str());
  ::_exit(kWrong);
}

void Serving::signal() {
  if (stopped_ == kNever) stopped_ = world_.scheduler.now(), std::raise(SIGTERM);
}

void Serving::serve(int& code) {
  code = apps::run_program({apps::serve_command()},
                           {"serve", folders_.model, "--port", "0", "--port-file", folders_.root + "/port",
                            "--sequences", "2", "--threads", "1", "--grace", std::to_string(kGrace)});
  over_ = true;
  if (world_.scheduler.now() > stopped_ + (idle_ ? 0.5 : kGrace + 1))
    wrong(idle_ ? "an idle server took its time to end" : "the server did not end in its time of grace");
}

std::string Serving::ask(Connection& connection, const std::string& text, bool slowly) {
  const size_t piece = slowly ? 16 : text.size();
  for (size_t at = 0; at < text.size(); at += piece) {
    if (!connection.send(std::string_view(text).substr(at, piece))) return "";
    if (slowly) world_.scheduler.sleep_until(world_.scheduler.now() + random_.seconds(0.1));
  }
  std::string in;
  for (;;) {
    const size_t head = in.find("\r\n\r\n");
    const size_t length = in.find("Content-Length: ");
    const bool chunked = head != std::string::npos && length > head;
    if (head != std::string::npos &&
        (chunked ? in.ends_with("\r\n0\r\n\r\n") : in.size() == head + 4 + std::stoul(in.substr(length + 16))))
      break;
    if (slowly) world_.scheduler.sleep_until(world_.scheduler.now() + random_.seconds(0.2));
    if (!connection.receive(in, slowly ? 64 : 4096)) return "";
  }
  if (in.starts_with("HTTP/1.1 200 ")) return in.substr(in.find("\r\n\r\n"));
  if (!in.starts_with("HTTP/1.1 503 ") || stopped_ == kNever) wrong("a request got " + in);
  return "";
}

void Serving::check_answer(int kind, const std::string& found) {
  if (found.empty()) {
    if (!shared_.harmed && stopped_ == kNever) wrong(str("request ", kind, " got no answer"));
    return;
  }
  const std::string path = str(folders_.answers, "/", kind), texts = texts_of(found);
  if (history_.alone)
    std::ofstream(path) << texts;
  else if (texts != Disk::bytes_of(path))
    wrong(str("request ", kind, " got\n", texts, "alone it gets\n", Disk::bytes_of(path)));
}

void Serving::client(Random random) {
  for (uint64_t connections = 1 + random.below(2); connections > 0; --connections) {
    world_.scheduler.sleep_until(world_.scheduler.now() + random.seconds(0.3));
    Connection connection(world_);
    if (!connection.open()) return;
    for (uint64_t requests = 1 + random.below(3); requests > 0; --requests) {
      const int kind = history_.alone ? *history_.alone : static_cast<int>(random.below(kRequests));
      const uint64_t way = history_.alone ? 0 : random.below(8);
      if (way < 6) {
        const std::string answer = ask(connection, request(kind), way == 5);
        check_answer(kind, answer);
        if (answer.empty()) break;
        continue;
      }
      // It leaves: within its request, or within the answer.
      const std::string text = request(kind);
      std::string in;
      if (way == 6) connection.send(text.substr(0, random.below(text.size())));
      if (way == 7 && connection.send(text)) connection.receive(in, 1 + random.below(600));
      if (random.one_in(3)) world_.scheduler.sleep_until(world_.scheduler.now() + random.seconds(20));
      break;
    }
  }
}

void Serving::last() {
  const auto left = [&](const std::string& metrics, const std::string& name) {
    const size_t at = metrics.find("\nbraid_" + name + " ");
    return at == std::string::npos ? std::string("none") : metrics.substr(at + 8 + name.size(), 2);
  };
  while (open_ > 0) world_.scheduler.sleep_until(world_.scheduler.now() + 0.05);
  // All of the cache is needed: none of it is lost.
  const std::string whole = request_text(R"({"prompt": "1", "max_tokens": 28, "n": 2, "ignore_eos": true})");
  for (int attempt = 0; attempt < 20 && !over_ && stopped_ == kNever; ++attempt) {
    Connection connection(world_);
    if (!connection.open() || ask(connection, whole, false).empty()) {
      if (!shared_.harmed && stopped_ == kNever) wrong("the last request got no answer");
      continue;
    }
    const std::string metrics = ask(connection, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", false);
    if (metrics.empty()) continue;
    for (const char* name : {"requests_processing", "requests_deferred"})
      if (left(metrics, name) != "0\n") wrong(str(name, " is not 0 at the end:", metrics));
    for (const char* name : {"http_connections", "http_requests"})
      if (left(metrics, name) != "1\n") wrong(str(name, " is not 1 at the end:", metrics));
    idle_ = true;
    signal();
  }
  if (!over_ && stopped_ == kNever) wrong("the server does not answer any more");
}

std::vector<std::function<void()>> Serving::bodies(int& code) {
  std::vector<std::function<void()>> all;
  all.emplace_back([this, &code] { serve(code); });
  open_ = history_.clients;
  for (int i = 0; i < history_.clients; ++i)
    all.emplace_back([this, random = Random(random_.next())] { client(random), --open_; });
  all.emplace_back([this] { last(); });
  return all;
}

}  // namespace braid::simulation
