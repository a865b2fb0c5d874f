// WikiText as running text: the task `wikitext` of lm-evaluation-harness scores it so.
#pragma once
#include <string>

namespace braid::models::eval {

// Without the blanks and marks that the tokenizer of the data set put around punctuation, numbers and headings.
std::string wikitext_as_text(std::string page);

// Every `from` becomes `to`, from left to right.
std::string replaced(const std::string& text, const std::string& from, const std::string& to);

}  // namespace braid::models::eval
