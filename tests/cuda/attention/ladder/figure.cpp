// Draws the table of costs in README.md as bars: ladder_figure README.md SVG.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <regex>
#include <vector>

#include "course/drawing.h"

using namespace course;

namespace {

struct Rung {
  std::string name;
  double scores, keys, instructions;  // bytes from memory, bytes from L2, instructions of a thread; per unmasked score
};

// Lines such as "2 tiled.cu   1   0; k, v 192 by L2   3200: tiles 1700, ..." below the heading of the table.
std::vector<Rung> rungs_of(const std::string& file) {
  const std::regex row("^    (\\S+ \\S+) +\\S.*?  +(\\d+)(?:; k, v (\\d+) by L2)? {2,}(\\d+)[: ].*$");
  std::ifstream in(file);
  std::vector<Rung> rungs;
  bool below = false;
  for (std::string line; std::getline(in, line);) {
    std::smatch part;
    if (line.find("bytes of scores") != std::string::npos) below = true;
    if (!below or !std::regex_match(line, part, row)) continue;
    const auto number = [&](size_t i) { return part[i].matched ? std::stod(part[i]) : 0; };
    rungs.push_back({part[1], number(2), number(3), number(4)});
  }
  if (rungs.size() != 5) {
    throw std::runtime_error(file + ": expected the costs of 5 rungs, found " + std::to_string(rungs.size()));
  }
  return rungs;
}

void draw(const std::vector<Rung>& rungs, int argc, char** argv) {
  Drawing out(760, 330, "Bytes and instructions of the five rungs of the ladder, for one score");
  const double bytes_at = 150, instructions_at = 450;
  const auto bar = [&](double x, double y, double length, double value, Color color) {
    if (value == 0) return;
    out.box(x, y, length, 18, "", color, 0.3);
    char number[16];
    std::snprintf(number, sizeof number, "%g", value);
    out.text(x + length + 6, y + 14, number, color);
  };
  out.text(bytes_at, 20, "bytes of scores, from memory", Color::blue);
  out.text(bytes_at, 38, "bytes of keys and values, from L2", Color::green);
  out.text(instructions_at, 20, "instructions of a thread", Color::orange);
  for (size_t i = 0; i < rungs.size(); ++i) {
    const Rung& rung = rungs[i];
    const double y = 54 + 54 * static_cast<double>(i);
    out.text(bytes_at - 12, y + 23, rung.name, Color::ink, "end");
    bar(bytes_at, y, rung.scores, rung.scores, Color::blue);
    bar(bytes_at, y + 20, rung.keys, rung.keys, Color::green);
    bar(instructions_at, y + 10, rung.instructions / 13, rung.instructions, Color::orange);
  }
  out.text(bytes_at, 322, "for one score of 16 heads of 64, 2048 tokens; without the products of rung 4", Color::soft,
           "start", 12);
  out.save(argc - 1, argv + 1);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) throw std::runtime_error("expected two arguments: README.md, and the SVG file to write");
  draw(rungs_of(argv[1]), argc, argv);
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
