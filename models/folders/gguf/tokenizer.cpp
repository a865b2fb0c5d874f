#include "braid/models/folders/gguf/tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "braid/models/data/tokenizers/byte_level_json.h"
#include "braid/models/folders/gguf/architecture.h"
#include "braid/models/folders/gguf/cuts.h"
#include "braid/models/folders/gguf/merges.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/base/utf8.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/json.h"

namespace braid::models::gguf {

namespace {

using nlohmann::json;
using Metadata = std::vector<std::pair<std::string, io::GgufValue>>;

constexpr int64_t kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6;

const std::string kKey = "tokenizer.ggml.";
constexpr const char* kEnds[] = {"eos", "eot", "eom"};  // tokens that end a text: ..._token_id
const char* const kNormalizer = "braid.normalizer";     // NFC or none, where it is not that of tokenizer.ggml.pre

// `begin` before and `end` behind one text, and each of two; none: nothing stands there.
json template_of(std::optional<int64_t> begin, std::optional<int64_t> end, const std::vector<std::string>& tokens) {
  json single = json::array(), pair = json::array(), special_tokens = json::object();
  for (const char* name : {"A", "B"}) {
    json part = json::array();
    const auto special = [&](std::optional<int64_t> id) {
      if (!id) return;
      const std::string& token = tokens[static_cast<size_t>(*id)];
      part.push_back(json{{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
      special_tokens[token] = {{"id", token}, {"ids", {*id}}, {"tokens", {token}}};
    };
    special(begin);
    part.push_back(json{{"Sequence", {{"id", name}, {"type_id", 0}}}});
    special(end);
    pair.insert(pair.end(), part.begin(), part.end());
    if (single.empty()) single = part;
  }
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", special_tokens}};
}

[[noreturn]] void bad_tokenizer(const io::GgufFile& file, const std::string& key, const std::string& expected,
                                const std::string& found, const std::string& advice = "") {
  io::fail_input("bad value of " + kKey + key, file.path(), -1, expected, found, advice);
}

// Texts, kinds and scores of the tokens.
struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<int64_t> kinds;
  std::vector<double> scores;

  explicit Vocabulary(const io::GgufFile& file)
      : tokens(value_of<std::vector<std::string>>(file, kKey + "tokens").value_or(std::vector<std::string>())),
        kinds(value_of<std::vector<int64_t>>(file, kKey + "token_type")
                  .value_or(std::vector<int64_t>(tokens.size(), kNormal))),
        scores(value_of<std::vector<double>>(file, kKey + "scores").value_or(std::vector<double>(tokens.size(), 0))) {
    if (tokens.empty() || kinds.size() != tokens.size() || scores.size() != tokens.size())
      bad_tokenizer(file, "tokens", "tokens, and as many kinds and scores",
                    str(tokens.size(), ", ", kinds.size(), " and ", scores.size()));
    for (const std::string& token : tokens)
      if (!braid::detail::valid_utf8(token))
        bad_tokenizer(file, "tokens", "texts in UTF-8", braid::detail::preview(token));
  }
};

}  // namespace

std::vector<int64_t> read_ends(const io::GgufFile& file) {
  std::vector<int64_t> ends;
  for (const char* name : kEnds)
    if (const auto id = value_of<int64_t>(file, str(kKey, name, "_token_id")); id && std::ranges::count(ends, *id) == 0)
      ends.push_back(*id);
  return ends;
}

std::map<std::string, std::string> read_tokenizer(const io::GgufFile& file) {
  std::map<std::string, std::string> files;
  if (const auto ends = read_ends(file); !ends.empty())
    files["generation_config.json"] = json{{"eos_token_id", ends}}.dump(1) + "\n";
  const auto model = value_of<std::string>(file, kKey + "model");
  if (!model || *model == "no_vocab" || *model == "none") return files;
  const bool pieces = *model == "llama";
  if (!pieces && *model != "gpt2")
    bad_tokenizer(file, "model", "gpt2 (byte-level BPE) or llama (SentencePiece BPE)", braid::detail::preview(*model),
                  "give --tokenizer FOLDER with the model's tokenizer.json");
  const Vocabulary all(file);
  const auto size = static_cast<int64_t>(all.tokens.size());

  std::unordered_map<std::string, int64_t> vocabulary, parts;  // of the model, and what its merges may join
  json added = json::array(), vocab = json::object();
  for (int64_t id = 0; id < size; ++id) {
    const std::string& token = all.tokens[static_cast<size_t>(id)];
    const int64_t kind = all.kinds[static_cast<size_t>(id)];
    if (kind == kUnused || token.empty()) continue;
    if (!vocabulary.emplace(token, id).second)
      bad_tokenizer(file, "tokens", "every text once", braid::detail::preview(token) + " twice");
    vocab[token] = id;
    if (kind == kNormal) parts.emplace(token, id);
    if (kind == kControl || kind == kUserDefined || kind == kUnknown)
      added.push_back(json(text::special_token_json(token, id, kind != kUserDefined)));
  }

  json tokenizer_model = {{"type", "BPE"},
                          {"dropout", nullptr},
                          {"continuing_subword_prefix", nullptr},
                          {"unk_token", nullptr},
                          {"end_of_word_suffix", nullptr},
                          {"fuse_unk", pieces},
                          {"byte_fallback", pieces},
                          {"ignore_merges", false}};
  json normalizer, pre_tokenizer, decoder;
  bool begins = pieces;
  if (pieces) {
    tokenizer_model["merges"] = merges_of_scores(all.tokens, all.scores, parts);
    const int64_t unknown = value_of<int64_t>(file, kKey + "unknown_token_id").value_or(0);
    if (unknown >= 0 && unknown < size && vocabulary.contains(all.tokens[static_cast<size_t>(unknown)]))
      tokenizer_model["unk_token"] = all.tokens[static_cast<size_t>(unknown)];
    const bool prefix = value_of<bool>(file, kKey + "add_space_prefix").value_or(true);
    json steps = json::array(), back = json::array();
    if (prefix) steps.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpace}});
    back.push_back({{"type", "Replace"}, {"pattern", {{"String", kSpace}}}, {"content", " "}});
    back.push_back({{"type", "ByteFallback"}});
    back.push_back({{"type", "Fuse"}});
    if (prefix) back.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    normalizer = {{"type", "Sequence"}, {"normalizers", steps}};
    decoder = {{"type", "Sequence"}, {"decoders", back}};
  } else {
    const std::string pre = value_of<std::string>(file, kKey + "pre").value_or("default");
    const auto cut = std::ranges::find_if(cuts(), [&](const Cut& c) { return std::ranges::count(c.names, pre) > 0; });
    if (cut == cuts().end()) {
      std::vector<std::string> names;
      for (const Cut& c : cuts()) names.push_back(c.names[0]);
      bad_tokenizer(file, "pre", braid::detail::join(names, ", "), braid::detail::preview(pre),
                    "give --tokenizer FOLDER with the model's tokenizer.json");
    }
    json merges = json::array();
    for (const std::string& merge :
         value_of<std::vector<std::string>>(file, kKey + "merges").value_or(std::vector<std::string>())) {
      const size_t space = merge.find(' ', 1);
      if (space == std::string::npos || !braid::detail::valid_utf8(merge))
        bad_tokenizer(file, "merges", "two tokens with a space between them", braid::detail::preview(merge));
      merges.push_back({merge.substr(0, space), merge.substr(space + 1)});
    }
    tokenizer_model["merges"] = merges;
    tokenizer_model["ignore_merges"] = cut->ignore_merges;
    normalizer = cut->normalizer;
    if (const auto own = value_of<std::string>(file, kNormalizer)) normalizer = *own == "NFC" ? nfc() : json();
    pre_tokenizer = cut->pre_tokenizer;
    decoder = byte_level(true);
    begins = cut->begins;
  }
  tokenizer_model["vocab"] = std::move(vocab);

