#include "braid/models/eval/encode_pair.h"

#include <algorithm>

#include "braid/models/eval/python_text.h"
#include "braid/tensor/error.h"

namespace braid::models::eval {

int32_t prefix_token(const text::Tokenizer& tokenizer) {
  if (const std::vector<int32_t> begin = text::template_begin(tokenizer); !begin.empty()) return begin[0];
  return text::document_end(tokenizer, "a text without context is scored behind");
}

PairEncoder::PairEncoder(const text::Tokenizer& tokenizer, int64_t longest, int64_t vocabulary)
    : tokenizer_(tokenizer), longest_(longest), vocabulary_(vocabulary), prefix_(prefix_token(tokenizer)) {
  check(longest >= 2, ErrorKind::setting, [&] {
    return str("a scored sequence needs a given token and a scored one: expected sequences of 2 tokens or more, found ",
               longest);
  });
  check_ids({prefix_}, "the beginning of a text");
}

Sequence PairEncoder::encode(std::string_view context, std::string_view continuation, const std::string& where) {
  const std::string whole = str(context, continuation);
  const size_t split = rstrip(context).size();
  Sequence sequence{.tokens = tokenizer_.encode(whole, true), .from = 0};
  if (split > 0)
    sequence.from = std::ssize(tokenizer_.encode(context.substr(0, split), true));
  else if (!sequence.tokens.empty() && sequence.tokens[0] == prefix_ && sequence.tokens.size() > 1)
    sequence.from = 1;
  else
    sequence.tokens.insert(sequence.tokens.begin(), prefix_), sequence.from = 1;
  const int64_t n = std::ssize(sequence.tokens), scored = n - sequence.from;
  check(scored >= 1 && sequence.from >= 1, ErrorKind::input, [&] {
    return str("cannot score ", where, ": expected a continuation with a token of its own, found none behind the ",
               sequence.from, " tokens of its context; correct the line or remove it");
  });
  check(scored <= longest_ - 1, ErrorKind::input, [&] {
    return str("cannot score ", where, ": expected a continuation of at most ", longest_ - 1,
               " tokens, one less than the longest sequence, found ", scored, "; shorten the line or remove it");
  });
  if (n > longest_) {
    sequence.tokens.erase(sequence.tokens.begin(), sequence.tokens.begin() + (n - longest_));
    sequence.from -= n - longest_;
    ++cut_;
  }
  check_ids(sequence.tokens, where);
  return sequence;
}

std::vector<int32_t> PairEncoder::encode_text(std::string_view text, const std::string& where) const {
  std::vector<int32_t> tokens = tokenizer_.encode(text, true);
  check(!tokens.empty(), ErrorKind::input,
        [&] { return "cannot score " + where + ": expected text, found none; remove it"; });
  check_ids(tokens, where);
  return tokens;
}

void PairEncoder::check_ids(const std::vector<int32_t>& tokens, const std::string& where) const {
  const auto bad = std::ranges::find_if(tokens, [&](int32_t id) { return id < 0 || id >= vocabulary_; });
  check(bad == tokens.end(), ErrorKind::input, [&] {
    return str("cannot score ", where, ": expected token ids below ", vocabulary_, ", which the model has, found ",
               *bad, "; use the tokenizer that it was trained with");
  });
}

Windows::Windows(std::vector<int32_t> tokens, int32_t prefix, int64_t longest, int64_t stride)
    : tokens_(std::move(tokens)), prefix_(prefix), longest_(longest), stride_(stride) {
  check(longest >= 2 && stride >= 1 && stride < longest, "Windows",
        [&] { return str("expected 1 <= stride < longest, got ", stride, " and ", longest); });
}

int64_t Windows::size() const {
  const int64_t n = std::ssize(tokens_), first = longest_ - 1;
  if (n == 0) return 0;
  return 1 + (std::max<int64_t>(n - first, 0) + stride_ - 1) / stride_;
}

Windows::Range Windows::range(int64_t window) const {
  const int64_t n = std::ssize(tokens_), first = longest_ - 1;
  if (window == 0) return {-1, 0, std::min(n, first)};
  const int64_t from = first + (window - 1) * stride_, end = std::min(n, from + stride_);
  return {end - longest_, from, end};  // end > first, so that begin >= 0
}

Sequence Windows::at(int64_t window) const {
  const Range r = range(window);
  Sequence sequence;
  if (r.begin < 0) sequence.tokens.push_back(prefix_);
  sequence.tokens.insert(sequence.tokens.end(), tokens_.begin() + std::max<int64_t>(r.begin, 0),
                         tokens_.begin() + r.end);
  sequence.from = r.from - r.begin;
  return sequence;
}

int64_t Windows::length(int64_t window) const {
  const Range r = range(window);
  return r.end - r.begin;
}

int64_t Windows::scored(int64_t window) const {
  const Range r = range(window);
  return r.end - r.from;
}

}  // namespace braid::models::eval
