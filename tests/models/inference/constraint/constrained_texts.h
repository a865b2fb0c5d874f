// Texts of a grammar: whether it reads one, and random ones.
#pragma once
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "braid/models/inference/constraint/constraint.h"
#include "braid/models/inference/constraint/schema.h"
#include "braid/models/inference/sampling.h"

namespace braid::test {

// Tokens that are any bytes; those that begin with "<|" are special.
class ListedTokenizer final : public models::text::Tokenizer {
 public:
  explicit ListedTokenizer(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {}
  // Every byte, an end, and parts of JSON: tokens that begin and end anywhere, inside of characters too.
  static ListedTokenizer of_json() {
    std::vector<std::string> tokens;
    for (int b = 0; b < 256; ++b) tokens.emplace_back(1, static_cast<char>(b));
    for (const char* token : {"<|end|>",
                              "<|other|>",
                              "",
                              "{\"",
                              "\":",
                              "\": ",
                              "\",\"",
                              "\"}",
                              "}}",
                              "[[",
                              "]]",
                              "],[",
                              "{\"a\":",
                              "{}",
                              "[]",
                              "\"\"",
                              "true",
                              "tru",
                              "alse",
                              "null",
                              "nul",
                              "12",
                              "3.5",
                              "e+",
                              "00",
                              "-1",
                              "\\u",
                              "\\\\",
                              "\\\"",
                              "d83d\\ude",
                              "\n    ",
                              "\n\n",
                              "  ",
                              " \"",
                              "abc",
                              "ab\xC3",
                              "\xA9t\xC3\xA9",
                              "\xF0\x9F",
                              "\x98\x80",
                              "\x80\"",
                              "\xE2\x82\xAC\":",
                              "<tool",
                              "_call>\n{",
                              "\n</tool_call>",
                              "a<",
                              "name\": \"",
                              "arguments\": {",
                              "true"})
      tokens.emplace_back(token);
    return ListedTokenizer(std::move(tokens));
  }

  const std::string& name() const override { return name_; }
  int64_t vocab_size() const override { return std::ssize(tokens_); }
  int32_t eos_id() const override { return -1; }
  int32_t pad_id() const override { return -1; }
  bool is_special(int32_t id) const override { return token_bytes(id).starts_with("<|"); }
  std::string_view token_bytes(int32_t id) const override { return tokens_.at(static_cast<size_t>(id)); }
  bool takes_any_bytes() const override { return true; }
  bool decodes_by_token() const override { return true; }
  void encode_text(std::string_view, std::vector<int32_t>&) const override {}
  std::vector<models::text::TokenizerFile> files() const override { return {}; }

 private:
  std::string name_ = "listed";
  std::vector<std::string> tokens_;
};

inline std::shared_ptr<const models::Grammar> shared(models::Grammar grammar) {
  return std::make_shared<const models::Grammar>(std::move(grammar));
}

// Whether the text is one of the language, read by a fresh automaton.
inline bool reads(const std::shared_ptr<const models::Grammar>& grammar, std::string_view text) {
  models::Automaton automaton(grammar);
  auto state = automaton.start();
  for (const char c : text) state = automaton.next(state, static_cast<unsigned char>(c));
  return automaton.accepts(state);
}
inline bool reads(const std::string& schema, std::string_view text) {
  return reads(shared(models::json_schema_grammar(schema)), text);
}

struct RandomText {
  std::string text;
  bool complete = false;
};
// As a model of random weights writes it: the logits of every step are random. `ends` is drawn like any other token.
inline RandomText random_text(const std::shared_ptr<const models::Constraint>& constraint, int32_t end, uint64_t seed,
                              int max_tokens, double temperature = 1) {
  models::ConstrainedText constrained(constraint, {end});
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  RandomText result;
  std::vector<int32_t> tokens;
  for (int i = 0; i < max_tokens && !result.complete; ++i) {
    std::vector<float> logits(static_cast<size_t>(constraint->vocabulary->size()));
    for (float& l : logits) l = normal(random);
    constrained.mask(logits);
    const auto token = static_cast<int32_t>(
        models::sample_token(std::move(logits), tokens, {.temperature = temperature, .seed = seed}));
    tokens.push_back(token);
    if (token == end) {
      result.complete = true;
      break;
    }
    result.text += constraint->vocabulary->bytes(token);
    constrained.add(token);
    result.complete = constrained.ended();
  }
  return result;
}

inline std::shared_ptr<const models::Constraint> constraint_of(
    models::Grammar grammar, const std::shared_ptr<const models::Vocabulary>& vocabulary) {
  return std::make_shared<const models::Constraint>(models::Constraint{shared(std::move(grammar)), vocabulary});
}

}  // namespace braid::test
