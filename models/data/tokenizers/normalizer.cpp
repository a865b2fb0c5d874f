#include "braid/models/data/tokenizers/normalizer.h"

#include "braid/models/data/tokenizers/older_classes.h"
#include "braid/models/data/tokenizers/pattern.h"
#include "braid/models/data/tokenizers/precompiled.h"
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

std::string without(std::string_view text, bool (*left_out)(char32_t)) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (!left_out(c)) append_utf8(result, c);
  }
  return result;
}

// Whether a text begins with a character of a class.
std::function<bool(std::string_view)> begins_with(bool (*of)(char32_t)) {
  return [of](std::string_view text) {
    size_t at = 0;
    return !text.empty() && of(next_code_point(text, at));
  };
}

bool is_unclean(char32_t c) { return c == 0 || c == 0xFFFD || is_control(c); }

// BERT's: control characters vanish, white space becomes blanks.
std::string clean_text(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (is_unclean(c)) continue;
    append_utf8(result, is_white_space(c) ? U' ' : c);
  }
  return result;
}

// The ranges are the package's.
std::string blanks_around_ideographs(std::string_view text) {
  static constexpr CodeRange ideographs[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                             {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F},
                                             {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    const bool ideograph = contains(ideographs, c);
    if (ideograph) result += ' ';
    append_utf8(result, c);
    if (ideograph) result += ' ';
  }
  return result;
}

}  // namespace

Normalizer::Normalizer(const Section& section) {
  if (!section.is_null()) add(section);
}

void Normalizer::add(const Section& section) {
  const std::string type = section.type();
  const auto form = [&](NormalForm f) {
    steps_.push_back({[f](std::string_view text) { return normal_form(text, f); }});
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
    steps_.push_back({lower_case});
  } else if (type == "Prepend") {
    steps_.push_back({[prefix = section.text("prepend")](std::string_view text) {
      return text.empty() ? std::string() : str(prefix, text);
    }});
  } else if (type == "Replace") {
    const Pattern pattern(section.at("pattern"));
    const std::string content = section.text("content");
    steps_.push_back({[=](std::string_view text) { return pattern.replace(text, content); }});
    // In the package a content stands where the last character of the match does.
    steps_.back().drops_begin = [=](std::string_view text) {
      size_t kept = 0;
      if (!content.empty() && !text.empty()) next_code_point(text, kept);
      return pattern.match_at_begin(text) > kept;
    };
  } else if (type == "Strip") {
    const bool left = section.flag("strip_left"), right = section.flag("strip_right");
    steps_.push_back({[=](std::string_view text) { return strip(text, left, right); }});
    if (left) steps_.back().drops_begin = begins_with(is_white_space);
  } else if (type == "StripAccents") {
    steps_.push_back({[](std::string_view text) { return without(text, is_mark); }, begins_with(is_mark)});
  } else if (type == "BertNormalizer") {
    const bool lower = section.flag("lowercase", true);
    if (section.flag("clean_text", true)) steps_.push_back({clean_text, begins_with(is_unclean)});
    if (section.flag("handle_chinese_chars", true)) steps_.push_back({blanks_around_ideographs});
    if (section.flag("strip_accents", lower)) {
      form(NormalForm::nfd);
      steps_.push_back(
          {[](std::string_view text) { return without(text, is_nonspacing_mark); }, begins_with(is_nonspacing_mark)});
    }
    if (lower) steps_.push_back({lower_case});
  } else if (type == "Precompiled") {
    steps_.push_back({Precompiled(section)});
  } else if (type == "Sequence") {
    for (const Section& part : section.list("normalizers")) add(part);
  } else {
    section.unsupported("the normalizer '" + type + "'");
  }
}

std::string_view Normalizer::operator()(std::string_view text, std::string& storage, bool* keeps_begin) const {
  for (const Step& step : steps_) {
    if (keeps_begin && step.drops_begin && step.drops_begin(text)) *keeps_begin = false;
    storage = step.change(text);
    text = storage;
  }
  return text;
}

}  // namespace braid::models::text
