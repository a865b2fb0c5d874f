#include "braid/models/data/tokenizers/tokenizer.h"

#include <algorithm>

#include "braid/tensor/base/utf8.h"
#include "braid/tensor/error.h"

namespace braid::models::text {

// Linear in the text: each special's next place is kept until the text has passed it.
std::vector<int32_t> Tokenizer::encode(std::string_view text, bool parse_specials) const {
  struct Special {
    int32_t id;
    std::string_view bytes;
    size_t next;  // its first place not before `begin`; npos: none
  };
  std::vector<int32_t> tokens;
  std::vector<Special> specials;
  for (int32_t id = 0; parse_specials && id < vocab_size(); ++id) {
    if (is_special(id) && !token_bytes(id).empty())
      specials.push_back({id, token_bytes(id), text.find(token_bytes(id))});
  }
  for (size_t begin = 0; begin < text.size();) {
    const Special* first = nullptr;  // in the text; the longer of two at the same place
    for (Special& s : specials) {
      if (s.next < begin) s.next = text.find(s.bytes, begin);
      if (s.next == std::string_view::npos) continue;
      if (!first || s.next < first->next || (s.next == first->next && s.bytes.size() > first->bytes.size())) first = &s;
    }
    encode_text(text.substr(begin, first ? first->next - begin : std::string_view::npos), tokens);
    if (!first) break;
    tokens.push_back(first->id);
    begin = first->next + first->bytes.size();
  }
  return tokens;
}

std::vector<int32_t> Tokenizer::with_template(std::span<const int32_t> tokens) const {
  return {tokens.begin(), tokens.end()};
}

std::vector<int32_t> Tokenizer::with_template(std::span<const int32_t> a, std::span<const int32_t> b) const {
  std::vector<int32_t> tokens(a.begin(), a.end());
  tokens.insert(tokens.end(), b.begin(), b.end());
  return tokens;
}

std::vector<int32_t> Tokenizer::end_ids() const {
  return eos_id() < 0 ? std::vector<int32_t>() : std::vector<int32_t>{eos_id()};
}

int32_t document_end(const Tokenizer& tokenizer, const std::string& purpose) {
  check(tokenizer.eos_id() >= 0, ErrorKind::input, [&] {
    return "the tokenizer has no token that ends a text, which " + purpose +
           ": expected eos_token in tokenizer_config.json, or eos_token_id in generation_config.json";
  });
  return tokenizer.eos_id();
}

std::vector<int32_t> template_begin(const Tokenizer& tokenizer) {
  const std::vector<int32_t> around = tokenizer.with_template(std::vector<int32_t>{-1});  // -1: where the text stands
  return {around.begin(), std::find(around.begin(), around.end(), -1)};
}

std::string Tokenizer::decode(std::span<const int32_t> tokens, bool skip_specials) const {
  std::string text;
  for (const int32_t id : tokens) {
    const std::string_view bytes = token_bytes(id);
    if (!(skip_specials && is_special(id))) text += bytes;
  }
  return text;
}

// FNV-1a over name, and per token: length, kind, bytes.
uint64_t Tokenizer::fingerprint() const {
  uint64_t hash = 0xcbf29ce484222325u;
  const auto mix = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3u; };
  for (const char c : name()) mix(static_cast<unsigned char>(c));
  for (int32_t id = 0; id < vocab_size(); ++id) {
    const std::string_view bytes = token_bytes(id);
    for (int shift = 0; shift < 32; shift += 8) mix(static_cast<unsigned char>(bytes.size() >> shift));
    mix(is_special(id) ? 1 : 0);
    for (const char c : bytes) mix(static_cast<unsigned char>(c));
  }
  return hash;
}

const std::string& ByteTokenizer::name() const {
  static const std::string name = "bytes";
  return name;
}

