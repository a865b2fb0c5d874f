#include "apps/serve/http/http_text.h"

#include <cstdio>

#include "braid/tensor/error.h"

namespace braid::apps::serve {
namespace {

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Error";
  }
}

std::string head_text(int status, const char* type, const AnswerForm& form) {
  return str("HTTP/1.1 ", status, " ", reason_of(status), "\r\nServer: braid\r\nContent-Type: ", type,
             "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src "
             "'self'; frame-ancestors 'none'\r\n",
             form.request_id.empty() ? "" : "X-Request-Id: " + form.request_id + "\r\n",
             "Connection: ", form.keep_alive ? "keep-alive" : "close", "\r\n", form.by_origin ? "Vary: Origin\r\n" : "",
             form.origin.empty() ? ""
                                 : "Access-Control-Allow-Origin: " + form.origin +
                                       "\r\nAccess-Control-Expose-Headers: Retry-After, X-Request-Id\r\n");
}

}  // namespace

std::string answer_text(const Response& response, const AnswerForm& form) {
  std::string text = head_text(response.status, response.type, form);
  if (response.retry_after > 0) text += str("Retry-After: ", response.retry_after, "\r\n");
  if (!response.allow.empty()) text += "Allow: " + response.allow + "\r\n";
  if (response.status == 401) text += "WWW-Authenticate: Bearer\r\n";
  if (response.status == 415) text += "Accept-Encoding: identity\r\n";
  if (response.status == 204) {
    if (!form.origin.empty())
      text += "Access-Control-Allow-Methods: " + response.allow +
              "\r\nAccess-Control-Allow-Headers: *, Authorization\r\nAccess-Control-Max-Age: 600\r\n";
    return text + "\r\n";
  }
  text += str("Content-Length: ", response.body.size(), "\r\n\r\n");
  return form.without_body ? text : text + response.body;
}

std::string stream_head(const AnswerForm& form) {
  return head_text(200, "text/event-stream", form) + (form.version_1_1 ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
}

std::string stream_piece(const std::string& events, const AnswerForm& form) {
  if (!form.version_1_1 || events.empty()) return events;
  char size[24];
  std::snprintf(size, sizeof size, "%zx\r\n", events.size());
  return size + events + "\r\n";
}

std::string stream_end(const AnswerForm& form) { return form.version_1_1 ? "0\r\n\r\n" : ""; }

}  // namespace braid::apps::serve
