#include "braid/models/data/tokenizers/training/form.h"

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "braid/models/data/tokenizers/byte_level_json.h"
#include "braid/models/data/tokenizers/unicode.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/parallel.h"

namespace braid::models::text {
namespace {

using nlohmann::ordered_json;

const std::vector<std::string> neox_specials{"<|endoftext|>", "<|padding|>"};
const std::vector<std::string> llama_specials{"<|begin_of_text|>", "<|end_of_text|>", "<|finetune_right_pad_id|>"};

}  // namespace

BpeForm::BpeForm(const std::string& name)
    : llama_(name == "llama-3"),
      pipeline_(text_pipeline(name)),
      normalizer_(Section(pipeline_.normalizer(), name, "normalizer")),
      pre_tokenizer_(Section(pipeline_.pre_tokenizer(), name, "pre_tokenizer")) {}

void BpeForm::count(std::string_view text, WordCounts& counts) const {
  thread_local std::string storage;
  thread_local Words words;
  pre_tokenizer_.words(normalizer_(text, storage), true, words);
  for (size_t i = 0; i < words.ranges.size(); ++i) counts.add(words[i]);
}

BpeVocabulary BpeForm::train(const WordCounts& counts, int64_t vocab_size,
                             const std::function<void(int64_t ids)>& progress) const {
  const auto specials = static_cast<int64_t>((llama_ ? llama_specials : neox_specials).size());
  check(vocab_size >= 256 + specials, ErrorKind::setting, [&] {
    return str("a vocabulary of ", vocab_size, " ids is too small: expected at least ", 256 + specials,
               ", for the bytes and the special tokens");
  });
  BpeOptions options{.vocab_size = llama_ ? vocab_size - specials : vocab_size};
  if (!llama_) options.special_tokens = neox_specials;
  std::array<std::string_view, 256> characters;
  for (unsigned byte = 0; byte < 256; ++byte) characters[byte] = byte_character(static_cast<unsigned char>(byte));
  options.initial_alphabet.assign(characters.begin(), characters.end());
  std::vector<CountedWord> words = counts.sorted();
  std::vector<size_t> begin{0};
  for (const CountedWord& word : words) {
    size_t size = 0;
    for (const char c : word.text) size += characters[static_cast<unsigned char>(c)].size();
    begin.push_back(begin.back() + size);
  }
  std::string mapped(begin.back(), '\0');
  parallel_for(std::ssize(words), 4096, [&](int64_t first, int64_t last) {
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
      size_t at = begin[i];
      for (const char c : words[i].text) {
        const std::string_view character = characters[static_cast<unsigned char>(c)];
        at += character.copy(mapped.data() + at, character.size());  // replace() would also write the string's size
      }
      words[i].text = std::string_view(mapped).substr(begin[i], begin[i + 1] - begin[i]);
    }
  });
  return train_merges(words, options, progress);
}

void BpeForm::save(const BpeVocabulary& v, const std::string& folder) const {
  ordered_json vocab = ordered_json::object(), merges = ordered_json::array(), added = ordered_json::array();
  for (size_t id = 0; id < v.tokens.size(); ++id) vocab[v.tokens[id]] = id;
  for (const auto& [left, right] : v.merges)
    merges.push_back(v.tokens[static_cast<size_t>(left)] + " " + v.tokens[static_cast<size_t>(right)]);
  const std::vector<std::string>& specials = llama_ ? llama_specials : neox_specials;
  for (size_t i = 0; i < specials.size(); ++i)
    added.push_back(special_token_json(specials[i], static_cast<int64_t>(llama_ ? v.tokens.size() + i : i)));
  const ordered_json level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  ordered_json post = level;
  if (llama_) {
    const auto token = [&](const std::string& content) {
      return ordered_json{{"SpecialToken", {{"id", content}, {"type_id", 0}}}};
    };
    const auto sequence = [](const char* id, int type) {
      return ordered_json{{"Sequence", {{"id", id}, {"type_id", type}}}};
    };
    const ordered_json bos = {
        {"id", specials[0]}, {"ids", {v.tokens.size()}}, {"tokens", ordered_json::array({specials[0]})}};
    const ordered_json single = ordered_json::array({token(specials[0]), sequence("A", 0)});
    const ordered_json pair =
        ordered_json::array({token(specials[0]), sequence("A", 0), token(specials[0]), sequence("B", 1)});
    const ordered_json processing = {
        {"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", {{specials[0], bos}}}};
    post = {{"type", "Sequence"}, {"processors", ordered_json::array({level, processing})}};
  }
  const ordered_json root = ByteLevelJson{.added = added,
                                          .normalizer = pipeline_.normalizer(),
                                          .pre_tokenizer = pipeline_.pre_tokenizer(),
                                          .post_processor = post,
                                          .decoder = level,
                                          .vocab = vocab,
                                          .merges = merges,
                                          .ignore_merges = llama_}
                                .root();
  ordered_json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
  if (llama_) config["bos_token"] = specials[0];
  config["eos_token"] = specials[llama_ ? 1 : 0];
  config["pad_token"] = specials[llama_ ? 2 : 1];
  io::write_file((std::filesystem::path(folder) / "tokenizer.json").string(), root.dump(1) + "\n");
  io::write_file((std::filesystem::path(folder) / "tokenizer_config.json").string(), config.dump(2) + "\n");
}

}  // namespace braid::models::text
