// braid prepare: text files and the built-in tasks in, a data folder that braid train reads out.
#include "braid/models/data/prepare/prepare.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "apps/cli/commands.h"
#include "apps/cli/model_flags.h"
#include "apps/cli/output_name.h"
#include "apps/cli/progress.h"
#include "apps/cli/signals.h"
#include "apps/cli/text.h"
#include "apps/prepare/images.h"
#include "apps/prepare/sample_flags.h"
#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

struct Stopped {};

std::string counted(int64_t count, const std::string& noun) { return str(count, " ", noun, count == 1 ? "" : "s"); }

// Words about the progress, with the rate since the present stage began.
class Words {
 public:
  std::string operator()(const models::text::PrepareProgress& p) {
    using Clock = std::chrono::steady_clock;
    if (stage_ != p.stage || p.done < first_)
      stage_ = p.stage, begin_ = Clock::now(), first_ = std::max(p.resumed, p.done);
    const std::string unit = stage_ == "making tasks" ? "samples" : stage_ == "merging pairs" ? "ids" : "bytes";
    std::string words = stage_;
    if (p.total > 0) words += "  " + human(double(p.done), 3) + "/" + human(double(p.total), 3) + " " + unit;
    words += "  " + counted(p.documents, "document") + "  " + human(double(p.tokens), 3) + " tokens";
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    const auto done = double(p.done - first_);
    if (seconds > 0.5 && done > 0 && p.total > 0) {
      words += "  " + human(done / seconds, 3) + " " + unit + "/s";
      words += "  ETA " + duration(double(p.total - p.done) * seconds / done);
    }
    return words + (p.file.empty() ? "" : "  " + preview(p.file, 60));
  }

 private:
  std::string stage_;
  std::chrono::steady_clock::time_point begin_;
  int64_t first_ = 0;
};

void print_split(const char* name, const models::text::SplitInfo& split, const std::string& remark = "") {
  std::printf("  %-12s %12lld tokens in %s%s\n", name, static_cast<long long>(split.tokens),
              counted(split.documents, "document").c_str(), remark.c_str());
}

// Where the text of the validation split is from: file by file when they are few.
void print_validation(const models::text::PrepareSummary& summary) {
  const models::text::Manifest& m = summary.manifest;
  const std::vector<models::text::ValidationFile>& files = summary.validation;
  constexpr size_t shown = 8;
  const bool one_end = m.validation == models::text::Validation::documents && files.size() == 1 && files[0].tail;
  if (one_end)
    return print_split(
        "validation", m.val,
        ", the end of " + preview(files[0].file) + "; prepare more files, or name one with --val, for a fair split");
  if (files.empty()) return print_split("validation", m.val);
  print_split("validation", m.val,
              ", from " + counted(std::ssize(files), "file") + (files.size() > shown ? ", the first of them:" : ":"));
  for (size_t i = 0; i < std::min(files.size(), shown); ++i)
    std::printf("  %25lld tokens%s %s\n", static_cast<long long>(files[i].tokens),
                files[i].tail ? ", the end of" : " of", preview(files[i].file).c_str());
}

models::text::InvalidText invalid_text(const std::string& name) {
  const std::vector<std::string> names = {"error", "replace", "skip"};
  const auto found = std::ranges::find(names, name);
  check(found != names.end(), ErrorKind::setting,
        [&] { return models::bad_value("--invalid", models::one_of(names), "'" + preview(name) + "'", name); });
  return static_cast<models::text::InvalidText>(1 + (found - names.begin()));
}

