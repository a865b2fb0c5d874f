#include "braid/models/data/tokenizers/bpe_tokenizer.h"

#include <algorithm>

#include "braid/tensor/base/utf8.h"
#include "braid/tensor/error.h"

namespace braid::models::text {
namespace {

constexpr size_t largest_kept_text = 1 << 20;

const Section& checked(const Section& root) {
  if (!root.value().is_object()) root.fail("", "an object");
  if (root.has("version") && root.value().at("version") != "1.0") root.fail("version", "\"1.0\"");
  static constexpr std::string_view known[] = {"version",        "truncation", "padding",
                                               "added_tokens",   "normalizer", "pre_tokenizer",
                                               "post_processor", "decoder",    "model"};
  for (const auto& [name, value] : root.value().items())  // a misspelled one would be a part that is missing
    if (std::ranges::find(known, name) == std::end(known))
      root.fail("", "only members of the format", "'" + name + "'");
  const Section model = root.at("model");
  if (!model.value().is_object()) root.fail("model", "an object");
  return root;
}

std::variant<Bpe, Unigram, WordPiece> read_model(const Section& model, bool byte_level) {
  using Model = std::variant<Bpe, Unigram, WordPiece>;
  const std::string type = model.text("type", "BPE");
  if (type == "BPE") return Model(std::in_place_type<Bpe>, model, byte_level);
  if (type == "Unigram") return Model(std::in_place_type<Unigram>, model, byte_level);
  if (type == "WordPiece" || type == "WordLevel") return Model(std::in_place_type<WordPiece>, model, byte_level);
  model.unsupported("the model '" + type + "'; BPE, Unigram, WordPiece and WordLevel are");
}

int64_t size_of_model(const std::variant<Bpe, Unigram, WordPiece>& model) {
  return std::visit([](const auto& m) { return m.size(); }, model);
}

}  // namespace

BpeTokenizer::BpeTokenizer(const Section& root)
    : normalizer_(checked(root).at("normalizer")),
      pre_tokenizer_(root.at("pre_tokenizer")),
      model_(read_model(root.at("model"), pre_tokenizer_.byte_level())),
      added_(
          root, normalizer_,
          [&](const std::string& token) { return std::visit([&](const auto& m) { return m.id_of(token); }, model_); },
          size_of_model(model_)),
      post_processor_(root.at("post_processor")),
      decoder_(root.at("decoder")) {
  int64_t size = std::max<int64_t>(std::visit([](const auto& m) { return m.id_limit(); }, model_),
                                   post_processor_.largest_id() + 1);
  for (const AddedToken& t : added_.tokens()) size = std::max<int64_t>(size, t.id + 1);
  if (size == 0) root.fail("model.vocab", "at least one token", "none");
  bytes_.resize(static_cast<size_t>(size));
  special_.resize(static_cast<size_t>(size));
  for (int32_t id = 0; id < size; ++id) {
    const AddedToken* added = added_.find(id);
    if (const std::string* text = token(id)) bytes_[static_cast<size_t>(id)] = added ? *text : decoder_.bytes(*text);
    special_[static_cast<size_t>(id)] = added && added->special;
  }
  for (const char* ignored : {"truncation", "padding"})
    if (root.has(ignored)) notes_.push_back(str("\"", ignored, "\" of ", root.file(), " is ignored"));
  fingerprint_ = 0xcbf29ce484222325u;  // FNV-1a of the file's contents, without regard to its layout
  for (const char c : root.value().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
    fingerprint_ = (fingerprint_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
}

const std::string& BpeTokenizer::name() const {
  static const std::string names[] = {"bpe", "unigram", "word-piece"};
  return names[model_.index()];
}

const std::string* BpeTokenizer::token(int32_t id) const {
  const AddedToken* added = added_.find(id);
  return added ? &added->content : std::visit([&](const auto& m) { return m.token(id); }, model_);
}

int32_t BpeTokenizer::id_of(const std::string& token) const {
  for (const AddedToken& t : added_.tokens())
    if (t.content == token) return t.id;
  return std::visit([&](const auto& m) { return m.id_of(token); }, model_);
}

bool BpeTokenizer::is_special(int32_t id) const {
  return id >= 0 && id < vocab_size() && special_[static_cast<size_t>(id)];
}

std::string_view BpeTokenizer::token_bytes(int32_t id) const {
  check(id >= 0 && id < vocab_size(), ErrorKind::input, [&] {
    return str("token id outside the vocabulary: expected 0 to ", vocab_size() - 1, ", found ", id,
               "; the tokens belong to another tokenizer");
  });
  return bytes_[static_cast<size_t>(id)];
}

std::unique_ptr<BpeTokenizer::Scratch> BpeTokenizer::take_scratch() const {
  const std::lock_guard lock(mutex_);
  if (scratch_.empty()) return std::make_unique<Scratch>();
  auto scratch = std::move(scratch_.back());
  scratch_.pop_back();
  return scratch;
}

int64_t BpeTokenizer::merge_steps() const {
  const std::lock_guard lock(mutex_);
  int64_t steps = 0;
  for (const auto& scratch : scratch_)
    std::apply([&](const auto&... of_model) { steps += (of_model.steps + ...); }, scratch->of_model);
  return steps;
}

void BpeTokenizer::encode_text(std::string_view text, std::vector<int32_t>& tokens) const {
  encode(text, true, tokens);
}

std::vector<int32_t> BpeTokenizer::encode(std::string_view text, bool parse_specials) const {
  std::vector<int32_t> tokens;
  encode(text, !parse_specials, tokens);
  return tokens;
}

void BpeTokenizer::encode(std::string_view text, bool as_text, std::vector<int32_t>& tokens) const {
  std::unique_ptr<Scratch> scratch = take_scratch();
  if (!detail::valid_utf8(text)) text = scratch->valid = detail::replace_invalid_utf8(text);
  added_.cut(
      text, AddedTokens::Table::raw, as_text,
      [&](size_t begin, size_t end) {
        encode_piece(text.substr(begin, end - begin), begin == 0, as_text, tokens, *scratch);
      },
      [&](int32_t id) { tokens.push_back(id); });
  if (text.size() > largest_kept_text) return;  // the memory for a text of many megabytes is not kept
  const std::lock_guard lock(mutex_);
  scratch_.push_back(std::move(scratch));
}

void BpeTokenizer::encode_piece(std::string_view piece, bool at_start, bool as_text, std::vector<int32_t>& tokens,
                                Scratch& scratch) const {
  const std::string_view text = normalizer_(piece, scratch.normalized, at_start ? &at_start : nullptr);
  added_.cut(
      text, AddedTokens::Table::normalized, as_text,
      [&](size_t begin, size_t end) {
        Words& words = scratch.words;
        pre_tokenizer_.words(text.substr(begin, end - begin), at_start && begin == 0, words);
        std::visit(
            [&]<class Model>(const Model& model) {
              auto& own = std::get<typename Model::Scratch>(scratch.of_model);
              for (size_t i = 0; i < words.ranges.size(); ++i) model.encode(words[i], tokens, own);
            },
            model_);
      },
      [&](int32_t id) { tokens.push_back(id); });
}

std::vector<int32_t> BpeTokenizer::with_template(std::span<const int32_t> tokens) const {
  return post_processor_.single(tokens);
}

std::vector<int32_t> BpeTokenizer::with_template(std::span<const int32_t> a, std::span<const int32_t> b) const {
  return post_processor_.pair(a, b);
}

std::string BpeTokenizer::decode(std::span<const int32_t> tokens, bool skip_specials) const {
  std::vector<std::string> texts;
  texts.reserve(tokens.size());
  for (const int32_t id : tokens) {
    const std::string* text = skip_specials && is_special(id) ? nullptr : token(id);
    if (text) texts.push_back(*text);
  }
  return decoder_(std::move(texts));
}

}  // namespace braid::models::text
