// braid generate: text from a model, printed as it comes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iterator>

#include "apps/cli/commands.h"
#include "apps/cli/memory_text.h"
#include "apps/cli/model_flags.h"
#include "apps/cli/output_name.h"
#include "apps/cli/text.h"
#include "apps/cli/text_model.h"
#include "apps/generate/prompts_file.h"
#include "apps/generate/reply.h"
#include "apps/train/run/job.h"
#include "braid/distributed/comm/device_ranks.h"
#include "braid/distributed/job/run_on_all_ranks.h"
#include "braid/models/cost/size.h"
#include "braid/nn/inference/gather_weights.h"
#include "braid/nn/inference/quantize.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/strict.h"

namespace braid::apps {
namespace {

// Takes parallel.* out of key=value arguments, checked as `braid train` does; the others stay.
TrainConfig::Parallel take_parallel(std::vector<std::string>& overrides) {
  const auto is_parallel = [](const std::string& text) { return text.starts_with("parallel."); };
  const auto taken = std::stable_partition(overrides.begin(), overrides.end(), std::not_fn(is_parallel));
  TrainConfig config;
  config.parallel.data = 1;
  load_config(train_schema(config, {}), "", {taken, overrides.end()});
  overrides.erase(taken, overrides.end());
  check(config.parallel.data == 1, ErrorKind::setting, [&] {
    return str("parallel.data is for training: expected 1 in braid generate, found ", config.parallel.data);
  });
  return config.parallel;
}

// The folder of a model. Of a run that still trains, one process decides which checkpoint is the newest.
std::filesystem::path shared_folder(const std::string& model, const dist::Communicator& world) {
  std::string found;
  at_root(world, [&] { found = model_folder(model).string(); });
  return world.gather_text(found)[0];
}

void check_same_command(const Arguments& arguments, const dist::Communicator& world) {
  if (world.size() == 1) return;
  std::string line = arguments.line();
  std::ranges::replace(line, '\n', ' ');
  dist::check_ranks_agree(world, {{"program (checksum)", program_fingerprint()}, {"command", line}});
}

// --count texts that continue the prompt.
ReplySpeed print_samples(ReplySettings settings, const std::string& prompt, const std::vector<int32_t>& tokens,
                         const Arguments& arguments, bool root) {
  const int64_t count = arguments.get_int("count"), longest = settings.model.max_sequence_length();
  ReplySpeed speed;
  for (int64_t i = 0; i < count; ++i) {
    std::string before = count > 1 ? str(i > 0 ? "\n--- " : "--- ", i + 1, "\n") : "";
    if (!arguments.has("no-prompt")) before += prompt;
    models::Conversation text(settings.model, std::min(longest, std::ssize(tokens) + settings.max_tokens));
    text.append(tokens);
    const models::Generated reply = print_reply(settings, text, before);
    speed.add(reply);
    if (root) note_full(settings.model, reply);
    ++settings.sampling.seed;
  }
  return speed;
}

std::vector<std::string> stop_texts(const Arguments& arguments) {
  std::vector<std::string> stops = arguments.list("stop");
  for (std::string& stop : stops) {
    stop = flag_text(arguments, stop);
    check(!stop.empty(), ErrorKind::setting, "--stop is empty: expected the text to stop at");
  }
  return stops;
}

// Flags that do not go together.
void check_together(const Arguments& arguments) {
  const int sources = arguments.has("prompts") + arguments.has("ids") + arguments.has("prompt");
  check(sources <= 1, ErrorKind::setting, "expected one of --prompt, --prompts and --ids, found several");
  for (const char* name : {"batch", "out"}) {
    check(arguments.has("prompts") || !arguments.has(name), ErrorKind::setting,
          [&] { return str("--", name, " is for many prompts: expected --prompts FILE beside it"); });
  }
  for (const char* name : {"prompts", "ids"}) {
    check(!arguments.has(name) || !arguments.has("interactive"), ErrorKind::setting,
          [&] { return str("--", name, " and --interactive exclude each other: expected one of them"); });
  }
  check(!arguments.has("ids") || !arguments.has("template"), ErrorKind::setting,
        "--template stands around a text: expected --prompt or --prompts beside it, not --ids");
  check(!arguments.has("prompts") || arguments.get_int("count") == 1, ErrorKind::setting,
        "--count is for one prompt: expected 1 with --prompts");
  if (!arguments.has("interactive")) return;
  check(arguments.get_int("count") == 1, ErrorKind::setting,
        "--count is for one prompt: expected 1 with --interactive");
  check(arguments.get("prompt") != "-", ErrorKind::setting,
        "--interactive reads its prompts from standard input: expected a text for --prompt");
}

// The list of --ids. Error(setting) for anything but ids of the model.
std::vector<int32_t> id_prompt(const Arguments& arguments, const models::LanguageModel& model) {
  std::vector<int32_t> tokens;
  for (const std::string& item : split(arguments.get("ids"), ',')) {
    const auto id = parse_int(trim(item));
    check(id && *id >= 0 && *id < model.vocab_size(), ErrorKind::setting, [&] {
      return str("--ids: expected token ids from 0 to ", model.vocab_size() - 1, ", found '", preview(item), "'");
    });
    tokens.push_back(static_cast<int32_t>(*id));
  }
  return tokens;
}

// The prompt's ids and the new ones, a line for each of --count samples, for a model without a tokenizer.
ReplySpeed print_ids(const models::LanguageModel& model, const std::vector<int32_t>& prompt,
                     models::SamplingOptions options, const std::vector<int32_t>& ends, const Arguments& arguments,
                     bool root) {
  check(!arguments.has("stop"), ErrorKind::setting,
        "--stop is a text, and the model has no tokenizer: expected it without --stop, or with --tokenizer FOLDER");
  ReplySpeed speed;
  for (int64_t i = 0; i < arguments.get_int("count"); ++i, ++options.seed) {
    const models::Generated made = models::generate(model, prompt, arguments.get_int("tokens"), options, ends);
    std::vector<std::string> ids;
    for (const int32_t id : prompt)
      if (!arguments.has("no-prompt")) ids.push_back(std::to_string(id));
    for (const int32_t id : made.tokens) ids.push_back(std::to_string(id));
    std::printf("%s\n", join(ids, ",").c_str());
    speed.add(made);
    if (root) note_full(model, made);
  }
  return speed;
}

// --stats, on stderr.
void print_statistics(const models::LanguageModel& model, double load_seconds, const ReplySpeed& speed) {
  const auto rate = [](int64_t tokens, double seconds) {
    return str(tokens, " tokens in ", human(seconds, 3), " s",
               tokens > 0 && seconds > 0 ? ", " + human(static_cast<double>(tokens) / seconds, 3) + " tokens/s" : "");
  };
  const std::string where = model.device() == kCpu ? str(threads(), " threads") : str(model.device());
  const int bits = nn::quantized_bits(model);
  std::fprintf(stderr, "\nload      %s parameters in %s s (%s, %s)\n",
               human(static_cast<double>(models::model_size(*model.spec()).parameters), 3).c_str(),
               human(load_seconds, 3).c_str(), bits ? str("int", bits).c_str() : name(model.dtype()), where.c_str());
  std::fprintf(stderr, "prompt    %s\n", rate(speed.prompt_tokens, speed.prompt_seconds).c_str());
  std::fprintf(stderr, "decoding  %s\n", rate(speed.steps, speed.step_seconds).c_str());
  std::fprintf(stderr, "memory    at most %s in tensors, %s of the process\n",
               bytes_text(static_cast<double>(memory_stats(model.device()).peak)).c_str(),
               bytes_text(peak_process_bytes()).c_str());
}

int generate(const Arguments& arguments, const Job& job) {
  const StrictBits strict(arguments.has("strict"));
  models::SamplingOptions options{.temperature = arguments.get_float("temperature"),
                                  .top_k = arguments.get_int("top-k"),
                                  .top_p = arguments.get_float("top-p"),
                                  .min_p = arguments.get_float("min-p"),
                                  .repetition_penalty = arguments.get_float("repetition-penalty"),
                                  .seed = static_cast<uint64_t>(arguments.get_int("seed"))};
  models::check_options(options);
  check_together(arguments);
  if (int64_t n = arguments.get_int("threads"); n > 0) set_threads(static_cast<int>(n));
  const std::vector<std::string> stops = stop_texts(arguments);
  PromptTemplate prompt_template;
  if (arguments.has("template")) prompt_template = PromptTemplate(flag_text(arguments, arguments.get("template")));
  std::vector<std::string> overrides = arguments.overrides();
  const TrainConfig::Parallel parallel = take_parallel(overrides);
  job.world().set_timeout(parallel.timeout);
  const int64_t processes = job.world().size(), split = parallel.tensor * parallel.context;
  check(processes == 1 || processes == split, ErrorKind::setting, [&] {
    return str("the processes must share the model: expected parallel.tensor x parallel.context = ", processes,
               ", found ", split, "; give parallel.tensor=", processes);
  });
  check(processes == 1 || !strict_bits(), ErrorKind::setting, [&] {
    return str("--strict is for one process, since ranks add their shares of a sum: expected 1, found ", processes);
  });
  check_same_command(arguments, job.world());
  const dist::DeviceRanks ranks = dist::device_ranks(job.world(), device_of(arguments));
  const dist::ProcessMesh mesh = mesh_from_config(parallel, ranks.world, "generate");
  const bool root = mesh.world.rank() == 0;  // the others are silent
  std::vector<std::string> prompts;
  if (arguments.has("prompts")) prompts = read_prompts(arguments.get("prompts"));
  const std::string out = arguments.get("out");
  check_output_name("--out", out, {arguments.get("MODEL"), arguments.get("prompts"), arguments.get("template")});
  if (root && !out.empty()) io::AtomicFile place(out);  // can it be written?
  const bool from_input = arguments.get("prompt") == "-";
  std::string prompt = root || !from_input ? prompt_text(arguments) : "";
  if (from_input) prompt = mesh.world.gather_text(prompt)[0];

  const std::filesystem::path folder = shared_folder(arguments.get("MODEL"), mesh.world);
  std::filesystem::path base;
  if (arguments.has("base")) base = shared_folder(arguments.get("base"), mesh.world);
  const auto start = std::chrono::steady_clock::now();
  models::LoadedModel loaded = models::load_model(folder, {.dtype = dtype_of(arguments),
                                                           .settings = model_keys(arguments, overrides),
                                                           .mesh = mesh,
                                                           .base = base,
                                                           .weight_bits = weight_bits(arguments),
                                                           .keep_quantized = keeps_quantized(arguments)});
  const auto model = models::as_language_model(std::move(loaded.model));
  model->to(ranks.device);
  nn::gather_weights(*model);
  const double load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (root) print_notes(loaded.notes);
  const auto tokenizer = chosen_tokenizer(arguments, loaded);
  std::vector<int32_t> ends;
  if (!arguments.has("ignore-eos")) ends = ends_of_text(loaded, model->vocab_size(), tokenizer.get());
  if (!tokenizer && arguments.has("ids")) {
    const ReplySpeed speed = print_ids(*model, id_prompt(arguments, *model), options, ends, arguments, root);
    if (root && arguments.has("stats")) print_statistics(*model, load_seconds, speed);
    return 0;
  }
  check_tokenizer(tokenizer.get(), folder, "give --tokenizer FOLDER, or --ids");
  options.vocabulary = tokenizer->vocab_size();
  ReplySettings settings{.model = *model,
                         .tokenizer = *tokenizer,
                         .sampling = options,
                         .max_tokens = arguments.get_int("tokens"),
                         .ends = ends,
                         .stops = stops,
                         .parse_specials = arguments.has("parse-specials"),
                         .prompt_template = prompt_template};
  const auto encoded = [&](const std::string& text) {  // checked before anything is printed
    std::vector<int32_t> tokens = encode_prompt(*tokenizer, *model, text, settings.parse_specials);
    models::check_prompt(*model, tokens);
    return tokens;
  };
  ReplySpeed speed;
  if (arguments.has("interactive")) {
    speed = converse(settings, arguments.has("prompt") ? encoded(prompt) : std::vector<int32_t>(), mesh.world,
                     parallel.timeout);
  } else if (arguments.has("prompts")) {
    speed = write_replies(settings, prompts, arguments.get_int("batch"), out, root);
  } else if (arguments.has("ids")) {
    const std::vector<int32_t> tokens = id_prompt(arguments, *model);
    models::check_prompt(*model, tokens);
    speed = print_samples(settings, tokenizer->decode(tokens), tokens, arguments, root);
  } else {
    prompt = prompt_template(prompt);
    const std::vector<int32_t> tokens = encoded(prompt);
    speed = print_samples(settings, prompt, tokens, arguments, root);
  }
  if (root && arguments.has("stats")) print_statistics(*model, load_seconds, speed);
  return 0;
}

int run_generate(const Arguments& arguments) {
  Job job;
  return job.run([&] { return generate(arguments, job); });
}

std::vector<Flag> generate_flags() {
  std::vector<Flag> flags = prompt_flags("text to continue; - reads it from standard input");
  const auto add = [&](std::vector<Flag> more) { std::ranges::move(more, std::back_inserter(flags)); };
  add({value_flag("ids", "1,2,3",
                  "token ids instead of --prompt; without a tokenizer ids are printed, a line for each sample"),
       value_flag(
           "prompts", "FILE",
           "continue every line of a file that is not blank, or the field prompt of every line of a .jsonl file"),
       integer_flag("batch", "N", "prompts of --prompts that are continued at a time", "16", 1, 1e6),
       {.name = "out", .alias = 'o', .value = "FILE", .help = "write the replies to --prompts there, as JSON lines"},
       {.name = "interactive",
        .alias = 'i',
        .help = "read a prompt from each line of standard input and continue the conversation; --prompt begins it"},
       value_flag("template", "TEXT", "text around each prompt, with {prompt} in it, or a file that holds one"),
       integer_flag("tokens", "N", "maximum number of tokens to add", "256", 1, 1e9, 'n')});
  add(sampling_flags());
  add({{.name = "stop", .value = "TEXT", .help = "end before this text; may be given several times", .repeated = true},
       integer_flag("count", "N", "samples to draw", "1", 1, 1e6),
       {.name = "no-prompt", .help = "print only the new text"},
       {.name = "ignore-eos",
        .help = "continue after the end of the text, which is any token of eos_token_id in generation_config.json or "
                "config.json, and the tokenizer's own"},
       {.name = "stats", .help = "print load time, tokens/s of the prompt and of decoding, and memory to stderr"}});
  add(text_model_flags());
  return flags;
}

// --batch is of --prompts alone.
std::vector<std::string> memory_ways(const Arguments& arguments) {
  std::vector<std::string> ways;
  if (const std::string types = smaller_types(arguments, true); !types.empty()) ways.push_back("--dtype " + types);
  if (arguments.has("prompts") && arguments.get_int("batch") > 1) ways.emplace_back("a smaller --batch");
  if (arguments.get_int("tokens") > 1) ways.emplace_back("a smaller --tokens");
  ways.emplace_back("a smaller model");
  return ways;
}

}  // namespace

Command generate_command() {
  return {
      .name = "generate",
      .summary = "sample text from a model",
      .positionals = {{.name = "MODEL", .help = "model folder, run folder (its newest checkpoint) or RUN/best"}},
      .flags = generate_flags(),
      .overrides = "a key of config.json set to another value; parallel.tensor and parallel.context, with mpirun",
      .details =
          "A text of a flag is taken as it is: \\n is a backslash and an n, unless --escape is given. Token ids that "
          "the\n"
          "tokenizer does not have (a padded vocabulary) are never drawn. With --interactive the cache of the text so "
          "far\n"
          "is kept, also through a pipe: one line in, one reply out; the conversation drops its oldest tokens when "
          "the\n"
          "model's longest sequence is reached.\n"
          "With --prompts each line of the output is {\"prompt\", \"text\", \"tokens\", \"reason\"}, in the order of "
          "the\n"
          "prompts; prompt i is drawn with the seed N + i, whatever --batch is.\n"
          "Under mpirun the processes share the model: parallel.tensor splits heads, hidden units and vocabulary, the\n"
          "ranks of parallel.context repeat the same work. The first process prints; the text is that of one process.",
      .examples = {"braid generate out/demo --prompt 'The '",
                   "mpirun -np 2 braid generate out/demo --prompt 'The ' parallel.tensor=2",
                   "braid generate out/demo -p 'Once' -t 0.7 --top-p 0.9 -e --stop '\\n\\n' --count 3 --stats",
                   "braid generate out/demo -p 'Once' --dtype int8 --stats",
                   "braid generate out/demo --prompts questions.txt --batch 32 -t 0 -o answers.jsonl --stats",
                   "braid generate out/demo -i -e --template 'Question: {prompt}\\nAnswer:' --stop '\\n'"},
      .run = run_generate,
      .memory_ways = memory_ways,
      .shared = [](const Arguments&) { return true; },
  };
}

}  // namespace braid::apps
