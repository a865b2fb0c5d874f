// A language of texts as a program that reads them byte by byte: what a generated text may be.
//
//   bytes a           reads one byte of sets[a], then the next instruction
//   split a, b        continues at a and at b
//   jump a            continues at a
//   call a            runs the rule that begins at a up to its `back`, then the next instruction
//   repeat a, b, c    runs the rule at a, which reads at least one byte, b to c times, then the next instruction
//   back              the end of a rule
//   accept            the text is complete
#pragma once
#include <bitset>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace braid::models {

// What one step of a text may be: a byte, or a token that is no text, such as <|endoftext|> inside of a text.
using ByteSet = std::bitset<257>;
inline constexpr int kNoText = 256;

struct Grammar {
  enum class Op : uint8_t { bytes, split, jump, call, repeat, back, accept };
  static constexpr uint32_t unlimited = std::numeric_limits<uint32_t>::max();
  static constexpr size_t max_instructions = 200000;
  struct Instruction {
    Op op;
    uint32_t a = 0, b = 0, c = 0;
  };
  std::vector<Instruction> code;  // begins with the first one
  std::vector<ByteSet> sets;
};

// Writes a grammar from its beginning to its end. Every function but those of JSON appends instructions that continue
// behind them.
class GrammarWriter {
 public:
  using Emit = std::function<void()>;
  using Label = uint32_t;

  uint32_t here() const { return static_cast<uint32_t>(grammar_.code.size()); }
  // Error(input) where the grammar becomes larger than max_instructions.
  uint32_t add(Grammar::Op op, uint32_t a = 0, uint32_t b = 0, uint32_t c = 0);
  Grammar::Instruction& at(uint32_t index) { return grammar_.code[index]; }

  void bytes(const ByteSet& set);
  void text(std::string_view literal);
  // One of n parts.
  void either(size_t n, const std::function<void(size_t)>& emit);
  void either(const std::vector<Emit>& parts);
  void optional(const Emit& part);
  void call(uint32_t rule) { add(Grammar::Op::call, rule); }
  void repeat(uint32_t rule, uint32_t min, uint32_t max) { add(Grammar::Op::repeat, rule, min, max); }
  // Writes a rule, which instructions before and behind it pass over. `begun` gets its beginning before its body is
  // written: a rule may call itself. Its name is for messages.
  uint32_t rule(const Emit& body, const std::function<void(uint32_t)>& begun = {}, const std::string& name = "");
  // The texts of a list, sorted and without duplicates, in which each of them stands: they share their beginnings.
  void words(const std::vector<std::string>& sorted);

  // Checks that every rule reads a byte before it calls itself, and that some text is complete. Error(input) otherwise.
  Grammar finish();

  // JSON. White space is what may stand between two of its parts: nothing, one blank, or a line end and up to 32 blanks
  // and tabs. Strings are UTF-8, and escapes of surrogates come in pairs. Numbers have up to 20 digits, a fraction of
  // up to 20 and an exponent of up to two.
  void white_space();
  void json_value();
  void json_object();
  void json_array();
  void json_string(uint32_t min = 0, uint32_t max = Grammar::unlimited);  // characters
  void json_number();
  uint32_t characters();  // the rule of one character of a string, without escapes: the bytes of UTF-8
  void digits(uint32_t min, uint32_t max);

 private:
  void words(const std::vector<std::string>& sorted, size_t begin, size_t end, size_t depth);
  uint32_t shared(const char* name, const Emit& body);
  void raw_character();
  void escape();

  Grammar grammar_;
  std::unordered_map<ByteSet, uint32_t> set_index_;
  std::unordered_map<std::string, uint32_t> rules_;      // shared ones
  std::vector<std::pair<uint32_t, std::string>> names_;  // of all rules by their beginnings
};

ByteSet byte_range(int first, int last);
ByteSet any_byte_of(std::string_view bytes);

// The rows of valid UTF-8 of two to four bytes: the first byte, the second one, and the number of others, 80 to BF.
struct Utf8Row {
  int first_low, first_high, second_low, second_high, others;
};
inline constexpr Utf8Row kUtf8Rows[] = {
    {0xC2, 0xDF, 0x80, 0xBF, 0}, {0xE0, 0xE0, 0xA0, 0xBF, 1}, {0xE1, 0xEC, 0x80, 0xBF, 1}, {0xED, 0xED, 0x80, 0x9F, 1},
    {0xEE, 0xEF, 0x80, 0xBF, 1}, {0xF0, 0xF0, 0x90, 0xBF, 2}, {0xF1, 0xF3, 0x80, 0xBF, 2}, {0xF4, 0xF4, 0x80, 0x8F, 2}};

// Any JSON object.
Grammar json_object_grammar();

}  // namespace braid::models