std::string_view ByteTokenizer::token_bytes(int32_t id) const {
  static const std::string bytes = [] {
    std::string all;
    for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
    return all;
  }();
  if (id == eos_id()) return "<|endoftext|>";
  if (id == pad_id()) return "<|pad|>";
  check(id >= 0 && id < 256, ErrorKind::input, [&] {
    return str("token id outside the vocabulary: expected 0 to ", vocab_size() - 1, ", found ", id,
               "; the tokens belong to another tokenizer");
  });
  return std::string_view(bytes).substr(static_cast<size_t>(id), 1);
}

void ByteTokenizer::encode_text(std::string_view text, std::vector<int32_t>& tokens) const {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  tokens.insert(tokens.end(), bytes, bytes + text.size());
}

std::string StreamDecoder::push_bytes(int32_t token) {
  if (skip_specials_ && tokenizer_.is_special(token)) return "";
  held_ += tokenizer_.token_bytes(token);
  // Everything but an unfinished character at the very end can be shown.
  size_t done = 0;
  while (done < held_.size()) {
    const int k = detail::utf8_prefix(std::string_view(held_).substr(done));
    if (k == 0) break;
    done += static_cast<size_t>(std::max(k, -k));
  }
  std::string shown = detail::replace_invalid_utf8(std::string_view(held_).substr(0, done));
  held_.erase(0, done);
  return shown;
}

void StreamDecoder::begin(std::span<const int32_t> before) {
  if (tokenizer_.decodes_by_token()) return;
  // Where the first token would be a byte inside a character, ByteFallback took this and all bytes behind it for none.
  constexpr size_t window = 8, longest_character = 4;
  size_t n = std::min(before.size(), window);
  const auto continues = [&](int32_t token) {
    const std::string_view bytes = tokenizer_.token_bytes(token);
    return bytes.size() == 1 && (static_cast<unsigned char>(bytes[0]) & 0xC0) == 0x80;
  };
  while (n < before.size() && n < window + longest_character - 1 && continues(before[before.size() - n])) ++n;
  const auto last = before.last(n);
  ids_.assign(last.begin(), last.end());
  prefix_ = tokenizer_.decode(ids_, skip_specials_);
  shown_ = ids_.size();
}

// The decode stream of the package `tokenizers`: the text of the held tokens is given out, without the part that has
// been, unless it ends in U+FFFD, which may still become a character.
std::string StreamDecoder::push(int32_t token) {
  if (tokenizer_.decodes_by_token()) return push_bytes(token);
  constexpr size_t max_held = 1024;  // tokens that make no text at all: then U+FFFD is shown
  if (prefix_.empty() && !ids_.empty()) {
    std::string text = tokenizer_.decode(ids_, skip_specials_);
    if (!text.ends_with("\uFFFD")) {
      prefix_ = std::move(text);
      shown_ = ids_.size();
    }
  }
  ids_.push_back(token);
  std::string text = tokenizer_.decode(ids_, skip_specials_);
  const bool final = !text.ends_with("\uFFFD") || ids_.size() - shown_ > max_held;
  return text.size() > prefix_.size() && final ? take(std::move(text)) : "";
}

std::string StreamDecoder::take(std::string text) {
  size_t common = 0;  // less than the whole prefix: the decoder changes text that has been given out
  while (common < prefix_.size() && common < text.size() && text[common] == prefix_[common]) ++common;
  while (common > 0 && common < text.size() && (static_cast<unsigned char>(text[common]) & 0xC0) == 0x80) --common;
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(shown_));
  prefix_ = tokenizer_.decode(ids_, skip_specials_);
  shown_ = ids_.size();
  return text.substr(common);
}

std::string StreamDecoder::finish() {
  std::string shown = detail::replace_invalid_utf8(held_);
  if (!ids_.empty()) {
    std::string text = tokenizer_.decode(ids_, skip_specials_);
    if (text.size() > prefix_.size()) shown = take(std::move(text));
  }
  held_.clear(), ids_.clear(), prefix_.clear();
  shown_ = 0;
  return shown;
}

}  // namespace braid::models::text
