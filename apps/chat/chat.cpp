// braid chat: a conversation with a model in the terminal.
#include <unistd.h>

#include <cstdio>

#include "apps/chat/commands.h"
#include "apps/cli/commands.h"
#include "apps/cli/model_flags.h"
#include "apps/cli/prompt.h"
#include "apps/cli/signals.h"
#include "apps/cli/terminal_text.h"
#include "apps/cli/text.h"
#include "apps/cli/text_model.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/strict.h"

namespace braid::apps {
namespace {

// Draws an answer and prints it as it comes. Ctrl-C ends the answer, not the program.
template <class Draw>
void print_answer(const Draw& draw, bool stats) {
  const StopSignals signals;
  const Answer answer = draw(
      [](std::string_view text) {
        std::fputs(terminal_text(std::string(text)).c_str(), stdout);
        std::fflush(stdout);
      },
      [] { return StopSignals::requested(); });
  std::printf("%s\n", answer.text.ends_with('\n') ? "" : "\n");
  std::fflush(stdout);
  if (answer.dropped > 0)
    std::fprintf(stderr, "note: the oldest %lld turns were left out: the model's longest sequence is reached\n",
                 static_cast<long long>(answer.dropped));
  if (answer.reason == models::StopReason::context_full)
    std::fprintf(stderr, "note: the answer stopped at the model's longest sequence\n");
  if (stats)
    std::fprintf(stderr, "%lld tokens in %s s; prompt of %lld, %lld of them from the cache\n",
                 static_cast<long long>(answer.tokens), human(answer.seconds, 3).c_str(),
                 static_cast<long long>(answer.prompt_tokens), static_cast<long long>(answer.shared_tokens));
}

int run_chat(const Arguments& arguments) {
  const StrictBits strict(arguments.has("strict"));
  if (const int64_t n = arguments.get_int("threads"); n > 0) set_threads(static_cast<int>(n));
  ChatOptions options;
  check_chat_flag(arguments);
  const TextModel loaded = load_text_model(arguments);
  const ChosenChat chosen = chosen_chat(arguments, *loaded.tokenizer);
  options.chat = chosen.chat;
  options.sampling.seed = static_cast<uint64_t>(arguments.get_int("seed"));
  options.sampling.vocabulary = loaded.tokenizer->vocab_size();
  options.ends = loaded.ends;
  options.system = arguments.get("system");
  ChatSession conversation(*loaded.model, *loaded.tokenizer, options);
  for (const char* name : {"temperature", "top-k", "top-p", "min-p", "repetition-penalty", "tokens"})
    conversation.set(name, arguments.get(name));
  const bool terminal = ::isatty(STDIN_FILENO) != 0;
  if (terminal)
    std::printf("Say something; /help lists commands, Ctrl-D ends; chat template %s.\n", chosen.name.c_str());
  const bool stats = arguments.has("stats");
  for (;;) {
    if (terminal) std::fputs("> ", stdout);
    std::fflush(stdout);
    const std::optional<std::string> line = read_line();
    if (!line) break;
    if (trim(*line).empty()) continue;
    try {
      const ChatLine taken = take_line(*line, conversation);
      if (taken.kind == ChatLine::Kind::quit) break;
      if (taken.kind == ChatLine::Kind::done) std::fputs(taken.words.c_str(), stdout);
      if (taken.kind == ChatLine::Kind::text)
        print_answer([&](auto print, auto stop) { return conversation.say(taken.words, print, stop); }, stats);
      if (taken.kind == ChatLine::Kind::again)
        print_answer([&](auto print, auto stop) { return conversation.again(print, stop); }, stats);
    } catch (const Error& error) {                             // of this line alone: the conversation continues
      const bool rejected = error.kind() == ErrorKind::input;  // by the folder's chat template
      if (!rejected && error.kind() != ErrorKind::setting && error.kind() != ErrorKind::output) throw;
      std::fprintf(stderr, "%s\n", error.what());
    }
  }
  if (terminal) std::printf("\n");
  return 0;
}

std::vector<Flag> chat_flags() {
  std::vector<Flag> flags = {{.name = "system", .value = "TEXT", .help = "the system's turn, before all others"},
                             chat_flag("the turns"),
                             integer_flag("tokens", "N", "maximum number of tokens of an answer", "512", 1, 1e9, 'n')};
  for (Flag& flag : sampling_flags()) flags.push_back(std::move(flag));
  flags.push_back({.name = "stats", .help = "tokens and time of each answer, on stderr"});
  for (Flag& flag : text_model_flags()) flags.push_back(std::move(flag));
  return flags;
}

}  // namespace

Command chat_command() {
  return {
      .name = "chat",
      .summary = "talk to a model in the terminal",
      .positionals = {{.name = "MODEL", .help = "model folder, run folder (its newest checkpoint) or RUN/best"}},
      .flags = chat_flags(),
      .overrides = kModelOverrides,
      .details = "Lines of the conversation that begin with a slash are commands:\n" + chat_help() +
                 "The turns stay in the cache, so that each is computed once. Where the model's longest sequence is\n"
                 "reached, the oldest turns are left out.",
      .examples = {"braid chat out/demo", "braid chat out/demo --system 'Answer briefly.' -t 0.3 --stats",
                   "echo 'Who are you?' | braid chat out/demo --chat chatml"},
      .run = run_chat};
}

}  // namespace braid::apps
