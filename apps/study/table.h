// A table as Markdown and as LaTeX.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace braid::apps {

class Table {
 public:
  explicit Table(std::vector<std::string> names) : rows_{std::move(names)} {}
  // A cell of every column; **words** are bold.
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string markdown() const;
  // In the style of the package booktabs: \begin{table} ... \end{table} with \label{tab:LABEL}. Columns of numbers
  // stand at the right.
  std::string latex(const std::string& caption, const std::string& label) const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the first: the names
};

// The characters that have a meaning in LaTeX as LaTeX writes them; a hyphen before a digit at the beginning of a
// number is a minus.
std::string latex_escaped(std::string_view text);

}  // namespace braid::apps
