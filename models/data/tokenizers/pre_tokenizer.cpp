#include "braid/models/data/tokenizers/pre_tokenizer.h"

#include <algorithm>
#include <optional>

#include "braid/models/data/tokenizers/older_classes.h"
#include "braid/models/data/tokenizers/pattern.h"
#include "braid/models/data/tokenizers/unicode.h"
#include "braid/tensor/error.h"

namespace braid::models::text {
namespace {

using Range = Words::Range;

enum class Behavior { isolated, removed, contiguous, merged_with_previous, merged_with_next };

// Matches of a pattern and the text between them, joined by the behavior.
class Split final : public PreTokenizer::Step {
 public:
  Split(Pattern pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void apply(Words& words) const override {
    std::vector<Range> result;
    result.reserve(words.ranges.size() * 2 + words.text.size() / 8);
    std::vector<Part> parts;
    for (const Range& word : words.ranges) {
      const std::string_view text = words.text.substr(word.begin, word.end - word.begin);
      if (behavior_ == Behavior::isolated) {  // whatever matches, every part is a word
        size_t done = 0;
        const auto put = [&](size_t begin, size_t end) {
          if (begin < end) result.push_back({word.begin + begin, word.begin + end});
        };
        pattern_.for_each_match(text, [&](size_t begin, size_t end) {
          put(done, begin);
          put(begin, end);
          done = end;
        });
        put(done, text.size());
      } else {
        find(text, parts);
        join(parts, word.begin, result);
      }
    }
    if (!result.empty() && !words.ranges.empty() && result.front().begin != words.ranges.front().begin)
      words.at_input_start = false;
    words.ranges = std::move(result);
  }

 private:
  struct Part {
    size_t begin, end;
    bool match;
  };

  void find(std::string_view text, std::vector<Part>& parts) const {
    parts.clear();
    size_t done = 0;
    pattern_.for_each_match(text, [&](size_t begin, size_t end) {
      if (done != begin) parts.push_back({done, begin, invert_});
      parts.push_back({begin, end, !invert_});
      done = end;
    });
    if (done != text.size()) parts.push_back({done, text.size(), invert_});
  }

  void join(const std::vector<Part>& parts, size_t offset, std::vector<Range>& result) const {
    const auto first = static_cast<std::ptrdiff_t>(result.size());
    const auto begun = [&] { return static_cast<std::ptrdiff_t>(result.size()) > first; };
    bool before = false;  // of the last part: a match
    const auto put = [&](const Part& p) { result.push_back({offset + p.begin, offset + p.end}); };
    if (behavior_ == Behavior::merged_with_next) {  // from the right
      for (auto p = parts.rbegin(); p != parts.rend(); before = (p++)->match)
        if (p->match && !before && begun())
          result.back().begin = offset + p->begin;
        else
          put(*p);
      std::reverse(result.begin() + first, result.end());
    } else {
      for (const Part& p : parts) {
        const bool joined = behavior_ == Behavior::contiguous             ? p.match == before
                            : behavior_ == Behavior::merged_with_previous ? p.match && !before
                                                                          : false;
        if (joined && begun())
          result.back().end = offset + p.end;
        else if (behavior_ != Behavior::removed || !p.match)
          put(p);
        before = p.match;
      }
    }
    result.erase(std::remove_if(result.begin() + first, result.end(), [](const Range& r) { return r.begin == r.end; }),
                 result.end());
  }

  Pattern pattern_;
  Behavior behavior_;
  bool invert_;
};

// Neighbours of one class are a word; white space separates words, and a character of the class `alone` is one.
class Characters final : public PreTokenizer::Step {
 public:
  enum class Class { word, other, alone };
  explicit Characters(Class (*of)(char32_t)) : of_(of) {}

  void apply(Words& words) const override {
    std::vector<Range> result;
    for (const Range& word : words.ranges) {
      std::optional<Class> before;  // of the last word, where the next character may join it
      for (size_t at = word.begin; at < word.end;) {
        const size_t begin = at;
        const char32_t c = next_code_point(words.text, at);
        const std::optional<Class> own = is_white_space(c) ? std::nullopt : std::optional(of_(c));
        if (own && own == before && own != Class::alone)
          result.back().end = at;
        else if (own)
          result.push_back({begin, at});
        before = own;
      }
    }
    if (!result.empty() && !words.ranges.empty() && result.front().begin != words.ranges.front().begin)
      words.at_input_start = false;
    words.ranges = std::move(result);
  }

