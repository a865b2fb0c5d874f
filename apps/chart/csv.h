// Tables of numbers as CSV: a line of names, then a line for each row. Numbers are written with as many digits as give
// the same f64 back.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace braid::apps {

class Csv {
 public:
  // A text, quoted where it has commas, quotes or line ends; or a number, which may be inf, -inf or nan.
  struct Cell {
    Cell(const std::string& words);
    Cell(const char* words) : Cell(std::string(words)) {}
    Cell(double number);
    Cell(int64_t number) : text(std::to_string(number)) {}
    std::string text;
  };
  explicit Csv(const std::vector<std::string>& columns) { row({columns.begin(), columns.end()}); }
  void row(const std::vector<Cell>& cells);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace braid::apps