int run_prepare(const Arguments& arguments) {
  check_output_name("--out", arguments.get("out"));
  if (arguments.has("images")) return prepare_images(arguments);
  for (const char* flag : {"size", "like", "classes"})
    check(!arguments.has(flag), ErrorKind::setting,
          [&] { return str("--", flag, " is for images: expected --images beside it; give both"); });
  models::text::PrepareOptions options;
  options.inputs = arguments.list("INPUT");
  options.val_inputs = arguments.list("val");
  options.output = arguments.get("out");
  options.replace = arguments.has("replace");
  options.dedup = arguments.has("dedup");
  options.tasks = arguments.get_int("tasks");
  options.task_set = models::text::parse_task_set(arguments.get("task-set"));
  options.task_items = arguments.get_int("task-items");
  options.tokenizer = tokenizer_path(arguments.get("tokenizer"));
  options.train_bpe = arguments.get_int("train-bpe");
  options.bpe_form = arguments.get("bpe-form");
  check(options.train_bpe > 0 || !arguments.has("bpe-form"), ErrorKind::setting,
        "--bpe-form has no effect without --train-bpe N; give both");
  options.text_field = arguments.get("text-field");
  if (arguments.has("invalid")) options.invalid = invalid_text(arguments.get("invalid"));
  options.val_fraction = arguments.get_float("val-fraction");
  options.seed = static_cast<uint64_t>(arguments.get_int("seed"));
  options.shard_tokens = arguments.get_int("shard-tokens");
  check(options.val_inputs.empty() || options.tasks > 0 || !arguments.has("val-fraction"), ErrorKind::setting,
        "--val-fraction has no effect beside --val, whose files are the validation split; give one");

  const std::optional<models::text::SampleFormat> format = sample_format(arguments);

  const StopSignals listening;
  models::text::PrepareSummary summary;
  std::string about_samples;
  try {
    Progress progress(stdout);
    std::string stage;
    Words words;
    const auto show = [&](const models::text::PrepareProgress& p) {
      if (StopSignals::requested()) throw Stopped();
      const bool next_stage = p.stage != stage;
      stage = p.stage;
      const double share = p.total > 0 ? double(p.done) / double(p.total) : 1;
      progress.update(share, words(p), next_stage);
    };
    if (format) {
      const models::text::SampleSummary made = models::text::prepare_samples(options, *format, show);
      about_samples = words_about_samples(made);
      summary = made.prepared;
    } else {
      summary = models::text::prepare(options, show);
    }
  } catch (const Stopped&) {
    if (models::text::can_resume_prepare(options.output)) {
      std::printf("stopped by %s; the same command resumes where it stopped\n", StopSignals::name());
    } else {
      std::printf("stopped by %s; nothing was written to %s, run the same command again\n", StopSignals::name(),
                  options.output.c_str());
    }
    return exit_stopped;
  }

  for (const std::string& note : summary.notes) std::printf("note: %s\n", note.c_str());
  const models::text::Manifest& m = summary.manifest;
  if (summary.resumed_bytes > 0)
    std::printf("continued behind %s bytes that an earlier call had read\n",
                human(double(summary.resumed_bytes), 3).c_str());
  std::printf("wrote %s from %s with %s bytes; tokenizer %s with %lld ids\n", options.output.c_str(),
              counted(summary.files, "file").c_str(), human(double(summary.input_bytes), 3).c_str(),
              m.tokenizer.c_str(), static_cast<long long>(m.vocab_size));
  if (format) std::printf("  %s\n", about_samples.c_str());
  print_split("training", m.train);
  print_validation(summary);
  if (summary.left_out.files > 0) std::printf("  %-12s %s\n", "left out", summary.left_out.text().c_str());
  if (options.dedup)
    std::printf("  %-12s %12lld left out, exactly equal to an earlier document\n", "duplicates",
                static_cast<long long>(summary.duplicates));
  if (summary.ill_formed > 0)
    std::printf("  %-12s %12lld parts of text that are no UTF-8, %s\n", "ill-formed",
                static_cast<long long>(summary.ill_formed),
                options.invalid == models::text::InvalidText::skip ? "left out" : "replaced by U+FFFD");
  constexpr int64_t short_split = 256;
  if (!format && m.val.tokens > 0 && m.val.tokens < short_split)
    std::printf(
        "note: the validation split is shorter than a sequence of %lld tokens, and training needs at least one; "
        "give more text, a larger --val-fraction or --val FILE\n",
        static_cast<long long>(short_split));
  for (const models::text::TaskFileInfo& tasks : m.tasks)
    std::printf("  %-24s %lld samples to grade\n", tasks.file.c_str(), static_cast<long long>(tasks.samples));
  if (summary.unchanged) std::printf("the folder held the same data already (fingerprint %s)\n", m.fingerprint.c_str());
  if (!summary.replaced.empty())
    std::printf("replaced %s by data with fingerprint %s; runs that were trained on it will not resume\n",
                summary.replaced.c_str(), m.fingerprint.c_str());
  std::printf("next: braid train %s data.path=%s\n",
              format && format->preferences ? "train.init_from=FOLDER" : "model.preset=dcformer-tiny",
              shell_quote(options.output).c_str());
  return 0;
}

}  // namespace

