#include "apps/cli/exposition.h"

#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

std::string escaped(const std::string& text, bool quotes) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || (quotes && c == '"')) result += '\\';
    result += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return result;
}

}  // namespace

void Exposition::begin(const std::string& name, const char* type, const std::string& help) {
  name_ = name;
  text_ += str("# HELP ", name, " ", escaped(help, false), "\n# TYPE ", name, " ", type, "\n");
}

void Exposition::sample(const std::string& value, const Labels& labels, const char* suffix) {
  text_ += name_ + suffix;
  const char* before = "{";
  for (const auto& [label, of] : labels)
    text_ += str(std::exchange(before, ","), label, "=\"", escaped(of, true), "\"");
  text_ += str(labels.empty() ? "" : "}", " ", value, "\n");
}

}  // namespace braid::apps
