// braid eval: what a model scores on texts, data sets and the in-context tasks.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <set>

#include "apps/cli/commands.h"
#include "apps/cli/model_flags.h"
#include "apps/cli/output_name.h"
#include "apps/cli/progress.h"
#include "apps/cli/signals.h"
#include "apps/cli/text.h"
#include "apps/cli/text_model.h"
#include "apps/eval/images.h"
#include "apps/eval/pairs.h"
#include "apps/eval/report.h"
#include "apps/eval/tasks.h"
#include "apps/train/run/run_lock.h"
#include "braid/models/eval/score.h"
#include "braid/models/folders/gguf/gguf_folder.h"
#include "braid/models/folders/pretrained.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/checksum.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/strict.h"

namespace braid::apps {
namespace {

namespace fs = std::filesystem;
using models::eval::EvalTask;

// The checksum of the files that make the model: configuration, weights, LoRA.
std::string files_checksum(const std::vector<fs::path>& folders) {
  uint32_t crc = 0;
  for (const fs::path& folder : folders) {
    std::set<fs::path> files;
    if (models::is_gguf(folder)) files.insert(folder);
    for (const fs::path& path : io::is_folder(folder) ? io::list_folder(folder) : std::vector<fs::path>()) {
      const std::string name = path.filename().string();
      if (name.ends_with(".safetensors") || name == "config.json" || name == "adapter_config.json") files.insert(path);
    }
    std::vector<char> block(1 << 20);
    for (const fs::path& file : files) {
      io::Reader reader(file.string());
      for (int64_t n; (n = reader.read_some(block.data(), std::ssize(block))) > 0;)
        crc = io::crc32c(block.data(), n, crc);
    }
  }
  return detail::hex(crc, 8);
}

// All that decides the scores of a model; they are kept beside results, which continue only where nothing of it
// changed.
Fingerprint model_fingerprint(const Arguments& arguments, const TextModel& text) {
  std::vector<fs::path> folders = {text.folder};
  if (const fs::path under = models::base_folder(text.folder, base_of(arguments)); under != text.folder)
    folders.push_back(under);
  std::vector<std::string> settings = arguments.overrides();
  if (arguments.has("profile")) settings.push_back("profile " + arguments.get("profile"));
  const int bits = nn::quantized_bits(*text.model);
  const std::string arithmetic = bits ? str("int", bits) : name(text.model->dtype());
  return {
      {"model", files_checksum(folders)},
      {"model_settings", settings.empty() ? "none" : join(settings, " ")},
      {"tokenizer", detail::hex(text.tokenizer->fingerprint(), 16)},
      {"arithmetic", arithmetic + (strict_bits() ? " strict" : "")},
      {"device", text.model->device() == kCpu ? "cpu" : "gpu"},
  };
}

// Scores what is missing. false: stopped.
bool score_missing(models::GenerationEngine& engine, const std::string& name, const EvalTask& task, ResultFile& results,
                   int64_t ahead) {
  const std::vector<int64_t> missing = results.missing();
  if (missing.empty()) return true;
  Progress progress(stderr);
  const auto start = std::chrono::steady_clock::now();
  int64_t done = 0;
  const auto take = [&](int64_t item, const models::eval::ItemScores& scores) {
    results.add(item, scores);
    ++done;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const int64_t complete = task.size() - std::ssize(missing) + done;
    std::string words = str(preview(name), "  ", complete, "/", task.size());
    if (seconds > 1)
      words +=
          "  ETA " + duration(seconds * static_cast<double>(std::ssize(missing) - done) / static_cast<double>(done));
    progress.update(static_cast<double>(complete) / static_cast<double>(task.size()), words,
                    line_due(done, std::ssize(missing)));
  };
  return models::eval::score_items(engine, task, missing, ahead, take, StopSignals::requested);
}

std::vector<TaskArgument> task_arguments(const Arguments& arguments, const TaskSettings& settings) {
  std::vector<TaskArgument> tasks;
  std::set<std::string> stems;
  for (const std::string& text : arguments.list("TASK")) {
    tasks.emplace_back(text);
    check(settings.shots == 0 || tasks.back().takes_shots(), ErrorKind::setting, [&] {
      return "--shots has no effect on " + preview(text) +
             ": expected tasks with contexts and answers; evaluate it alone";
    });
    check(stems.insert(tasks.back().file_stem()).second || !arguments.has("out"), ErrorKind::setting, [&] {
      return "two tasks have the file " + tasks.back().file_stem() + ".jsonl in --out: expected tasks of different " +
             "names; evaluate " + preview(text) + " with another --out";
    });
  }
  check(settings.shots > 0 || settings.shots_from.empty(), ErrorKind::setting,
        "--shots-from has no effect without --shots K; give both");
  return tasks;
}

// A model and what it scores on every task. The tasks refer to the encoder, and that to the tokenizer.
struct ScoredModel {
  TextModel text;
  int64_t longest = 0;  // sequence
  std::optional<models::eval::PairEncoder> encoder = {};
  std::vector<std::unique_ptr<EvalTask>> tasks = {};
  std::vector<TaskResult> results = {};                            // of each task; metrics by score_model()
  std::vector<std::vector<models::eval::ItemScores>> scores = {};  // of each item of each task
};

// Loads the model and makes every task, so that a bad line is found before anything is computed.
std::unique_ptr<ScoredModel> open_model(const Arguments& arguments, const std::string& model,
                                        const std::vector<TaskArgument>& tasks, const TaskSettings& settings) {
  const int64_t wanted = arguments.has("max-length") ? arguments.get_int("max-length") : 0;
  auto opened = std::make_unique<ScoredModel>(
      ScoredModel{.text = load_text_model(arguments, model, arguments.has("extrapolate") ? wanted : 0)});
  const models::LanguageModel& language = *opened->text.model;
  const Fingerprint fingerprint = model_fingerprint(arguments, opened->text);
  opened->longest = wanted > 0 ? wanted : language.max_sequence_length();
  check(opened->longest <= language.max_sequence_length(), ErrorKind::setting, [&] {
    return str("bad value for --max-length: expected at most ", language.max_sequence_length(),
               ", the longest sequence of ", preview(model), ", found ", opened->longest,
               "; --extrapolate evaluates beyond it where positions are rotary");
  });
  const int64_t trained = opened->text.configured_length;
  if (opened->longest > trained)
    std::fprintf(stderr, "note: %s: sequences of up to %lld tokens, its own have up to %lld (--extrapolate)\n",
                 preview(model).c_str(), static_cast<long long>(opened->longest), static_cast<long long>(trained));
  opened->encoder.emplace(*opened->text.tokenizer, opened->longest, language.vocab_size());
  for (const TaskArgument& task : tasks) {
    opened->tasks.push_back(task.make(settings, *opened->encoder, opened->text.ends));
    for (const std::string& note : opened->tasks.back()->notes())
      std::fprintf(stderr, "note: %s: %s\n", preview(task.name()).c_str(), note.c_str());
    Fingerprint print = fingerprint;
    print.emplace_back("max_length", std::to_string(opened->longest));
    if (opened->longest > trained) print.emplace_back(kExtrapolatedFrom, std::to_string(trained));
    for (auto& entry : task.fingerprint(settings)) print.push_back(std::move(entry));
    opened->results.push_back(
        {.task = task.name(), .items = opened->tasks.back()->size(), .settings = std::move(print)});
  }
  return opened;
}

void check_comparable(const ScoredModel& first, const ScoredModel& second, const std::string& model) {
  if (first.text.tokenizer->fingerprint() == second.text.tokenizer->fingerprint()) return;
  for (size_t i = 0; i < first.tasks.size(); ++i)
    check(!first.tasks[i]->items_follow_tokenizer(), ErrorKind::input, [&] {
      return "--compare: " + preview(first.results[i].task) + " has other windows for " + preview(model) +
             ", whose tokenizer is another one; evaluate each model alone and compare bits_per_byte";
    });
}

// Files of results are in `out`, if that is not empty. false: stopped.
bool score_model(ScoredModel& model, const Arguments& arguments, const std::string& out,
                 const std::vector<TaskArgument>& tasks) {
  const int64_t batch = arguments.get_int("batch");
  const auto engine = models::eval::make_scoring_engine(*model.text.model, batch, model.longest);
  for (size_t i = 0; i < tasks.size(); ++i) {
    const EvalTask& task = *model.tasks[i];
    const std::string file = out.empty() ? "" : (fs::path(out) / (tasks[i].file_stem() + ".jsonl")).string();
    ResultFile scores(file, model.results[i].settings, task);
    if (scores.resumed() > 0)
      std::fprintf(stderr, "note: %s: %lld of %lld items were there\n", preview(tasks[i].name()).c_str(),
                   static_cast<long long>(scores.resumed()), static_cast<long long>(task.size()));
    if (!score_missing(*engine, tasks[i].name(), task, scores, 4 * batch)) {
      std::fprintf(
          stderr, "stopped by %s; %s\n", StopSignals::name(),
          out.empty() ? "nothing was saved, for --out was not given" : "the same command resumes where it stopped");
      return false;
    }
    model.scores.push_back(scores.finish());
    model.results[i].metrics = task.metrics(model.scores.back());
  }
  return true;
}

Comparison compare(const ScoredModel& first, const ScoredModel& second, const std::string& model) {
  Comparison comparison{.model = model, .results = second.results, .differences = {}};
  for (size_t i = 0; i < first.tasks.size(); ++i)
    comparison.differences.push_back(
        models::eval::paired_differences(*first.tasks[i], first.scores[i], *second.tasks[i], second.scores[i]));
  return comparison;
}

int run_eval(const Arguments& arguments) {
  std::vector<std::string> read = {arguments.get("MODEL"), arguments.get("compare"), arguments.get("shots-from")};
  for (const std::string& task : arguments.list("TASK")) read.push_back(task.substr(task.find(':') + 1));
  check_output_name("--json", arguments.get("json"), read);
  check_output_name("--out", arguments.get("out"));
  const StrictBits strict(arguments.has("strict"));
  if (names_images(arguments)) return eval_images(arguments);
  if (names_pairs(arguments)) return eval_pairs(arguments);
  const TaskSettings settings{.shots = arguments.get_int("shots"),
                              .shots_from = arguments.get("shots-from"),
                              .seed = static_cast<uint64_t>(arguments.get_int("seed")),
                              .limit = arguments.get_int("limit"),
                              .stride = arguments.get_int("stride")};
  check(!arguments.has("extrapolate") || arguments.has("max-length"), ErrorKind::setting,
        "--extrapolate has no effect without --max-length N above the model's longest sequence; give both");
  const std::vector<TaskArgument> tasks = task_arguments(arguments, settings);
  if (const int64_t n = arguments.get_int("threads"); n > 0) set_threads(static_cast<int>(n));
  const std::string out = arguments.get("out"), json = arguments.get("json"), other = arguments.get("compare");
  std::optional<RunFolder> folder, other_folder;
  const std::string other_out = out.empty() || other.empty() ? "" : (fs::path(out) / "compare").string();
  if (!out.empty()) folder.emplace(out);
  if (!other_out.empty()) other_folder.emplace(other_out);
  if (!json.empty()) io::AtomicFile place(json);  // can it be written?

  const StopSignals listening;
  const auto first = open_model(arguments, arguments.get("MODEL"), tasks, settings);
  const auto second = other.empty() ? nullptr : open_model(arguments, other, tasks, settings);
  if (second) check_comparable(*first, *second, other);
  if (!score_model(*first, arguments, out, tasks)) return exit_stopped;
  if (second && !score_model(*second, arguments, other_out, tasks)) return exit_stopped;
  std::optional<Comparison> comparison;
  if (second) comparison = compare(*first, *second, other);
  std::fputs(result_table(first->results).c_str(), stdout);
  if (comparison)
    std::printf("\n%s:\n%s\nper item, first and second model:\n%s", preview(other).c_str(),
                result_table(comparison->results).c_str(), comparison_table(*comparison).c_str());
  if (!json.empty()) io::write_file(json, result_json(first->results, comparison ? &*comparison : nullptr));
  return 0;
}

std::vector<Flag> eval_flags() {
  std::vector<Flag> flags = {
      {.name = "out",
       .alias = 'o',
       .value = "DIR",
       .help = "append the result of each item to files there; a stopped call is resumed"},
      {.name = "json", .value = "FILE", .help = "write the metrics there as JSON, to the last bit"},
      value_flag("compare", "MODEL",
                 "score a second model too and show the differences item by item, with standard error and sign test"),
      integer_flag("shots", "K", "examples in front of each item", "0", 0, 1e4),
      {.name = "shots-from", .value = "FILE", .help = "examples of this file instead of the task's own"},
      integer_flag("limit", "N", "only the first N items, texts or samples; 0 = all", "0", 0, 1e12),
      integer_flag("seed", "N", "of the examples that are drawn, and of built-in samples", "0", 0, 9e15),
      integer_flag("stride", "N", "tokens that a window over a text moves on by; 0 = disjoint windows", "0", 0, 1e9),
      integer_flag("max-length", "N", "longest sequence (default: the model's)", "", 2, 1e9),
      {.name = "extrapolate",
       .help = "let --max-length go beyond the model's longest sequence, where its positions are rotary"},
      integer_flag("batch", "N", "sequences that are computed at a time; without effect on the scores", "16", 1, 4096)};
  for (Flag& flag : text_model_flags()) flags.push_back(std::move(flag));
  return flags;
}

}  // namespace

Command eval_command() {
  return {
      .name = "eval",
      .summary = "score a model on texts, data sets, the in-context tasks, images and pairs",
      .positionals = {{.name = "MODEL", .help = "model folder or run folder"},
                      {.name = "TASK",
                       .help = "NAME:FILE, in-context, in-context-seen, recall, pictures:FOLDER or pairs:TASK",
                       .repeated = true}},
      .flags = eval_flags(),
      .overrides = kModelOverrides,
      .details =
          "NAME is one of " + join(task_names(), ", ") +
          ",\nor a file of the same form (.toml). FILE is JSON Lines or a list of JSON objects, for texts also any "
          "text\n"
          "file; each also compressed by gzip or zstd. The names of lm-evaluation-harness's tasks make its prompts.\n"
          "in-context without a file: built-in samples with words that no training text of braid prepare has.\n"
          "recall: built-in samples of new lists of the words that braid prepare --task-set recall makes texts of.\n"
          "pictures:FOLDER: the validation split of what braid prepare --images wrote, for an image model: accuracy,\n"
          "calibration, every class; the confusion matrix with --json.\n"
          "pairs:dates, pairs:sort, pairs:reverse: pairs of sequences for an encoder-decoder: exact match.\n"
          "Scores do not depend on --batch and --threads.",
      .examples = {"braid eval out/demo in-context text:README.md",
                   "braid eval MODEL arc:arc-easy-test.jsonl --shots 5 --shots-from arc-easy-train.jsonl -o out/eval",
                   "braid eval MODEL lambada:lambada_test.jsonl wikitext:wikitext2.jsonl.zst --json scores.json",
                   "braid eval MODEL text:book.txt --stride 512",
                   "braid eval out/demo recall --compare out/demo-transformer",
                   "braid eval out/fashion-mnist pictures:out/fashion-mnist-data --json classes.json",
                   "braid eval out/dates pairs:dates"},
      .run = run_eval};
}

}  // namespace braid::apps
