// Tokenizers from files and folders, and back into folders.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>

#include "braid/models/data/tokenizers/bpe_tokenizer.h"
#include "braid/models/data/tokenizers/byte_tokenizer.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"

namespace braid::models::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
constexpr int64_t max_tokenizer_bytes = 256 << 20, max_companion_bytes = 16 << 20;

// The text of a file beside the tokenizer.json; none where it is missing.
using Companion = std::function<std::optional<std::string>(const char* name)>;

Companion companions_in(const fs::path& folder) {
  return [folder](const char* name) -> std::optional<std::string> {
    if (!io::exists(folder / name)) return std::nullopt;
    return io::read_text_file((folder / name).string(), max_companion_bytes);
  };
}

// The text of a token of tokenizer_config.json: "</s>" or {"content": "</s>", ..}; "" for none.
std::string token_text(const json& config, const char* key) {
  if (!config.is_object() || !config.contains(key)) return "";
  const json& value = config.at(key);
  if (value.is_string()) return value.get<std::string>();
  return value.is_object() && value.contains("content") && value.at("content").is_string()
             ? value.at("content").get<std::string>()
             : "";
}

// An id, or the ids of a list; those that are no tokens are left out.
std::vector<int32_t> ids_of(const json& config, const char* key, int64_t vocabulary) {
  std::vector<int32_t> ids;
  if (!config.is_object() || !config.contains(key)) return ids;
  const json& value = config.at(key);
  for (const json& id : value.is_array() ? value : json::array({value})) {
    const bool known = id.is_number_integer() && id >= 0 && id < vocabulary;
    if (known && std::ranges::count(ids, id.get<int32_t>()) == 0) ids.push_back(id.get<int32_t>());
  }
  return ids;
}

// Such a file as JSON; null where it is missing.
json companion_json(const Companion& companion, const fs::path& folder, const char* name) {
  const auto text = companion(name);
  return text ? io::parse_json(*text, (folder / name).string()) : json();
}

std::vector<int32_t> end_ids_of(const Companion& companion, const fs::path& folder, int64_t vocabulary) {
  std::vector<int32_t> ids;
  for (const char* name : {"generation_config.json", "config.json"})
    if (ids.empty()) ids = ids_of(companion_json(companion, folder, name), "eos_token_id", vocabulary);
  return ids;
}

