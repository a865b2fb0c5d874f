// Beginnings of texts that suit a model, which the page offers where nothing is written yet.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace braid::apps::serve {

// At most three. Of a checkpoint of a run: sample.prompt, and how sentences of its newest sample begin; none for other
// folders, and where the run's files cannot be read.
std::vector<std::string> beginnings_of(const std::filesystem::path& model_folder);

// The first words of different sentences of a text, `words` of each; not of those with two blanks in a row, which a
// model writes that has hardly been trained.
std::vector<std::string> sentence_beginnings(const std::string& text, size_t words);

}  // namespace braid::apps::serve
