#include "braid/models/text/prepare/samples.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "braid/models/text/prepare/output_folder.h"
#include "braid/models/text/prepare/source.h"
#include "braid/models/text/prepare/target_data.h"
#include "braid/models/text/shard.h"
#include "braid/tensor/detail/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/checksum.h"
#include "braid/tensor/random.h"

namespace braid::models::text {
namespace {

// The shards of one split and, beside each, the marks of its tokens. A sample lies in one shard.
class SampleSplit {
 public:
  SampleSplit(const PreparedFolder& folder, std::string prefix, const Tokenizer& tokenizer, int64_t shard_tokens)
      : folder_(folder),
        prefix_(std::move(prefix)),
        vocab_size_(tokenizer.vocab_size()),
        fingerprint_(tokenizer.fingerprint()),
        shard_tokens_(shard_tokens) {}

  void write(const Sample& sample) {
    const auto n = std::ssize(sample.tokens);
    if (tokens_ && tokens_->tokens() > 0 && tokens_->tokens() + n > shard_tokens_) close();
    if (!tokens_) {
      tokens_.emplace(folder_.file(name("")), vocab_size_, fingerprint_);
      marks_.emplace(folder_.file(name("marks-")), kMarkKinds, fingerprint_);
    }
    std::vector<int32_t> marks;
    for (const bool counted : sample.counted) marks.push_back(counted ? kCountedMark : 0);
    marks.at(0) |= kFirstMark;
    tokens_->write(sample.tokens);
    marks_->write(marks);
    info.tokens += n;
    ++info.documents;
  }
  void close() {
    if (!tokens_) return;
    const ShardHeader tokens = tokens_->commit(), marks = marks_->commit();
    ShardInfo shard{name(""), tokens.tokens, tokens.checksum};
    shard.marks = name("marks-");
    shard.marks_checksum = marks.checksum;
    info.shards.push_back(shard);
    tokens_.reset(), marks_.reset();
  }

  SplitInfo info;

 private:
  std::string name(const char* kind) const {
    char number[32];
    std::snprintf(number, sizeof number, "%05zu.tok", info.shards.size());
    return prefix_ + "-" + kind + number;
  }

  const PreparedFolder& folder_;
  std::string prefix_;
  int64_t vocab_size_;
  uint64_t fingerprint_;
  int64_t shard_tokens_;
  std::optional<ShardWriter> tokens_, marks_;
};

// A value in [0, 1) from a line and the seed.
double place_of(std::string_view line, uint64_t seed) {
  const auto n = static_cast<int64_t>(line.size());
  const uint64_t hash = uint64_t{io::crc32c(line.data(), n)} << 32 | io::crc32c(line.data(), n, 0x5EED);
  return unit(random_bits(hash, child({seed, 0}, "validation")));
}

class SamplePreparation {
 public:
  SamplePreparation(const PrepareOptions& options, const SampleFormat& format,
                    const std::function<void(const PrepareProgress&)>& progress)
      : options_(options),
        format_(format),
        progress_(progress),
        folder_(options.output),
        tokenizer_(options.tokenizer.empty() ? std::make_unique<ByteTokenizer>() : load_tokenizer(options.tokenizer)),
        train_(folder_, "train", *tokenizer_, options.shard_tokens),
        val_(folder_, "val", *tokenizer_, options.shard_tokens) {}

  SampleSummary run() {
    describe();
    check_replaceable(options_, folder_.target(), false, summary_.prepared);
    const double fraction = options_.val_inputs.empty() ? options_.val_fraction : 0;
    read(options_.inputs, [&](Sample&& sample, double place) { add(std::move(sample), place, fraction); });
    settle(fraction);
    if (!options_.val_inputs.empty())
      read(options_.val_inputs, [&](const Sample& sample, double) { val_.write(sample); });
    train_.close(), val_.close();
    Manifest& m = summary_.prepared.manifest;
    check(train_.info.documents > 0, ErrorKind::input,
          [] { return std::string("the inputs hold no sample to train on: expected lines with an answer"); });
    if (unanswered_ > 0)
      summary_.prepared.notes.push_back(std::to_string(unanswered_) + " of the lines have no answer: left out");
    save_tokenizer(*tokenizer_, folder_.path());
    m.train = train_.info, m.val = val_.info;
    write_manifest(folder_.path(), m);
    check_replaceable(options_, folder_.target(), true, summary_.prepared);
    folder_.commit();
    return std::move(summary_);
  }

