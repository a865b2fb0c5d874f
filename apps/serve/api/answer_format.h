// The fields that say what an answer may be: response_format, tools, tool_choice, parallel_tool_calls. What is wrong is
// an ApiError(400) that names the field. Of the client's text, messages contain the names in a schema alone.
#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/serve/api/request_fields.h"
#include "braid/models/data/prepare/chat.h"
#include "braid/models/inference/constraint/schema.h"

namespace braid::apps::serve {

inline constexpr int64_t max_tools = 128;

using GrammarPointer = std::shared_ptr<const models::Grammar>;  // null: any text

// response_format of the request; `body` is its object with the names in their order.
GrammarPointer parse_response_format(const Fields& fields, const nlohmann::ordered_json& body);

struct ToolUse {
  models::text::ChatJson described = nullptr;  // the list that the prompt shows; null: no tools
  std::vector<models::CallableTool> callable;  // none: the answer calls none
  bool text_first = true;                      // a call is the model's choice
  bool several = true;
};
ToolUse parse_tools(const Fields& fields, const nlohmann::ordered_json& body);

// What an answer may be that calls tools. answer_end: the text that ends an answer; "": a token does.
GrammarPointer call_grammar(const ToolUse& use, const models::text::CallMarks& marks, const std::string& answer_end);

}  // namespace braid::apps::serve
