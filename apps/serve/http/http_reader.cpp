#include "apps/serve/http/http_reader.h"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "apps/serve/api/api_error.h"
#include "braid/tensor/error.h"

namespace braid::apps::serve {

namespace http = boost::beast::http;

struct HttpReader::Parser : http::request_parser<http::string_body> {};

namespace {

ApiError bad_framing(const std::string& what) { return ApiError(400, "the request is not HTTP/1.1: " + what); }

bool has_folded_line(std::string_view head) {
  return head.find("\r\n ") != std::string_view::npos || head.find("\r\n\t") != std::string_view::npos;
}

ApiError error_of(const boost::system::error_code& error, const HttpLimits& limits) {
  if (error == http::error::header_limit)
    return ApiError(431, str("the head of the request is too long: at most ", limits.head_bytes, " bytes are read"));
  if (error == http::error::body_limit || error == http::error::buffer_overflow)
    return ApiError(413, str("the body is too long: at most ", limits.body_bytes, " bytes are read"));
  if (error == http::error::bad_version) return ApiError(505, "expected HTTP/1.1 or HTTP/1.0");
  return bad_framing(error.message());
}

}  // namespace

HttpReader::HttpReader(const HttpLimits& limits) : limits_(limits) { next(); }
HttpReader::~HttpReader() = default;

void HttpReader::next() {
  parser_ = std::make_unique<Parser>();
  parser_->header_limit(static_cast<uint32_t>(limits_.head_bytes));
  parser_->body_limit(static_cast<uint64_t>(limits_.body_bytes));
  head_ = {};
}

// Rules beyond the parser's: no field may leave a doubt about where the request ends.
void HttpReader::check_head() {
  const auto& message = parser_->get();
  head_.method = std::string(message.method_string());
  head_.target = std::string(message.target());
  head_.version_1_1 = message.version() == 11;
  head_.keep_alive = message.keep_alive();
  for (const auto& field : message) {
    const boost::string_view name = field.name_string();
    head_.fields.emplace_back(lower({name.data(), name.size()}), std::string(field.value()));
  }
  if (std::ssize(head_.fields) > limits_.fields)
    throw ApiError(431, str("the head has ", head_.fields.size(), " fields: at most ", limits_.fields, " are read"));
  const auto lengths = head_.all("content-length"), codings = head_.all("transfer-encoding");
  if (lengths.size() + codings.size() > 1)
    throw bad_framing(str("expected one of Content-Length and Transfer-Encoding, once, found ",
                          lengths.size() + codings.size(), " such fields"));
  if (!lengths.empty() && lengths[0].find_first_not_of("0123456789") != std::string_view::npos)
    throw bad_framing("Content-Length is no number");
  if (!codings.empty() && (!head_.version_1_1 || lower({codings[0].data(), codings[0].size()}) != "chunked"))
    throw ApiError(501, "the only Transfer-Encoding that is read is chunked, of HTTP/1.1");
  check_target();
}

// RFC 9112, 3.2: a path, an address with a path, or "*" for the server itself. Addresses of tunnels are for proxies.
void HttpReader::check_target() {
  std::string& target = head_.target;
  if (target.starts_with('/') || (target == "*" && head_.method == "OPTIONS")) return;
  if (head_.method == "CONNECT") throw ApiError(501, "this server makes no tunnels: CONNECT is for proxies");
  const std::string scheme = lower(target.substr(0, 8));
  const size_t begin = scheme.starts_with("http://") ? 7 : scheme == "https://" ? 8 : 0;
  if (begin == 0) throw bad_framing("expected a path that begins with /, or http:// with a host and a path");
  const size_t end = std::min(target.find_first_of("/?#", begin), target.size());
  head_.authority = target.substr(begin, end - begin);
  if (head_.authority.empty() || head_.authority.find('@') != std::string::npos)
    throw bad_framing("expected a host, without a user, in the address of the request line");
  target.erase(0, end);
  if (!target.starts_with('/')) target.insert(0, "/");
}

HttpReader::State HttpReader::put(std::string& in) {
  const auto max_left = static_cast<size_t>(limits_.head_bytes);
  size_t used = 0;
  boost::system::error_code error;
  while (used < in.size() && !parser_->is_done()) {
    const bool had_head = parser_->is_header_done();
    const size_t taken = parser_->put(boost::asio::buffer(in.data() + used, in.size() - used), error);
    // The parser takes whole fields, with the lines that continue them.
    if (!had_head && has_folded_line(std::string_view(in).substr(used, taken)))
      throw bad_framing("a line of the head begins with a blank; fields must not be folded");
    used += taken;
    if (!had_head && parser_->is_header_done()) check_head();
    if (error) break;
  }
  in.erase(0, used);
  if (error == http::error::need_more) {
    // The bytes that are not taken are the head, the line of a chunk, or fields behind the last one.
    if (in.size() > max_left) throw error_of(http::error::header_limit, limits_);
  } else if (error) {
    throw error_of(error, limits_);
  }
  if (!parser_->is_header_done()) return State::head;
  return parser_->is_done() ? State::complete : State::body;
}

int64_t HttpReader::body_bytes() const { return parser_->is_header_done() ? std::ssize(parser_->get().body()) : 0; }

bool HttpReader::has_body() const { return parser_->chunked() || parser_->content_length().value_or(0) > 0; }

std::string HttpReader::take_body() { return std::move(parser_->get().body()); }

}  // namespace braid::apps::serve
