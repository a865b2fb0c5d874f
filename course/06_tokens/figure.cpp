// The line of the chapter after each merge: Braid's tokenizer with so many of the merges.
#include "course/06_tokens/byte_level.h"
#include "course/drawing.h"

using course::Color;

int main(int argc, char** argv) {
  const std::vector<std::pair<int32_t, int32_t>> merges = {{108, 111}, {256, 119}, {32, 257}, {258, 101}, {115, 116}};
  course::Drawing out(720, 290, "The tokens of the line low lower lowest after each of five merges");
  for (size_t n = 0; n <= merges.size(); ++n) {
    const auto tokenizer = chapter::tokenizer_of({merges.begin(), merges.begin() + static_cast<int64_t>(n)});
    const double y = 20 + 42 * static_cast<double>(n);
    const auto shown = [&](int32_t id) {
      std::string text(tokenizer->token_bytes(id));
      for (size_t at; (at = text.find(' ')) != std::string::npos;) text.replace(at, 1, "_");
      return text;
    };
    const std::string made = n == 0 ? "bytes" : shown(merges[n - 1].first) + " + " + shown(merges[n - 1].second);
    out.text(20, y + 20, made, n == 0 ? Color::soft : Color::orange);
    double x = 130;
    size_t count = 0;
    for (const char* word : {"low", " lower", " lowest"}) {
      for (const int32_t id : tokenizer->encode(word)) {
        const std::string text = shown(id);
        const double width = 28.0 * static_cast<double>(text.size());
        const bool fresh = id == 255 + static_cast<int32_t>(n) && n > 0;
        out.box(x, y, width, 30, text, fresh ? Color::orange : Color::blue, id < 256 ? 0.05 : 0.2);
        x += width;
        ++count;
      }
      x += 14;
    }
    out.text(700, y + 20, std::to_string(count) + " tokens", Color::soft, "end");
  }
  out.text(130, 284, "_ is a space: it belongs to the word behind it", Color::soft);
  out.save(argc, argv);
}
