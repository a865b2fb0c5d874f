// The files that the inputs of `braid prepare` stand for.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace braid::models::text {

struct InputFile {
  std::string path;
  int64_t bytes = 0;
  bool named = false;  // given by the user, not found in a folder
};

struct InputList {
  std::vector<InputFile> files;    // in the order of reading
  std::vector<std::string> notes;  // what was left out or looks odd, as messages
};

// An input is a file, a folder (its files at any depth, sorted by path, without hidden ones), or a pattern with * ? [ ]
// when no file has that name (what it matches, sorted). `exclude`: a folder to leave out wherever it turns up.
// `exclude_files`: files to leave out of folders, and to note. Error(input): an input that is missing, a folder without
// files, a pattern that matches nothing, or a format that cannot be read, by its name.
InputList list_inputs(const std::vector<std::string>& inputs, const std::string& exclude,
                      const std::vector<std::string>& exclude_files);

}  // namespace braid::models::text
