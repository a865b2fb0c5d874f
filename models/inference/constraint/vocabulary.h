// The tokens of a vocabulary by their bytes, in the order in which a walk over a tree of bytes meets them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "braid/models/data/tokenizers/tokenizer.h"

namespace braid::models {

class Vocabulary {
 public:
  // The tokenizer must outlive it. shown: texts in which special tokens count as their bytes, for example the marks
  // around the call of a tool; all other special tokens, and tokens without bytes, are no text.
  explicit Vocabulary(const text::Tokenizer& tokenizer, const std::vector<std::string>& shown = {});

  struct Node {
    uint32_t end;          // the first node that is not below this one
    uint32_t first_token;  // of tokens(); its tokens end where those of the next node begin
    uint32_t depth;        // 1: the first byte
    uint8_t byte;
  };
  // In the order of the walk: a node, then all below it. The last one is an end mark of depth 0.
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<int32_t>& tokens() const { return tokens_; }
  const std::vector<int32_t>& not_text() const { return not_text_; }
  int64_t size() const { return tokenizer_.vocab_size(); }
  uint32_t longest() const { return longest_; }  // bytes of a token

  bool is_text(int32_t token) const;
  std::string_view bytes(int32_t token) const { return tokenizer_.token_bytes(token); }

 private:
  const text::Tokenizer& tokenizer_;
  std::vector<Node> nodes_;
  std::vector<int32_t> tokens_, not_text_;
  uint32_t longest_ = 0;
};

}  // namespace braid::models
