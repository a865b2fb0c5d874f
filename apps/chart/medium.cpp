#include "apps/chart/medium.h"

#include "apps/cli/text.h"
#include "braid/tensor/error.h"

namespace braid::apps {

Flag medium_flag() {
  return {
      .name = "for",
      .value = "WHAT",
      .help = "paper: charts as SVG and PDF, 3.25 inches wide, text of 8 pt, no title; paper=INCHES: another width"};
}

Medium medium_of(const Arguments& arguments) {
  if (!arguments.has("for")) return {};
  const std::string text = arguments.get("for");
  if (text == "paper") return {.inches = 3.25};
  constexpr std::string_view begin = "paper=";
  const auto inches = text.starts_with(begin) ? parse_float(text.substr(begin.size())) : std::nullopt;
  check(inches && *inches >= 1.5 && *inches <= 20, ErrorKind::setting, [&] {
    return "bad value for --for: expected paper, or paper=INCHES with a width from 1.5 to 20, found '" + preview(text) +
           "'";
  });
  return {.inches = *inches};
}

}  // namespace braid::apps
