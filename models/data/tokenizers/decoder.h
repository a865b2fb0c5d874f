// The `decoder` of a tokenizer.json: ByteLevel, Metaspace, Replace, ByteFallback, Fuse, Strip, WordPiece, Sequence.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braid/models/data/tokenizers/section.h"

namespace braid::models::text {

class Decoder {
 public:
  class Step {
   public:
    virtual ~Step() = default;
    virtual void apply(std::vector<std::string>& tokens) const = 0;
    // The bytes that a token stands for inside a text, without regard to the tokens around it.
    virtual std::string bytes(const std::string& token) const { return token; }
  };

  Decoder() = default;                       // joins the tokens with blanks
  explicit Decoder(const Section& section);  // null: joins them with blanks. Error(input) for other types

  std::string operator()(std::vector<std::string> tokens) const;
  std::string bytes(const std::string& token) const;

 private:
  void add(const Section& section);
  bool blanks_ = true;
  std::vector<std::unique_ptr<const Step>> steps_;
};

}  // namespace braid::models::text
