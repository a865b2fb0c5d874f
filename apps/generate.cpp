// braid generate: text from a model, printed as it comes.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>

#include "apps/cli/commands.h"
#include "apps/cli/model_flags.h"
#include "apps/train/job.h"
#include "braid/distributed/comm/device_ranks.h"
#include "braid/models/generation/generate.h"
#include "braid/models/pretrained/pretrained.h"
#include "braid/tensor/parallel.h"

namespace braid::apps {
namespace {

// Prints text as it becomes final: text that may still become a stop string is held back.
class Printer {
 public:
  Printer(const models::text::Tokenizer& tokenizer, std::vector<std::string> stops)
      : decoder_(tokenizer), stops_(std::move(stops)) {}

  // false when a stop string is complete; the text before it has then been printed.
  bool push(int32_t token) { return show(decoder_.push(token), false); }
  void finish() { show(decoder_.finish(), true); }

 private:
  bool show(const std::string& more, bool last) {
    held_ += more;
    size_t cut = std::string::npos, keep = 0;
    for (const std::string& stop : stops_) {
      cut = std::min(cut, held_.find(stop));
      for (size_t n = std::min(stop.size() - 1, held_.size()); n > keep; --n) {
        if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) keep = n;
      }
    }
    size_t ready = cut != std::string::npos ? cut : last ? held_.size() : held_.size() - keep;
    std::fwrite(held_.data(), 1, ready, stdout);
    std::fflush(stdout);
    held_.erase(0, cut != std::string::npos ? held_.size() : ready);
    return cut == std::string::npos;
  }

  models::text::StreamDecoder decoder_;
  std::vector<std::string> stops_;
  std::string held_;
};

// Takes parallel.* out of key=value arguments, checked as `braid train` does; the others stay.
TrainConfig::Parallel take_parallel(std::vector<std::string>& overrides) {
  const auto is_parallel = [](const std::string& text) { return text.starts_with("parallel."); };
  const auto taken = std::stable_partition(overrides.begin(), overrides.end(), std::not_fn(is_parallel));
  TrainConfig config;
  config.parallel.data = 1;
  load_config(train_schema(config, {}), "", {taken, overrides.end()});
  overrides.erase(taken, overrides.end());
  check(config.parallel.data == 1, ErrorKind::setting, [&] {
    return "parallel.data is for training: expected 1 in braid generate, found " + std::to_string(config.parallel.data);
  });
  return config.parallel;
}

int generate(const Arguments& arguments, const Job& job) {
  models::SamplingOptions options{.temperature = arguments.get_float("temperature"),
                                  .top_k = arguments.get_int("top-k"),
                                  .top_p = arguments.get_float("top-p"),
                                  .min_p = arguments.get_float("min-p"),
                                  .repetition_penalty = arguments.get_float("repetition-penalty"),
                                  .seed = static_cast<uint64_t>(arguments.get_int("seed"))};
  models::check_options(options);
  if (int64_t n = arguments.get_int("threads"); n > 0) set_threads(static_cast<int>(n));
  std::vector<std::string> stops = arguments.list("stop");
  for (const std::string& stop : stops) {
    check(!stop.empty(), ErrorKind::setting,
          [] { return std::string("--stop is empty: expected the text to stop at"); });
  }
  std::vector<std::string> overrides = arguments.overrides();
  const TrainConfig::Parallel parallel = take_parallel(overrides);
  job.world().set_timeout(parallel.timeout);
  const dist::DeviceRanks ranks = dist::device_ranks(job.world(), device_of(arguments));
  const dist::ProcessMesh mesh = mesh_from_config(parallel, ranks.world, "generate");
  const bool root = mesh.world.rank() == 0;  // the others are silent
  std::string prompt = arguments.get("prompt");
  if (prompt == "-") {
    if (root) prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
    prompt = mesh.world.gather_text(prompt)[0];
  }

  const std::filesystem::path folder = model_folder(arguments, root);
  models::LoadedModel loaded = models::load_model(
      folder, {.dtype = dtype_of(arguments), .settings = model_keys(arguments, overrides), .mesh = mesh});
  const auto model = models::as_language_model(std::move(loaded.model));
  model->to(ranks.device);
  if (root) print_notes(loaded.notes);
  check(loaded.tokenizer != nullptr, ErrorKind::input,
        [&] { return "no tokenizer.json in " + folder.string() + ": text cannot be converted to tokens"; });
  const models::text::Tokenizer& tokenizer = *loaded.tokenizer;
  std::vector<int32_t> tokens = tokenizer.encode(prompt, arguments.has("parse-specials"));
  if (tokens.empty()) tokens.push_back(tokenizer.eos_id());  // a text begins after the end of another
  int64_t count = arguments.get_int("count"), eos = arguments.has("ignore-eos") ? -1 : tokenizer.eos_id();
  for (int64_t i = 0; i < count; ++i) {
    if (count > 1) std::printf("%s--- %lld\n", i > 0 ? "\n" : "", static_cast<long long>(i + 1));
    if (!arguments.has("no-prompt")) std::fputs(prompt.c_str(), stdout);
    Printer printer(tokenizer, stops);
    models::Generated out = models::generate(*model, tokens, arguments.get_int("tokens"), options, eos,
                                             [&](int32_t token) { return printer.push(token); });
    if (out.reason != models::StopReason::caller) printer.finish();
    std::printf("\n");
    if (root && out.reason == models::StopReason::context_full) {
      std::fprintf(stderr, "note: stopped at the model's longest sequence of %lld tokens\n",
                   static_cast<long long>(model->max_sequence_length()));
    }
    ++options.seed;
  }
  return 0;
}

int run_generate(const Arguments& arguments) {
  Job job;
  return job.run([&] { return generate(arguments, job); });
}

}  // namespace