  json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
  const auto token_of = [&](const char* name) -> std::optional<int64_t> {
    const auto id = value_of<int64_t>(file, str(kKey, name, "_token_id"));
    if (id && (*id < 0 || *id >= size))
      bad_tokenizer(file, str(name, "_token_id"), str("0 to ", size - 1), std::to_string(*id));
    return id;
  };
  const auto text_of = [&](int64_t id) { return all.tokens[static_cast<size_t>(id)]; };
  for (const char* name : kEnds) token_of(name);  // checks them
  const auto begin = token_of("bos"), end = token_of("eos"), pad = token_of("padding");
  if (begin) config["bos_token"] = text_of(*begin);
  if (end) config["eos_token"] = text_of(*end);
  if (pad) config["pad_token"] = text_of(*pad);
  const auto put = [&](const char* key, std::optional<int64_t> id, bool absent) {
    return value_of<bool>(file, kKey + key).value_or(absent) ? id : std::nullopt;
  };
  const auto before = put("add_bos_token", begin, begins), behind = put("add_eos_token", end, false);
  json post_processor;
  if (before || behind) post_processor = template_of(before, behind, all.tokens);

  const json root = text::tokenizer_json(added, normalizer, pre_tokenizer, post_processor, decoder, tokenizer_model);
  files["tokenizer.json"] = root.dump(1) + "\n";
  files["tokenizer_config.json"] = config.dump(1) + "\n";
  if (const auto chat = value_of<std::string>(file, "tokenizer.chat_template")) files["chat_template.jinja"] = *chat;
  return files;
}

