// Tokens of a context and its continuation, as lm-evaluation-harness cuts them, and windows over a long text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "braid/models/data/tokenizers/tokenizer.h"
#include "braid/models/eval/eval_task.h"

namespace braid::models::eval {

// The token to prepend to a text: the template's BOS, else eos_id(). Error(input)
// when there is neither.
int32_t prefix_token(const text::Tokenizer& tokenizer);

class PairEncoder {
 public:
  // longest: maximum number of tokens of a sequence, at least 2. vocabulary: the model's ids are below it. Text that
  // looks like a special token is one. The tokenizer must outlive this object.
  PairEncoder(const text::Tokenizer& tokenizer, int64_t longest, int64_t vocabulary);

  // White space at the end of the context moves to the continuation. Then both together are encoded, and the context
  // alone, whose number of tokens says where the continuation begins. An empty context is the prefix token, unless the
  // continuation begins with it. A sequence that is too long loses tokens at the begin of its context.
  // Error(input): the continuation has no token, or more than longest - 1, or the model has no such token; `where`
  // names the item.
  Sequence encode(std::string_view context, std::string_view continuation, const std::string& where);

  // The tokens of a text. Error(input) when there is none, or the model has no such token.
  std::vector<int32_t> encode_text(std::string_view text, const std::string& where) const;

  const text::Tokenizer& tokenizer() const { return tokenizer_; }
  int32_t prefix() const { return prefix_; }
  int64_t longest() const { return longest_; }
  int64_t cut_contexts() const { return cut_; }  // so far

 private:
  void check_ids(const std::vector<int32_t>& tokens, const std::string& where) const;

  const text::Tokenizer& tokenizer_;
  int64_t longest_, vocabulary_, cut_ = 0;
  int32_t prefix_;
};

// Windows over tokens 0 .. n - 1, every one of which is scored once. Each window has at most `longest` tokens: the
// first one the prefix token and longest - 1 tokens of the text; then each one moves on by `stride` tokens, which it
// scores behind longest - stride that were scored before. The last one moves on by what is left and has a longer
// context. 1 <= stride <= longest - 1; stride = longest - 1: disjoint windows, each behind one token that was scored
// before, as loglikelihood_rolling of lm-evaluation-harness makes them.
class Windows {
 public:
  Windows(std::vector<int32_t> tokens, int32_t prefix, int64_t longest, int64_t stride);
  int64_t size() const;
  Sequence at(int64_t window) const;
  int64_t length(int64_t window) const;  // of at(window).tokens
  int64_t scored(int64_t window) const;  // tokens of it

 private:
  struct Range {
    int64_t begin, from, end;  // of the text; begin -1: the prefix token
  };
  Range range(int64_t window) const;

  std::vector<int32_t> tokens_;
  int32_t prefix_;
  int64_t longest_, stride_;
};

}  // namespace braid::models::eval
