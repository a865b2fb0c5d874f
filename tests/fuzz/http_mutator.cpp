// For serve_request: the body of a route as JSON, or requests as lines of HTTP.
#include <cstring>

#include "tests/fuzz/mutate_json.h"

namespace {

using namespace braid::fuzzing;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find("\r\n", at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 2;
  }
  return lines;
}

std::string mutate_http(const std::string& text, Random& random) {
  static const char* const known[] = {"Content-Length: 5",
                                      "Content-Length: 0",
                                      "Content-Length: 1001",
                                      "Content-Length: +5",
                                      "Transfer-Encoding: chunked",
                                      "Transfer-Encoding: gzip",
                                      "Host: 127.0.0.1",
                                      "Host: [::1]:80",
                                      "Host: a.b",
                                      "Origin: http://127.0.0.1",
                                      "Expect: 100-continue",
                                      "Connection: close",
                                      "Connection: keep-alive",
                                      "Authorization: Bearer k",
                                      "5",
                                      "hello",
                                      "0",
                                      "3;x=y",
                                      "abc",
                                      "",
                                      "GET / HTTP/1.1",
                                      "POST /v1/completions HTTP/1.1",
                                      "GET /metrics?x=%41 HTTP/1.0",
                                      "OPTIONS * HTTP/1.1",
                                      " folded"};
  std::vector<std::string> lines = lines_of(text);
  if (lines.empty()) lines.push_back("GET / HTTP/1.1");
  for (size_t n = 1 + random() % 3; n > 0 && !lines.empty(); --n) {
    const size_t at = random() % lines.size();
    const auto place = lines.begin() + static_cast<std::ptrdiff_t>(at);
    switch (random() % 7) {
      case 0:
        lines.insert(place, known[random() % std::size(known)]);
        break;
      case 1:
        lines.insert(place, std::string(lines[random() % lines.size()]));
        break;
      case 2:
        lines.erase(place);
        break;
      case 3:
        std::swap(lines[at], lines[random() % lines.size()]);
        break;
      case 4:
        mutate_bytes(lines[at]);
        break;
      case 5:  // another request behind
        lines.insert(lines.end(), {"POST /tokenize HTTP/1.1", "Host: 127.0.0.1", "Transfer-Encoding: chunked", "", "2",
                                   "{}", "0", ""});
        break;
      default:
        lines[at] = known[random() % std::size(known)];
    }
  }
  const char* end = random() % 16 == 0 ? "\n" : "\r\n";
  std::string out;
  for (const std::string& line : lines) out += line + end;
  if (random() % 4 == 0) out.resize(out.size() - std::min<size_t>(out.size(), 2));  // a body without an end of line
  return out;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  Random random(seed + 1);
  if (size < 2 || random() % 16 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string made = data[0] % 5 < 4 ? mutate_json(rest, random) : mutate_http(rest, random);
  if (made.size() + 1 > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data + 1, made.data(), made.size());
  return 1 + made.size();
}
