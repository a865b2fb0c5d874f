#include "braid/models/data/prepare/samples.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "braid/models/data/prepare/output_folder.h"
#include "braid/models/data/prepare/read_ahead.h"
#include "braid/models/data/prepare/source.h"
#include "braid/models/data/prepare/target_data.h"
#include "braid/models/data/prepare/unfinished.h"
#include "braid/models/data/text/shard.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/checksum.h"
#include "braid/tensor/random.h"

namespace braid::models::text {
namespace {

// The shards of one split and, beside each, the marks of its tokens. A sample lies in one shard.
class SampleSplit {
 public:
  SampleSplit(const PreparedFolder& folder, const std::string& prefix, const Tokenizer& tokenizer, int64_t shard_tokens)
      : tokens_(folder, prefix, tokenizer.vocab_size(), tokenizer.fingerprint(), kUnlimited),
        marks_(folder, prefix + "-marks", kMarkKinds, tokenizer.fingerprint(), kUnlimited),
        shard_tokens_(shard_tokens) {}

  void write(const Sample& sample) {
    const int64_t open = tokens_.open_tokens();
    if (open > 0 && open + std::ssize(sample.tokens) > shard_tokens_) close();
    std::vector<int32_t> marks;
    for (const bool counted : sample.counted) marks.push_back(counted ? kCountedMark : 0);
    marks.at(0) |= kFirstMark;
    tokens_.write(sample.tokens);
    marks_.write(marks);
    ++tokens_.info.documents;
  }
  void close() { tokens_.close(), marks_.close(); }
  void sync(SplitProgress& tokens, SplitProgress& marks) { tokens = tokens_.sync(), marks = marks_.sync(); }
  void resume(const SplitProgress& tokens, const SplitProgress& marks) { tokens_.resume(tokens), marks_.resume(marks); }

  int64_t documents() const { return tokens_.info.documents; }
  int64_t tokens() const { return tokens_.info.tokens; }
  SplitInfo info() const {  // after close()
    SplitInfo all = tokens_.info;
    for (size_t i = 0; i < all.shards.size(); ++i) {
      const ShardInfo& marks = marks_.info.shards.at(i);
      all.shards[i].marks = marks.file;
      all.shards[i].marks_checksum = marks.checksum;
    }
    return all;
  }
  // Names of the files, the unfinished ones among them.
  void files(std::vector<std::string>& names) const {
    for (const SplitWriter* part : {&tokens_, &marks_}) {
      for (const ShardInfo& shard : part->info.shards) names.push_back(shard.file);
      names.push_back(io::AtomicFile::unfinished(part->next_name()));
    }
  }

 private:
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();  // a sample is not cut
  SplitWriter tokens_, marks_;
  int64_t shard_tokens_;
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
        folder_(options.output, true),
        tokenizer_(options.tokenizer.empty() ? std::make_unique<ByteTokenizer>() : load_tokenizer(options.tokenizer)),
        timer_(options.checkpoint_seconds, false) {}

  SampleSummary run() {
    try {
      make();
      return std::move(summary_);
    } catch (const Error& e) {
      if (stopped_ || !timer_.saved()) throw;
      folder_.keep();
      throw Error(e.kind(),
                  str(e.what(), "; what was read is kept in ", folder_.path(), ", the same command resumes there"));
    } catch (...) {
      if (stopped_ && timer_.worth_saving()) {
        save();
        folder_.keep();
      }
      throw;
    }
  }

 private:
  void make() {
    describe();
    check_replaceable(options_, folder_.target(), false, summary_.prepared);
    TextSource inputs(options_.inputs, source_options());
    std::optional<TextSource> validation;
    if (!options_.val_inputs.empty()) validation.emplace(options_.val_inputs, source_options());
    begin(inputs, validation ? &*validation : nullptr);
    const double fraction = validation ? 0 : options_.val_fraction;
    if (!state_.validation) {
      read(inputs, [&](Sample&& sample, double place) { add(std::move(sample), place, fraction); });
      settle(fraction);
    }
    if (validation) {
      if (!std::exchange(state_.validation, true)) state_.at = {}, state_.bytes_read = 0;
      read(*validation, [&](const Sample& sample, double) { val_->write(sample); });
    }
    finish(inputs, validation ? &*validation : nullptr);
  }

