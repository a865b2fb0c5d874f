// Beginnings of texts that suit a model, which the page offers where nothing is written yet.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace braid::apps::serve {

// At most three: sample.prompt and the beginnings of sentences in the newest sample of the run that the checkpoint
// belongs to. Empty for other folders, and where the run's files cannot be read.
std::vector<std::string> beginnings_of(const std::filesystem::path& model_folder);

// The first `words` words of each sentence of a text, without duplicates. Skips sentences with two blanks in a row,
// which hardly trained models write.
std::vector<std::string> sentence_beginnings(const std::string& text, size_t words);

}  // namespace braid::apps::serve
