#include "braid/models/data/tokenizers/decoder.h"

#include <optional>

#include "braid/models/data/tokenizers/pattern.h"
#include "braid/models/data/tokenizers/unicode.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/base/utf8.h"

namespace braid::models::text {
namespace {

using Strings = std::vector<std::string>;

void join(Strings& tokens) {
  if (tokens.size() != 1) tokens = {detail::join(tokens, "")};
}

// Characters of the byte-level alphabet become bytes; a token with another character stays as it is. Only the bytes of
// all tokens together are read as UTF-8.
class ByteLevel final : public Decoder::Step {
 public:
  void apply(Strings& tokens) const override {
    for (std::string& token : tokens) token = bytes(token);
    join(tokens);
    tokens[0] = detail::replace_invalid_utf8(tokens[0]);
  }
  std::string bytes(const std::string& token) const override {
    std::string result;
    for (size_t at = 0; at < token.size();) {
      const int byte = byte_of_character(next_code_point(token, at));
      if (byte < 0) return token;
      result += static_cast<char>(byte);
    }
    return result;
  }
};

class MetaspaceText final : public Decoder::Step {
 public:
  explicit MetaspaceText(const Section& section)
      : replacement_(section.text("replacement")), drops_first_(section.text("prepend_scheme", "always") != "never") {}
  void apply(Strings& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replacement_.replace(tokens[i], i == 0 && drops_first_ ? "" : " ");
  }
  std::string bytes(const std::string& token) const override { return replacement_.replace(token, " "); }

 private:
  Pattern replacement_;
  bool drops_first_;
};

class Replace final : public Decoder::Step {
 public:
  explicit Replace(const Section& section) : pattern_(section.at("pattern")), content_(section.text("content")) {}
  void apply(Strings& tokens) const override {
    for (std::string& token : tokens) token = bytes(token);
  }
  std::string bytes(const std::string& token) const override { return pattern_.replace(token, content_); }

 private:
  Pattern pattern_;
  std::string content_;
};

// The byte of "<0xHH>"; as in the package, H may also be a plus sign before one digit.
std::optional<char> fallback_byte(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  const int high = token[3] == '+' ? 0 : digit(token[3]), low = digit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high << 4 | low);
}

// Runs of "<0xHH>" become their text; a run that is not UTF-8 becomes one U+FFFD per byte.
class ByteFallback final : public Decoder::Step {
 public:
  void apply(Strings& tokens) const override {
    Strings result;
    std::string run;
    const auto flush = [&] {
      if (run.empty()) return;
      if (detail::valid_utf8(run))
        result.push_back(run);
      else
        result.insert(result.end(), run.size(), "\uFFFD");
      run.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = fallback_byte(token)) {
        run += *byte;
        continue;
      }
      flush();
      result.push_back(std::move(token));
    }
    flush();
    tokens = std::move(result);
  }
  std::string bytes(const std::string& token) const override {
    const auto byte = fallback_byte(token);
    return byte ? std::string(1, *byte) : token;
  }
};

class Fuse final : public Decoder::Step {
 public:
  void apply(Strings& tokens) const override { join(tokens); }
};

// Tokens that go on with a word, marked by a prefix, follow the one before; the others follow a blank. With `cleanup`
// the blanks that English tokenizers put before punctuation and endings vanish.
class WordPieces final : public Decoder::Step {
 public:
  explicit WordPieces(const Section& section)
      : prefix_(section.text("prefix", "##")), cleanup_(section.flag("cleanup", true)) {}
  void apply(Strings& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0) tokens[i] = bytes(tokens[i]);
      if (cleanup_) clean(tokens[i]);
    }
  }
  std::string bytes(const std::string& token) const override {
    return token.starts_with(prefix_) ? token.substr(prefix_.size()) : " " + token;
  }

 private:
  static void clean(std::string& text) {
    static constexpr std::pair<std::string_view, std::string_view> kChanges[] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [from, to] : kChanges)
      for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
  }
  std::string prefix_;
  bool cleanup_;
};

// Cuts up to `start` characters equal to `content` off the front of each string.
class Strip final : public Decoder::Step {
 public:
  explicit Strip(const Section& section)
      : content_(section.text("content")), start_(section.integer("start", 0, 1 << 20)) {
    size_t length = 0;
    if (!content_.empty()) next_code_point(content_, length);
    if (length == 0 || length != content_.size()) section.fail("content", "one character");
    if (section.integer("stop", 0, 1 << 20) > 0) section.unsupported("Strip with stop above 0");
  }
  void apply(Strings& tokens) const override {
    for (std::string& token : tokens) {
      size_t at = 0;
      for (int64_t i = 0; i < start_ && std::string_view(token).substr(at).starts_with(content_); ++i)
        at += content_.size();
      token.erase(0, at);
    }
  }

 private:
  std::string content_;
  int64_t start_;
};

}  // namespace

Decoder::Decoder(const Section& section) {
  if (section.is_null()) return;
  blanks_ = false;
  add(section);
}

void Decoder::add(const Section& section) {
  const std::string type = section.type();
  if (type == "ByteLevel")
    steps_.push_back(std::make_unique<ByteLevel>());
  else if (type == "Metaspace")
    steps_.push_back(std::make_unique<MetaspaceText>(section));
  else if (type == "Replace")
    steps_.push_back(std::make_unique<Replace>(section));
  else if (type == "ByteFallback")
    steps_.push_back(std::make_unique<ByteFallback>());
  else if (type == "Fuse")
    steps_.push_back(std::make_unique<Fuse>());
  else if (type == "WordPiece")
    steps_.push_back(std::make_unique<WordPieces>(section));
  else if (type == "Strip")
    steps_.push_back(std::make_unique<Strip>(section));
  else if (type == "Sequence")
    for (const Section& part : section.list("decoders")) add(part);
  else
    section.unsupported("the decoder '" + type + "'");
}

std::string Decoder::operator()(std::vector<std::string> tokens) const {
  for (const auto& step : steps_) step->apply(tokens);
  return detail::join(tokens, blanks_ ? " " : "");
}

std::string Decoder::bytes(const std::string& token) const {
  std::string result = token;
  for (const auto& step : steps_) result = step->bytes(result);
  return result;
}

}  // namespace braid::models::text
