#include "braid/models/data/tokenizers/normalizer.h"

#include "braid/models/data/tokenizers/pattern.h"
#include "braid/models/data/tokenizers/unicode.h"
#include "braid/tensor/error.h"

namespace braid::models::text {
namespace {
std::string strip(std::string_view text, bool left, bool right) {
  size_t begin = 0, end = text.size();
  while (left && begin < end) {
    size_t behind = begin;
    if (!is_white_space(next_code_point(text, behind))) break;
    begin = behind;
  }
  while (right && end > begin) {
    size_t before = end;
    if (!is_white_space(previous_code_point(text, before))) break;
    end = before;
  }
  return std::string(text.substr(begin, end - begin));
}
}  // namespace

Normalizer::Normalizer(const Section& section) {
  if (!section.is_null()) add(section);
}

void Normalizer::add(const Section& section) {
  const std::string type = section.type();
  const auto form = [&](NormalForm f) {
    steps_.push_back([f](std::string_view text) { return normal_form(text, f); });
  };
  if (type == "NFC") {
    form(NormalForm::nfc);
  } else if (type == "NFD") {
    form(NormalForm::nfd);
  } else if (type == "NFKC") {
    form(NormalForm::nfkc);
  } else if (type == "NFKD") {
    form(NormalForm::nfkd);
  } else if (type == "Lowercase") {
    steps_.push_back(lower_case);
  } else if (type == "Prepend") {
    steps_.push_back([prefix = section.text("prepend")](std::string_view text) {
      return text.empty() ? std::string() : str(prefix, text);
    });
  } else if (type == "Replace") {
    steps_.push_back([pattern = Pattern(section.at("pattern")), content = section.text("content")](
                         std::string_view text) { return pattern.replace(text, content); });
  } else if (type == "Strip") {
    steps_.push_back([left = section.flag("strip_left"), right = section.flag("strip_right")](std::string_view text) {
      return strip(text, left, right);
    });
  } else if (type == "Sequence") {
    for (const Section& part : section.list("normalizers")) add(part);
  } else {
    section.unsupported("the normalizer '" + type + "'");
  }
}

std::string_view Normalizer::operator()(std::string_view text, std::string& storage) const {
  for (const auto& step : steps_) {
    storage = step(text);
    text = storage;
  }
  return text;
}

}  // namespace braid::models::text