void write_ends(const std::vector<int32_t>& ends, Metadata& metadata) {
  check(ends.size() <= std::size(kEnds), ErrorKind::setting, [&] {
    return str("a GGUF file cannot name ", ends.size(), " tokens that end a text: expected at most ", std::size(kEnds),
               "; shorten the eos_token_id of generation_config.json or config.json");
  });
  for (size_t i = 0; i < ends.size(); ++i) metadata.emplace_back(str(kKey, kEnds[i], "_token_id"), int64_t{ends[i]});
}

WrittenTokenizer write_tokenizer(const text::Tokenizer& tokenizer, int64_t size) {
  const std::vector<text::TokenizerFile> files = tokenizer.files();
  const auto file_of = [&](const char* name) -> const std::string* {
    const auto at = std::ranges::find(files, name, &text::TokenizerFile::name);
    return at == files.end() ? nullptr : &at->contents;
  };
  const std::string* text = file_of("tokenizer.json");
  if (!text) reject("it has no tokenizer.json");
  const json root = io::parse_json(*text, "tokenizer.json");
  const json& model = root.at("model");
  if (member(model, "type") != "BPE") reject("its model is " + member(model, "type").dump());
  const bool pieces = member(model, "byte_fallback") == true;
  check_expressible(root, pieces);

  std::vector<std::string> tokens(static_cast<size_t>(size));
  std::vector<int64_t> kinds(static_cast<size_t>(size), kUnused);
  std::vector<double> scores(static_cast<size_t>(size), 0);
  for (int64_t id = 0; id < size; ++id) tokens[static_cast<size_t>(id)] = str("[PAD", id, "]");
  const auto put = [&](int64_t id, const std::string& token, int64_t kind) {
    if (id < 0 || id >= size) reject(str("its token ", id, " is beyond the ", size, " tokens of the model"));
    tokens[static_cast<size_t>(id)] = token;
    kinds[static_cast<size_t>(id)] = kind;
  };
  const auto is_byte = [](const std::string& t) { return t.size() == 6 && t.starts_with("<0x") && t.ends_with(">"); };
  for (const auto& [token, id] : model.at("vocab").items())
    put(id.get<int64_t>(), token, pieces && is_byte(token) ? kByte : kNormal);
  for (const json& token : member(root, "added_tokens"))
    put(token.at("id").get<int64_t>(), token.at("content").get<std::string>(),
        member(token, "special") != true                         ? kUserDefined
        : member(token, "content") == member(model, "unk_token") ? kUnknown
                                                                 : kControl);
  std::vector<std::string> merges;  // two tokens with a space between them
  for (const json& merge : model.at("merges"))
    merges.push_back(merge.is_string() ? merge.get<std::string>()
                                       : merge.at(0).get<std::string>() + " " + merge.at(1).get<std::string>());

  Metadata metadata;
  Spaces spaces;
  const auto add = [&](const std::string& name, io::GgufValue value) {
    metadata.emplace_back(kKey + name, std::move(value));
  };
  add("model", std::string(pieces ? "llama" : "gpt2"));
  if (pieces) {
    add("pre", std::string("default"));
  } else {
    const Cut& cut = cut_of(root);
    add("pre", cut.names[0]);
    if (const json& own = member(root, "normalizer"); cut.normalizer != own)
      metadata.emplace_back(kNormalizer, std::string(own.is_null() ? "none" : "NFC"));
  }
  add("tokens", tokens);
  add("token_type", kinds);
  if (pieces) {
    std::unordered_map<std::string, double> ranks;  // of the first merge that makes a token
    for (const std::string& merge : merges) ranks.emplace(joined(merge), -static_cast<double>(ranks.size()) - 1);
    std::set<std::string> parts;
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (const auto rank = ranks.find(tokens[i]); rank != ranks.end()) scores[i] = rank->second;
      if (kinds[i] == kNormal) parts.insert(tokens[i]);
    }
    if (const std::string other = what_scores_change(merges, parts); !other.empty()) reject(other);
    add("scores", scores);
    spaces = spaces_of(root);
    add("add_space_prefix", spaces.prefix);
  } else {
    add("merges", merges);
  }
  const std::vector<int32_t> around = tokenizer.with_template(std::vector<int32_t>{-1});  // -1: where the text stands
  const auto place = std::ranges::find(around, -1);
  if (std::ranges::count(around, -1) != 1) reject("its template is not that of one text");
  const std::vector<int32_t> begin(around.begin(), place), end(place + 1, around.end());
  if (begin.size() > 1) reject("it puts several tokens before a text");
  if (!end.empty() && (end.size() > 1 || end[0] != tokenizer.eos_id()))
    reject("it puts more or another token behind a text than the one that ends it");
  add("add_bos_token", !begin.empty());
  add("add_eos_token", !end.empty());
  json config;
  if (const std::string* file = file_of("tokenizer_config.json"))
    config = io::parse_json(*file, "tokenizer_config.json");
  if (!begin.empty()) {
    add("bos_token_id", int64_t{begin[0]});
  } else {  // which a chat template may write
    const json &bos = member(config, "bos_token"), &name = bos.is_object() ? member(bos, "content") : bos;
    for (size_t i = 0; i < tokens.size(); ++i)
      if (kinds[i] != kUnused && name == tokens[i]) add("bos_token_id", static_cast<int64_t>(i));
  }
  write_ends(tokenizer.end_ids(), metadata);
  if (tokenizer.pad_id() >= 0) add("padding_token_id", int64_t{tokenizer.pad_id()});
  json chat = member(config, "chat_template");
  for (const json& named : chat.is_array() ? json(chat) : json::array())
    if (member(named, "name") == "default") chat = member(named, "template");
  if (const std::string* jinja = file_of("chat_template.jinja")) chat = *jinja;
  if (chat.is_string()) metadata.emplace_back("tokenizer.chat_template", chat.get<std::string>());
  return {std::move(metadata), std::move(spaces.note)};
}

}  // namespace braid::models::gguf
