// Tokenizers from files and folders, and back into folders.
#include <algorithm>
#include <filesystem>
#include <optional>

#include "braid/models/text/tokenizers/bpe_tokenizer.h"
#include "braid/models/text/tokenizers/byte_tokenizer.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/reader.h"

namespace braid::models::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
constexpr int64_t max_tokenizer_bytes = 256 << 20, max_companion_bytes = 16 << 20;

// A file beside the tokenizer.json; none where it is missing.
std::optional<std::string> companion(const fs::path& folder, const char* name) {
  std::error_code none;
  if (!fs::exists(folder / name, none)) return std::nullopt;
  return io::read_text_file((folder / name).string(), max_companion_bytes);
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

// An id, or the first of a list of them; -1 for none.
int32_t first_id(const json& config, const char* key, int64_t vocabulary) {
  if (!config.is_object() || !config.contains(key)) return -1;
  const json& value = config.at(key);
  const json& id = value.is_array() && !value.empty() ? value[0] : value;
  return id.is_number_integer() && id >= 0 && id < vocabulary ? id.get<int32_t>() : -1;
}

// The ids of the end of a text and of padding: by tokenizer_config.json, else generation_config.json, else config.json,
// else a token of a usual name.
void find_ends(BpeTokenizer& tokenizer, const fs::path& folder, std::vector<TokenizerFile>& files) {
  const auto read = [&](const char* name) {
    const auto text = companion(folder, name);
    return text ? io::parse_json(*text, (folder / name).string()) : json();
  };
  const json config = read("tokenizer_config.json");
  const std::string path = (folder / "tokenizer_config.json").string();
  const auto by_text = [&](const char* key) {
    const std::string text = token_text(config, key);
    const int32_t id = text.empty() ? -1 : tokenizer.id_of(text);
    if (!text.empty() && id < 0)
      tokenizer.add_note(std::string(key) + " '" + text + "' of " + path + " is no token of the tokenizer");
    return id;
  };
  int32_t eos = by_text("eos_token"), pad = by_text("pad_token");
  const bool in_config = eos >= 0;
  for (const char* name : {"generation_config.json", "config.json"}) {
    if (eos >= 0 && pad >= 0) break;
    const json ids = read(name);
    if (eos < 0) eos = first_id(ids, "eos_token_id", tokenizer.vocab_size());
    if (pad < 0) pad = first_id(ids, "pad_token_id", tokenizer.vocab_size());
  }
  if (eos >= 0 && !in_config)  // the tokenizer's own files do not say so
    files.push_back({"generation_config.json", json{{"eos_token_id", eos}}.dump(1) + "\n"});
  for (const char* usual : {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"})
    if (eos < 0 && tokenizer.is_special(tokenizer.id_of(usual))) eos = tokenizer.id_of(usual);
  tokenizer.set_end(eos, pad);
  if (!config.is_object() || !config.contains("added_tokens_decoder")) return;
  for (const auto& [id, token] : config.at("added_tokens_decoder").items()) {
    const std::string text = token_text(config.at("added_tokens_decoder"), id.c_str());
    if (!text.empty() && tokenizer.id_of(text) < 0)
      tokenizer.add_note("added_tokens_decoder of " + path + " has '" + text + "', which is no token of the tokenizer");
  }
}

}  // namespace

std::unique_ptr<Tokenizer> parse_tokenizer(std::string_view text, const std::string& path) {
  const json root = io::parse_json(text, path);
  if (is_byte_tokenizer(root)) return std::make_unique<ByteTokenizer>();
  auto tokenizer = std::make_unique<BpeTokenizer>(Section(root, path, ""));
  tokenizer->set_files({{"tokenizer.json", std::string(text)}});
  return tokenizer;
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& folder_or_file) {
  std::error_code none;
  const bool is_file = fs::is_regular_file(folder_or_file, none);
  const fs::path path = is_file ? fs::path(folder_or_file) : fs::path(folder_or_file) / "tokenizer.json";
  auto tokenizer = parse_tokenizer(io::read_text_file(path.string(), max_tokenizer_bytes), path.string());
  if (auto* bpe = dynamic_cast<BpeTokenizer*>(tokenizer.get())) {
    std::vector<TokenizerFile> files = bpe->files();
    for (const char* name : {"tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"})
      if (auto text = companion(path.parent_path(), name)) files.push_back({name, *std::move(text)});
    find_ends(*bpe, path.parent_path(), files);
    bpe->set_files(std::move(files));
  }
  return tokenizer;
}

void save_tokenizer(const Tokenizer& tokenizer, const std::string& folder) {
  for (const TokenizerFile& file : tokenizer.files())
    io::write_file((fs::path(folder) / file.name).string(), file.contents);
}

}  // namespace braid::models::text
