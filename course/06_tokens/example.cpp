// The merges that the chapter trains by hand, in Braid's tokenizer: encoding by rank, decoding, and characters of
// several tokens.
#include <cstdio>

#include "course/06_tokens/byte_level.h"
using braid::models::text::StreamDecoder;
using braid::models::text::Tokenizer;

namespace {

void show(const Tokenizer& tokenizer, const char* text) {
  std::printf("%-10s", text);
  const std::vector<int32_t> ids = tokenizer.encode(text);
  for (const int32_t id : ids) std::printf(" %d", id);
  std::printf("  decoded: %s\n", tokenizer.decode(ids).c_str());
}

}  // namespace

int main() {
  // lo, low, " low", " lowe", st
  const std::vector<std::pair<int32_t, int32_t>> merges = {{108, 111}, {256, 119}, {32, 257}, {258, 101}, {115, 116}};
  for (size_t n = 0; n <= merges.size(); ++n) {
    const auto tokenizer = chapter::tokenizer_of({merges.begin(), merges.begin() + static_cast<int64_t>(n)});
    size_t count = 0;
    for (const char* word : {"low", " lower", " lowest"}) count += tokenizer->encode(word).size();
    std::printf("%zu merges: %zu tokens\n", n, count);
  }
  const auto tokenizer = chapter::tokenizer_of(merges);
  for (const char* text : {"low", " lowest", "slow", "lowest"}) show(*tokenizer, text);

  StreamDecoder stream(*tokenizer);
  std::printf("a smile, token by token:");
  for (const int32_t id : tokenizer->encode("\xF0\x9F\x99\x82")) std::printf(" %d '%s'", id, stream.push(id).c_str());
  std::printf("\n");
}
