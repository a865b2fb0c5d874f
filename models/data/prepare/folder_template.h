// The chat template of a tokenizer's folder: chat_template.jinja, else `chat_template` of tokenizer_config.json, as
// transformers renders it (template/template.h).
//
// Text of specials is one token where the template, bos_token or eos_token wrote it, and plain text where it came from
// a message, also through filters. Where no message has such text the tokens are those of transformers.
#pragma once
#include <map>
#include <memory>

#include "braid/models/data/prepare/conversation.h"
#include "braid/models/data/prepare/template/template.h"

namespace braid::models::text {

class FolderTemplate {
 public:
  // Null where the tokenizer's files have none. Error(input) names the file, the line and what cannot be rendered.
  static std::shared_ptr<const FolderTemplate> of(const Tokenizer& tokenizer);

  // open: up to the position where the assistant's next answer begins.
  jinja::Text render(const std::vector<ChatTurn>& turns, const ChatJson& tools, bool open) const;
  std::vector<int32_t> prompt(const std::vector<ChatTurn>& turns, const ChatJson& tools,
                              const Tokenizer& tokenizer) const;
  // Counted are the texts of {% generation %} blocks, or, in a template without, what an answer adds to the prompt
  // before it. Error(input) where that cannot be told: the text before an answer must not depend on what follows.
  Sample sample(const Conversation& talk, const std::string& place, const Tokenizer& tokenizer) const;
  const std::string& answer_end() const { return answer_end_; }
  const CallMarks& call_marks() const { return marks_; }
  const std::string& file() const { return file_; }  // that contains it
  std::string source() const;                        // its text: two with the same give the same tokens

 private:
  FolderTemplate(std::string file, const std::string& text, const std::string& tool_text,
                 std::map<std::string, jinja::Value> tokens, const Tokenizer& tokenizer);
  std::vector<std::pair<size_t, size_t>> answers(const Conversation& talk, const jinja::Text& whole,
                                                 const Tokenizer& tokenizer) const;
  void probe(const Tokenizer& tokenizer);

  std::string file_, text_, tool_text_;
  std::map<std::string, jinja::Value> tokens_;  // bos_token, ...
  std::unique_ptr<const jinja::Template> plain_, with_tools_;
  std::string answer_end_;
  CallMarks marks_;
};

// The tokens of a rendered text: specials only where no message wrote their text.
std::vector<int32_t> encode_rendered(const jinja::Text& text, const Tokenizer& tokenizer);

}  // namespace braid::models::text
