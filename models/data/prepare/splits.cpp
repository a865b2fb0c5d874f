#include "braid/models/data/prepare/splits.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/io/path_status.h"

namespace braid::models::text {

using nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SourcePosition, files, bytes, inside, offset, line, documents)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Sample, tokens, counted, second)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Place, validation, at, bytes_read, duplicates, ill_formed, held, held_draw, counted,
                                   longest, unanswered, tokens, train_documents, drawn_documents, val_documents, seen,
                                   notes, files)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FileStart, file, train_tokens, train_documents, val_tokens, val_documents)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ShardInfo, file, tokens, checksum, marks, marks_checksum)

namespace {

constexpr const char* seen_name = "seen-documents.bin";
constexpr size_t max_notes = 20;
constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

}  // namespace

std::string signature_of(const std::vector<std::string>& options, const std::vector<const TextSource*>& sources) {
  DocumentHasher hasher;
  const auto add = [&](const auto& value) { hasher.add((std::ostringstream() << value << '\n').str()); };
  for (const std::string& option : options) add(option);
  for (const TextSource* source : sources) {
    add(source->files().size());
    for (const InputFile& file : source->files()) {
      const auto found = io::path_status(file.path);
      add(file.path), add(file.bytes);
      if (found) add(found->st_mtim.tv_sec), add(found->st_mtim.tv_nsec);
    }
  }
  const Hash128 hash = hasher.finish();
  return detail::hex(hash.high, 16) + detail::hex(hash.low, 16);
}

Splits::Splits(const PreparedFolder& folder, const std::string& signature, const std::unique_ptr<Tokenizer>& tokenizer,
               int64_t shard_tokens, bool dedup)
    : train(folder, "train", tokenizer, shard_tokens),
      drawn(folder, "drawn", tokenizer, unlimited),
      val(folder, "val", tokenizer, shard_tokens),
      folder_(folder),
      signature_(signature),
      dedup_(dedup) {
  try {
    folder_.bring_back(SplitWriter::set_aside(""));
    if (!io::exists(folder_.file(journal_name))) return;
    open();
    if (dedup_) seen.emplace(folder_.file(seen_name), place.seen);
  } catch (const io::SystemError&) {  // the work may be good
    throw;
  } catch (const std::exception& e) {
    const auto* error = dynamic_cast<const Error*>(&e);
    if (error && error->kind() == ErrorKind::output) throw;
    if (!error || error->kind() != ErrorKind::setting)  // not just of another signature
      problem = str("an earlier call left work that cannot be used, so all is read again: ", e.what());
    journal_.reset(), seen.reset();
    for (SplitWriter* split : {&train, &drawn, &val}) split->info = {};
    place = {}, files.clear(), notes.clear(), keep_ = false;
    folder_.remove_all_but({});
  }
  train.info.documents = place.train_documents;
  drawn.info.documents = place.drawn_documents;
  val.info.documents = place.val_documents;
  (place.validation ? val : train).rewind(place.tokens);
  recorded_notes_ = notes.size(), recorded_files_ = files.size();
}

void Splits::open() {
  journal_.emplace(folder_.file(journal_name), "braid_prepare", io::Fingerprint{{"work", signature_}},
                   "remove it to begin anew", [this](const json& unit) { return take(unit); });
}

std::string Splits::take(const json& unit) {
  for (SplitWriter* split : {&train, &drawn, &val})
    if (unit.contains(split->prefix())) split->adopt(unit.at(split->prefix()).get<ShardInfo>());
  unit.at("place").get_to(place);
  for (const json& note : unit.at("notes")) notes.push_back(note.get<std::string>());
  for (const json& file : unit.at("files")) files.push_back(file.get<FileStart>());
  keep_ = true;
  return "";
}

void Splits::begin(bool keep) {
  keep_ = keep_ || keep;
  std::vector<std::string> names{journal_name, seen_name, "tokenizer.json", "tokenizer_config.json"};
  for (const SplitWriter* split : {&train, &drawn, &val})
    for (std::string& name : split->files()) names.push_back(std::move(name));
  folder_.remove_all_but(names);
  if (!journal_) open();
  if (dedup_ && !seen) seen.emplace(folder_.file(seen_name), 0);
}

