#include "braid/models/data/prepare/prepare.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include "braid/models/data/prepare/count_words.h"
#include "braid/models/data/prepare/output_folder.h"
#include "braid/models/data/prepare/reading.h"
#include "braid/models/data/prepare/target_data.h"
#include "braid/models/data/tokenizers/tokenizer.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/checksum.h"
#include "braid/tensor/io/path_status.h"

namespace braid::models::text {
namespace {

namespace fs = std::filesystem;

// The options that decide the bytes of the splits.
std::vector<std::string> option_texts(const PrepareOptions& o, const Tokenizer* tokenizer) {
  return {detail::shortest(o.val_fraction),
          std::to_string(o.seed),
          std::to_string(o.shard_tokens),
          std::to_string(o.dedup),
          std::to_string(static_cast<int>(o.invalid)),
          o.text_field,
          std::to_string(tokenizer ? tokenizer->fingerprint() : 0),
          o.tokenizer,
          std::to_string(o.train_bpe),
          o.bpe_form,
          std::to_string(o.bpe_words),
          std::to_string(o.train_bpe > 0 ? o.tasks : 0),  // their words count for the tokenizer
          task_set_name(o.task_set)};
}

class Preparation {
 public:
  Preparation(const PrepareOptions& options, const std::function<void(const PrepareProgress&)>& progress)
      : options_(options),
        progress_(progress),
        folder_(options.output, true),
        tokenizer_(options.train_bpe > 0 ? nullptr : make_tokenizer(options)) {}

  PrepareSummary run() {
    try {
      if (tokenizer_) describe();
      make();
      return std::move(summary_);
    } catch (const Error& e) {
      if (!stopped_) keep_work(splits_, folder_, &e);
      throw;
    } catch (...) {
      if (stopped_) keep_work(splits_, folder_);
      throw;
    }
  }

 private:
  static std::unique_ptr<Tokenizer> make_tokenizer(const PrepareOptions& options) {
    if (options.tokenizer.empty()) return std::make_unique<ByteTokenizer>();
    return load_tokenizer(options.tokenizer);
  }

  void make() {
    std::unique_ptr<TextSource> inputs, validation;
    if (!options_.val_inputs.empty()) validation = source_of(options_.val_inputs, {});
    if (!options_.inputs.empty()) inputs = source_of(options_.inputs, validation_files(validation.get()));
    begin(inputs.get(), validation.get());
    if (inputs) reading_->inputs(*inputs, [&](const Piece& p) { read(*inputs, p); });
    if (inputs) report("reading text", inputs->bytes_total(), inputs->bytes_total(), "");
    if (validation) reading_->validation(*validation, [&](const Piece& p) { read(*validation, p); });
    check(!validation || splits_->val.info.tokens > 0, ErrorKind::input,
          "the files of `val_inputs` hold no text; give files with text");
    if (options_.tasks > 0) make_tasks();
    finish(inputs.get(), validation.get());
  }

  // Continues with the work of an earlier call, or begins anew.
  void begin(const TextSource* inputs, const TextSource* validation) {
    std::vector<const TextSource*> sources;
    for (const TextSource* source : {inputs, validation})
      if (source) sources.push_back(source);
    const bool train = options_.train_bpe > 0;
    if (train && !io::exists(folder_.file("tokenizer.json"))) folder_.remove_all_but({});
    splits_.emplace(folder_, signature_of(option_texts(options_, tokenizer_.get()), sources), tokenizer_,
                    options_.shard_tokens, options_.dedup);
    if (train && !splits_->has_journal()) train_tokenizer(validation);
    if (train) {
      tokenizer_ = load_tokenizer(folder_.path());
      describe();
    }
    splits_->begin(train);
    if (!splits_->problem.empty()) summary_.notes.push_back(splits_->problem);
    const Place& place = splits_->place;
    summary_.resumed_bytes = place.bytes_read + (place.validation && inputs ? inputs->bytes_total() : 0);
    reading_.emplace(options_, *tokenizer_, *splits_);
  }

