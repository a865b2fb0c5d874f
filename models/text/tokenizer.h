// Text in, token ids out, and back. The embedded default needs no file: one token per byte and two specials.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid::models::text {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual const std::string& name() const = 0;
  virtual int64_t vocab_size() const = 0;
  virtual int32_t eos_id() const = 0;  // <|endoftext|>: ends every document
  virtual int32_t pad_id() const = 0;  // fills batches; never a target
  virtual bool is_special(int32_t id) const = 0;
  // The bytes a token stands for; the literal text of a special. Error(input) for an id outside [0, vocab_size()).
  virtual std::string_view token_bytes(int32_t id) const = 0;
  // True when any bytes can be encoded, not only UTF-8.
  virtual bool takes_any_bytes() const = 0;
  // Appends the tokens of plain text, in which the text of a special means nothing special.
  virtual void encode_text(std::string_view text, std::vector<int32_t>& tokens) const = 0;

  // parse_specials: the literal text of a special, for example "<|endoftext|>", becomes its one id. Leave it off for
  // text from outside, which could otherwise forge the end of a document.
  std::vector<int32_t> encode(std::string_view text, bool parse_specials = false) const;
  // skip_specials: leaves specials out, for showing generated text.
  std::string decode(std::span<const int32_t> tokens, bool skip_specials = false) const;
  // Two tokenizers with equal fingerprints have the same vocabulary.
  uint64_t fingerprint() const;
};

// ids 0..255: the byte of that value; 256 <|endoftext|>; 257 <|pad|>. Any bytes; decode(encode(x)) == x.
class ByteTokenizer final : public Tokenizer {
 public:
  const std::string& name() const override;
  int64_t vocab_size() const override { return 258; }
  int32_t eos_id() const override { return 256; }
  int32_t pad_id() const override { return 257; }
  bool is_special(int32_t id) const override { return id == 256 || id == 257; }
  std::string_view token_bytes(int32_t id) const override;
  bool takes_any_bytes() const override { return true; }
  void encode_text(std::string_view text, std::vector<int32_t>& tokens) const override;
};

// tokenizer.json and tokenizer_config.json in the format of Hugging Face tokenizers; each file complete or not at all.
void save_tokenizer(const Tokenizer& tokenizer, const std::string& folder);
// The tokenizer of a model or data folder. Error(input) when there is none, or one that is not supported.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& folder);
// The same from the text of a tokenizer.json; `path` is for error messages.
std::unique_ptr<Tokenizer> parse_tokenizer(std::string_view text, const std::string& path);

// Tokens in one by one, printable text out: bytes of a character that is not complete yet are held back, bytes that
// are no UTF-8 become U+FFFD. Specials are left out.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}  // the tokenizer must outlive it
  std::string push(int32_t token);
  std::string finish();  // what is still held back, as U+FFFD

 private:
  const Tokenizer& tokenizer_;
  std::string held_;  // at most 3 bytes
};

}  // namespace braid::models::text
