#include "braid/models/text/prepare/prepare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "braid/models/text/prepare/output_folder.h"
#include "braid/models/text/prepare/source.h"
#include "braid/models/text/shard.h"
#include "braid/models/text/tasks/tasks.h"
#include "braid/models/text/tokenizer.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/checksum.h"

namespace braid::models::text {
namespace {

constexpr int64_t copy_tokens = 1 << 16;

// The shards of one split, opened one after the other.
class SplitWriter {
 public:
  SplitWriter(const PreparedFolder& folder, std::string prefix, const Tokenizer& tokenizer, int64_t shard_tokens)
      : folder_(folder),
        prefix_(std::move(prefix)),
        vocab_size_(tokenizer.vocab_size()),
        fingerprint_(tokenizer.fingerprint()),
        shard_tokens_(shard_tokens) {}

  void write(std::span<const int32_t> tokens) {
    info.tokens += static_cast<int64_t>(tokens.size());
    while (!tokens.empty()) {
      if (!shard_) shard_.emplace(folder_.file(next_name()), vocab_size_, fingerprint_);
      const auto room = static_cast<size_t>(shard_tokens_ - shard_->tokens());
      const auto part = tokens.first(std::min(tokens.size(), room));
      shard_->write(part);
      tokens = tokens.subspan(part.size());
      if (shard_->tokens() == shard_tokens_) close();
    }
  }
  void close() {
    if (!shard_) return;
    const ShardHeader header = shard_->commit();
    shard_.reset();
    info.shards.push_back({next_name(), header.tokens, header.checksum});
  }

  // Gives everything from token `cut` on to `other` and ends here with `eos`. 0 < cut < tokens.
  void move_tail(int64_t cut, int32_t eos, SplitWriter& other) {
    close();
    const std::vector<ShardInfo> shards = std::move(info.shards);
    info.shards.clear();
    info.tokens = 0;
    int64_t start = 0;
    for (const ShardInfo& s : shards) {
      const int64_t keep = std::clamp<int64_t>(cut - start, 0, s.tokens);
      start += s.tokens;
      const bool whole = keep == s.tokens && start != cut;  // the shard that holds the cut gets the eos
      if (whole) {
        info.shards.push_back(s);
        info.tokens += s.tokens;
        continue;
      }
      const ShardReader reader(folder_.file(s.file));  // stays readable when a new file takes its name
      copy(reader, keep, s.tokens, other);
      if (keep > 0) {
        const int64_t limit = shard_tokens_;
        shard_tokens_ = INT64_MAX;  // the eos may not open a shard of its own
        copy(reader, 0, keep, *this);
        write({&eos, 1});
        close();
        shard_tokens_ = limit;
      } else {
        std::filesystem::remove(folder_.file(s.file));
      }
    }
  }

  SplitInfo info;

 private:
  std::string next_name() const {
    char name[64];
    std::snprintf(name, sizeof name, "%s-%05zu.tok", prefix_.c_str(), info.shards.size());
    return name;
  }
  static void copy(const ShardReader& from, int64_t first, int64_t last, SplitWriter& to) {
    std::vector<int32_t> tokens;
    for (; first < last; first += copy_tokens) {
      tokens.resize(static_cast<size_t>(std::min(copy_tokens, last - first)));
      from.read(first, tokens);
      to.write(tokens);
    }
  }

