// A layered drawing: the column of a box is its distance from the result, along the longest way; an arrow that passes
// columns gets a bend in each, so that it runs between their boxes; rows are ordered by the rows of the consumers.
#include "braid/autograd/graph_svg.h"

#include <algorithm>
#include <set>

#include "braid/autograd/detail/graph_view.h"
#include "braid/tensor/base/utf8.h"
#include "braid/tensor/io/atomic_file.h"

namespace braid {

namespace {

using detail::GraphView;

constexpr int kCharacter = 8, kRow = 56, kBox = 28, kGap = 28, kMargin = 20;  // pixels

// A box, or the bend of an arrow in a column that it passes.
struct Spot {
  size_t column = 0;
  double row = 0;
  std::vector<size_t> consumers;  // spots of the column before
};

struct Drawing {
  const GraphView& view;
  std::vector<Spot> spots;                 // the boxes, then the bends
  std::vector<std::vector<size_t>> lines;  // per arrow: its spots, from where the tensor is made
  std::vector<std::vector<size_t>> columns;

  explicit Drawing(const GraphView& v) : view(v), spots(v.boxes.size()) {
    find_columns();
    for (const GraphView::Arrow& arrow : view.arrows) add_line(arrow);
    columns.resize(
        std::max_element(spots.begin(), spots.end(), [](const Spot& a, const Spot& b) { return a.column < b.column; })
            ->column +
        1);
    for (size_t i = 0; i < spots.size(); ++i) columns[spots[i].column].push_back(i);
    for (std::vector<size_t>& column : columns) order(column);
  }

  // In the order of a walk in which every box comes after its consumers.
  void find_columns() {
    std::vector<std::vector<size_t>> inputs(spots.size());
    std::vector<size_t> waiting(spots.size()), ready{0};
    for (const GraphView::Arrow& arrow : view.arrows) {
      inputs[arrow.to].push_back(arrow.from);
      ++waiting[arrow.from];
    }
    while (!ready.empty()) {
      const size_t box = ready.back();
      ready.pop_back();
      for (size_t input : inputs[box]) {
        spots[input].column = std::max(spots[input].column, spots[box].column + 1);
        if (--waiting[input] == 0) ready.push_back(input);
      }
    }
  }

  void add_line(const GraphView::Arrow& arrow) {
    std::vector<size_t> line{arrow.to};
    for (size_t column = spots[arrow.to].column + 1; column < spots[arrow.from].column; ++column) {
      spots.push_back({column, 0, {line.back()}});
      line.push_back(spots.size() - 1);
    }
    spots[arrow.from].consumers.push_back(line.back());
    line.push_back(arrow.from);
    std::reverse(line.begin(), line.end());
    lines.push_back(std::move(line));
  }

  // Rows in the order of the mean row of the consumers, centred on row 0.
  void order(std::vector<size_t>& column) {
    std::vector<double> wish(spots.size());
    for (size_t i : column) {
      for (size_t consumer : spots[i].consumers)
        wish[i] += spots[consumer].row / static_cast<double>(spots[i].consumers.size());
    }
    std::stable_sort(column.begin(), column.end(), [&](size_t a, size_t b) { return wish[a] < wish[b]; });
    for (size_t r = 0; r < column.size(); ++r)
      spots[column[r]].row = static_cast<double>(r) - 0.5 * static_cast<double>(column.size() - 1);
  }
};

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : detail::show_bidi_controls(text))
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  return out;
}

int width_of(const std::string& text) { return kCharacter * static_cast<int>(text.size()) + 16; }
std::string number(double x) { return std::to_string(static_cast<int>(x)); }

}  // namespace