 private:
  void describe() {
    Manifest& m = summary_.prepared.manifest;
    describe_options(options_, *tokenizer_, m);
    m.samples.emplace();
    if (format_.chat) m.samples->begin = format_.chat->begin, m.samples->turn = format_.chat->turn;
    const std::string file = options_.tokenizer.empty() ? "" : file_with_chat_template(options_.tokenizer);
    if (!file.empty())
      summary_.prepared.notes.push_back(
          "the chat_template of " + file + " is a program (Jinja), which is not executed; " +
          (format_.chat ? "the turns were written as --chat says" : "prompts and answers stand as they are"));
  }

  // Calls each(sample, place) for every line that holds a sample.
  void read(const std::vector<std::string>& inputs, const std::function<void(Sample&&, double)>& each) {
    TextSource source(inputs, {.exclude = folder_.target(), .only_jsonl = true});
    const int64_t total = source.bytes_total();
    int64_t lines = 0;
    for (Piece piece; source.next(piece);) {
      const std::string& file = source.path(piece.file);
      Sample sample = make_sample(piece.bytes, file + " at line " + std::to_string(piece.line), format_, *tokenizer_);
      if (++lines % 256 == 0) report(piece.bytes_read, total, file);
      const int64_t counted = std::count(sample.counted.begin() + 1, sample.counted.end(), true);
      if (counted == 0) {
        ++unanswered_;
        continue;
      }
      summary_.counted += counted;
      summary_.longest = std::max<int64_t>(summary_.longest, std::ssize(sample.tokens));
      each(std::move(sample), place_of(piece.bytes, options_.seed));
    }
    report(total, total, "");
    summary_.prepared.notes.insert(summary_.prepared.notes.end(), source.notes.begin(), source.notes.end());
    summary_.prepared.files += std::ssize(source.files());
    summary_.prepared.input_bytes += total;
  }

  void report(int64_t done, int64_t total, const std::string& file) {
    if (!progress_) return;
    progress_({.stage = "reading samples",
               .done = done,
               .total = total,
               .documents = train_.info.documents + val_.info.documents,
               .tokens = train_.info.tokens + val_.info.tokens,
               .file = file});
  }

  // Until some sample is drawn for validation, the one that was nearest to it is held back.
  void add(Sample&& sample, double place, double fraction) {
    if (place < fraction) return val_.write(sample);
    if (fraction > 0 && val_.info.documents == 0 && (!held_ || place < held_place_)) {
      std::swap(place, held_place_);
      if (!held_) {
        held_ = std::move(sample);
        return;
      }
      std::swap(sample, *held_);
    }
    train_.write(sample);
  }
  void settle(double fraction) {
    if (held_) (fraction > 0 && val_.info.documents == 0 && train_.info.documents > 0 ? val_ : train_).write(*held_);
    held_.reset();
  }

  const PrepareOptions& options_;
  const SampleFormat& format_;
  const std::function<void(const PrepareProgress&)>& progress_;
  PreparedFolder folder_;
  std::unique_ptr<Tokenizer> tokenizer_;
  SampleSplit train_, val_;
  SampleSummary summary_;
  std::optional<Sample> held_;
  double held_place_ = 0;
  int64_t unanswered_ = 0;
};

}  // namespace

SampleSummary prepare_samples(const PrepareOptions& options, const SampleFormat& format,
                              const std::function<void(const PrepareProgress&)>& progress) {
  check(!options.inputs.empty(), ErrorKind::setting,
        [] { return std::string("there is nothing to prepare: expected a .jsonl file of samples"); });
  check(options.tasks == 0, ErrorKind::setting,
        [] { return std::string("--tasks makes text, not samples: expected none of it beside --answers and --chat"); });
  check(options.val_fraction >= 0 && options.val_fraction < 1, ErrorKind::setting, [&] {
    return "--val-fraction is out of range: expected a value from 0 to below 1, found " +
           detail::shortest(options.val_fraction);
  });
  check(options.shard_tokens >= 1, ErrorKind::setting, [] { return std::string("--shard-tokens must be at least 1"); });
  return SamplePreparation(options, format, progress).run();
}

}  // namespace braid::models::text
