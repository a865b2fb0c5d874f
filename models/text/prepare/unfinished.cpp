#include "braid/models/text/prepare/unfinished.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/json.h"

namespace braid::models::text {

using nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TokenSpan, begin, end)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SourcePosition, files, bytes, inside, offset, line, documents)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ShardInfo, file, tokens, checksum)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SplitInfo, tokens, documents, shards)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ShardProgress, tokens, blocks)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SplitProgress, info, open, shard)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FileShare, file, train, train_documents, val_documents, val_tokens)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ValidationFile, file, tokens, tail)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Unfinished, validation, at, bytes_read, train, val, to_val, dropped, files,
                                   validation_files, documents_seen, duplicates, notes)

void save_unfinished(const PreparedFolder& folder, const std::string& signature, const Unfinished& state) {
  // Paths and notes may hold any bytes.
  const json root = {{"signature", signature}, {"state", state}};
  io::write_file(folder.file(unfinished_name), root.dump(-1, ' ', false, json::error_handler_t::replace));
}

std::optional<Unfinished> load_unfinished(const PreparedFolder& folder, const std::string& signature) {
  const std::string path = folder.file(unfinished_name);
  if (!std::filesystem::exists(path)) return {};
  try {
    const json root = io::read_json_file(path, int64_t{1} << 34);
    if (root.at("signature") != signature) return {};
    return root.at("state").get<Unfinished>();
  } catch (const Error&) {
  } catch (const json::exception&) {
  }
  return {};
}

}  // namespace braid::models::text
