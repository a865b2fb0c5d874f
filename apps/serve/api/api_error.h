// The answer to a request that cannot be served. Its words are the server's own: no text of the client stands in them.
#pragma once
#include <exception>
#include <string>
#include <utility>

namespace braid::apps::serve {

class ApiError : public std::exception {
 public:
  // status: of HTTP. param: the field of the request that is wrong; empty: none. code: a word for programs.
  ApiError(int status, std::string message, std::string param = "", std::string code = "")
      : status_(status), message_(std::move(message)), param_(std::move(param)), code_(std::move(code)) {}

  int status() const { return status_; }
  const std::string& param() const { return param_; }
  const char* what() const noexcept override { return message_.c_str(); }
  // Seconds after which another try makes sense; 0: none does.
  int retry_after() const { return status_ == 429 || status_ == 503 ? 1 : 0; }
  // OpenAI's object: {"error": {"message", "type", "param", "code"}}.
  std::string body() const;

 private:
  int status_;
  std::string message_, param_, code_;
};

}  // namespace braid::apps::serve
