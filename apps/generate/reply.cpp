#include "apps/generate/reply.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "apps/generate/printer.h"

namespace braid::apps {
namespace {

// The next line of rank 0's standard input; none at its end. The other ranks wait as long as the user thinks.
std::optional<std::string> next_line(const dist::Communicator& world, double timeout) {
  std::optional<std::string> read;
  if (world.rank() == 0) {
    if (::isatty(STDIN_FILENO)) {
      std::fputs("> ", stdout);
      std::fflush(stdout);
    }
    read = read_line();
  }
  world.set_timeout(0);
  const std::string line = world.gather_text(read ? "+" + *read : "")[0];
  world.set_timeout(timeout);
  if (line.empty()) return std::nullopt;
  return line.substr(1);
}

// Makes room for more tokens: the text continues from its newest ones, so that half of the longest sequence is free.
void drop_oldest(const models::LanguageModel& model, int64_t more, models::Conversation& text, bool note) {
  const int64_t longest = model.max_sequence_length(), had = std::ssize(text.tokens());
  const int64_t keep = std::clamp<int64_t>(longest / 2 - more, 0, had);
  const std::vector<int32_t> newest(text.tokens().end() - keep, text.tokens().end());
  text = models::Conversation(model, longest);
  if (!newest.empty()) text.append(newest);
  if (note)
    std::fprintf(
        stderr,
        "note: the model's longest sequence of %lld tokens is reached; the conversation continues from its last "
        "%lld tokens, and so each time\n",
        static_cast<long long>(longest), static_cast<long long>(keep));
}

}  // namespace

void ReplySpeed::add(const models::Generated& reply) {
  prompt_tokens += reply.prompt_tokens;
  steps += reply.steps;
  prompt_seconds += reply.prompt_seconds;
  step_seconds += reply.step_seconds;
}

models::Generated print_reply(const ReplySettings& settings, models::Conversation& text, const std::string& before) {
  Printer printer(settings.tokenizer, settings.stops, before);
  printer.begin(text.tokens());
  const models::Generated reply = text.generate(settings.max_tokens, settings.sampling, settings.ends,
                                                [&](int32_t token) { return printer.push(token); });
  if (reply.reason != models::StopReason::caller) printer.finish();
  std::printf("\n");
  std::fflush(stdout);
  return reply;
}

void note_full(const models::LanguageModel& model, const models::Generated& reply) {
  if (reply.reason == models::StopReason::context_full)
    std::fprintf(stderr, "note: stopped at the model's longest sequence of %lld tokens\n",
                 static_cast<long long>(model.max_sequence_length()));
}

ReplySpeed converse(const ReplySettings& settings, const std::vector<int32_t>& first, const dist::Communicator& world,
                    double timeout) {
  const models::LanguageModel& model = settings.model;
  const int64_t longest = model.max_sequence_length();
  const bool root = world.rank() == 0;
  models::Conversation text(model, longest);
  if (!first.empty()) text.append(first);
  ReplySpeed speed;
  bool noted = false;
  while (const std::optional<std::string> line = next_line(world, timeout)) {
    const std::string prompt = settings.prompt_template(*line);
    std::vector<int32_t> tokens;
    if (!prompt.empty() || text.tokens().empty())
      tokens = encode_prompt(settings.tokenizer, model, prompt, settings.parse_specials, text.tokens().empty());
    const int64_t more = std::ssize(tokens);
    if (more > longest) {
      if (root)
        std::fprintf(stderr, "note: the line is left out: it has %lld tokens, the model's longest sequence is %lld\n",
                     static_cast<long long>(more), static_cast<long long>(longest));
      continue;
    }
    if (more > text.remaining()) drop_oldest(model, more, text, root && !std::exchange(noted, true));
    if (more > 0) text.append(tokens);
    const models::Generated reply = print_reply(settings, text);
    speed.add(reply);
    if (root) note_full(model, reply);
  }
  return speed;
}

}  // namespace braid::apps
