// Files of items: JSON Lines, from which a template makes contexts, choices and the right one; and texts.
#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "braid/models/eval/answer.h"
#include "braid/models/eval/format_string.h"

namespace braid::models::eval {

enum class TaskKind : uint8_t { text, last_word, choices, generate };

// How a task of kind generate continues its contexts, and what it compares.
struct GenerateForm {
  std::vector<std::string> stops = {};
  int64_t max_tokens = 256;
  int64_t samples = 1;  // texts of each item
  double temperature = 0, top_p = 1;
  Filters filter, target_filter;  // of the text that is generated, and of each right answer
  AnswerRule rule = {};
};

// Which fields of a file's lines are what. Of a text: `text`. Of the last word: contexts (one) and choices (one, the
// word). Of choices: contexts, one or one for each choice; choices, several, or one for several contexts, or
// choice_list. Of generate: contexts (one) and choices, the right answers, of which the first stands in examples; or
// choices (one) is a field that holds a list of them.
struct TaskTemplate {
  std::string name;
  TaskKind kind = TaskKind::choices;
  FormatString text;
  Filters text_filter;       // of the text that is scored; its words and bytes are counted without it
  FormatString description;  // in front of everything else, once for an item
  std::vector<FormatString> contexts, choices;
  Filters context_filter, choice_filter;  // of what these give
  bool choice_list = false;               // choices[0] is a field that holds a list of texts
  FormatString gold;                      // an index from 0, true or false, a label, or the text of the right choice
  std::vector<std::string> labels = {};   // of the choices; empty: label_list, or none
  bool has_label_list = false;
  FormatString label_list;
  std::string delimiter = " ";     // between a context and a choice
  std::string separator = "\n\n";  // behind each example in front of an item
  GenerateForm generate = {};
};

// Calls `take` with each JSON object of a file of lines or of a list. Error(input) names the file and the line.
void for_each_line(const std::string& file, const std::function<void(const nlohmann::json&, const Location&)>& take);

// An item in words. One context and one choice of it belong together: they are of equal number. Of the last word there
// is one. Of generate there is one context, and choices are the right answers.
struct Document {
  std::vector<std::string> contexts, choices;
  int64_t gold = 0;
  Location location;
  std::string description = {};

  // Equal but for the place and the description.
  bool same(const Document& other) const {
    return contexts == other.contexts && choices == other.choices && gold == other.gold;
  }
};

// Items of a file as for_each_line() reads it. Error(input) names the file and the line.
std::vector<Document> read_documents(const TaskTemplate& form, const std::string& file);

struct TextDocument {
  std::string text;
  std::string where;                           // "FILE" or "line 3 of FILE"
  std::optional<std::string> unfiltered = {};  // whose words and bytes count; none: those of `text`
};
// A text file is one text; each JSON object of a file of lines or of a list is one, in the field that the template
// names. Both also compressed (data/prepare/source.h). Error(input) when there is none.
std::vector<TextDocument> read_texts(const TaskTemplate& form, const std::string& file);

// All of a file, decompressed. Error(input) when it is longer than 1 GiB, damaged or empty.
std::string read_decompressed(const std::string& file);

}  // namespace braid::models::eval
