// Calls of tools in the text of an answer: text, then calls, each {"name": ..., "arguments": {...}} between two marks,
// as models::tool_call_grammar() has them.
#pragma once
#include <string>
#include <vector>

#include "braid/models/data/prepare/chat.h"

namespace braid::apps::serve {

// The new part of a call; arguments joined are the whole.
struct CallPart {
  int64_t index = 0;
  std::string id, name;  // with the first part
  std::string arguments;
};

class CallReader {
 public:
  struct Settings {
    models::text::CallMarks marks;
    std::vector<std::string> stops;  // that end the text in front of the calls
    std::string id;                  // that the ids of the calls begin with
  };
  explicit CallReader(Settings settings) : settings_(std::move(settings)) {}

  // The text that is certain now is returned, parts of calls are appended.
  std::string push(const std::string& more, std::vector<CallPart>& calls);
  std::string finish();                           // the text that was held back
  bool stopped() const { return stopped_; }       // by a stop string
  int64_t complete() const { return complete_; }  // calls

 private:
  enum class At { text, head, arguments, tail, between };
  std::string read_text(bool last);
  bool read_head(std::vector<CallPart>& calls);
  bool read_arguments(std::vector<CallPart>& calls);
  bool skip_past(const std::string& mark, At next);

  Settings settings_;
  At at_ = At::text;
  std::string held_;
  int depth_ = 0;  // of objects and lists in the arguments
  bool in_string_ = false, escaped_ = false, stopped_ = false;
  int64_t begun_ = 0, complete_ = 0;
};

}  // namespace braid::apps::serve
