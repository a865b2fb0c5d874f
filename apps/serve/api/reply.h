// The seam between HTTP and what makes answers: calls go in, answers come out.
#pragma once
#include <cstdint>
#include <string>

#include "apps/serve/api/api_error.h"

namespace braid::apps::serve {

// Tokens of an answer, for the log; -1: there are none, or it is not known.
struct TokenCounts {
  int64_t prompt = -1, completion = -1;
};

struct Response {
  int status = 200;
  std::string body;
  const char* type = "application/json";
  int retry_after = 0;  // seconds; 0: none
  std::string allow = "";
  TokenCounts tokens = {};

  static Response of(const ApiError& error) {
    return {.status = error.status(), .body = error.body(), .retry_after = error.retry_after()};
  }
};

// Where the answer to one call goes. Members may be called from any thread, one at a time; once the client has left
// they do nothing. Either send(), or stream() any number of times and end_stream().
class Reply {
 public:
  virtual ~Reply() = default;
  virtual void send(Response response) = 0;
  virtual void stream(std::string events) = 0;  // server-sent events; the first call begins the answer
  virtual void end_stream(TokenCounts tokens = {}) = 0;
};

// A call that is being answered.
class Ticket {
 public:
  virtual ~Ticket() = default;
  // The client has left: no more work is done for it. From any thread, at any time, also after the end.
  virtual void cancel() = 0;
};

}  // namespace braid::apps::serve