Command prepare_command() {
  const models::text::PrepareOptions defaults;
  Command command = {
      .name = "prepare",
      .summary = "make shards from text files, the built-in tasks, or images",
      .positionals =
          {{.name = "INPUT",
            .help = "text, JSON Lines or a list of JSON objects, each also as .gz or .zst; a folder; a quoted pattern",
            .required = false,
            .repeated = true,
            .option = "inputs"}},
      .flags =
          {{.name = "out", .alias = 'o', .value = "DIR", .help = "data folder to write", .required = true},
           integer_flag("tasks", "N", "samples of the built-in in-context tasks to train on",
                        std::to_string(defaults.tasks), 0, 1e9),
           value_flag("task-set", "NAME", "of these tasks: in-context, or recall, which small models learn in minutes",
                      models::text::task_set_name(defaults.task_set)),
           integer_flag("task-items", "N", "samples per task kept for grading, when --tasks is given",
                        std::to_string(defaults.task_items), 0, 10000),
           number_flag("val-fraction", "F", "share of the documents for validation, below 1",
                       shortest(defaults.val_fraction), 0, 1),
           {.name = "val",
            .value = "FILE",
            .help = "file or folder to validate on instead of a share of INPUT",
            .repeated = true,
            .option = "val_inputs"},
           value_flag("tokenizer", "DIR", "folder with tokenizer.json, or a run; without it every byte is a token"),
           integer_flag("train-bpe", "N",
                        "train a tokenizer of N ids on INPUT and the tasks (byte-level BPE) and use it", "0", 0, 1e6),
           value_flag("bpe-form", "FORM", "of that tokenizer: gpt-neox or llama-3", defaults.bpe_form),
           value_flag("text-field", "NAME", "field of JSON objects that holds the text", defaults.text_field),
           value_flag("invalid", "HOW",
                      "bytes that are no UTF-8: error, replace (by U+FFFD) or skip, counted; without it an error in "
                      "a named file, replaced in others, and bytes as they are where every byte is a token"),
           integer_flag("seed", "N", "of the split and of the tasks", std::to_string(defaults.seed), 0),
           integer_flag("shard-tokens", "N", "largest number of tokens in one file",
                        std::to_string(defaults.shard_tokens), 1),
           {.name = "dedup",
            .help = "exact duplicates only: leave out documents equal to an earlier one, 22 to 43 bytes of memory "
                    "each"},
           {.name = "replace", .help = "replace other data in DIR; runs trained on it will not resume"}},
      .details =
          "The folder appears complete or not at all. The same inputs and flags give the same bytes; other data\n"
          "that braid prepare made in DIR stays unless --replace is given. A long call that was stopped or killed\n"
          "resumes where it stopped when the same command is run again.\n"
          "Validation gets whole documents, drawn by a hash. When the files are fewer than 1 / F it gets a share of\n"
          "each: drawn documents, or the end of the file where none is drawn.\n"
          "What a file is, its bytes say, whatever its name; what is neither text nor JSON is an error when it was\n"
          "named, and left out of a folder with a note.\n"
          "With --answers an object of INPUT is a sample {\"prompt\": ..., \"answer\": ...}; with --chat it is one, "
          "or\n"
          "{\"messages\": [{\"role\": ..., \"content\": ...}, ...]}, ShareGPT's {\"conversations\": [{\"from\": ...,\n"
          "\"value\": ...}, ...]} or Alpaca's {\"instruction\": ..., \"input\": ..., \"output\": ...}. What the\n"
          "assistant says is learnt, the rest is read only. Samples stay whole and validation gets whole samples;\n"
          "braid train packs them into sequences. --chat names the text around turns; --chat folder renders the chat\n"
          "template of --tokenizer FOLDER (Jinja). \"tools\" beside messages are written as OpenAI has them, calls of\n"
          "the assistant are learnt.\n"
          "With --preferences an object is a pair {\"prompt\": ..., \"chosen\": ..., \"rejected\": ...}, each a text "
          "or,\n"
          "with --chat, a list of messages; braid train then trains by direct preference optimization (DPO).",
      .examples = {"braid prepare book.txt notes/ -o data/books",
                   "braid prepare train.txt --val valid.txt -o data/wiki",
                   "braid prepare 'shards/*.jsonl.zst' --dedup --train-bpe 32000 -o data/web",
                   "braid prepare corpus.jsonl.gz --tasks 20000 -o data/mix",
                   "braid prepare --images train-images-idx3-ubyte.gz --val t10k-images-idx3-ubyte.gz -o data/fashion",
                   "braid prepare --images images/ --size 64 -o data/images",
                   "braid prepare --images test/ --like out/vit --val-fraction 0.9 -o data/test",
                   "braid prepare questions.jsonl --answers -o data/questions",
                   "braid prepare chats.jsonl --chat chatml --tokenizer models/base -o data/chats",
                   "braid prepare chats.jsonl --chat folder --tokenizer models/instruct -o data/chats",
                   "braid prepare pairs.jsonl --preferences --chat chatml --tokenizer out/tuned -o data/pairs"},
      .run = run_prepare,
  };
  for (Flag& flag : sample_flags()) command.flags.push_back(std::move(flag));
  for (Flag& flag : image_flags()) command.flags.push_back(std::move(flag));
  return command;
}

}  // namespace braid::apps