Command generate_command() {
  return {
      .name = "generate",
      .summary = "sample text from a model",
      .positionals = {{.name = "MODEL", .help = "model folder, run folder (its newest checkpoint) or RUN/best"}},
      .flags = {{.name = "prompt",
                 .alias = 'p',
                 .value = "TEXT",
                 .help = "text to continue; - reads it from standard input"},
                integer_flag("tokens", "N", "maximum number of tokens to add", "256", 1, 1e9, 'n'),
                number_flag("temperature", "X", "0: always the likeliest token", "0.8", 0, 100, 't'),
                integer_flag("top-k", "K", "only the K likeliest tokens, 0 = all", "0", 0, 1e9),
                number_flag("top-p", "P", "only the likeliest tokens that make up P", "1", 0, 1),
                number_flag("min-p", "P", "only tokens at least P times as likely as the likeliest", "0", 0, 1),
                number_flag("repetition-penalty", "X", "1 = none; above 1 discourages tokens seen before", "1", 0.01,
                            100),
                integer_flag("seed", "N", "of the random draws", "0", 0, 9e15),
                {.name = "stop",
                 .value = "TEXT",
                 .help = "end before this text; may be given several times",
                 .repeated = true},
                integer_flag("count", "N", "samples to draw", "1", 1, 1e6),
                {.name = "no-prompt", .help = "print only the new text"},
                {.name = "ignore-eos", .help = "go on after the end of the text"},
                {.name = "parse-specials", .help = "read <|endoftext|> in the prompt as the special token"},
                profile_flag(),
                dtype_flag("arithmetic, to which weights are converted (default: f32, or f64 for weights of f64)", ""),
                device_flag(),
                integer_flag("threads", "N", "CPU threads, 0 = all cores", "0", 0, 4096)},
      .overrides = "a key of config.json set to another value; parallel.tensor and parallel.context, with mpirun",
      .details =
          "Under mpirun the processes share the model: parallel.tensor splits heads, hidden units and vocabulary, the\n"
          "ranks of parallel.context repeat the same work. The first process prints; the text is that of one process.",
      .examples = {"braid generate out/demo --prompt 'The '",
                   "mpirun -np 2 braid generate out/demo --prompt 'The ' parallel.tensor=2",
                   "braid generate out/demo -p 'Once' -t 0.7 --top-p 0.9 --stop '\\n\\n' --count 3"},
      .run = run_generate,
  };
}

}  // namespace braid::apps
