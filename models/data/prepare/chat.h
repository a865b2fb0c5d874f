// Samples of fine-tuning: a prompt with its answer or a conversation becomes tokens, of which only the answers are
// targets.
//
//   prompt, answer        prompt answer <|endoftext|>
//   messages              begin turn turn ... <|endoftext|>        turn: {role} and {content} of the template filled in
//                                  ------ ---                      counted: what the assistant says, and its end
//
// Text of specials is one token in the template and plain text in contents. The turn of a built-in template and the
// contents are encoded apart from each other: no token holds a part of both.
//
// Tools, in the Hermes form, as the built-in templates write them: their descriptions behind the system's text, one
// JSON object a line between <tools> and </tools>; a call of the assistant as {"name", "arguments"} between the marks;
// a result of role "tool" between <tool_response> and </tool_response>.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
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
  // The template of a tokenizer's folder, in the place of both.
  std::shared_ptr<const class FolderTemplate> folder = nullptr;

  // One of chat_template_names(), or the text of a turn itself. Error(setting) without {content}, or with a name in
  // braces that is not known.
  static ChatTemplate parse(const std::string& name_or_text);
  // The template of the tokenizer's own files. Error(input) where there is none, or one that cannot be rendered.
  static ChatTemplate of_folder(const Tokenizer& tokenizer);
};
std::vector<std::string> chat_template_names();
// The name of the one whose special tokens the tokenizer has, "simple" where it has none of them.
std::string chat_template_for(const Tokenizer& tokenizer);

// JSON that a template writes: the order of names is kept. A nlohmann::json converts to it, with its names sorted.
using ChatJson = nlohmann::ordered_json;

struct ChatTurn {
  std::string role, content;
  bool learnt = true;        // of what the assistant says
  ChatJson calls = nullptr;  // of the assistant: OpenAI's tool_calls, arguments as objects; null: none
  std::string call_id = "";  // of role "tool": the call that it answers
  std::string name = "";     // of the speaker, or of the tool
};
// A message as OpenAI's clients and exporters write it: {"role", "content"}, the content a string, null or a list of
// {"type": "text", "text"}; of the assistant also "tool_calls", whose "arguments" are an object or its text; of role
// "tool" also "tool_call_id". The reader of samples and of `braid serve`. bad(field, expected, found) throws; field is
// empty for the message as a whole.
using BadMessage =
    std::function<void(const std::string& field, const std::string& expected, const nlohmann::json& found)>;
ChatTurn read_message(const ChatJson& message, const BadMessage& bad);

// The tokens of a conversation up to the position where the assistant's next answer begins: those that stand before
// that answer in a sample of the same turns. tools: OpenAI's list of {"type": "function", "function"}, or null.
std::vector<int32_t> chat_prompt(const std::vector<ChatTurn>& turns, const ChatJson& tools, const ChatTemplate& chat,
                                 const Tokenizer& tokenizer);
// The text around the JSON object of a call in an answer, such as "<tool_call>\n" and "\n</tool_call>".
struct CallMarks {
  std::string begin, end;
};
CallMarks call_marks(const ChatTemplate& chat);
// The text behind an answer that a sample counts as its end, for example "<|im_end|>"; "": the template has none.
std::string answer_end(const ChatTemplate& chat);

struct SampleFormat {
  std::optional<ChatTemplate> chat;  // none: prompts and answers as they are
  bool folder = false;               // `chat` is to be that of the tokenizer's folder
  std::string prompt_field = "prompt", answer_field = "answer";
  bool answer_or_completion = true;  // a line without the answer's field may have "completion" instead
  bool preferences = false;          // a prompt with the answers "chosen" and "rejected"
};

// counted[i]: token i is a target. Of preferences two sequences, the prompt with the chosen answer and with the
// rejected one, which begins at token `second`; else that is 0.
struct Sample {
  std::vector<int32_t> tokens;
  std::vector<bool> counted;
  int64_t second = 0;
};

// A sample of one JSON object, by the fields that it has:
//
//   messages                              [{"role", "content"}, ...], as OpenAI has them; "weight": 0 is not counted
//   conversations                         [{"from": "human" or "gpt", "value"}, ...] (ShareGPT); also "system" beside
//   it prompt, answer or completion          one question, as text; both may be lists of messages instruction, perhaps
//   input, output    one question (Alpaca): instruction, line end, input; also "system" beside it tools beside
//   messages: OpenAI's list, or its text
//
// Without a chat template only prompt and answer, as text. Preferences have "prompt", "chosen" and "rejected", each
// text or a list of messages, and perhaps tools; what the assistant says in the prompt is no target. `place` ("FILE at
// line 3") is for messages: Error(input) when the text is no object, or a field is missing or of another kind.
Sample make_sample(std::string_view line, const std::string& place, const SampleFormat& format,
                   const Tokenizer& tokenizer);

// The name of the tokenizer's file that has a chat template; empty: none has.
std::string chat_template_file(const Tokenizer& tokenizer);

}  // namespace braid::models::text