  const PreparedFolder& folder_;
  std::string prefix_;
  int64_t vocab_size_;
  uint64_t fingerprint_;
  int64_t shard_tokens_;
  std::optional<ShardWriter> shard_;
};

// A number in [0, 1) from the beginning of a document and the seed.
double document_place(std::string_view bytes, uint64_t seed) {
  const auto n = static_cast<int64_t>(bytes.size());
  uint64_t x = static_cast<uint64_t>(io::crc32c(bytes.data(), n)) << 32 | io::crc32c(bytes.data(), n, 0x5EED);
  x ^= seed * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

class Preparation {
 public:
  Preparation(const PrepareOptions& options, const std::function<void(const PrepareProgress&)>& progress)
      : options_(options),
        progress_(progress),
        folder_(options.output),
        tokenizer_(make_tokenizer(options)),
        train_(folder_, "train", *tokenizer_, options.shard_tokens),
        val_(folder_, "val", *tokenizer_, options.shard_tokens) {}

  PrepareSummary run() {
    if (!options_.inputs.empty()) read_text();
    if (options_.tasks > 0) make_tasks();
    train_.close();
    val_.close();
    check(train_.info.tokens > 0, ErrorKind::input,
          [] { return std::string("the inputs hold no text; give files with text or --tasks N"); });
    report("finishing", 0, 0, "");
    save_tokenizer(*tokenizer_, folder_.path());
    Manifest& m = summary_.manifest;
    m.tokenizer = tokenizer_->name();
    m.tokenizer_fingerprint = tokenizer_->fingerprint();
    m.vocab_size = tokenizer_->vocab_size();
    m.seed = options_.seed;
    m.val_fraction = options_.val_fraction;
    m.train = train_.info;
    m.val = val_.info;
    write_manifest(folder_.path(), m);
    folder_.commit();
    return std::move(summary_);
  }

 private:
  static std::unique_ptr<Tokenizer> make_tokenizer(const PrepareOptions& options) {
    if (options.tokenizer.empty()) return std::make_unique<ByteTokenizer>();
    return load_tokenizer(options.tokenizer);
  }

  void report(const char* stage, int64_t done, int64_t total, const std::string& file) {
    if (progress_)
      progress_({stage, done, total, train_.info.documents + val_.info.documents, train_.info.tokens + val_.info.tokens,
                 file});
  }

  void read_text() {
    TextSource source(options_.inputs, {.text_field = options_.text_field,
                                        .exclude = folder_.target(),
                                        .require_utf8 = !tokenizer_->takes_any_bytes()});
    const int32_t eos = tokenizer_->eos_id();
    SplitWriter* split = &train_;
    std::vector<int32_t> tokens;
    Piece piece;
    int64_t reported = -piece_bytes;
    while (source.next(piece)) {
      if (piece.first) {
        // The first document is always trained on, so that there is something to train on.
        const bool to_val =
            train_.info.documents > 0 && document_place(piece.bytes, options_.seed) < options_.val_fraction;
        split = to_val ? &val_ : &train_;
        ++split->info.documents;
      }
      tokens.clear();
      tokenizer_->encode_text(piece.bytes, tokens);  // of bytes: where pieces are cut makes no difference
      if (piece.last) tokens.push_back(eos);
      split->write(tokens);
      if (source.bytes_read() - reported >= piece_bytes) {
        reported = source.bytes_read();
        report("reading text", reported, source.bytes_total(), source.file());
      }
    }
    report("reading text", source.bytes_total(), source.bytes_total(), "");
    if (options_.val_fraction > 0 && val_.info.documents == 0 && train_.info.tokens > 1) split_tail(eos);
    train_.close();  // tasks get shards of their own
    val_.close();
    summary_.files = source.files();
    summary_.input_bytes = source.bytes_total();
    summary_.notes = source.notes();
  }

  // Validation is the end of the text, from the beginning of a line where one is near.
  void split_tail(int32_t eos) {
    train_.close();
    const int64_t n = train_.info.tokens;
    const auto target = static_cast<int64_t>(std::llround(static_cast<double>(n) * options_.val_fraction));
    int64_t cut = n - std::clamp<int64_t>(target, 1, n - 1);
    const int64_t reach = std::min<int64_t>(4096, (n - cut) / 2);
    int64_t start = 0;
    for (const ShardInfo& s : train_.info.shards) {
      if (cut < start + s.tokens) {
        std::vector<int32_t> near(static_cast<size_t>(std::min(reach, start + s.tokens - cut)));
        ShardReader(folder_.file(s.file)).read(cut - start, near);
        for (size_t i = 0; i < near.size(); ++i)
          if (tokenizer_->token_bytes(near[i]).ends_with('\n')) {
            cut += static_cast<int64_t>(i) + 1;
            break;
          }
        break;
      }
      start += s.tokens;
    }
    train_.move_tail(cut, eos, val_);
    ++val_.info.documents;
    summary_.split_by_tail = true;
  }

  // Samples 0 ... N-1 of the series are trained on, the next ones validate, the ones after that are graded; they are
  // graded once with the words of training and once with words never trained on.
  void make_tasks() {
    const int64_t n = options_.tasks;
    const int64_t for_val =
        options_.val_fraction > 0 ? static_cast<int64_t>(std::ceil(static_cast<double>(n) * options_.val_fraction)) : 0;
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < n + for_val; ++i) {
      SplitWriter& split = i < n ? train_ : val_;
      tokens.clear();
      tokenizer_->encode_text(make_task_sample(Vocabulary::train, options_.seed, i).text, tokens);
      tokens.push_back(tokenizer_->eos_id());
      split.write(tokens);
      ++split.info.documents;
      if (i % 1000 == 0) report("making tasks", i, n + for_val, "");
    }
    report("making tasks", n + for_val, n + for_val, "");
    write_items("tasks-seen.jsonl", Vocabulary::train, n + for_val);
    write_items("tasks-held-out.jsonl", Vocabulary::held_out, n + for_val);
  }

  void write_items(const char* name, Vocabulary vocabulary, int64_t first) {
    const int64_t samples = options_.task_items * task_count();
    if (samples == 0) return;
    io::AtomicFile file(folder_.file(name));
    uint32_t crc = 0;
    for (int64_t i = first; i < first + samples; ++i) {
      const std::string line = task_item_line(make_task_sample(vocabulary, options_.seed, i));
      crc = io::crc32c(line.data(), static_cast<int64_t>(line.size()), crc);
      file.write(line);
    }
    file.commit();
    summary_.manifest.tasks.push_back({name, samples, crc});
  }

  const PrepareOptions& options_;
  const std::function<void(const PrepareProgress&)>& progress_;
  PreparedFolder folder_;
  std::unique_ptr<Tokenizer> tokenizer_;
  SplitWriter train_, val_;
  PrepareSummary summary_;
};

void require(bool ok, const char* message) {
  check(ok, ErrorKind::setting, [&] { return std::string(message); });
}

}  // namespace

PrepareSummary prepare(const PrepareOptions& options, const std::function<void(const PrepareProgress&)>& progress) {
  require(!options.inputs.empty() || options.tasks > 0,
          "nothing to prepare; give input files or folders, or --tasks N");
  require(!options.output.empty(), "no output folder; give one with -o DIR");
  require(options.tasks >= 0 && options.tasks <= 1'000'000'000, "the number of task samples must be 0 to 1000000000");
  require(options.task_items >= 0 && options.task_items <= 10'000, "evaluation samples per task must be 0 to 10000");
  require(options.val_fraction >= 0 && options.val_fraction < 1, "the validation fraction must be in [0, 1)");
  require(options.shard_tokens >= 1, "a shard must have room for at least one token");
  require(!options.text_field.empty(), "the name of the text field must not be empty");
  return Preparation(options, progress).run();
}

}  // namespace braid::models::text