  // Trains on all documents of the inputs and all samples of the tasks, and saves the tokenizer in the folder.
  void train_tokenizer(const TextSource* validation) {
    folder_.remove_all_but({});
    const std::unique_ptr<TextSource> source = source_of(options_.inputs, validation_files(validation));
    const BpeForm form(options_.bpe_form);
    CountedCorpus corpus = count_words(*source, form, options_.bpe_words, [&](const Piece& piece) {
      if (due(piece)) report("counting words", piece.bytes_read, source->bytes_total(), source->path(piece.file));
    });
    for (int64_t i = 0; i < options_.tasks; ++i)
      form.count(make_task_sample(Vocabulary::train, options_.seed, i, options_.task_set).text, corpus.counts);
    const BpeVocabulary vocabulary = form.train(
        corpus.counts, options_.train_bpe, [&](int64_t ids) { report("merging pairs", ids, options_.train_bpe, ""); });
    form.save(vocabulary, folder_.path());
    reported_ = -piece_bytes;
    if (corpus.dropped > 0)
      summary_.notes.push_back(str(corpus.dropped, " rare words did not count for the tokenizer: there are more than ",
                                   options_.bpe_words, " different ones"));
  }

  void finish(const TextSource* inputs, const TextSource* validation) {
    splits_->train.close();
    splits_->val.close();
    check(splits_->train.info.tokens > 0, ErrorKind::input,
          "the inputs hold no text; give files with text or set `tasks`");
    report("finishing", 0, 0, "");
    save_tokenizer(*tokenizer_, folder_.path());
    for (const TextSource* source : {inputs, validation}) {
      if (!source) continue;
      summary_.files += std::ssize(source->files());
      summary_.input_bytes += source->bytes_total();
      summary_.left_out.add(source->left_out());
    }
    summary_.validation = reading_->validation_files;
    summary_.duplicates = splits_->place.duplicates;
    summary_.ill_formed = splits_->place.ill_formed;
    summary_.notes.insert(summary_.notes.end(), splits_->notes.begin(), splits_->notes.end());
    Manifest& m = summary_.manifest;
    if (m.validation != Validation::given && reading_->each_file() && splits_->files.size() > 1)
      m.validation = Validation::each_file;
    m.train = splits_->train.info;
    m.val = splits_->val.info;
    if (m.validation != Validation::documents) m.validation_files = summary_.validation;
    write_manifest(folder_.path(), m, tokenizer_->files());
    check_replaceable(options_, folder_.target(), true, summary_);
    std::vector<std::string> names{manifest_name};
    for (const TokenizerFile& file : tokenizer_->files()) names.push_back(file.name);
    for (const SplitInfo* split : {&m.train, &m.val})
      for (const ShardInfo& shard : split->shards) names.push_back(shard.file);
    for (const TaskFileInfo& tasks : m.tasks) names.push_back(tasks.file);
    folder_.remove_all_but(names);
    folder_.commit();
  }

  void report(const char* stage, int64_t done, int64_t total, const std::string& file) {
    if (!progress_) return;
    const auto [documents, tokens] = splits_ ? splits_->written() : std::pair<int64_t, int64_t>();
    stopped_ = true;  // by what the caller throws
    progress_({stage, done, total, summary_.resumed_bytes, documents, tokens, file});
    stopped_ = false;
  }

  // Is it time to report the progress?
  bool due(const Piece& piece) {
    if (piece.bytes_read - reported_ < piece_bytes && piece.bytes_read >= reported_) return false;
    reported_ = piece.bytes_read;
    return true;
  }
  void read(const TextSource& source, const Piece& piece) {
    if (due(piece)) report("reading text", reported_, source.bytes_total(), source.path(piece.file));
  }

  // The part of the manifest that the options determine. Error(setting) when the folder has other data.
  void describe() {
    document_end(*tokenizer_, "every document ends with");
    for (const std::string& note : tokenizer_->notes()) summary_.notes.push_back(note);
    describe_options(options_, *tokenizer_, summary_.manifest);
    check_replaceable(options_, folder_.target(), false, summary_);
  }

