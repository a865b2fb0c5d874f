// The load tool: its client against a server that this test plays byte by byte, percentiles, report.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "apps/bench/load/report.h"
#include "tests/apps/support.h"

using namespace braid;
using namespace braid::apps;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(load)

namespace {

// Listens on a free port of this machine. Connection after connection it reads requests and writes what `answer` says,
// in the pieces that it says; no pieces: the connection is closed.
class PlayedServer {
 public:
  using Answer = std::function<std::vector<std::string>(const std::string& request)>;

  explicit PlayedServer(Answer answer) : answer_(std::move(answer)) {
    sockaddr_in address{};
    address.sin_family = AF_INET, address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    socklen_t size = sizeof address;
    BOOST_REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(listener_, 16) == 0);
    BOOST_REQUIRE(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port = ntohs(address.sin_port);
    thread_ = std::thread([this] { accept_all(); });
  }
  ~PlayedServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    for (std::thread& connection : connections_) connection.join();
    ::close(listener_);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port); }
  int port = 0;

 private:
  void accept_all() {
    for (int socket; (socket = ::accept(listener_, nullptr, nullptr)) >= 0;)
      connections_.emplace_back([this, socket] { serve(socket); });
  }
  void serve(int socket) const {
    std::string text;
    char bytes[4096];
    for (ssize_t count; (count = ::recv(socket, bytes, sizeof bytes, 0)) > 0;) {
      text.append(bytes, static_cast<size_t>(count));
      const size_t end = text.find("\r\n\r\n"), at = text.find("Content-Length: ");
      if (end == std::string::npos || text.size() < end + 4 + std::stoul(text.substr(at + 16))) continue;
      const std::vector<std::string> pieces = answer_(text);
      for (const std::string& piece : pieces) ::send(socket, piece.data(), piece.size(), MSG_NOSIGNAL);
      if (pieces.empty()) break;
      text.clear();
    }
    ::close(socket);
  }

  Answer answer_;
  int listener_ = -1;
  std::thread thread_;
  std::vector<std::thread> connections_;
};

std::string chunk(const std::string& text) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", text.size());
  return size + text + "\r\n";
}

std::string event(const std::string& text) { return "data: {\"choices\": [{\"text\": \"" + text + "\"}]}\n\n"; }

const std::string streamed = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string usage = "data: {\"choices\": [], \"usage\": {\"completion_tokens\": 5}}\n\ndata: [DONE]\n\n";

HttpClient::Clock::time_point soon(int milliseconds = 20'000) {
  return HttpClient::Clock::now() + std::chrono::milliseconds(milliseconds);
}

}  // namespace

BOOST_AUTO_TEST_CASE(addresses) {
  const Url url = parse_url("http://localhost:8000/v1/");
  BOOST_TEST((url.host == "localhost" && url.port == "8000" && url.path == "/v1"));
  BOOST_TEST(parse_url("[::1]:81").host == "::1");
  BOOST_TEST(parse_url("[::1]:81").port == "81");
  BOOST_TEST(parse_url("name").port == "80");
  for (const char* wrong : {"https://a", "http://", ":80", "a:0", "a:65536", "a:x", "a:"})
    BOOST_CHECK_EXCEPTION(parse_url(wrong), Error, says(ErrorKind::setting, "the address of the server is wrong"));
}