// The shard is on the disk; its line comes last.
void Splits::record(const SplitWriter& split) {
  json unit = {{split.prefix(), split.info.shards.back()}};
  const size_t parts = drawn.info.shards.size();
  drawn.close();
  if (drawn.info.shards.size() > parts) unit[drawn.prefix()] = drawn.info.shards.back();
  if (seen) seen->sync();
  unit["place"] = place;
  const auto take_new = [&](const char* name, const auto& list, size_t& recorded, int64_t end) {
    unit[name] = json::array();
    for (; recorded < static_cast<size_t>(end); ++recorded) unit[name].push_back(list[recorded]);
  };
  take_new("notes", notes, recorded_notes_, place.notes);
  take_new("files", files, recorded_files_, place.files);
  journal_->add(unit.dump(-1, ' ', false, json::error_handler_t::replace));  // notes may hold any bytes
  journal_->sync();
  keep_ = true;
}

void Splits::begin_piece() {
  place.tokens = (place.validation ? val : train).info.tokens;
  place.train_documents = train.info.documents;
  place.drawn_documents = drawn.info.documents;
  place.val_documents = val.info.documents;
  place.seen = seen ? seen->count() : 0;
  place.notes = std::ssize(notes);
  place.files = std::ssize(files);
}

void Splits::read(TextSource& source, const ReadAhead::Start& start, const ReadAhead::Work& work,
                  const ReadAhead::Take& take) {
  SplitWriter* const split = place.validation ? &val : &train;
  split->after_shard = [this, split] { record(*split); };
  source.go_to(place.at);
  if (place.at.files > 0) source.notes.clear();  // of the list of files: noted before
  const auto note_all = [&](const std::vector<std::string>& messages) {
    for (const std::string& message : messages) add_note(message);
  };
  ReadAhead ahead(source);
  ahead.run(start, work, [&](const Piece& piece, size_t i) {
    begin_piece();
    note_all(piece.notes);
    take(piece, i);
    place.at = piece.after;
    place.bytes_read = piece.bytes_read;
  });
  note_all(std::exchange(source.notes, {}));
  place.at = {.files = std::ssize(source.files()), .bytes = source.bytes_total()};
  place.bytes_read = source.bytes_total();
  begin_piece();
}

void Splits::begin_file(int64_t file) {
  files.push_back({file, train.info.tokens, train.info.documents, drawn.info.tokens + val.info.tokens,
                   drawn.info.documents + val.info.documents});
}

void Splits::end_inputs() {
  place.validation = true;
  place.at = {};
  place.bytes_read = 0;
  place.held.clear();
  begin_piece();
  train.close();  // tasks get shards of their own
  train.after_shard = {};
}

void Splits::end_validation() {
  val.close();
  val.after_shard = {};
}

std::pair<int64_t, int64_t> Splits::written() const {
  // In the end val has what was drawn.
  const SplitInfo& other = val.info.tokens > 0 ? val.info : drawn.info;
  return {train.info.documents + other.documents, train.info.tokens + other.tokens};
}

void Splits::add_note(std::string message) {
  if (notes.size() < max_notes) notes.push_back(std::move(message));
  if (notes.size() == max_notes) notes.push_back("further notes of this kind are left out");
}

void Splits::add_repairs(const TextSource& source, const Piece& piece, const Repairs& repairs) {
  place.ill_formed += repairs.count;
  if (repairs.count == 0 || std::exchange(repaired_file_, piece.file) == piece.file) return;
  const std::string where = piece.jsonl ? str("line ", piece.line) : str("byte ", repairs.first);
  add_note(str(source.path(piece.file), " is no UTF-8 (", where, "): ",
               source.skips_invalid() ? "ill-formed bytes are left out" : "U+FFFD takes the place of ill-formed bytes",
               "; convert it with iconv -t UTF-8"));
}

void keep_work(const std::optional<Splits>& splits, PreparedFolder& folder, const Error* error) {
  if (splits) folder.keep(splits->keep());
  if (!splits || !splits->keep() || folder.path().empty()) return;
  if (error)
    throw Error(error->kind(),
                str(error->what(), "; what was read is kept in ", folder.path(), ", the same command resumes there"));
}

}  // namespace braid::models::text
