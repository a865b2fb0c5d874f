// The `post_processor` of a tokenizer.json: TemplateProcessing; ByteLevel, which changes offsets only; Sequence.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "braid/models/data/tokenizers/section.h"

namespace braid::models::text {

class PostProcessor {
 public:
  PostProcessor() = default;                       // nothing is added
  explicit PostProcessor(const Section& section);  // null: nothing is added. Error(input) for other types

  // The ids of one text, or of two, with the special tokens of the template.
  std::vector<int32_t> single(std::span<const int32_t> a) const;
  std::vector<int32_t> pair(std::span<const int32_t> a, std::span<const int32_t> b) const;
  // The largest id that it adds; -1: none.
  int32_t largest_id() const;

 private:
  struct Piece {
    enum class Kind { specials, a, b } kind;
    std::vector<int32_t> ids;
  };
  using Template = std::vector<Piece>;
  void add(const Section& section);
  static Template read(const Section& section, const char* key);
  static std::vector<int32_t> apply(const Template& pieces, std::span<const int32_t> a, std::span<const int32_t> b);

  bool found_ = false;
  Template single_, pair_;
};

}  // namespace braid::models::text
