// Text in, token ids out, and back. The embedded default needs no file: one token per byte and two specials.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid::models::text {

struct TokenizerFile {
  std::string name, contents;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual const std::string& name() const = 0;
  virtual int64_t vocab_size() const = 0;  // 1 + the largest id; ids need not be dense
  virtual int32_t eos_id() const = 0;      // ends every document; -1: the tokenizer names none (document_end())
  // The tokens at which a generated text ends: eos_id(), and others that the model's folder names.
  virtual std::vector<int32_t> end_ids() const;
  virtual int32_t pad_id() const = 0;  // fills batches; never a target; -1: none
  virtual bool is_special(int32_t id) const = 0;
  // The bytes a token stands for; the literal text of a special; empty for an id without token. Error(input) for an id
  // outside [0, vocab_size()).
  virtual std::string_view token_bytes(int32_t id) const = 0;
  // True when any bytes can be encoded. Otherwise texts are UTF-8, and invalid bytes count as U+FFFD.
  virtual bool takes_any_bytes() const = 0;
  // True when the text of ids is the concatenation of their token_bytes(). Otherwise use decode() or StreamDecoder.
  virtual bool decodes_by_token() const = 0;
  // Appends the tokens of plain text, in which the text of a special token is ordinary text.
  virtual void encode_text(std::string_view text, std::vector<int32_t>& tokens) const = 0;

  // parse_specials: the literal text of a special, for example "<|endoftext|>", becomes its one id. Leave it off for
  // text from outside, which could otherwise forge the end of a document. No tokens are added before or after.
  virtual std::vector<int32_t> encode(std::string_view text, bool parse_specials = false) const;
  // The tokens of one text, or of two, with the special tokens that the tokenizer puts around them, for example a
  // beginning-of-text token.
  virtual std::vector<int32_t> with_template(std::span<const int32_t> tokens) const;
  virtual std::vector<int32_t> with_template(std::span<const int32_t> a, std::span<const int32_t> b) const;
  // skip_specials: omits special tokens, for showing generated text.
  virtual std::string decode(std::span<const int32_t> tokens, bool skip_specials = false) const;
  // Two tokenizers with equal fingerprints give equal tokens.
  virtual uint64_t fingerprint() const;
  // Its files, byte for byte where it was read from files.
  virtual std::vector<TokenizerFile> files() const = 0;
  // Parts of its files that are ignored, as messages for the user.
  virtual std::vector<std::string> notes() const { return {}; }
};

// eos_id(). Error(input) when there is none: `purpose` says what needs it.
int32_t document_end(const Tokenizer& tokenizer, const std::string& purpose);

// The tokens that the tokenizer's template puts before a text.
std::vector<int32_t> template_begin(const Tokenizer& tokenizer);

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
  bool decodes_by_token() const override { return true; }
  void encode_text(std::string_view text, std::vector<int32_t>& tokens) const override;
  std::vector<TokenizerFile> files() const override;
};

// Writes files() into an existing folder; each file complete or not at all.
void save_tokenizer(const Tokenizer& tokenizer, const std::string& folder);
// The tokenizer of a model or data folder, or of a tokenizer.json. eos_id() and pad_id() are those of
// tokenizer_config.json, else generation_config.json, else config.json beside it; else a special token <|endoftext|>,
// <|end_of_text|>, </s> or <eos> ends a document. end_ids() are eos_id() and every eos_token_id of
// generation_config.json, else of config.json. Error(input) when there is none, or one that is not supported.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& folder_or_file);
// The same from such files by name, of which `where` holds the first. Error(input) without a tokenizer.json.
std::unique_ptr<Tokenizer> tokenizer_of_files(const std::map<std::string, std::string>& files,
                                              const std::string& where);
// "; <what to run> converts <file>, which is there", where a folder has no tokenizer.json but the files of another
// form, such as tokenizer.model; else "".
std::string conversion_advice(const std::string& folder);
// Every eos_token_id, one or a list, of generation_config.json of a model folder, else of its config.json; ids >=
// `vocabulary` are skipped.
std::vector<int32_t> folder_end_ids(const std::string& folder, int64_t vocabulary);
// The same from the text of a tokenizer.json alone; `path` is for error messages.
std::unique_ptr<Tokenizer> parse_tokenizer(std::string_view text, const std::string& path);

// Decodes tokens one by one into printable text: incomplete characters are held back, invalid UTF-8 becomes U+FFFD. The
// results joined are decode() of all tokens, except where a decoder would change text that was already returned.
class StreamDecoder {
 public:
  // The tokenizer must outlive it.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_specials = true)
      : tokenizer_(tokenizer), skip_specials_(skip_specials) {}
  // The tokens that push() continues: the text of some tokens depends on those before, for example a leading space.
  void begin(std::span<const int32_t> before);
  std::string push(int32_t token);
  std::string finish();  // the text still held back, with U+FFFD for an incomplete character
  bool holds_back() const { return !held_.empty() || ids_.size() > shown_; }

 private:
  std::string push_bytes(int32_t token);
  std::string take(std::string text);

  const Tokenizer& tokenizer_;
  bool skip_specials_;
  std::string held_;  // by token: at most 3 bytes
  // Otherwise: the tokens whose text is not final, after those that it depends on, and the part of their text that was
  // returned, up to ids_[shown_ - 1].
  std::vector<int32_t> ids_;
  std::string prefix_;
  size_t shown_ = 0;
};

}  // namespace braid::models::text
