#include "apps/study/table.h"

#include <algorithm>
#include <cctype>

#include "apps/cli/text.h"

namespace braid::apps {
namespace {

bool bold(std::string_view cell) {
  return cell.size() > 4 && cell.starts_with("**") && cell.find("**", 2) != cell.npos;
}

std::string latex_cell(std::string_view cell) {
  if (!bold(cell)) return latex_escaped(cell);
  const size_t end = cell.find("**", 2);
  return "\\textbf{" + latex_escaped(cell.substr(2, end - 2)) + "}" + latex_escaped(cell.substr(end + 2));
}

bool number_like(std::string_view cell) {
  const size_t at = cell.find_first_not_of("*[+-");
  return at == cell.npos || std::isdigit(static_cast<unsigned char>(cell[at])) != 0;
}

}  // namespace

std::string latex_escaped(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool digit_follows = i + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[i + 1])) != 0;
    const bool begins = i == 0 || text[i - 1] == '[' || text[i - 1] == ' ';
    if (std::string_view("&%$#_{}").find(c) != std::string_view::npos)
      result.append(1, '\\').append(1, c);
    else if (c == '\\')
      result += "\\textbackslash{}";
    else if (c == '~')
      result += "\\textasciitilde{}";
    else if (c == '^')
      result += "\\textasciicircum{}";
    else if (c == '<')
      result += "\\textless{}";
    else if (c == '>')
      result += "\\textgreater{}";
    else if (c == '|')
      result += "\\textbar{}";
    else if (c == '-' && begins && digit_follows)
      result += "$-$";
    else
      result += c;
  }
  return result;
}

std::string Table::markdown() const {
  std::string text;
  for (size_t r = 0; r < rows_.size(); ++r) {
    text += "|";
    for (const std::string& cell : rows_[r]) text += " " + cell + " |";
    text += "\n";
    if (r > 0) continue;
    text += "|---|";
    for (size_t c = 1; c < rows_[0].size(); ++c) text += "--:|";
    text += "\n";
  }
  return text;
}

std::string Table::latex(const std::string& caption, const std::string& label) const {
  std::string columns, lines;
  for (size_t c = 0; c < rows_[0].size(); ++c) {
    const bool numbers = rows_.size() > 1 &&
                         std::all_of(rows_.begin() + 1, rows_.end(), [&](const auto& r) { return number_like(r[c]); });
    columns += numbers ? 'r' : 'l';
  }
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::vector<std::string> cells;
    for (const std::string& cell : rows_[r]) cells.push_back(latex_cell(cell));
    lines += "    " + join(cells, " & ") + " \\\\\n" + (r == 0 ? "    \\midrule\n" : "");
  }
  return "\\begin{table}\n  \\centering\n  \\caption{" + latex_escaped(caption) + "}\n  \\label{tab:" + label +
         "}\n  \\begin{tabular}{" + columns + "}\n    \\toprule\n" + lines +
         "    \\bottomrule\n  \\end{tabular}\n\\end{table}\n";
}

}  // namespace braid::apps
