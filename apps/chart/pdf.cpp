#include "apps/chart/pdf.h"

#include <cmath>
#include <cstdio>
#include <set>

#include "apps/chart/heat.h"
#include "apps/chart/helvetica.h"
#include "apps/cli/text.h"
#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

// With two decimals, less zeros at the end; PDF has no exponents.
std::string pdf_number(double value) {
  char text[64];
  std::string digits(text, static_cast<size_t>(std::snprintf(text, sizeof text, "%.2f", value)));
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits == "-0" ? "0" : digits;
}

template <class... Numbers>
std::string numbers(Numbers... values) {
  return ((pdf_number(values) + " ") + ...);
}

std::string hexadecimal(std::string_view bytes) {
  std::string text = "<";
  char digits[3];
  for (const char c : bytes) text.append(digits, static_cast<size_t>(std::snprintf(digits, 3, "%02X", c & 255)));
  return text + ">";
}

// A color as three numbers from 0 to 1.
std::string pdf_color(Rgb rgb) {
  std::string text;
  for (const int at : {16, 8, 0}) {
    char digits[16];
    std::snprintf(digits, sizeof digits, "%.3f ", double(rgb >> at & 255) / 255);
    text += digits;
  }
  return text;
}

// The shapes as operators of a page whose coordinates are those of the drawing, y downwards.
class Operators {
 public:
  explicit Operators(const Medium& medium) : medium_(medium) {}

  void operator()(const shapes::Line& s) {
    paint(look_of(s.look), numbers(s.x1, s.y1) + "m " + numbers(s.x2, s.y2) + "l\n", false);
  }
  void operator()(const shapes::Path& s) {
    std::string path;
    bool pen = false;
    for (size_t i = 0; i < s.points.size(); ++i) {
      const auto& [x, y] = s.points[i];
      if (!std::isfinite(x) || !std::isfinite(y)) {
        pen = false;
        continue;
      }
      const bool ends = i + 1 == s.points.size() || !std::isfinite(s.points[i + 1].first + s.points[i + 1].second);
      path += numbers(x, y) + (pen ? "l\n" : "m\n");
      if (!pen && ends) path += numbers(x, y) + "l\n";  // a lone point shows as a dot
      pen = true;
    }
    if (!path.empty()) paint(look_of(s.look), path, false, s.dash);
  }
  void operator()(const shapes::Area& s) {
    std::string path;
    for (const auto& [x, y] : s.outline) path += numbers(x, y) + (path.empty() ? "m\n" : "l\n");
    paint(look_of(s.look), path + "h\n", true);
  }
  void operator()(const shapes::Circle& s) {
    constexpr double kArc = 0.5523;  // of the radius: four Bezier curves that look like a circle
    const double r = s.radius, k = kArc * r, x = s.x, y = s.y;
    paint(look_of(s.look),
          numbers(x + r, y) + "m " + numbers(x + r, y + k, x + k, y + r, x, y + r) + "c " +
              numbers(x - k, y + r, x - r, y + k, x - r, y) + "c " + numbers(x - r, y - k, x - k, y - r, x, y - r) +
              "c " + numbers(x + k, y - r, x + r, y - k, x + r, y) + "c h\n",
          true);
  }
  void operator()(const shapes::Rect& s) {
    paint(look_of(s.look), numbers(s.x, s.y, s.width, s.height) + "re\n", true);
  }
  void operator()(const shapes::Cell& s) {
    const Look look = look_of(s.rect.look);
    body_ += pdf_color(on_white(look.fill.value_or(0), s.opacity)) + "rg " +
             numbers(s.rect.x, s.rect.y, s.rect.width, s.rect.height) + "re f\n";
  }
  void operator()(const shapes::Image& s) {
    body_ += "q " + numbers(s.width, 0, 0, -s.height, s.x, s.y + s.height) + "cm /I" + std::to_string(images_.size()) +
             " Do Q\n";
    images_.push_back(&s.raster);
  }
  void operator()(const shapes::Text& s) {
    const TextLook look = text_look_of(s.look, medium_);
    const std::vector<PdfWords> runs = pdf_words(s.words);
    double width = 0;
    for (const PdfWords& run : runs) width += look.size * width_of(run);
    const double before = s.anchor == "end" ? width : s.anchor == "middle" ? width / 2 : 0;
    const double angle = s.rotate * M_PI / 180, c = std::cos(angle), d = std::sin(angle);
    body_ += "BT " + pdf_color(look.fill) + "rg " + numbers(c, d, d, -c, s.x - before * c, s.y - before * d) + "Tm";
    for (const PdfWords& run : runs)
      body_ += str(" /",
                   run.symbol  ? "F2"
                   : look.bold ? "F1"
                               : "F0",
                   " ", pdf_number(look.size), " Tf ", hexadecimal(run.bytes), " Tj");
    body_ += " ET\n";
  }
  void operator()(const shapes::Clip& s) { body_ += "q " + numbers(s.x, s.y, s.width, s.height) + "re W n\n"; }
  void operator()(const shapes::Unclip&) { body_ += "Q\n"; }

  const std::string& text() const { return body_; }
  const std::vector<const Raster*>& images() const { return images_; }
  const std::set<int>& opacities() const { return opacities_; }  // in hundredths