BOOST_AUTO_TEST_CASE(answers_in_all_forms) {
  int requests = 0;
  const PlayedServer server([&](const std::string& request) -> std::vector<std::string> {
    BOOST_TEST(request.find("Authorization: Bearer k\r\n") != std::string::npos);
    switch (requests++) {
      case 0:
        return {"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe", "llo"};
      case 1:
        return {streamed + "5;x=y\r\nhel", "lo\r\n" + chunk("!") + "0\r\nTrailer: 1\r\n\r\n"};
      case 2:
        return {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"};
      case 3:
        return {};
      case 4:
        return {"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhe"};
      default:
        return {"no HTTP at all\r\n\r\n"};
    }
  });
  HttpClient client(parse_url(server.url()));
  const HttpRequest request{.method = "POST", .target = "/x", .body = "{}", .key = "k"};
  BOOST_TEST(client.send(request, soon()).body == "hello");
  BOOST_TEST(client.send(request, soon()).body == "hello!");
  const HttpResponse missing = client.send(request, soon());
  BOOST_TEST((missing.status == 404 && missing.body == "no"));
  // The kept connection is closed (3), the new one answers half (4) until time is over.
  BOOST_CHECK_EXCEPTION(client.send(request, soon(200)), Error,
                        says(ErrorKind::output, "nothing more before time was over"));
  BOOST_CHECK_EXCEPTION(client.send(request, soon()), Error, says(ErrorKind::output, "did not answer with HTTP/1.1"));
  HttpClient nobody(parse_url("http://127.0.0.1:1"));
  BOOST_CHECK_EXCEPTION(nobody.send(request, soon()), Error, says(ErrorKind::output, "is braid serve running?"));
}

BOOST_AUTO_TEST_CASE(a_stream_in_pieces_of_any_size) {
  const std::string text = event("a") + event("") + ": a comment\r\n\r\n" + event("b") + event("c") + usage;
  for (size_t size = 1; size <= text.size(); size += 3) {
    StreamedAnswer answer;
    for (size_t at = 0; at < text.size(); at += size)
      answer.piece(std::string_view(text).substr(at, size), double(at + 1));
    BOOST_TEST((answer.complete() && answer.error().empty()));
    BOOST_TEST(answer.tokens() == 5);
    BOOST_TEST(answer.gaps.size() == 2U);
    BOOST_TEST((answer.first > 0 && answer.first <= answer.last));
  }
  StreamedAnswer broken;
  broken.piece("data: {\n", 1);
  BOOST_TEST(!broken.error().empty());
  StreamedAnswer failed;
  failed.piece("data: {\"error\": {}}\n", 1);
  BOOST_TEST(!failed.error().empty());
}

BOOST_AUTO_TEST_CASE(closed_and_open_loop) {
  std::atomic<int> requests = 0;
  const PlayedServer server([&](const std::string&) -> std::vector<std::string> {
    if (requests++ % 4 == 3) return {"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"};
    return {streamed + chunk(event("a")), chunk(event("b")), chunk(usage) + "0\r\n\r\n"};
  });
  for (const double rate : {0.0, 60.0}) {
    requests = 0;
    LoadPlan plan{.url = parse_url(server.url()), .clients = 3, .rate = rate, .seconds = 0.3, .timeout = 20};
    plan.body = [](int64_t i) { return "{\"seed\": " + std::to_string(i) + "}"; };
    LoadLevel level{.name = "x", .seconds = 2, .records = run_load(plan)};
    BOOST_TEST(std::ssize(level.records) == requests);
    BOOST_TEST(std::ssize(level.records) - level.answered() == requests / 4);
    BOOST_TEST(level.tokens() == 5 * level.answered());
    BOOST_TEST(std::ssize(level.first_token()) == level.answered());
    BOOST_TEST(std::ssize(level.between_tokens()) == level.answered());
    BOOST_TEST(level.errors().at(0) == std::to_string(requests / 4) + " x status 429");
    for (const LoadRecord& r : level.records)
      BOOST_TEST((r.due >= 0 && (r.first == 0 || r.first >= r.due) && r.due < 0.3));
    const nlohmann::json json = nlohmann::json::parse(load_json({level}));
    BOOST_TEST(json[0]["tokens_per_second"].get<double>() == double(level.tokens()) / 2);
    BOOST_TEST(load_table({level}).find("to the first token") != std::string::npos);
    const std::string chart = load_chart({level, {.name = "nothing <answered>"}}, "title");
    BOOST_TEST(chart.find("nothing &lt;answered&gt;") != std::string::npos);
    BOOST_TEST(chart.find("nan") == std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(the_same_arrivals_for_the_same_seed) {
  const PlayedServer server([&](const std::string&) -> std::vector<std::string> {
    return {streamed + chunk(event("a")) + chunk(usage) + "0\r\n\r\n"};
  });
  const auto moments = [&](uint64_t seed) {
    LoadPlan plan{.url = parse_url(server.url()), .clients = 4, .rate = 100, .seconds = 0.2, .seed = seed};
    plan.body = [](int64_t) { return std::string("{}"); };
    std::vector<double> due;
    for (const LoadRecord& r : run_load(plan)) due.push_back(r.due);
    return due;
  };
  BOOST_TEST((moments(1) == moments(1)));
  BOOST_TEST((moments(1) != moments(2)));
}

BOOST_AUTO_TEST_CASE(percentiles_of_known_values) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Percentiles p = percentiles(values);
  BOOST_TEST((p.p50 == 50 && p.p90 == 90 && p.p99 == 99 && p.max == 100));
  BOOST_TEST(percentiles({7}).p99 == 7);
  BOOST_TEST(std::isnan(percentiles({}).p50));
}

BOOST_AUTO_TEST_CASE(bad_use) {
  const auto wrong = [](const std::string& arguments, int code, const std::string& words) {
    const Outcome result = run("bench serve " + arguments);
    BOOST_TEST(result.code == code, result.output);
    BOOST_TEST(result.output.find(words) != std::string::npos, result.output);
  };
  wrong("", 2, "bench serve needs the address of a server");
  wrong("https://a", 2, "expected http://");
  wrong("http://127.0.0.1:1 --clients 1,x", 2, "bad value for --clients");
  wrong("http://127.0.0.1:1 --clients 1 -o /no/such/folder/a.svg", 4, "there is no folder /no/such/folder");
  wrong("http://127.0.0.1:1 --clients 1", 4, "cannot be reached");
}

BOOST_AUTO_TEST_SUITE_END()
