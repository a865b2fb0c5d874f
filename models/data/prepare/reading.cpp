#include "braid/models/data/prepare/reading.h"

#include <algorithm>
#include <cmath>

#include "braid/tensor/error.h"
#include "braid/tensor/io/checksum.h"

namespace braid::models::text {
namespace {

constexpr size_t kept_bytes = 1 << 16;  // of memory, by a place of a batch

// A number in [0, 1) from the beginning of a document and the seed.
double document_draw(std::string_view bytes, uint64_t seed) {
  const auto n = static_cast<int64_t>(bytes.size());
  uint64_t x = static_cast<uint64_t>(io::crc32c(bytes.data(), n)) << 32 | io::crc32c(bytes.data(), n, 0x5EED);
  x ^= seed * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

}  // namespace

void Reading::tokenize(const TextSource& source, const Piece& piece, Result& result) const {
  result.repairs = {};
  const std::string_view text = source.text_of(piece, result.storage, &result.repairs);
  result.tokens.clear();
  result.empty = text.empty();
  // The hash covers the first MiB of the document, wherever its first piece ends.
  const std::string_view head = piece.jsonl ? text.substr(0, static_cast<size_t>(piece_bytes)) : piece.bytes;
  if (piece.first) result.draw = document_draw(head, options_.seed);
  if (options_.dedup && piece.first) {
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
  if (result.empty) {
    splits_.add_note(str(source.path(piece.file), " has an empty document at line ", piece.line, ": left out"));
    return false;
  }
  if (result.nul >= 0 && tokenizer_.takes_any_bytes() && nul_noted_ != piece.file) {
    nul_noted_ = piece.file;
    splits_.add_note(str(source.path(piece.file), " is not text (NUL at byte ", piece.offset + result.nul,
                         "): the byte tokenizer uses its bytes as they are"));
  }
  if (piece.first) {
    dropped_ = splits_.seen && !splits_.seen->insert(result.hash);
    if (dropped_) ++splits_.place.duplicates;
  }
  return !dropped_;
}

void Reading::add(SplitWriter& split, const Piece& piece, const Result& result) {
  if (piece.first) ++split.info.documents;
  split.write(result.tokens);
}

void Reading::read(TextSource& source, const std::function<void(const Piece&)>& report,
                   const std::function<void(const Piece&, const Result&)>& take) {
  splits_.read(
      source, [&](size_t pieces) { results_.resize(std::max(results_.size(), pieces)); },
      [&](const Piece& piece, size_t i) { tokenize(source, piece, results_[i]); },
      [&](const Piece& piece, size_t i) {
        Result& result = results_[i];
        if (accept(source, piece, result)) {
          take(piece, result);
          splits_.add_repairs(source, piece, result.repairs);
        }
        // Many places of a batch would otherwise each keep the memory of the longest document that they ever had.
        if (result.storage.capacity() + result.tokens.capacity() * sizeof(int32_t) > kept_bytes) result = {};
        report(piece);
      });
}

void Reading::inputs(TextSource& source, const std::function<void(const Piece&)>& report) {
  Splits& s = splits_;
  const double fraction = options_.val_inputs.empty() ? options_.val_fraction : 0;
  // With few files each is split as if it were alone, so that none is left out of validation.
  each_file_ = static_cast<double>(source.files().size()) * fraction < 1;
  if (!s.place.validation) {
    read(source, report, [&](const Piece& piece, const Result& result) {
      if (fraction > 0 && (s.files.empty() || s.files.back().file != piece.file)) s.begin_file(piece.file);
      // The first document is always trained on, so that there is something to train on.
      if (piece.first)
        to_val_ = result.draw < fraction && s.train.info.documents != (each_file_ ? s.files.back().train_documents : 0);
      add(to_val_ ? s.drawn : s.train, piece, result);
    });
    s.end_inputs();
  }
  if (fraction > 0) make_validation(source, fraction);
}

// Makes the shards of val: the drawn documents, then the ends of files.
void Reading::make_validation(const TextSource& source, double fraction) {
  SplitWriter &train = splits_.train, &drawn = splits_.drawn, &val = splits_.val;
  val.append(drawn.info);
  std::vector<FileStart> files = splits_.files;
  files.push_back({0, train.info.tokens, train.info.documents, drawn.info.tokens, drawn.info.documents});
  std::vector<TokenSpan> tails;
  for (size_t i = 0; i + 1 < files.size(); ++i) {
    const TokenSpan span{files[i].train_tokens, files[i + 1].train_tokens};
    const int64_t n = span.end - span.begin;
    const bool tail =  // of one token and its end, at least
        n > 2 && files[i].val_documents == files[i + 1].val_documents && (each_file_ || drawn.info.documents == 0);
    if (tail) {
      const auto share = static_cast<int64_t>(std::llround(static_cast<double>(n) * fraction));
      tails.push_back({train.tail_begin(span, std::clamp<int64_t>(share, 2, n - 1)), span.end});
    }
    const int64_t tokens = tail ? tails.back().end - tails.back().begin : files[i + 1].val_tokens - files[i].val_tokens;
    if (tokens > 0) validation_files.push_back({source.path(files[i].file), tokens, tail});
  }
  if (!tails.empty()) {
    train.move(tails, val);
    each_file_ = true;
  }
  train.close();
  val.close();
}

void Reading::validation(TextSource& source, const std::function<void(const Piece&)>& report) {
  Splits& s = splits_;
  read(source, report, [&](const Piece& piece, const Result& result) {
    if (s.files.empty() || source.path(s.files.back().file) != source.path(piece.file)) s.begin_file(piece.file);
    add(s.val, piece, result);
  });
  s.end_validation();
  for (size_t i = 0; i < s.files.size(); ++i) {
    const int64_t end = i + 1 < s.files.size() ? s.files[i + 1].val_tokens : s.val.info.tokens;
    validation_files.push_back({source.path(s.files[i].file), end - s.files[i].val_tokens, false});
  }
}

}  // namespace braid::models::text
