// Samples of fine-tuning: a prompt with its answer or a conversation becomes tokens, of which only the answers are
// targets.
//
//   prompt, answer        prompt answer <|endoftext|>
//   messages              begin turn turn ... <|endoftext|>        turn: the template with {role} and {content} filled
//   in
//                                  ------ ---                      counted: what the assistant says, and its end
//
// Template and contents are encoded apart from each other: no token holds a part of both. Text of specials is one token
// in the template and plain text in contents.
#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/models/data/tokenizers/tokenizer.h"

namespace braid::models::text {

// The text around the turns of a conversation.
struct ChatTemplate {
  std::string begin;  // of every sample
  std::string turn;   // with {role} and {content}

  // One of chat_template_names(), or the text of a turn itself. Error(setting) without {content}, or with a name in
  // braces that is not known.
  static ChatTemplate parse(const std::string& name_or_text);
};
std::vector<std::string> chat_template_names();
// The name of the one whose special tokens the tokenizer has, "simple" where it has none of them.
std::string chat_template_for(const Tokenizer& tokenizer);

struct ChatTurn {
  std::string role, content;
  bool learnt = true;  // of what the assistant says
};
// A message as OpenAI's clients and exporters write it: {"role", "content"}, the content a string, null or a list of
// {"type": "text", "text"}. Calls of tools may be null or empty: no template here can write them. The reader of samples
// and of `braid serve`. bad(field, expected, found) throws; field is empty for the message as a whole.
using BadMessage =
    std::function<void(const std::string& field, const std::string& expected, const nlohmann::json& found)>;
ChatTurn read_message(const nlohmann::json& message, const BadMessage& bad);

// The tokens of a conversation up to the place where the assistant's next answer begins: those that stand before that
// answer in a sample of the same turns.
std::vector<int32_t> chat_prompt(const std::vector<ChatTurn>& turns, const ChatTemplate& chat,
                                 const Tokenizer& tokenizer);
// The text behind an answer that a sample counts as its end, for example "<|im_end|>"; "": the template has none.
std::string answer_end(const ChatTemplate& chat);

struct SampleFormat {
  std::optional<ChatTemplate> chat;  // none: prompts and answers as they are
  std::string prompt_field = "prompt", answer_field = "answer";
  bool answer_or_completion = true;  // a line without the answer's field may have "completion" instead
};

// counted[i]: token i is a target.
struct Sample {
  std::vector<int32_t> tokens;
  std::vector<bool> counted;
};

// A sample of one JSON object, by the fields that it has:
//
//   messages                              [{"role", "content"}, ...], as OpenAI has them; "weight": 0 is not counted
//   conversations                         [{"from": "human" or "gpt", "value"}, ...] (ShareGPT); also "system" beside
//   it prompt, answer or completion          one question, as text; both may be lists of messages instruction, perhaps
//   input, output    one question (Alpaca): instruction, line end, input; also "system" beside it
//
// Without a chat template only prompt and answer, as text. `place` ("FILE at line 3") is for messages: Error(input)
// when the text is no object, a field is missing or of another kind, or a message calls tools.
Sample make_sample(std::string_view line, const std::string& place, const SampleFormat& format,
                   const Tokenizer& tokenizer);

// The file of a tokenizer's folder that has a chat_template of its own; empty: none has.
std::string file_with_chat_template(const std::string& folder);

}  // namespace braid::models::text
