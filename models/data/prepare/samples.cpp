#include "braid/models/data/prepare/samples.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "braid/models/data/prepare/folder_template.h"
#include "braid/models/data/prepare/source.h"
#include "braid/models/data/prepare/splits.h"
#include "braid/models/data/prepare/target_data.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/checksum.h"
#include "braid/tensor/random.h"

namespace braid::models::text {
namespace {

// A value in [0, 1) from a line and the seed.
double sample_draw(std::string_view line, uint64_t seed) {
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
        tokenizer_(options.tokenizer.empty() ? std::make_unique<ByteTokenizer>() : load_tokenizer(options.tokenizer)) {
    if (format_.folder) format_.chat = ChatTemplate::of_folder(*tokenizer_);
  }

  SampleSummary run() {
    try {
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
  void make() {
    describe();
    check_replaceable(options_, folder_.target(), false, summary_.prepared);
    TextSource inputs(options_.inputs, source_options());
    std::optional<TextSource> validation;
    if (!options_.val_inputs.empty()) validation.emplace(options_.val_inputs, source_options());
    begin(inputs, validation ? &*validation : nullptr);
    const double fraction = validation ? 0 : options_.val_fraction;
    Splits& s = *splits_;
    if (!s.place.validation) {
      read(inputs, [&](Sample&& sample, double draw) { add(std::move(sample), draw, fraction); });
      settle(fraction);
      s.end_inputs();
    }
    if (validation) {
      read(*validation, [&](const Sample& sample, double) { s.val.write(sample); });
      s.end_validation();
    } else {
      s.val.append(s.drawn.info);
      s.val.close();
    }
    finish(inputs, validation ? &*validation : nullptr);
  }

  TextSource::Options source_options() const {
    return {.exclude = folder_.target(), .only_jsonl = true, .invalid = options_.invalid};
  }

  void describe() {
    Manifest& m = summary_.prepared.manifest;
    describe_options(options_, *tokenizer_, m);
    m.samples.emplace();
    if (format_.chat) m.samples->begin = format_.chat->begin, m.samples->turn = format_.chat->turn;
    if (format_.folder) m.samples->folder = format_.chat->folder->source();
    m.samples->preferences = format_.preferences;
    const std::string file = chat_template_file(*tokenizer_);
    if (!file.empty() && !format_.folder)
      summary_.prepared.notes.push_back("the tokenizer's folder has a chat template of its own (" + file +
                                        "), which `chat` = folder writes; " +
                                        (format_.chat ? "the turns were written as the chat template says"
                                                      : "prompts and answers stand as they are"));
  }

  // Continues with the work of an earlier call, or begins anew.
  void begin(const TextSource& inputs, const TextSource* validation) {
    const ChatTemplate chat = format_.chat.value_or(ChatTemplate());
    std::vector<const TextSource*> sources = {&inputs};
    if (validation) sources.push_back(validation);
    const std::string turn = chat.folder ? "folder\n" + chat.folder->source() : chat.turn;
    splits_.emplace(folder_,
                    signature_of({"samples", detail::shortest(options_.val_fraction), std::to_string(options_.seed),
                                  std::to_string(options_.shard_tokens), std::to_string(tokenizer_->fingerprint()),
                                  options_.tokenizer, std::to_string(static_cast<int>(options_.invalid)),
                                  std::to_string(format_.chat.has_value()), chat.begin, turn, format_.prompt_field,
                                  format_.answer_field, std::to_string(format_.answer_or_completion),
                                  std::to_string(format_.preferences)},
                                 sources),
                    tokenizer_, options_.shard_tokens, false);
    splits_->begin(false);
    if (!splits_->problem.empty()) summary_.prepared.notes.push_back(splits_->problem);
    const Place& place = splits_->place;
    summary_.prepared.resumed_bytes = place.bytes_read + (place.validation ? inputs.bytes_total() : 0);
  }

  // Calls each(sample, draw) for every line that holds a sample. Lines become samples on all threads, and are taken in
  // their order.
  void read(TextSource& source, const std::function<void(Sample&&, double)>& each) {
    const int64_t total = source.bytes_total();
    int64_t lines = 0;
    std::vector<Sample> samples;   // by the place in a batch
    std::vector<Repairs> repairs;  // likewise
    splits_->read(
        source,
        [&](size_t pieces) {
          samples.resize(std::max(samples.size(), pieces));
          repairs.assign(samples.size(), {});
        },
        [&](const Piece& piece, size_t i) {
          const std::string where = str(source.path(piece.file), " at line ", piece.line);
          std::string storage;
          samples[i] = make_sample(source.object_of(piece, storage, &repairs[i]), where, format_, *tokenizer_);
        },
        [&](const Piece& piece, size_t i) {
          take(piece, std::exchange(samples[i], {}), each);
          splits_->add_repairs(source, piece, repairs[i]);
          if (++lines % 256 == 0) report(piece.bytes_read, total, source.path(piece.file));
        });
    report(total, total, "");
  }

  // Counts a sample when it is written: a shard that it finishes is resumed before it.
  void take(const Piece& piece, Sample&& sample, const std::function<void(Sample&&, double)>& each) {
    Place& place = splits_->place;
    const auto begin = sample.counted.begin(), second = begin + sample.second, end = sample.counted.end();
    const auto counted_in = [](auto from, auto to) { return from == to ? 0 : std::count(from + 1, to, true); };
    const int64_t of_first = counted_in(begin, second), counted = of_first + counted_in(second, end);
    const int64_t length = std::max(second - begin, end - second);
    if (counted == of_first || (sample.second > 0 && of_first == 0)) {
      ++place.unanswered;
      return;
    }
    each(std::move(sample), sample_draw(piece.bytes, options_.seed));
    place.counted += counted;
    place.longest = std::max(place.longest, length);
  }

  void report(int64_t done, int64_t total, const std::string& file) {
    if (!progress_) return;
    stopped_ = true;  // by what the caller throws
    const auto [documents, tokens] = splits_->written();
    progress_({.stage = "reading samples",
               .done = done,
               .total = total,
               .resumed = summary_.prepared.resumed_bytes,
               .documents = documents,
               .tokens = tokens,
               .file = file});
    stopped_ = false;
  }

  // Until some sample is drawn for validation, the one that was nearest to it is held back.
  void add(Sample&& sample, double draw, double fraction) {
    Splits& s = *splits_;
    std::vector<Sample>& held = s.place.held;
    if (draw < fraction) return s.drawn.write(sample);
    if (fraction == 0 || s.drawn.info.documents > 0 || (!held.empty() && draw >= s.place.held_draw))
      return s.train.write(sample);
    if (!held.empty()) s.train.write(held[0]);
    held.clear();
    held.push_back(std::move(sample));
    s.place.held_draw = draw;
  }
  void settle(double fraction) {
    Splits& s = *splits_;
    const bool validates = fraction > 0 && s.drawn.info.documents == 0 && s.train.info.documents > 0;
    for (const Sample& sample : s.place.held) (validates ? s.drawn : s.train).write(sample);
  }

  void finish(const TextSource& inputs, const TextSource* validation) {
    check(splits_->train.info.documents > 0, ErrorKind::input,
          "the inputs hold no sample to train on: expected lines with an answer");
    PrepareSummary& summary = summary_.prepared;
    for (const TextSource* source : {&inputs, validation}) {
      if (!source) continue;
      summary.files += std::ssize(source->files());
      summary.input_bytes += source->bytes_total();
      summary.left_out.add(source->left_out());
    }
    const Place& at = splits_->place;
    summary.notes.insert(summary.notes.end(), splits_->notes.begin(), splits_->notes.end());
    summary.ill_formed = at.ill_formed;
    if (at.unanswered > 0) summary.notes.push_back(str(at.unanswered, " of the lines have no answer: left out"));
    summary_.counted = at.counted, summary_.longest = at.longest;
    save_tokenizer(*tokenizer_, folder_.path());
    Manifest& m = summary.manifest;
    m.train = splits_->train.info, m.val = splits_->val.info;
    write_manifest(folder_.path(), m, tokenizer_->files());
    check_replaceable(options_, folder_.target(), true, summary);
    std::vector<std::string> names{manifest_name};
    for (const TokenizerFile& file : tokenizer_->files()) names.push_back(file.name);
    for (const SplitWriter* split : {&splits_->train, &splits_->val})
      for (std::string& name : split->files()) names.push_back(std::move(name));
    folder_.remove_all_but(names);
    folder_.commit();
  }

  const PrepareOptions& options_;
  SampleFormat format_;
  const std::function<void(const PrepareProgress&)>& progress_;
  PreparedFolder folder_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<Splits> splits_;
  SampleSummary summary_;
  bool stopped_ = false;
};

}  // namespace

SampleSummary prepare_samples(const PrepareOptions& options, const SampleFormat& format,
                              const std::function<void(const PrepareProgress&)>& progress) {
  check(!options.inputs.empty(), ErrorKind::setting, "there is nothing to prepare: expected a .jsonl file of samples");
  check(options.tasks == 0, ErrorKind::setting,
        "`tasks` makes text, not samples: expected none of it beside `answers` and `chat`");
  check(options.val_fraction >= 0 && options.val_fraction < 1, ErrorKind::setting, [&] {
    return "`val_fraction` is out of range: expected a value from 0 to below 1, found " +
           detail::shortest(options.val_fraction);
  });
  check(options.shard_tokens >= 1, ErrorKind::setting, "`shard_tokens` must be at least 1");
  return SamplePreparation(options, format, progress).run();
}

}  // namespace braid::models::text
