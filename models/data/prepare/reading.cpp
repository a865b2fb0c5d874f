#include "braid/models/data/prepare/reading.h"

#include <algorithm>
#include <cmath>

#include "braid/models/data/prepare/read_ahead.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/checksum.h"

namespace braid::models::text {
namespace {

constexpr size_t kept_bytes = 1 << 16;  // of memory, by a place of a batch

// A number in [0, 1) from the beginning of a document and the seed.
double document_place(std::string_view bytes, uint64_t seed) {
  const auto n = static_cast<int64_t>(bytes.size());
  uint64_t x = static_cast<uint64_t>(io::crc32c(bytes.data(), n)) << 32 | io::crc32c(bytes.data(), n, 0x5EED);
  x ^= seed * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

}  // namespace

Reading::Reading(const PrepareOptions& options, const Tokenizer& tokenizer, const PreparedFolder& folder,
                 std::string signature, Unfinished from, bool resumed)
    : train(folder, "train", tokenizer.vocab_size(), tokenizer.fingerprint(), options.shard_tokens),
      val(folder, "val", tokenizer.vocab_size(), tokenizer.fingerprint(), options.shard_tokens),
      state(std::move(from)),
      options_(options),
      tokenizer_(tokenizer),
      folder_(folder),
      signature_(std::move(signature)),
      timer_(options.checkpoint_seconds, resumed) {
  train.resume(state.train);
  val.resume(state.val);
  if (options.dedup) seen_.emplace(folder.file(seen_name), state.documents_seen);
}

std::vector<std::string> Reading::files() const {
  std::vector<std::string> names{unfinished_name, seen_name, "tokenizer.json", "tokenizer_config.json"};
  for (const SplitWriter* split : {&train, &val}) {
    for (const ShardInfo& shard : split->info.shards) names.push_back(shard.file);
    names.push_back(io::AtomicFile::unfinished(split->next_name()));
  }
  return names;
}

void Reading::save() {
  timer_.save([&] {
    state.train = train.sync();
    state.val = val.sync();
    if (seen_) state.documents_seen = seen_->sync();
    save_unfinished(folder_, signature_, state);
  });
}

bool Reading::save_on_stop() {
  if (!timer_.worth_saving()) return false;
  save();
  return true;
}

void Reading::tokenize(const TextSource& source, const Piece& piece, Result& result) const {
  result.ill_formed = -1;
  const std::string_view text = source.text_of(piece, result.storage, &result.ill_formed);
  result.tokens.clear();
  result.empty = text.empty();
  // The hash covers the first MiB of the document, wherever its first piece ends.
  const std::string_view head = piece.jsonl ? text.substr(0, static_cast<size_t>(piece_bytes)) : piece.bytes;
  if (piece.first) result.place = document_place(head, options_.seed);
  if (seen_ && piece.first) {
    DocumentHasher hasher;
    if (!piece.hash) hasher.add(text);
    result.hash = piece.hash ? *piece.hash : hasher.finish();
  }
  result.nul = -1;
  if (!piece.jsonl)
    if (const size_t nul = text.find('\0'); nul != std::string_view::npos) result.nul = static_cast<int64_t>(nul);
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t n = tokenizer_.takes_any_bytes() ? rest.size() : part_of(rest, static_cast<size_t>(piece_bytes));
    tokenizer_.encode_text(rest.substr(0, n), result.tokens);
    rest.remove_prefix(n);
  }
  if (piece.last) result.tokens.push_back(tokenizer_.eos_id());
}

bool Reading::accept(const TextSource& source, const Piece& piece, const Result& result) {
  for (const std::string& message : piece.notes) add_note(state.notes, message);
  if (result.empty) {
    add_note(state.notes, str(source.path(piece.file), " has an empty document at line ", piece.line, ": left out"));
    return false;
  }
  if (result.ill_formed >= 0 && std::exchange(ill_formed_noted_, piece.file) != piece.file)
    add_note(state.notes, str(source.path(piece.file), " is no UTF-8 (byte ", result.ill_formed,
                              "): U+FFFD takes the place of ill-formed bytes; convert it with iconv -t UTF-8"));
  if (result.nul >= 0 && tokenizer_.takes_any_bytes() && nul_noted_ != piece.file) {
    nul_noted_ = piece.file;
    add_note(state.notes, str(source.path(piece.file), " is not text (NUL at byte ", piece.offset + result.nul,
                              "): the byte tokenizer uses its bytes as they are"));
  }
  if (piece.first) {
    state.dropped = seen_ && !seen_->insert(result.hash);
    if (state.dropped) ++state.duplicates;
  }
  return !state.dropped;
}

void Reading::add(SplitWriter& split, const Piece& piece, const Result& result) {
  if (piece.first) ++split.info.documents;
  split.write(result.tokens);
}

void Reading::read(TextSource& source, const std::function<void(const Piece&)>& report,
                   const std::function<void(const Piece&, const Result&)>& take) {
  source.go_to(state.at);
  if (state.at.files > 0) source.notes.clear();  // of the list of files: noted before
  int64_t before = state.bytes_read;
  ReadAhead ahead(source);
  ahead.run([&](size_t pieces) { results_.resize(std::max(results_.size(), pieces)); },
            [&](const Piece& piece, size_t place) { tokenize(source, piece, results_[place]); },
            [&](const Piece& piece, size_t place) {
              Result& result = results_[place];
              if (accept(source, piece, result)) take(piece, result);
              // Many places of a batch would otherwise each keep the memory of the longest document that they ever had.
              if (result.storage.capacity() + result.tokens.capacity() * sizeof(int32_t) > kept_bytes) result = {};
              state.at = piece.after;
              timer_.read(piece.bytes_read - before);
              state.bytes_read = before = piece.bytes_read;
              report(piece);
              if (timer_.due()) save();
            });
  for (const std::string& message : source.notes) add_note(state.notes, message);
  source.notes.clear();
  state.at = {.files = std::ssize(source.files()), .bytes = source.bytes_total()};
  state.bytes_read = source.bytes_total();
}

void Reading::end_file() {
  if (state.files.empty()) return;
  FileShare& f = state.files.back();
  f.train.end = train.info.tokens;
  f.val_documents = val.info.documents - f.val_documents;
  f.val_tokens = val.info.tokens - f.val_tokens;
}

void Reading::inputs(TextSource& source, const std::function<void(const Piece&)>& report) {
  const double fraction = options_.val_inputs.empty() ? options_.val_fraction : 0;
  // With few files each is split as if it were alone, so that none is left out of validation.
  each_file_ = static_cast<double>(source.files().size()) * fraction < 1;
  read(source, report, [&](const Piece& piece, const Result& result) {
    if (state.files.empty() || state.files.back().file != piece.file) {
      end_file();
      state.files.push_back(
          {piece.file, {train.info.tokens, 0}, train.info.documents, val.info.documents, val.info.tokens});
    }
    if (piece.first) {
      // The first document is always trained on, so that there is something to train on.
      const bool first = train.info.documents == (each_file_ ? state.files.back().train_documents : 0);
      state.to_val = !first && result.place < fraction;
    }
    add(state.to_val ? val : train, piece, result);
  });
  train.close();  // tasks get shards of their own
  if (saved()) save();
  end_file();
  move_tails(source, fraction);
}

void Reading::move_tails(const TextSource& source, double fraction) {
  std::vector<TokenSpan> tails;
  const bool none_drawn = val.info.documents == 0;
  for (const FileShare& f : state.files) {
    const int64_t n = f.train.end - f.train.begin;
    const bool tail = fraction > 0 && n > 1 && f.val_documents == 0 && (each_file_ || none_drawn);
    if (tail) {
      const auto share = static_cast<int64_t>(std::llround(static_cast<double>(n) * fraction));
      tails.push_back({train.tail_begin(f.train, std::clamp<int64_t>(share, 1, n - 1), tokenizer_), f.train.end});
    }
    const int64_t tokens = tail ? tails.back().end - tails.back().begin : f.val_tokens;
    if (tokens > 0) state.validation_files.push_back({source.path(f.file), tokens, tail});
  }
  if (!tails.empty()) {
    train.move(tails, tokenizer_.eos_id(), val);
    each_file_ = true;
  }
  train.close();
  val.info.documents += static_cast<int64_t>(tails.size());
  val.close();
}

void Reading::validation(TextSource& source, const std::function<void(const Piece&)>& report) {
  if (!std::exchange(state.validation, true)) {
    state.at = {};
    state.bytes_read = 0;
  }
  read(source, report, [&](const Piece& piece, const Result& result) {
    std::vector<ValidationFile>& files = state.validation_files;
    const std::string& path = source.path(piece.file);
    if (files.empty() || files.back().file != path) files.push_back({path, 0, false});
    files.back().tokens += std::ssize(result.tokens);
    add(val, piece, result);
  });
  val.close();
}

}  // namespace braid::models::text
