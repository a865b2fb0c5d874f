// Requests of HTTP/1.0 and 1.1 out of bytes as they arrive. Boost.Beast parses them; its headers stay in the .cpp file.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "apps/serve/http/access.h"

namespace braid::apps::serve {

struct HttpLimits {
  int64_t head_bytes = 16 << 10;
  int64_t fields = 100;
  int64_t body_bytes = 8 << 20;
};

class HttpReader {
 public:
  enum class State { head, body, complete };  // head: it has not arrived completely

  explicit HttpReader(const HttpLimits& limits);
  ~HttpReader();

  // Takes bytes from the front of `in`; after `complete` the rest belongs to the next request. ApiError(400, 413, 431,
  // 501, 505): the borders of the requests are not known any more, and the connection must be closed.
  State put(std::string& in);
  const RequestHead& head() const { return head_; }  // once the state is not `head`
  int64_t body_bytes() const;                        // as far as they have arrived
  bool has_body() const;                             // the head announces one
  std::string take_body();                           // when complete
  void next();                                       // begins another request

 private:
  struct Parser;
  void check_head();
  void check_target();

  HttpLimits limits_;
  std::unique_ptr<Parser> parser_;
  RequestHead head_;
};

}  // namespace braid::apps::serve