 private:
  void paint(const Look& look, const std::string& path, bool closed, const std::string& dash = "") {
    const bool fills = closed && look.fill.has_value();
    if (!look.stroke && !fills) return;
    const int opacity = static_cast<int>(std::lround(100 * look.opacity));
    if (opacity < 100) opacities_.insert(opacity), body_ += str("q /O", opacity, " gs ");
    if (fills) body_ += pdf_color(*look.fill) + "rg ";
    if (look.stroke) body_ += pdf_color(*look.stroke) + "RG " + pdf_number(look.width) + " w [" + dash + "] 0 d ";
    body_ += path + (look.stroke ? fills ? "B" : "S" : "f") + (opacity < 100 ? " Q\n" : "\n");
  }

  Medium medium_;
  std::string body_;
  std::vector<const Raster*> images_;
  std::set<int> opacities_;
};

// Objects with their offsets.
class PdfFile {
 public:
  // The next object, of this number; they begin with 1.
  void object(const std::string& content) {
    offsets_.push_back(text_.size());
    text_ += str(offsets_.size(), " 0 obj\n", content, "\nendobj\n");
  }
  void stream(const std::string& dictionary, const std::string& bytes) {
    object(str("<< ", dictionary, "/Length ", bytes.size(), " >>\nstream\n", bytes, "\nendstream"));
  }
  std::string finish(const std::string& trailer) {
    const size_t at = text_.size(), count = offsets_.size() + 1;
    text_ += str("xref\n0 ", count, "\n0000000000 65535 f \n");
    for (const size_t offset : offsets_) {
      char line[24];
      std::snprintf(line, sizeof line, "%010zu 00000 n \n", offset);  // 20 bytes each
      text_ += line;
    }
    return text_ + str("trailer\n<< /Size ", count, " ", trailer, " >>\nstartxref\n", at, "\n%%EOF\n");
  }

 private:
  std::string text_ = "%PDF-1.4\n%\xe2\xe3\xcf\xd3\n";
  std::vector<size_t> offsets_;
};

void add_image(PdfFile& file, const Raster& raster, const HeatColors& colors) {
  std::string palette;
  for (int s = 0; s <= kMaskedShade; ++s) {
    const auto shade = static_cast<uint8_t>(s);
    const Rgb rgb = on_white(shade_color(shade, colors), shade_opacity(shade));
    for (const int at : {16, 8, 0}) palette += static_cast<char>(rgb >> at & 255);
  }
  file.stream(
      str("/Type /XObject /Subtype /Image /Width ", raster.columns, " /Height ", raster.rows,
          " /BitsPerComponent 8 /Interpolate false /ColorSpace [/Indexed /DeviceRGB 255 ", hexadecimal(palette), "] "),
      {raster.shades.begin(), raster.shades.end()});
}

}  // namespace

std::string pdf_of(const Drawing& drawing) {
  constexpr int kCatalog = 1, kPages = 2, kPage = 3, kContents = 4, kFonts = 5, kInfo = 8, kImages = 9;
  const double points = drawing.medium.points();
  Operators operators(drawing.medium);
  for (const Shape& shape : drawing.shapes) std::visit(operators, shape);
  std::string images, opacities;
  for (size_t i = 0; i < operators.images().size(); ++i)
    images += str("/I", i, " ", static_cast<size_t>(kImages) + i, " 0 R ");
  for (const int o : operators.opacities()) {
    const std::string share = pdf_number(o / 100.0);
    opacities += str("/O", o, " << /CA ", share, " /ca ", share, " >> ");
  }

  PdfFile file;
  file.object(str("<< /Type /Catalog /Pages ", kPages, " 0 R >>"));
  file.object(str("<< /Type /Pages /Kids [", kPage, " 0 R] /Count 1 >>"));
  file.object(str("<< /Type /Page /Parent ", kPages, " 0 R /MediaBox [0 0 ", pdf_number(drawing.width * points), " ",
                  pdf_number(drawing.height * points), "] /Contents ", kContents, " 0 R /Resources << /Font << /F0 ",
                  kFonts, " 0 R /F1 ", kFonts + 1, " 0 R /F2 ", kFonts + 2, " 0 R >> /XObject << ", images,
                  ">> /ExtGState << ", opacities, ">> >> >>"));
  char scale[64];
  std::snprintf(scale, sizeof scale, "%.6f 0 0 %.6f 0 %.6f cm 1 J 1 j\n", points, -points, drawing.height * points);
  file.stream("", scale + operators.text());
  const auto font = [&](const std::string& name, const std::string& rest) {
    file.object("<< /Type /Font /Subtype /Type1 /BaseFont /" + name + rest + " >>");
  };
  font("Helvetica", " /Encoding /WinAnsiEncoding");
  font("Helvetica-Bold", " /Encoding /WinAnsiEncoding");
  font("Symbol", "");
  std::string ascii;
  for (const PdfWords& run : pdf_words(drawing.title))
    for (const char c : run.bytes) ascii += !run.symbol && c >= ' ' && c <= '~' ? c : '?';
  file.object("<< /Title " + hexadecimal(ascii) + " /Producer (braid) >>");
  for (const Raster* raster : operators.images()) add_image(file, *raster, heat_colors(drawing.medium));
  return file.finish(str("/Root ", kCatalog, " 0 R /Info ", kInfo, " 0 R"));
}

}  // namespace braid::apps
