#include "apps/prepare/sample_flags.h"

#include "apps/cli/prompt.h"
#include "apps/cli/text.h"
#include "braid/tensor/error.h"

namespace braid::apps {

std::vector<Flag> sample_flags() {
  const models::text::SampleFormat defaults;
  return {
      {.name = "answers",
       .help = "INPUT are JSON objects, samples with a prompt and an answer; only answers are learnt"},
      {.name = "chat",
       .value = "TEMPLATE",
       .help = "samples are conversations: " + join(models::text::chat_template_names(), ", ") +
               ", the text of a turn with {role} and {content}, or folder: the chat template of --tokenizer FOLDER"},
      {.name = "preferences",
       .help = "samples are pairs for braid train to prefer one of: a prompt with a chosen and a rejected answer; with "
               "--chat they may be messages"},
      {.name = "escape", .alias = 'e', .help = "read \\n, \\t, \\r, \\xHH in --chat as these characters"},
      value_flag("prompt-field", "NAME", "field of a line with the prompt", defaults.prompt_field),
      value_flag("answer-field", "NAME", "field of a line with the answer (by default also completion)",
                 defaults.answer_field)};
}

std::optional<models::text::SampleFormat> sample_format(const Arguments& arguments) {
  const bool preferences = arguments.has("preferences");
  const bool samples = arguments.has("answers") || arguments.has("chat") || preferences;
  for (const char* name : {"escape", "prompt-field", "answer-field"}) {
    check(samples || !arguments.has(name), ErrorKind::setting,
          [&] { return str("--", name, " is for samples: expected --answers or --chat TEMPLATE beside it"); });
  }
  for (const char* name : {"answers", "answer-field"})
    check(!preferences || !arguments.has(name), ErrorKind::setting, [&] {
      return str("--", name,
                 " is for samples with one answer: expected none of it beside --preferences, whose answers "
                 "are the fields \"chosen\" and \"rejected\"");
    });
  if (!samples) return std::nullopt;
  for (const char* name : {"tasks", "task-set", "task-items", "text-field", "dedup", "train-bpe", "bpe-form"}) {
    check(!arguments.has(name), ErrorKind::setting, [&] {
      return str("--", name, " is for text: expected none of it beside --answers, --chat and --preferences");
    });
  }
  models::text::SampleFormat format{.folder = arguments.has("chat") && arguments.get("chat") == "folder"};
  if (arguments.has("chat") && !format.folder)
    format.chat = models::text::ChatTemplate::parse(flag_text(arguments, arguments.get("chat")));
  format.preferences = preferences;
  format.prompt_field = arguments.get("prompt-field");
  format.answer_field = arguments.get("answer-field");
  format.answer_or_completion = !arguments.has("answer-field");
  return format;
}

std::string words_about_samples(const models::text::SampleSummary& summary) {
  const models::text::Manifest& m = summary.prepared.manifest;
  const int64_t tokens = m.train.tokens + m.val.tokens;
  const double share = tokens > 0 ? 100 * static_cast<double>(summary.counted) / static_cast<double>(tokens) : 0;
  const int64_t sequences = m.train.documents + m.val.documents;
  const bool pairs = models::text::holds_preferences(m);
  return str(pairs ? sequences / 2 : sequences, pairs ? " pairs of sequences" : " samples", " of at most ",
             summary.longest, " tokens, ", human(share, 3), "% of the tokens are targets");
}

}  // namespace braid::apps