  std::unique_ptr<TextSource> source_of(const std::vector<std::string>& inputs,
                                        const std::vector<std::string>& exclude) const {
    return std::make_unique<TextSource>(
        inputs, TextSource::Options{.text_field = options_.text_field,
                                    .exclude = folder_.target(),
                                    .exclude_files = exclude,
                                    .require_utf8 = !tokenizer_ || !tokenizer_->takes_any_bytes(),
                                    .hashes = options_.dedup,
                                    .invalid = options_.invalid});
  }

  // The files that only validate. Error(setting) when one of them is also named to train on.
  std::vector<std::string> validation_files(const TextSource* validation) const {
    std::vector<std::string> files;
    std::set<fs::path> named;
    if (validation)
      for (const InputFile& file : validation->files()) {
        files.push_back(file.path);
        named.insert(io::real_path(file.path));
      }
    for (const std::string& input : options_.inputs)
      check(!io::exists(input) || !named.contains(io::real_path(input)), ErrorKind::setting,
            [&] { return input + " is given to train on and as `val_inputs` to validate on; name it once"; });
    return files;
  }

  // Samples 0 ... N-1 of the series are trained on, the next ones validate, the ones after that are graded; they are
  // graded once with the words of training and once with held-out ones (TaskSet).
  void make_tasks() {
    const int64_t n = options_.tasks;
    const int64_t for_val =
        options_.val_fraction > 0 ? static_cast<int64_t>(std::ceil(static_cast<double>(n) * options_.val_fraction)) : 0;
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < n + for_val; ++i) {
      SplitWriter& split = i < n ? splits_->train : splits_->val;
      tokens.clear();
      tokenizer_->encode_text(make_task_sample(Vocabulary::train, options_.seed, i, options_.task_set).text, tokens);
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
    const int64_t samples = options_.task_items * task_count(options_.task_set);
    if (samples == 0) return;
    io::AtomicFile file(folder_.file(name));
    uint32_t crc = 0;
    for (int64_t i = first; i < first + samples; ++i) {
      const std::string line = task_item_line(make_task_sample(vocabulary, options_.seed, i, options_.task_set));
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
  std::optional<Splits> splits_;
  std::optional<Reading> reading_;
  PrepareSummary summary_;
  bool stopped_ = false;
  int64_t reported_ = -piece_bytes;  // bytes read when the progress was last reported
};

void require(bool ok, const char* message) { check(ok, ErrorKind::setting, message); }

}  // namespace

PrepareSummary prepare(const PrepareOptions& options, const std::function<void(const PrepareProgress&)>& progress) {
  require(!options.inputs.empty() || options.tasks > 0,
          "nothing to prepare; give input files or folders, or set `tasks`");
  require(options.val_inputs.empty() || !options.inputs.empty(),
          "`val_inputs` needs files to train on; give `inputs` too");
  require(!options.output.empty(), "no output folder; give one with -o DIR");
  require(options.tasks >= 0 && options.tasks <= 1'000'000'000, "the number of task samples must be 0 to 1000000000");
  require(options.task_items >= 0 && options.task_items <= 10'000, "evaluation samples per task must be 0 to 10000");
  check(options.val_fraction >= 0 && options.val_fraction < 1, ErrorKind::setting, [&] {
    return "the validation fraction (`val_fraction`) must be from 0 to below 1, found " +
           detail::shortest(options.val_fraction);
  });
  require(options.shard_tokens >= 1, "a shard must have room for at least one token");
  require(options.train_bpe == 0 || !options.inputs.empty(), "a tokenizer is trained on the inputs; give INPUT too");
  require(options.train_bpe == 0 || options.tokenizer.empty(), "`train_bpe` makes a tokenizer; give it or `tokenizer`");
  require(options.train_bpe >= 0 && options.train_bpe <= 1'000'000, "the vocabulary must have at most 1000000 ids");
  require(!options.text_field.empty(), "the name of the text field must not be empty");
  return Preparation(options, progress).run();
}

bool can_resume_prepare(const std::string& output) {
  return io::exists(fs::path(building_folder(output)) / journal_name);
}

}  // namespace braid::models::text
