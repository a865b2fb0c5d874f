#include "braid/models/data/prepare/unfinished.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "braid/tensor/base/strings.h"
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

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Sample, tokens, counted)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(UnfinishedSamples, validation, at, bytes_read, train, train_marks, val, val_marks,
                                   held, held_place, counted, longest, unanswered, notes)

namespace {

constexpr int64_t much_read = int64_t{64} << 20;  // bytes
constexpr size_t max_notes = 20;

template <class State>
void save(const PreparedFolder& folder, const std::string& signature, const State& state) {
  // Paths and notes may hold any bytes.
  const json root = {{"signature", signature}, {"state", state}};
  io::write_file(folder.file(unfinished_name), root.dump(-1, ' ', false, json::error_handler_t::replace));
}

template <class State>
std::optional<State> load(const PreparedFolder& folder, const std::string& signature) {
  const std::string path = folder.file(unfinished_name);
  if (!std::filesystem::exists(path)) return {};
  try {
    const json root = io::read_json_file(path, int64_t{1} << 34);
    if (root.at("signature") != signature) return {};
    return root.at("state").get<State>();
  } catch (const Error&) {
  } catch (const json::exception&) {
  }
  return {};
}

}  // namespace

void add_note(std::vector<std::string>& notes, std::string message) {
  if (notes.size() < max_notes) notes.push_back(std::move(message));
  if (notes.size() == max_notes) notes.push_back("further notes of this kind are left out");
}

bool SaveTimer::due() const {
  const auto passed = Clock::now() - last_;
  return passed >= std::chrono::duration<double>(seconds_) && passed >= 20 * cost_;
}

bool SaveTimer::worth_saving() const { return saved_ || read_ >= much_read; }

void SaveTimer::save(const std::function<void()>& write) {
  const auto begin = Clock::now();
  write();
  last_ = Clock::now();
  cost_ = last_ - begin;
  saved_ = true;
  read_ = 0;
}

std::string signature_of(const std::vector<std::string>& options, const std::vector<const TextSource*>& sources) {
  DocumentHasher hasher;
  const auto add = [&](const auto& value) { hasher.add((std::ostringstream() << value << '\n').str()); };
  for (const std::string& option : options) add(option);
  for (const TextSource* source : sources) {
    add(source->files().size());
    std::error_code error;
    for (const InputFile& file : source->files()) {
      const auto time = std::filesystem::last_write_time(file.path, error).time_since_epoch().count();
      add(file.path), add(file.bytes), add(time);
    }
  }
  const Hash128 hash = hasher.finish();
  return detail::hex(hash.high, 16) + detail::hex(hash.low, 16);
}

void save_unfinished(const PreparedFolder& folder, const std::string& signature, const Unfinished& state) {
  save(folder, signature, state);
}
void save_unfinished(const PreparedFolder& folder, const std::string& signature, const UnfinishedSamples& state) {
  save(folder, signature, state);
}
std::optional<Unfinished> load_unfinished(const PreparedFolder& folder, const std::string& signature) {
  return load<Unfinished>(folder, signature);
}
std::optional<UnfinishedSamples> load_unfinished_samples(const PreparedFolder& folder, const std::string& signature) {
  return load<UnfinishedSamples>(folder, signature);
}

}  // namespace braid::models::text
