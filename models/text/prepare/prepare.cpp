#include "braid/models/text/prepare/prepare.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include "braid/models/text/prepare/output_folder.h"
#include "braid/models/text/prepare/source.h"
#include "braid/models/text/prepare/split_writer.h"
#include "braid/models/text/tasks/tasks.h"
#include "braid/models/text/tokenizer.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/checksum.h"

namespace braid::models::text {
namespace {

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
    describe();
    check_replaceable(false);
    if (!options_.inputs.empty()) read_text();
    if (!options_.val_inputs.empty()) read_validation();
    if (options_.tasks > 0) make_tasks();
    train_.close();
    val_.close();
    check(train_.info.tokens > 0, ErrorKind::input,
          [] { return std::string("the inputs hold no text; give files with text or --tasks N"); });
    report("finishing", 0, 0, "");
    save_tokenizer(*tokenizer_, folder_.path());
    Manifest& m = summary_.manifest;
    m.train = train_.info;
    m.val = val_.info;
    if (m.validation != Validation::documents) m.validation_files = summary_.validation;
    write_manifest(folder_.path(), m);
    check_replaceable(true);
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

  // The part of the manifest that the options determine.
  void describe() {
    Manifest& m = summary_.manifest;
    m.tokenizer = tokenizer_->name();
    m.tokenizer_fingerprint = tokenizer_->fingerprint();
    m.vocab_size = tokenizer_->vocab_size();
    m.seed = options_.seed;
    m.val_fraction = options_.val_fraction;
    if (!options_.val_inputs.empty()) m.validation = Validation::given;
  }

  // Other data in the target are replaced on request only. `complete`: the manifest is; before that, only what the
  // options determine is compared, so that most mistakes are found before any work.
  void check_replaceable(bool complete) {
    if (!std::filesystem::exists(std::filesystem::path(folder_.target()) / manifest_name)) return;
    std::string found = "data that cannot be read";
    bool same = false;
    try {
      const Manifest older = read_manifest(folder_.target());
      const Manifest& now = summary_.manifest;
      found = "data with fingerprint " + older.fingerprint + " (" + std::to_string(older.train.tokens) +
              " training tokens)";
      same = complete ? older.fingerprint == now.fingerprint
                      : older.tokenizer_fingerprint == now.tokenizer_fingerprint && older.seed == now.seed &&
                            older.val_fraction == now.val_fraction &&
                            (older.validation == Validation::given) == (now.validation == Validation::given);
    } catch (const Error& e) {
      found += ": " + std::string(e.what());
    }
    summary_.unchanged = complete && same;
    if (complete && !same) summary_.replaced = found;
    check(same || options_.replace, ErrorKind::setting, [&] {
      return "the folder " + options_.output + " holds other data: expected a new folder or the same data, found " +
             found + "; runs trained on it would not resume after a change: name another folder, or add --replace";
    });
  }

  void add(SplitWriter& split, const Piece& piece) {
    if (piece.first) ++split.info.documents;
    tokens_.clear();
    tokenizer_->encode_text(piece.bytes, tokens_);  // of bytes: where pieces are cut makes no difference
    if (piece.last) tokens_.push_back(tokenizer_->eos_id());
    split.write(tokens_);
  }

  void report_reading(const TextSource& source) {
    if (source.bytes_read() - reported_ < piece_bytes) return;
    reported_ = source.bytes_read();
    report("reading text", reported_, source.bytes_total(), source.file());
  }

  TextSource source_of(const std::vector<std::string>& inputs, const std::vector<std::string>& exclude) const {
    return TextSource(inputs, {.text_field = options_.text_field,
                               .exclude = folder_.target(),
                               .exclude_files = exclude,
                               .require_utf8 = !tokenizer_->takes_any_bytes()});
  }

  // The files that only validate. Error(setting) when one of them is also named to train on.
  std::vector<std::string> validation_files() const {
    if (options_.val_inputs.empty()) return {};
    std::vector<std::string> files = source_of(options_.val_inputs, {}).paths();
    std::error_code ignored;
    std::set<std::filesystem::path> named;
    for (const std::string& file : files) named.insert(std::filesystem::weakly_canonical(file, ignored));
    for (const std::string& input : options_.inputs)
      check(!named.contains(std::filesystem::weakly_canonical(input, ignored)), ErrorKind::setting,
            [&] { return input + " is given to train on and with --val to validate on; name it once"; });
    return files;
  }