  TextSource::Options source_options() const { return {.exclude = folder_.target(), .only_jsonl = true}; }

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

  // Continues with the work of an earlier call, or begins anew.
  void begin(const TextSource& inputs, const TextSource* validation) {
    const ChatTemplate chat = format_.chat.value_or(ChatTemplate());
    std::vector<const TextSource*> sources = {&inputs};
    if (validation) sources.push_back(validation);
    signature_ =
        signature_of({"samples", detail::shortest(options_.val_fraction), std::to_string(options_.seed),
                      std::to_string(options_.shard_tokens), std::to_string(tokenizer_->fingerprint()),
                      options_.tokenizer, std::to_string(format_.chat.has_value()), chat.begin, chat.turn,
                      format_.prompt_field, format_.answer_field, std::to_string(format_.answer_or_completion)},
                     sources);
    const auto make_splits = [&] {
      train_.emplace(folder_, "train", *tokenizer_, options_.shard_tokens);
      val_.emplace(folder_, "val", *tokenizer_, options_.shard_tokens);
    };
    make_splits();
    if (std::optional<UnfinishedSamples> state = load_unfinished_samples(folder_, signature_)) {
      try {
        train_->resume(state->train, state->train_marks);
        val_->resume(state->val, state->val_marks);
        state_ = *std::move(state);
        summary_.prepared.resumed_bytes = state_.bytes_read + (state_.validation ? inputs.bytes_total() : 0);
        timer_ = SaveTimer(options_.checkpoint_seconds, true);
      } catch (const std::exception& e) {
        make_splits();
        summary_.prepared.notes.push_back(
            str("an earlier call left work that cannot be used, so all is read again: ", e.what()));
      }
    }
    std::vector<std::string> names{unfinished_name};
    train_->files(names), val_->files(names);
    folder_.remove_all_but(names);
  }

  void save() {
    timer_.save([&] {
      train_->sync(state_.train, state_.train_marks);
      val_->sync(state_.val, state_.val_marks);
      save_unfinished(folder_, signature_, state_);
    });
  }

  // Calls each(sample, place) for every line that holds a sample. Lines become samples on all threads, and are taken in
  // their order.
  void read(TextSource& source, const std::function<void(Sample&&, double)>& each) {
    source.go_to(state_.at);
    if (state_.at.files > 0) source.notes.clear();  // of the list of files: noted before
    const int64_t total = source.bytes_total();
    int64_t lines = 0;
    std::vector<Sample> samples;  // by the place in a batch
    ReadAhead ahead(source);
    ahead.run([&](size_t pieces) { samples.resize(std::max(samples.size(), pieces)); },
              [&](const Piece& piece, size_t place) {
                const std::string where = str(source.path(piece.file), " at line ", piece.line);
                samples[place] = make_sample(piece.bytes, where, format_, *tokenizer_);
              },
              [&](const Piece& piece, size_t place) {
                for (const std::string& message : piece.notes) add_note(state_.notes, message);
                take(piece, std::exchange(samples[place], {}), each);
                timer_.read(piece.bytes_read - state_.bytes_read);
                state_.at = piece.after;
                state_.bytes_read = piece.bytes_read;
                if (++lines % 256 == 0) report(piece.bytes_read, total, source.path(piece.file));
                if (timer_.due()) save();
              });
    report(total, total, "");
    for (const std::string& message : source.notes) add_note(state_.notes, message);
    source.notes.clear();
  }