 private:
  Class (*of_)(char32_t);
};

// Rewrites every word by change(word, is_first, out).
template <typename Change>
void rewrite(Words& words, const Change& change) {
  std::string out;
  out.reserve(words.text.size() + words.ranges.size());
  bool first = true;
  for (Range& word : words.ranges) {
    const size_t begin = out.size();
    change(words.text.substr(word.begin, word.end - word.begin), first, out);
    word = {begin, out.size()};
    first = false;
  }
  words.storage = std::move(out);
  words.text = words.storage;
}

class PrefixSpace final : public PreTokenizer::Step {
 public:
  void apply(Words& words) const override {
    const auto lacks = [&](const Range& word) { return words.text[word.begin] != ' '; };
    if (std::none_of(words.ranges.begin(), words.ranges.end(), lacks)) return;
    rewrite(words, [](std::string_view word, bool, std::string& out) {
      if (word.front() != ' ') out += ' ';
      out += word;
    });
  }
};

class BytesToCharacters final : public PreTokenizer::Step {
 public:
  void apply(Words& words) const override {
    rewrite(words, [](std::string_view word, bool, std::string& out) { append_byte_characters(out, word); });
  }
};

enum class PrependScheme { always, first, never };

class Metaspace final : public PreTokenizer::Step {
 public:
  explicit Metaspace(const Section& section)
      : replacement_(section.text("replacement")), scheme_(read_scheme(section)) {
    size_t length = 0;
    if (!replacement_.empty()) next_code_point(replacement_, length);
    if (length == 0 || length != replacement_.size()) section.fail("replacement", "one character");
    if (section.flag("split", true)) split_.emplace(Pattern(replacement_), Behavior::merged_with_next, false);
  }

  void apply(Words& words) const override {
    const bool at_start = words.at_input_start;
    rewrite(words, [&](std::string_view word, bool first, std::string& out) {
      const bool begins = word.front() == ' ' || word.starts_with(replacement_);
      if (!begins && (scheme_ == PrependScheme::always || (scheme_ == PrependScheme::first && first && at_start)))
        out += replacement_;
      for (const char c : word)
        if (c == ' ')
          out += replacement_;
        else
          out += c;
    });
    if (split_) split_->apply(words);
  }