  void read_text() {
    const double fraction = options_.val_inputs.empty() ? options_.val_fraction : 0;
    TextSource source = source_of(options_.inputs, validation_files());
    // With few files each is split as if it were alone, so that none is left out of validation.
    const bool each_file = static_cast<double>(source.files()) * fraction < 1;
    struct File {
      std::string path;
      TokenSpan train;
      int64_t train_documents, val_documents, val_tokens;  // val: before the file, then its own
    };
    std::vector<File> files;
    const auto end_file = [&] {
      if (files.empty()) return;
      File& f = files.back();
      f.train.end = train_.info.tokens;
      f.val_documents = val_.info.documents - f.val_documents;
      f.val_tokens = val_.info.tokens - f.val_tokens;
    };
    size_t number = 0;
    SplitWriter* split = &train_;
    Piece piece;
    while (source.next(piece)) {
      if (source.file_number() != number) {
        end_file();
        number = source.file_number();
        files.push_back(
            {source.file(), {train_.info.tokens, 0}, train_.info.documents, val_.info.documents, val_.info.tokens});
      }
      if (piece.first) {
        // The first document is always trained on, so that there is something to train on.
        const bool first = train_.info.documents == (each_file ? files.back().train_documents : 0);
        split = !first && document_place(piece.bytes, options_.seed) < fraction ? &val_ : &train_;
      }
      add(*split, piece);
      report_reading(source);
    }
    end_file();
    report("reading text", source.bytes_total(), source.bytes_total(), "");
    train_.close();  // tasks get shards of their own
    std::vector<TokenSpan> tails;
    const bool none_drawn = val_.info.documents == 0;
    for (const File& f : files) {
      const int64_t n = f.train.end - f.train.begin;
      const bool tail = fraction > 0 && n > 1 && f.val_documents == 0 && (each_file || none_drawn);
      if (tail) {
        const auto share = static_cast<int64_t>(std::llround(static_cast<double>(n) * fraction));
        tails.push_back({train_.tail_begin(f.train, std::clamp<int64_t>(share, 1, n - 1), *tokenizer_), f.train.end});
      }
      const int64_t tokens = tail ? tails.back().end - tails.back().begin : f.val_tokens;
      if (tokens > 0) summary_.validation.push_back({f.path, tokens, tail});
    }
    if (!tails.empty()) train_.move(tails, tokenizer_->eos_id(), val_);
    train_.close();
    val_.info.documents += static_cast<int64_t>(tails.size());
    val_.close();
    if ((each_file || !tails.empty()) && files.size() > 1 && fraction > 0)
      summary_.manifest.validation = Validation::each_file;
    summary_.files = source.files();
    summary_.input_bytes = source.bytes_total();
    summary_.notes = source.notes();
  }

  void read_validation() {
    TextSource source = source_of(options_.val_inputs, {});
    size_t number = 0;
    Piece piece;
    reported_ = 0;
    while (source.next(piece)) {
      const int64_t before = val_.info.tokens;
      add(val_, piece);
      if (source.file_number() != number) summary_.validation.push_back({source.file(), 0, false});
      number = source.file_number();
      summary_.validation.back().tokens += val_.info.tokens - before;
      report_reading(source);
    }
    val_.close();
    check(val_.info.tokens > 0, ErrorKind::input,
          [] { return std::string("the files of --val hold no text; give files with text"); });
    summary_.files += source.files();
    summary_.input_bytes += source.bytes_total();
    for (const std::string& note : source.notes()) summary_.notes.push_back(note);
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
  std::vector<int32_t> tokens_;      // of a piece
  int64_t reported_ = -piece_bytes;  // bytes read when the progress was last reported
};

void require(bool ok, const char* message) {
  check(ok, ErrorKind::setting, [&] { return std::string(message); });
}

}  // namespace

PrepareSummary prepare(const PrepareOptions& options, const std::function<void(const PrepareProgress&)>& progress) {
  require(!options.inputs.empty() || options.tasks > 0,
          "nothing to prepare; give input files or folders, or --tasks N");
  require(options.val_inputs.empty() || !options.inputs.empty(), "--val needs files to train on; give INPUT too");
  require(!options.output.empty(), "no output folder; give one with -o DIR");
  require(options.tasks >= 0 && options.tasks <= 1'000'000'000, "the number of task samples must be 0 to 1000000000");
  require(options.task_items >= 0 && options.task_items <= 10'000, "evaluation samples per task must be 0 to 10000");
  require(options.val_fraction >= 0 && options.val_fraction < 1, "the validation fraction must be in [0, 1)");
  require(options.shard_tokens >= 1, "a shard must have room for at least one token");
  require(!options.text_field.empty(), "the name of the text field must not be empty");
  return Preparation(options, progress).run();
}

}  // namespace braid::models::text
