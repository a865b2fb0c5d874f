// The engine on y = a b + a with a = 2, b = 3: for each node how many consumers it waits for and what has arrived.
#include <map>
#include <string>
#include <vector>

#include "course/drawing.h"

using course::Color;

namespace {

struct Node {
  std::vector<std::pair<std::string, int>> sends;  // to an input, how many times the gradient
  int waits_for = 0, arrived = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const int a = 2, b = 3;
  std::map<std::string, Node> nodes;
  nodes["y"].sends = {{"c", 1}, {"a", 1}};  // y = c + a
  nodes["c"].sends = {{"a", b}, {"b", a}};  // c = a b
  nodes["a"], nodes["b"];
  for (const auto& [name, node] : nodes)
    for (const auto& [input, factor] : node.sends) ++nodes[input].waits_for;
  nodes["y"].arrived = 1;

  const std::vector<std::string> rows{"y", "c", "a", "b"};
  course::Drawing out(640, 250, "The engine on y = a b + a: the counters of the four nodes after each step");
  double x = 60;
  std::string done;
  const auto column = [&](const std::string& title, const std::string& ran) {
    out.text(x + 62, 24, title, Color::ink, "middle");
    for (size_t i = 0; i < rows.size(); ++i) {
      const Node& node = nodes[rows[i]];
      const bool over = done.find(rows[i]) != std::string::npos, ready = node.waits_for == 0 && !over;
      const Color color = rows[i] == ran ? Color::green : ready ? Color::orange : Color::soft;
      out.box(x, 36 + 50 * static_cast<double>(i), 124, 42, "", color, ready || rows[i] == ran ? 0.1 : 0);
      out.text(x + 62, 54 + 50 * static_cast<double>(i),
               rows[i] == ran ? "runs"
               : over         ? "done"
               : ready        ? "ready"
                              : "waits for " + std::to_string(node.waits_for),
               color, "middle");
      out.text(x + 62, 71 + 50 * static_cast<double>(i), "gradient " + std::to_string(node.arrived), Color::ink,
               "middle");
    }
    done += ran;
    x += 144;
  };
  for (size_t i = 0; i < rows.size(); ++i)
    out.text(30, 62 + 50 * static_cast<double>(i), rows[i], Color::ink, "middle", 16);
  column("consumers counted", "");
  for (const std::string name : {"y", "c"}) {
    for (const auto& [input, factor] : nodes[name].sends) {
      nodes[input].arrived += factor * nodes[name].arrived;
      --nodes[input].waits_for;
    }
    column(name + " runs", name);
  }
  out.text(500, 62, "green: runs", Color::green);
  out.text(500, 82, "orange: may run", Color::orange);
  out.text(500, 112, "a waits for both of", Color::soft);
  out.text(500, 130, "its consumers, so its", Color::soft);
  out.text(500, 148, "gradient is complete", Color::soft);
  out.text(500, 166, "when it runs", Color::soft);
  out.save(argc, argv);
}