 private:
  static PrependScheme read_scheme(const Section& section) {
    const std::string name = section.text("prepend_scheme", "always");
    const auto scheme = name == "always"  ? PrependScheme::always
                        : name == "first" ? PrependScheme::first
                                          : PrependScheme::never;
    if (scheme == PrependScheme::never && name != "never") section.fail("prepend_scheme", "always, first or never");
    if (section.has("add_prefix_space") && !section.flag("add_prefix_space") && scheme != PrependScheme::never)
      section.fail("add_prefix_space", "true, or prepend_scheme \"never\"");
    return scheme;
  }
  std::string replacement_;
  PrependScheme scheme_;
  std::optional<Split> split_;
};

Behavior read_behavior(const Section& section) {
  const std::string name = section.text("behavior");
  constexpr std::pair<const char*, Behavior> names[] = {{"Isolated", Behavior::isolated},
                                                        {"Removed", Behavior::removed},
                                                        {"Contiguous", Behavior::contiguous},
                                                        {"MergedWithPrevious", Behavior::merged_with_previous},
                                                        {"MergedWithNext", Behavior::merged_with_next}};
  for (const auto& [text, behavior] : names)
    if (name == text) return behavior;
  section.fail("behavior", "Isolated, Removed, Contiguous, MergedWithPrevious or MergedWithNext");
}

// Nd, Nl and No, with some that a newer table has.
std::string numerals() {
  std::string members = "\\p{N}";
  for (const CodeRange& range : newer_numerals()) {
    append_utf8(members, range.first);
    members += '-';
    append_utf8(members, range.last);
  }
  return members;
}

constexpr const char* gpt2_pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace

PreTokenizer::PreTokenizer(const Section& section) {
  if (!section.is_null()) add(section);
}

void PreTokenizer::map_bytes() {
  if (byte_level_) steps_.push_back(std::make_unique<BytesToCharacters>());
  byte_level_ = false;
}

void PreTokenizer::add(const Section& section) {
  const std::string type = section.type();
  if (type == "Sequence") {
    for (const Section& part : section.list("pretokenizers")) add(part);
    return;
  }
  const auto by_class = [&](Characters::Class (*of)(char32_t)) { steps_.push_back(std::make_unique<Characters>(of)); };
  map_bytes();  // a step behind ByteLevel works on its characters
  if (type == "ByteLevel") {
    if (section.flag("add_prefix_space", true)) steps_.push_back(std::make_unique<PrefixSpace>());
    if (section.flag("use_regex", true))
      steps_.push_back(std::make_unique<Split>(Pattern(gpt2_pattern, "ByteLevel"), Behavior::isolated, false));
    byte_level_ = true;
  } else if (type == "Split") {
    steps_.push_back(
        std::make_unique<Split>(Pattern(section.at("pattern")), read_behavior(section), section.flag("invert", false)));
  } else if (type == "Digits") {
    const bool one = section.flag("individual_digits", false);
    steps_.push_back(std::make_unique<Split>(Pattern("[" + numerals() + "]" + (one ? "" : "+"), "Digits"),
                                             Behavior::isolated, false));
  } else if (type == "WhitespaceSplit") {
    by_class([](char32_t) { return Characters::Class::word; });
  } else if (type == "Whitespace") {
    by_class([](char32_t c) { return is_word_character(c) ? Characters::Class::word : Characters::Class::other; });
  } else if (type == "BertPreTokenizer") {
    by_class([](char32_t c) { return is_punctuation(c) ? Characters::Class::alone : Characters::Class::word; });
  } else if (type == "Metaspace") {
    steps_.push_back(std::make_unique<Metaspace>(section));
  } else {
    section.unsupported("the pre_tokenizer '" + type + "'");
  }
}

void PreTokenizer::words(std::string_view text, bool at_input_start, Words& words) const {
  words.text = text;
  words.at_input_start = at_input_start;
  words.ranges.clear();
  if (text.empty()) return;
  words.ranges.push_back({0, text.size()});
  for (const auto& step : steps_) step->apply(words);
}

void PreTokenizer::split(std::string_view text, std::vector<std::string>& words) const {
  Words found;
  this->words(text, true, found);
  for (size_t i = 0; i < found.ranges.size(); ++i) {
    std::string& word = words.emplace_back();
    if (byte_level_)
      append_byte_characters(word, found[i]);
    else
      word = found[i];
  }
}

TextPipeline::TextPipeline(const nlohmann::json& normalizer, const nlohmann::json& pre_tokenizer,
                           const std::string& name)
    : normalizer_json_(normalizer),
      pre_tokenizer_json_(pre_tokenizer),
      normalizer_(Section(normalizer_json_, name, "normalizer")),
      pre_tokenizer_(Section(pre_tokenizer_json_, name, "pre_tokenizer")) {}

void TextPipeline::split(std::string_view text, std::vector<std::string>& words) const {
  std::string storage;
  pre_tokenizer_.split(normalizer_(text, storage), words);
}

TextPipeline text_pipeline(const std::string& name) {
  using nlohmann::json;
  const auto byte_level = [](bool use_regex) {
    return json{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", use_regex}};
  };
  json nfc, sequence;
  nfc["type"] = "NFC";
  if (name == "gpt-neox") return TextPipeline(nfc, byte_level(true), name);
  check(name == "llama-3", ErrorKind::setting,
        [&] { return "unknown form of a tokenizer: expected gpt-neox or llama-3, found '" + name + "'"; });
  const json split = {
      {"type", "Split"}, {"pattern", {{"Regex", llama3_pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
  sequence["type"] = "Sequence";
  sequence["pretokenizers"] = json::array({split, byte_level(false)});
  return TextPipeline(nullptr, sequence, name);
}

}  // namespace braid::models::text
