#include "apps/chart/csv.h"

#include "apps/cli/text.h"

namespace braid::apps {
namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) result.append(c == '"' ? 2 : 1, c);
  return result + "\"";
}

}  // namespace

Csv::Cell::Cell(const std::string& words) : text(quoted(words)) {}
Csv::Cell::Cell(double number) : text(shortest(number)) {}

void Csv::row(const std::vector<Cell>& cells) {
  for (size_t k = 0; k < cells.size(); ++k) {
    if (k > 0) text_ += ',';
    text_ += cells[k].text;
  }
  text_ += '\n';
}

}  // namespace braid::apps
