// What `braid chat` holds: turns of user and assistant, and the settings with which answers are drawn. Nothing is
// printed or read here.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/models/data/prepare/chat.h"
#include "braid/models/inference/engine.h"
#include "braid/models/settings.h"

namespace braid::apps {

struct ChatOptions {
  models::text::ChatTemplate chat;
  models::SamplingOptions sampling;
  int64_t max_tokens = 512;   // of an answer
  std::vector<int32_t> ends;  // tokens that end an answer, besides the end of a turn in the template
  std::string system;         // the first turn, "" for none
};

struct Answer {
  std::string text;
  models::StopReason reason = models::StopReason::length;
  int64_t dropped = 0;  // the oldest turns, which no longer fit the model's longest sequence
  int64_t prompt_tokens = 0, shared_tokens = 0, tokens = 0;  // shared: of the prompt, in the cache from earlier answers
  double seconds = 0;
};

class ChatSession {
 public:
  // Model and tokenizer must outlive it.
  ChatSession(const models::LanguageModel& model, const models::text::Tokenizer& tokenizer, ChatOptions options);

  // Adds what the user says and draws the answer; `print` gets its text piece by piece. stop: polled for each token,
  // true ends the answer where it is. Error(setting), and the conversation stays as it was, where what is said alone
  // does not fit the model's longest sequence.
  Answer say(const std::string& text, const std::function<void(std::string_view)>& print,
             const std::function<bool()>& stop = {});
  // Draws the last answer anew, with the next seed. Error(setting) before the first answer.
  Answer again(const std::function<void(std::string_view)>& print, const std::function<bool()>& stop = {});
  void undo();   // takes the last answer and what was said before it back. Error(setting) where there is none
  void reset();  // forgets all turns but the system's
  void system(const std::string& text);  // sets the system's turn; "" removes it

  const std::vector<models::text::ChatTurn>& turns() const { return turns_; }
  // The conversation as a line of fine-tuning data (braid prepare --chat): {"messages": [...]}. Bytes that are no UTF-8
  // become U+FFFD.
  std::string json() const;
  // temperature, top-k, ... as settings with help and range.
  const std::vector<models::Setting>& settings() const { return settings_; }
  // Error(setting) that names the setting, what was expected and the nearest name.
  void set(const std::string& name, const std::string& value);

 private:
  Answer draw(const std::function<void(std::string_view)>& print, const std::function<bool()>& stop);
  std::vector<int32_t> prompt(int64_t& dropped) const;

  const models::LanguageModel& model_;
  const models::text::Tokenizer& tokenizer_;
  ChatOptions options_;
  std::string end_of_answer_;
  std::vector<models::Setting> settings_;
  std::vector<models::text::ChatTurn> turns_;
  models::GenerationEngine engine_;
};

}  // namespace braid::apps
