// A client over HTTP that sends any bytes.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace braid::test {

struct Answer {
  int status = 0;                             // 0: the connection ended before an answer
  std::map<std::string, std::string> fields;  // names in lower case
  std::string body;                           // of chunks: joined
  nlohmann::json json() const { return nlohmann::json::parse(body); }
};

class Client {
 public:
  // receive_buffer: of the system; 0: its own choice. from: the address of this end, 127.0.0.0/8.
  explicit Client(int port, int receive_buffer = 0, uint32_t from = 0) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(from);
    if (from != 0) ::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address);
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
  // At once, with what is under way in both directions lost.
  void reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }
  int descriptor() const { return socket_; }
  // For how long receive() waits.
  void set_patience(int milliseconds) { patience_ = milliseconds; }

  // false: the server has closed the connection.
  bool send(const std::string& bytes) {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t n = ::send(socket_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (n <= 0) return false;
      at += static_cast<size_t>(n);
    }
    return true;
  }
  // More bytes; false at the end of the connection or after too long a time without any.
  bool receive() {
    pollfd ready{.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, patience_) != 1) return false;
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
  bool ended() const { return ended_; }
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
    if (without_body || answer.status == 204) return answer;
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
  int patience_ = 300000;  // ms; under a sanitizer, beside other work, 30 s were too few
  std::string in_;
};

}  // namespace braid::test
