#include "apps/generate/prompts_file.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/cli/text.h"
#include "braid/models/data/prepare/source.h"
#include "braid/models/inference/batch.h"
#include "braid/models/inference/text_stream.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/json.h"

namespace braid::apps {
namespace {

// The text of one reply as it grows.
struct Reply {
  models::TextStream stream;
  std::string text;
};

const char* reason_of(models::StopReason reason) {
  switch (reason) {
    case models::StopReason::length:
      return "length";
    case models::StopReason::end_of_text:
      return "end_of_text";
    case models::StopReason::context_full:
      return "context_full";
    case models::StopReason::caller:
      return "stop";
    case models::StopReason::cancelled:
      return "cancelled";
    case models::StopReason::failed:
      return "failed";
  }
  return "";
}

}  // namespace

std::vector<std::string> read_prompts(const std::string& file) {
  models::text::TextSource source({file}, {});
  std::vector<std::string> prompts;
  std::string text;
  for (models::text::Piece piece; source.next(piece);) {
    if (!piece.jsonl) {
      text += piece.bytes;
      continue;
    }
    const nlohmann::json object = io::parse_json(piece.bytes, file, piece.offset);
    check(object.is_object() && object.contains("prompt") && object["prompt"].is_string(), ErrorKind::input, [&] {
      return str("bad line ", piece.line, " in ", file, ": expected {\"prompt\": text}, found ", preview(piece.bytes));
    });
    prompts.push_back(object["prompt"].get<std::string>());
  }
  for (std::string& line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    if (line.ends_with('\r')) line.pop_back();
    prompts.push_back(std::move(line));
  }
  check(!prompts.empty(), ErrorKind::input, [&] { return "no prompt in " + file + ": expected one in each line"; });
  return prompts;
}

ReplySpeed write_replies(const ReplySettings& settings, const std::vector<std::string>& prompts, int64_t rows,
                         const std::string& out, bool root) {
  std::vector<std::vector<int32_t>> tokens;
  std::vector<Reply> replies;
  for (size_t i = 0; i < prompts.size(); ++i) {
    tokens.push_back(encode_prompt(settings.tokenizer, settings.model, settings.prompt_template(prompts[i]),
                                   settings.parse_specials));
    check(std::ssize(tokens[i]) <= settings.model.max_sequence_length(), ErrorKind::setting, [&] {
      return str("prompt ", i + 1, " has ", tokens[i].size(), " tokens, the model's longest sequence is ",
                 settings.model.max_sequence_length());
    });
    replies.push_back({models::TextStream(settings.tokenizer, settings.stops), {}});
    replies[i].stream.begin(tokens[i]);
  }
  const models::GeneratedBatch made =
      models::generate_batch(settings.model, tokens, rows, settings.max_tokens, settings.sampling, settings.ends,
                             [&](size_t i, int32_t token) {
                               replies[i].text += replies[i].stream.push(token);
                               return !replies[i].stream.stopped();
                             });
  ReplySpeed speed{made.prompt_tokens, made.steps, made.prompt_seconds, made.step_seconds};
  if (!root) return speed;
  std::string lines;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const models::Generated& made_text = made.texts[i];
    replies[i].text += replies[i].stream.finish();
    const nlohmann::ordered_json line = {
        {"prompt", prompts[i]},
        {"text", replies[i].text},
        {"tokens", made_text.tokens.size()},
        {"reason", replies[i].stream.stopped() ? "stop" : reason_of(made_text.reason)}};
    lines += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }
  if (out.empty()) {
    std::fwrite(lines.data(), 1, lines.size(), stdout);
  } else {
    io::write_file(out, lines);
    std::printf("%zu replies in %s\n", prompts.size(), out.c_str());
  }
  return speed;
}

}  // namespace braid::apps