// The ids of the ends of a text and of padding: by tokenizer_config.json, then generation_config.json, else
// config.json, else a token of a usual name.
void find_ends(BpeTokenizer& tokenizer, const Companion& companion, const fs::path& folder,
               std::vector<TokenizerFile>& files) {
  const json config = companion_json(companion, folder, "tokenizer_config.json");
  const std::string path = (folder / "tokenizer_config.json").string();
  const auto by_text = [&](const char* key) {
    const std::string text = token_text(config, key);
    const int32_t id = text.empty() ? -1 : tokenizer.id_of(text);
    if (!text.empty() && id < 0)
      tokenizer.add_note(str(key, " '", text, "' of ", path, " is no token of the tokenizer"));
    return id;
  };
  const int32_t eos = by_text("eos_token");
  int32_t pad = by_text("pad_token");
  for (const char* name : {"generation_config.json", "config.json"}) {
    const std::vector<int32_t> pads =
        ids_of(companion_json(companion, folder, name), "pad_token_id", tokenizer.vocab_size());
    if (pad < 0 && !pads.empty()) pad = pads[0];
  }
  std::vector<int32_t> ends = end_ids_of(companion, folder, tokenizer.vocab_size()), own;
  if (eos >= 0) own = {eos};
  std::erase(ends, eos);
  ends.insert(ends.begin(), own.begin(), own.end());
  if (ends != own)  // the tokenizer's own files do not say so
    files.push_back({"generation_config.json",
                     json{{"eos_token_id", ends.size() == 1 ? json(ends[0]) : json(ends)}}.dump(1) + "\n"});
  for (const char* usual : {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"})
    if (ends.empty() && tokenizer.is_special(tokenizer.id_of(usual))) ends = {tokenizer.id_of(usual)};
  tokenizer.set_ends(ends, pad);
  if (!config.is_object() || !config.contains("added_tokens_decoder")) return;
  for (const auto& [id, token] : config.at("added_tokens_decoder").items()) {
    const std::string text = token_text(config.at("added_tokens_decoder"), id.c_str());
    if (!text.empty() && tokenizer.id_of(text) < 0)
      tokenizer.add_note("added_tokens_decoder of " + path + " has '" + text + "', which is no token of the tokenizer");
  }
}

}  // namespace

std::vector<int32_t> folder_end_ids(const std::string& folder, int64_t vocabulary) {
  return end_ids_of(companions_in(folder), folder, vocabulary);
}

std::unique_ptr<Tokenizer> parse_tokenizer(std::string_view text, const std::string& path) {
  const json root = io::parse_json(text, path);
  if (is_byte_tokenizer(root)) return std::make_unique<ByteTokenizer>();
  auto tokenizer = std::make_unique<BpeTokenizer>(Section(root, path, ""));
  tokenizer->set_files({{"tokenizer.json", std::string(text)}});
  return tokenizer;
}

namespace {
std::unique_ptr<Tokenizer> with_companions(const std::string& text, const fs::path& path, const Companion& companion) {
  auto tokenizer = parse_tokenizer(text, path.string());
  if (auto* bpe = dynamic_cast<BpeTokenizer*>(tokenizer.get())) {
    std::vector<TokenizerFile> files = bpe->files();
    for (const char* name : {"tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"})
      if (auto beside = companion(name)) files.push_back({name, *std::move(beside)});
    find_ends(*bpe, companion, path.parent_path(), files);
    bpe->set_files(std::move(files));
  }
  return tokenizer;
}
}  // namespace

std::string conversion_advice(const std::string& folder) {
  if (io::exists(fs::path(folder) / "tokenizer.json")) return "";
  for (const char* name : {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "merges.txt", "vocab.txt"}) {
    if (io::exists(fs::path(folder) / name))
      return str(
          "; ", name,
          " is there, which Braid does not read: convert it once, where transformers, sentencepiece and protobuf "
          "are installed, by running in that folder: python3 -c \"from transformers import AutoTokenizer; "
          "AutoTokenizer.from_pretrained('.').save_pretrained('.')\"");
  }
  return "";
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& folder_or_file) {
  const bool is_file = io::is_file(folder_or_file);
  const fs::path path = is_file ? fs::path(folder_or_file) : fs::path(folder_or_file) / "tokenizer.json";
  if (const std::string advice = is_file ? "" : conversion_advice(folder_or_file); !advice.empty())
    fail(ErrorKind::input, "no tokenizer.json in " + folder_or_file + advice);
  check(path.extension() != ".gguf", ErrorKind::input, [&] {
    return "a tokenizer is a folder or a tokenizer.json: found the GGUF file " + path.string() + "; braid convert " +
           path.string() + " --out DIR makes a folder of it";
  });
  return with_companions(io::read_text_file(path.string(), max_tokenizer_bytes), path,
                         companions_in(path.parent_path()));
}

std::unique_ptr<Tokenizer> tokenizer_of_files(const std::map<std::string, std::string>& files,
                                              const std::string& where) {
  const Companion companion = [&](const char* name) -> std::optional<std::string> {
    const auto at = files.find(name);
    return at == files.end() ? std::nullopt : std::optional(at->second);
  };
  const auto text = companion("tokenizer.json");
  check(text.has_value(), ErrorKind::input, [&] { return "there is no tokenizer in " + where; });
  return with_companions(*text, fs::path(where) / "tokenizer.json", companion);
}

void save_tokenizer(const Tokenizer& tokenizer, const std::string& folder) {
  for (const TokenizerFile& file : tokenizer.files())
    io::write_file((fs::path(folder) / file.name).string(), file.contents);
}

}  // namespace braid::models::text
