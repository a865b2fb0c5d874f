#include "apps/bench/load/http_client.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "apps/cli/text.h"
#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

constexpr size_t longest_line = 64 << 10;

[[noreturn]] void fail(const Url& url, const std::string& what) {
  throw Error(ErrorKind::output, "the server at " + url.host + ":" + url.port + " " + what);
}

// Waits until the socket can be read or written; false when the deadline has passed.
bool ready(int socket, short events, HttpClient::Clock::time_point deadline) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - HttpClient::Clock::now()).count();
    if (left <= 0) return false;
    pollfd wait{socket, events, 0};
    const int count = ::poll(&wait, 1, static_cast<int>(std::min<long long>(left + 1, 60'000)));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
  }
}

std::optional<size_t> number(std::string_view text, int base) {
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool equal_without_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, {}, [](unsigned char c) { return std::tolower(c); }, [](unsigned char c) { return std::tolower(c); });
}

}  // namespace

Url parse_url(const std::string& text) {
  const auto expect = [&](bool ok, const std::string& expected) {
    check(ok, ErrorKind::setting,
          [&] { return "the address of the server is wrong: expected " + expected + ", found '" + text + "'"; });
  };
  std::string rest = text;
  expect(!rest.starts_with("https://"), "http:// (Braid's server does not encrypt; a proxy in front of it may)");
  if (rest.starts_with("http://")) rest = rest.substr(7);
  Url url;
  const size_t slash = std::min(rest.find('/'), rest.size());
  url.path = rest.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  rest.resize(slash);
  const size_t bracket = rest.starts_with('[') ? rest.find(']') : std::string::npos;  // [::1]:8000
  const size_t colon = rest.find(':', bracket == std::string::npos ? 0 : bracket);
  url.host = bracket == std::string::npos ? rest.substr(0, colon) : rest.substr(1, bracket - 1);
  url.port = colon == std::string::npos ? "80" : rest.substr(colon + 1);
  expect(!url.host.empty(), "a host, as in http://127.0.0.1:8000");
  const std::optional<size_t> port = number(url.port, 10);
  expect(port && *port > 0 && *port < 65536, "a port from 1 to 65535, as in http://127.0.0.1:8000");
  return url;
}

void HttpClient::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  buffer_.clear();
}

void HttpClient::connect(Clock::time_point deadline) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int code = ::getaddrinfo(url_.host.c_str(), url_.port.c_str(), &hints, &found); code != 0)
    fail(url_, str("has no address: ", ::gai_strerror(code)));
  int error = 0;
  for (const addrinfo* at = found; at && socket_ < 0; at = at->ai_next) {
    socket_ = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);
    if (socket_ < 0) {
      error = errno;
      continue;
    }
    error = ::connect(socket_, at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      socklen_t size = sizeof error;
      error = ETIMEDOUT;
      if (ready(socket_, POLLOUT, deadline)) ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error != 0) close();
  }
  ::freeaddrinfo(found);
  if (socket_ < 0) fail(url_, str("cannot be reached: ", std::strerror(error), "; is braid serve running?"));
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool HttpClient::write_all(std::string_view text, Clock::time_point deadline) {
  while (!text.empty()) {
    const ssize_t count = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
    if (count > 0) {
      text.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!ready(socket_, POLLOUT, deadline)) fail(url_, "took no more of the request before time was over");
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool HttpClient::fill(Clock::time_point deadline) {
  for (;;) {
    char bytes[16 << 10];
    const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
    if (count > 0) buffer_.append(bytes, static_cast<size_t>(count));
    if (count >= 0) return count > 0;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!ready(socket_, POLLIN, deadline)) fail(url_, "sent nothing more before time was over");
    } else if (errno != EINTR) {
      return false;
    }
  }
}

std::string HttpClient::line(Clock::time_point deadline) {
  size_t end;
  while ((end = buffer_.find("\r\n")) == std::string::npos) {
    if (buffer_.size() > longest_line) fail(url_, "sent a line of more than 64 KiB: that is not HTTP");
    if (!fill(deadline)) fail(url_, "closed the connection within a response");
  }
  const std::string text = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return text;
}

void HttpClient::take(size_t count, Clock::time_point deadline, const std::function<void(std::string_view)>& to) {
  while (count > 0) {
    if (buffer_.empty() && !fill(deadline)) fail(url_, "closed the connection within a response");
    const size_t part = std::min(count, buffer_.size());
    to(std::string_view(buffer_).substr(0, part));
    buffer_.erase(0, part);
    count -= part;
  }
}

HttpResponse HttpClient::send(const HttpRequest& request, Clock::time_point deadline,
                              const std::function<void(std::string_view)>& piece) {
  std::string head = str(request.method, " ", url_.path, request.target, " HTTP/1.1\r\nHost: ", url_.host, ":",
                         url_.port, "\r\nContent-Length: ", request.body.size(), "\r\n");
  if (!request.body.empty()) head += "Content-Type: application/json\r\n";
  if (!request.key.empty()) head += "Authorization: Bearer " + request.key + "\r\n";
  head += "\r\n";
  try {
    // A kept connection may have been closed by the server in the meantime: then a new one is tried, once.
    for (bool kept = socket_ >= 0;; kept = false) {
      if (!kept) connect(deadline);
      buffer_.clear();
      if (write_all(head + request.body, deadline) && fill(deadline)) break;
      close();
      if (!kept) fail(url_, "closed the connection without a response");
    }
    HttpResponse response;
    bool chunked = false, keep = true;
    std::optional<size_t> length;
    do {
      const std::string first = line(deadline);
      const std::optional<size_t> status = first.size() >= 12 ? number(first.substr(9, 3), 10) : std::nullopt;
      if (!first.starts_with("HTTP/1.") || !status) fail(url_, "did not answer with HTTP/1.1");
      response.status = static_cast<int>(*status);
      for (std::string field; !(field = line(deadline)).empty();) {
        const size_t colon = std::min(field.find(':'), field.size());
        const std::string_view whole = field, name = whole.substr(0, colon);
        const std::string_view value = trim(whole.substr(std::min(colon + 1, whole.size())));
        if (equal_without_case(name, "content-length")) length = number(value, 10);
        if (equal_without_case(name, "transfer-encoding")) chunked = equal_without_case(value, "chunked");
        if (equal_without_case(name, "connection")) keep = !equal_without_case(value, "close");
      }
    } while (response.status < 200);
    const std::function<void(std::string_view)> append = [&](std::string_view text) { response.body += text; };
    const auto& to = piece && response.status == 200 ? piece : append;
    if (chunked) {
      for (;;) {
        const std::string size_line = line(deadline);
        const std::optional<size_t> size = number(std::string_view(size_line).substr(0, size_line.find(';')), 16);
        if (!size) fail(url_, "sent a chunk without its size");
        take(*size, deadline, to);
        if (*size == 0)
          while (!line(deadline).empty()) {
          }
        else
          line(deadline);
        if (*size == 0) break;
      }
    } else if (length) {
      take(*length, deadline, to);
    } else {  // until the connection ends
      keep = false;
      do {
        to(buffer_);
        buffer_.clear();
      } while (fill(deadline));
    }
    if (!keep) close();
    return response;
  } catch (...) {
    close();
    throw;
  }
}

}  // namespace braid::apps