  void take(const Piece& piece, Sample&& sample, const std::function<void(Sample&&, double)>& each) {
    const int64_t counted = std::count(sample.counted.begin() + 1, sample.counted.end(), true);
    if (counted == 0) {
      ++state_.unanswered;
      return;
    }
    state_.counted += counted;
    state_.longest = std::max<int64_t>(state_.longest, std::ssize(sample.tokens));
    each(std::move(sample), place_of(piece.bytes, options_.seed));
  }

  void report(int64_t done, int64_t total, const std::string& file) {
    if (!progress_) return;
    stopped_ = true;  // by what the caller throws
    progress_({.stage = "reading samples",
               .done = done,
               .total = total,
               .resumed = summary_.prepared.resumed_bytes,
               .documents = train_->documents() + val_->documents(),
               .tokens = train_->tokens() + val_->tokens(),
               .file = file});
    stopped_ = false;
  }

  // Until some sample is drawn for validation, the one that was nearest to it is held back.
  void add(Sample&& sample, double place, double fraction) {
    if (place < fraction) return val_->write(sample);
    if (fraction > 0 && val_->documents() == 0 && (state_.held.empty() || place < state_.held_place)) {
      std::swap(place, state_.held_place);
      if (state_.held.empty()) {
        state_.held.push_back(std::move(sample));
        return;
      }
      std::swap(sample, state_.held[0]);
    }
    train_->write(sample);
  }
  void settle(double fraction) {
    const bool validates = fraction > 0 && val_->documents() == 0 && train_->documents() > 0;
    for (const Sample& sample : state_.held) (validates ? val_ : train_)->write(sample);
    state_.held.clear();
  }

  void finish(const TextSource& inputs, const TextSource* validation) {
    train_->close(), val_->close();
    check(train_->documents() > 0, ErrorKind::input,
          "the inputs hold no sample to train on: expected lines with an answer");
    PrepareSummary& summary = summary_.prepared;
    for (const TextSource* source : {&inputs, validation}) {
      if (!source) continue;
      summary.files += std::ssize(source->files());
      summary.input_bytes += source->bytes_total();
    }
    summary.notes.insert(summary.notes.end(), state_.notes.begin(), state_.notes.end());
    if (state_.unanswered > 0)
      summary.notes.push_back(str(state_.unanswered, " of the lines have no answer: left out"));
    summary_.counted = state_.counted, summary_.longest = state_.longest;
    save_tokenizer(*tokenizer_, folder_.path());
    Manifest& m = summary.manifest;
    m.train = train_->info(), m.val = val_->info();
    write_manifest(folder_.path(), m);
    check_replaceable(options_, folder_.target(), true, summary);
    std::vector<std::string> names{manifest_name};
    for (const TokenizerFile& file : tokenizer_->files()) names.push_back(file.name);
    train_->files(names), val_->files(names);
    folder_.remove_all_but(names);
    folder_.commit();
  }

  const PrepareOptions& options_;
  const SampleFormat& format_;
  const std::function<void(const PrepareProgress&)>& progress_;
  PreparedFolder folder_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::string signature_;
  std::optional<SampleSplit> train_, val_;
  UnfinishedSamples state_;  // its splits are set only when it is saved
  SaveTimer timer_;
  SampleSummary summary_;
  bool stopped_ = false;
};

}  // namespace

SampleSummary prepare_samples(const PrepareOptions& options, const SampleFormat& format,
                              const std::function<void(const PrepareProgress&)>& progress) {
  check(!options.inputs.empty(), ErrorKind::setting, "there is nothing to prepare: expected a .jsonl file of samples");
  check(options.tasks == 0, ErrorKind::setting,
        "--tasks makes text, not samples: expected none of it beside --answers and --chat");
  check(options.val_fraction >= 0 && options.val_fraction < 1, ErrorKind::setting, [&] {
    return "--val-fraction is out of range: expected a value from 0 to below 1, found " +
           detail::shortest(options.val_fraction);
  });
  check(options.shard_tokens >= 1, ErrorKind::setting, "--shard-tokens must be at least 1");
  return SamplePreparation(options, format, progress).run();
}

}  // namespace braid::models::text
