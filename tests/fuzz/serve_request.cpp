#include "apps/serve/api/api_error.h"
#include "apps/serve/api/requests.h"
#include "apps/serve/http/http_reader.h"

// The first byte chooses the parser, the rest is what the client sends: a body for each route, or bytes of HTTP in
// pieces. An ApiError is the right answer to bad input; it must have a status of bad requests and words.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace braid::apps::serve;
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const RequestLimits limits{.ids = 50257, .context = 2048, .sequences = 64};
  try {
    switch (data[0] % 5) {
      case 0:
        parse_completion_request(text, limits);
        break;
      case 1:
        parse_chat_request(text, limits);
        break;
      case 2:
        parse_tokenize_request(text);
        break;
      case 3:
        parse_detokenize_request(text, limits);
        break;
      default: {
        HttpReader reader({.head_bytes = 2048, .fields = 20, .body_bytes = 1000});
        const size_t step = 1 + data[0] / 5;
        std::string in;
        for (size_t at = 0; at < text.size(); at += step) {
          in += text.substr(at, step);
          while (reader.put(in) == HttpReader::State::complete) {
            check_host({}, reader.head(), "127.0.0.1");
            reader.take_body();
            reader.next();
            if (in.empty()) break;
          }
        }
      }
    }
  } catch (const ApiError& error) {
    if (error.status() < 400 || error.status() > 505 || error.body().empty()) __builtin_trap();
  }
  return 0;
}
