#include "apps/cli/text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

namespace braid::apps {

std::string human(double value, int digits) {
  if (!std::isfinite(value)) return shortest(value);
  const double size = std::fabs(value);
  const char* suffix = "";
  double scale = 1;
  for (auto [limit, name] : {std::pair{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}}) {
    if (size < limit) continue;
    // 10 000 becomes "10k", but 1 000 stays as it is: four digits read well.
    scale = limit == 1e4 ? 1e3 : limit;
    suffix = name;
    break;
  }
  char buffer[64];
  if (size != 0 && size < 1e-3) {
    std::snprintf(buffer, sizeof buffer, "%.*e", digits - 1, value);
    return buffer;
  }
  // Digits before the point; zero or fewer for 0.1 and below, which need as many more behind it.
  const double scaled = value / scale;
  const int before = size == 0 ? digits : static_cast<int>(std::floor(std::log10(std::fabs(scaled)))) + 1;
  std::snprintf(buffer, sizeof buffer, "%.*f%s", std::max(0, digits - before), scaled, suffix);
  return buffer;
}

std::string duration(double seconds) {
  if (!(seconds >= 0) || !std::isfinite(seconds) || seconds > 1e9) return "?";
  char buffer[64];
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (seconds < 9.95) {
    std::snprintf(buffer, sizeof buffer, "%.1fs", seconds);
  } else if (whole < 60) {
    std::snprintf(buffer, sizeof buffer, "%llds", whole);
  } else if (whole < 3600) {
    std::snprintf(buffer, sizeof buffer, "%lldm%02llds", whole / 60, whole % 60);
  } else if (whole < 86400) {
    std::snprintf(buffer, sizeof buffer, "%lldh%02lldm", whole / 3600, whole / 60 % 60);
  } else {
    std::snprintf(buffer, sizeof buffer, "%lldd%02lldh", whole / 86400, whole / 3600 % 24);
  }
  return buffer;
}

std::string time_in_words(double seconds) {
  if (!(seconds >= 0) || !std::isfinite(seconds)) return "?";
  if (seconds < 1) return human(1e3 * seconds, 3) + " ms";
  if (seconds < 120) return human(seconds, 3) + " seconds";
  if (seconds < 7200) return human(seconds / 60, 3) + " minutes";
  if (seconds < 3 * 86400) return human(seconds / 3600, 3) + " hours";
  if (seconds < 1000 * 86400.0) return human(seconds / 86400, 3) + " days";
  return human(seconds / (365.25 * 86400), 3) + " years";
}

std::string printable(const std::string& bytes, const std::string& line_end) {
  const std::string valid = detail::replace_invalid_utf8(bytes);
  std::string text;
  const auto add_escape = [&](unsigned char byte) {
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\x%02X", byte);
    text += escape;
  };
  for (size_t i = 0; i < valid.size(); ++i) {
    const auto byte = static_cast<unsigned char>(valid[i]);
    const auto next = static_cast<unsigned char>(i + 1 < valid.size() ? valid[i + 1] : 0);
    if (byte == '\n') {
      text += line_end;
    } else if (byte == '\t') {
      text += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      add_escape(byte);
    } else if (byte == 0xC2 && next < 0xA0) {  // U+0080 to U+009F
      add_escape(byte), add_escape(next);
      ++i;
    } else {
      text += valid[i];
    }
  }
  return text;
}

std::string shell_quote(const std::string& argument) {
  const bool plain = !argument.empty() && std::all_of(argument.begin(), argument.end(), [](unsigned char c) {
    return std::isalnum(c) || std::string_view("_-./=:,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return argument;
  std::string quoted = "'";
  for (char c : argument) c == '\'' ? quoted.append("'\\''") : quoted.append(1, c);
  return quoted + "'";
}

}  // namespace braid::apps