std::string svg(const Tensor& y, const std::vector<NamedTensor>& names) {
  const GraphView view = detail::view_graph("svg", y, names);
  const Drawing drawing(view);
  const std::vector<Spot>& spots = drawing.spots;
  // Widths of the columns and of the gaps to their consumers, and from these the left end of each column.
  const size_t count = drawing.columns.size();
  std::vector<int> widths(count, 0), gaps(count, 0), lefts(count, kMargin);
  for (size_t i = 0; i < view.boxes.size(); ++i) {
    int& width = widths[spots[i].column];
    width = std::max(width, width_of(view.boxes[i].label));
  }
  for (const GraphView::Arrow& arrow : view.arrows) {
    int& gap = gaps[spots[arrow.from].column];
    gap = std::max(gap, width_of(arrow.label) + kGap);
  }
  for (size_t c = count - 1; c-- > 0;) lefts[c] = lefts[c + 1] + widths[c + 1] + gaps[c + 1];
  double top = 0;
  for (const Spot& spot : spots) top = std::min(top, spot.row);
  const auto y_of = [&](size_t i) { return (spots[i].row - top) * kRow + kMargin + kBox; };
  const auto left_of = [&](size_t i) {
    const int own = i < view.boxes.size() ? width_of(view.boxes[i].label) : widths[spots[i].column];
    return lefts[spots[i].column] + (widths[spots[i].column] - own) / 2;
  };
  const auto right_of = [&](size_t i) { return 2 * lefts[spots[i].column] + widths[spots[i].column] - left_of(i); };

  std::string body;
  std::set<std::pair<size_t, std::string>> labelled;  // a tensor that several ops use has its shape once
  for (size_t a = 0; a < view.arrows.size(); ++a) {
    const std::vector<size_t>& line = drawing.lines[a];
    std::string path = str("M", right_of(line[0]), " ", number(y_of(line[0])));
    for (size_t k = 1; k < line.size(); ++k) {
      const int from = right_of(line[k - 1]), to = left_of(line[k]), middle = (from + to) / 2;
      path += str(" C", middle, " ", number(y_of(line[k - 1])), " ", middle, " ", number(y_of(line[k])), " ", to, " ",
                  number(y_of(line[k])));
      if (k + 1 < line.size()) path += str(" H", right_of(line[k]));
    }
    body += str("<path d=\"", path, "\" class=\"arrow\" marker-end=\"url(#graph-tip)\"/>\n");
    if (!labelled.emplace(line[0], view.arrows[a].label).second) continue;
    const int start = lefts[spots[line[0]].column] + widths[spots[line[0]].column];
    body += str("<text x=\"", start + 6 + width_of(view.arrows[a].label) / 2, "\" y=\"",
                number((3 * y_of(line[0]) + y_of(line[1])) / 4 - 5), "\" class=\"shape\">",
                escaped(view.arrows[a].label), "</text>\n");
  }
  double bottom = 0;  // of boxes and bends
  for (size_t i = 0; i < spots.size(); ++i) bottom = std::max(bottom, y_of(i));
  for (size_t i = 0; i < view.boxes.size(); ++i) {
    const auto& [label, leaf] = view.boxes[i];
    body += str("<rect x=\"", left_of(i), "\" y=\"", number(y_of(i) - 0.5 * kBox), "\" width=\"", width_of(label),
                "\" height=\"", kBox, "\" rx=\"", leaf ? kBox / 2 : 3, "\" class=\"", leaf ? "leaf" : "op",
                "\"/>\n<text x=\"", (left_of(i) + right_of(i)) / 2, "\" y=\"", number(y_of(i) + 5), "\">",
                escaped(label), "</text>\n");
  }
  const std::string width = std::to_string(lefts[0] + widths[0] + kMargin), height = number(bottom + kBox + kMargin);
  return str(
      // (rules for this drawing alone, since a page may hold others)
      "<svg class=\"graph\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", width, " ", height, "\" width=\"",
      width, "\" height=\"", height,
      "\">\n<style>.graph text { font: 13px monospace; text-anchor: middle }\n"
      ".graph .shape { font-size: 11px; fill: #777 } .graph .arrow { fill: none; stroke: #999 }\n"
      ".graph .op { fill: #fff; stroke: #333 } .graph .leaf { fill: #dceaf7; stroke: #333 }\n"
      "</style>\n<defs><marker id=\"graph-tip\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"4\" "
      "orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" fill=\"#999\"/></marker></defs>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      body, "</svg>\n");
}

void write_svg(const Tensor& y, const std::string& path, const std::vector<NamedTensor>& names) {
  io::write_file(path, svg(y, names));
}

}  // namespace braid
