// A drawing of boxes, arrows and words, written as SVG: the figures of the chapters. Coordinates are pixels from the
// upper left corner; colors follow the reader's dark or light mode.
#pragma once
#include <array>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace course {

// ink: lines and words; soft: what is beside the point; the others tell things apart.
enum class Color { ink, soft, blue, orange, green, red };

class Drawing {
 public:
  // `title` is what a screen reader says in place of the drawing.
  Drawing(int width, int height, const std::string& title) {
    out_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << width << ' ' << height << "\" width=\""
         << width << "\" role=\"img\" font-family=\"sans-serif\" font-size=\"13\">\n<title>" << escaped(title)
         << "</title>\n"
         << "<style>\n"
            "text,.tip{stroke:none}.f-none{fill:none}.paper{fill:#fff}\n";
    colors({"#1a1a1a", "#6b6b6b", "#1f5fa8", "#a8500f", "#1c7038", "#b3261e"});
    out_ << "@media(prefers-color-scheme:dark){.paper{fill:#181818}\n";
    colors({"#eee", "#aaa", "#8ab8f0", "#f0a868", "#7fcf95", "#f2938c"});
    out_ << "}\n</style>\n";
    for (const char* color : kNames) {
      out_ << "<marker id=\"tip-" << color << "\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
           << "markerHeight=\"7\" orient=\"auto\"><path class=\"tip f-" << color
           << "\" d=\"M0 0 8 4 0 8z\"/></marker>\n";
    }
    out_ << "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n";
  }
  // A box with a line of words in its middle; strength from 0 to 1 fills it with its color.
  void box(double x, double y, double w, double h, const std::string& words, Color color = Color::ink,
           double strength = 0) {
    out_ << "<rect class=\"s-" << name(color) << " f-" << (strength > 0 ? name(color) : "none") << "\" x=\"" << x
         << "\" y=\"" << y << "\" width=\"" << w << "\" height=\"" << h << "\" fill-opacity=\"" << strength << "\"/>\n";
    if (!words.empty()) text(x + w / 2, y + h / 2 + 4.5, words, Color::ink, "middle");
  }
  // Words on the line y; anchor: start, middle or end of them at x.
  void text(double x, double y, const std::string& words, Color color = Color::ink, const char* anchor = "start",
            int size = 13) {
    out_ << "<text class=\"f-" << name(color) << "\" x=\"" << x << "\" y=\"" << y << "\" text-anchor=\"" << anchor
         << "\" font-size=\"" << size << "\">" << escaped(words) << "</text>\n";
  }
  void line(double x0, double y0, double x1, double y1, Color color = Color::ink, double width = 1) {
    stroke(x0, y0, x1, y1, color, width, "");
  }
  void arrow(double x0, double y0, double x1, double y1, Color color = Color::ink, double width = 1) {
    stroke(x0, y0, x1, y1, color, width, std::string(" marker-end=\"url(#tip-") + name(color) + ")\"");
  }
  // To the file that the program was called with.
  void save(int argc, char** argv) const {
    if (argc != 2) throw std::runtime_error("expected one argument: the SVG file to write");
    std::ofstream file(argv[1]);
    file << out_.str() << "</svg>\n";
    if (!file.flush()) throw std::runtime_error(std::string("cannot write ") + argv[1]);
  }

 private:
  static constexpr const char* kNames[] = {"ink", "soft", "blue", "orange", "green", "red"};
  static const char* name(Color color) { return kNames[static_cast<int>(color)]; }
  void colors(const std::array<const char*, 6>& values) {
    for (size_t i = 0; i < values.size(); ++i)
      out_ << ".f-" << kNames[i] << "{fill:" << values[i] << "}.s-" << kNames[i] << "{stroke:" << values[i] << "}\n";
  }
  static std::string escaped(const std::string& words) {
    std::string out;
    for (const char c : words) out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
    return out;
  }
  void stroke(double x0, double y0, double x1, double y1, Color color, double width, const std::string& end) {
    out_ << "<line class=\"s-" << name(color) << "\" x1=\"" << x0 << "\" y1=\"" << y0 << "\" x2=\"" << x1 << "\" y2=\""
         << y1 << "\" stroke-width=\"" << width << "\"" << end << "/>\n";
  }

  std::ostringstream out_;
};

}  // namespace course
