// A small HTTP/1.1 client for `braid bench serve`: blocking, one request at a time, bodies of known length or in
// chunks.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace braid::apps {

struct Url {
  std::string host, port, path;  // path: without the last '/', "" for a server's root
};
// "http://127.0.0.1:8000/v1" or "127.0.0.1:8000". Error(setting) that names the part which is wrong; https is an error.
Url parse_url(const std::string& text);

struct HttpRequest {
  std::string method = "GET", target = "/", body = "", key = "";  // key: of the Authorization header, "" for none
};

struct HttpResponse {
  int status = 0;
  std::string body;  // empty where the pieces were taken
};

class HttpClient {
 public:
  using Clock = std::chrono::steady_clock;

  explicit HttpClient(Url url) : url_(std::move(url)) {}
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient() { close(); }

  // Sends the request on the connection of the one before, where the server keeps it, and waits for the whole response
  // until `deadline`. `piece` gets the body of a response 200 as it arrives. Error(output) that says what happened:
  // nobody listens, the connection broke, time is over, or the response is not HTTP.
  HttpResponse send(const HttpRequest& request, Clock::time_point deadline,
                    const std::function<void(std::string_view)>& piece = {});

 private:
  void connect(Clock::time_point deadline);
  void close();
  bool write_all(std::string_view text, Clock::time_point deadline);
  bool fill(Clock::time_point deadline);  // more bytes into buffer_; false at the end of the connection
  std::string line(Clock::time_point deadline);
  void take(size_t count, Clock::time_point deadline, const std::function<void(std::string_view)>& to);

  Url url_;
  int socket_ = -1;
  std::string buffer_;
};

}  // namespace braid::apps
