// A server of a tiny random model in this process, and a client that sends any bytes.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/serve/server.h"
#include "tests/apps/generate/byte_model.h"

namespace braid::test {

struct Answer {
  int status = 0;                             // 0: the connection ended before an answer
  std::map<std::string, std::string> fields;  // names in lower case
  std::string body;                           // of chunks: joined
  nlohmann::json json() const { return nlohmann::json::parse(body); }
};

class Client {
 public:
  // receive_buffer: of the system; 0: its own choice.
  explicit Client(int port, int receive_buffer = 0) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Client() { close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  // false: the server has closed the connection.
  bool send(const std::string& bytes) {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t n = ::send(socket_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (n <= 0) return false;
      at += static_cast<size_t>(n);
    }
    return true;
  }
  // More bytes; false at the end of the connection or after `seconds` without any.
  bool receive(int seconds = 30) {
    pollfd ready{.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, seconds * 1000) != 1) return false;
    char buffer[65536];
    const ssize_t n = ::recv(socket_, buffer, sizeof buffer, 0);
    if (n > 0) in_.append(buffer, static_cast<size_t>(n));
    ended_ = n <= 0;
    return n > 0;
  }
  // Whether the server closes the connection; what it sends before is in text().
  bool ends() {
    while (receive()) continue;
    return ended_;
  }
  const std::string& text() const { return in_; }

  Answer answer(bool without_body = false) {
    Answer answer;
    while (in_.find("\r\n\r\n") == std::string::npos || in_.starts_with("HTTP/1.1 100"))
      if (in_.starts_with("HTTP/1.1 100") && in_.find("\r\n\r\n") != std::string::npos)
        in_.erase(0, in_.find("\r\n\r\n") + 4);
      else if (!receive())
        return answer;
    std::string head = in_.substr(0, in_.find("\r\n\r\n") + 2);
    in_.erase(0, head.size() + 2);
    answer.status = std::stoi(head.substr(9, 3));
    for (size_t at = head.find("\r\n") + 2; at < head.size();) {
      const size_t end = head.find("\r\n", at), colon = head.find(": ", at);
      std::string name = head.substr(at, colon - at);
      for (char& c : name) c = static_cast<char>(std::tolower(c));
      answer.fields[name] = head.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
    if (without_body) return answer;
    if (answer.fields.count("transfer-encoding") > 0) {
      for (std::string chunk; !(chunk = take_chunk()).empty();) answer.body += chunk;
    } else if (answer.fields.count("content-length") > 0) {
      const size_t size = std::stoul(answer.fields["content-length"]);
      while (in_.size() < size && receive()) continue;
      answer.body = in_.substr(0, size);
      in_.erase(0, size);
    } else {
      while (receive()) continue;
      answer.body = std::exchange(in_, "");
    }
    return answer;
  }
  // Waits for the next bytes of a stream of chunks; "" at its end.
  std::string take_chunk() {
    size_t line;
    while ((line = in_.find("\r\n")) == std::string::npos)
      if (!receive()) return "";
    const size_t size = std::stoul(in_.substr(0, line), nullptr, 16);
    while (in_.size() < line + 2 + size + 2)
      if (!receive()) return "";
    std::string chunk = in_.substr(line + 2, size);
    in_.erase(0, line + 2 + size + 2);
    return chunk;
  }

  Answer get(const std::string& path, const std::string& fields = "", const std::string& method = "GET") {
    send(method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n");
    return answer(method == "HEAD");
  }
  Answer post(const std::string& path, const std::string& body, const std::string& fields = "") {
    send(post_text(path, body, fields));
    return answer();
  }
  static std::string post_text(const std::string& path, const std::string& body, const std::string& fields = "") {
    return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n" + fields + "\r\n" + body;
  }

 private:
  int socket_;
  bool connected_ = false, ended_ = false;
  std::string in_;
};

// The byte tokenizer and a model of random weights with sequences of 64.
struct TestServer {
  // bad_token: an id whose embedding is NaN; -1: none.
  explicit TestServer(apps::serve::ServerOptions options = {}, apps::serve::ServiceOptions service_options = {},
                      int64_t bad_token = -1)
      : model(make_model(bad_token)),
        service(*model, tokenizer, with_defaults(std::move(service_options))),
        server(service, std::move(options)) {}

  static std::unique_ptr<models::LanguageModel> make_model(int64_t bad_token) {
    auto model = models::as_language_model(byte_model());
    for (nn::NamedTensor& p : nn::parameters(*model))
      if (bad_token >= 0 && p.name == "tok_embeddings.weight")
        p.value.detach().sliced(0, bad_token, bad_token + 1).fill(std::numeric_limits<double>::quiet_NaN());
    return model;
  }
  static apps::serve::ServiceOptions with_defaults(apps::serve::ServiceOptions options) {
    if (options.name.empty()) options.name = "tiny";
    if (options.engine.queue == 0) options.engine.queue = 64;
    options.ends = {256};
    if (options.chat.turn.empty()) options.chat = models::text::ChatTemplate::parse("simple");
    return options;
  }
  Answer post(const std::string& path, const std::string& body) { return Client(server.port()).post(path, body); }
  int port() const { return server.port(); }
  // Waits until nothing is computed any more.
  bool idle() {
    for (int i = 0; i < 3000; ++i) {
      const models::EngineLoad load = service.load();
      if (load.running == 0 && load.waiting == 0) return true;
      ::usleep(10000);
    }
    return false;
  }
  // The value of a line of /metrics.
  int64_t metric(const std::string& name) {
    const std::string text = "\n" + Client(port()).get("/metrics").body;
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stoll(text.substr(at + name.size() + 2));
  }

  models::text::ByteTokenizer tokenizer;
  std::unique_ptr<models::LanguageModel> model;
  apps::serve::Service service;
  apps::serve::Server server;
};

}  // namespace braid::test
