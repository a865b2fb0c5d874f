// The files that the inputs of `braid prepare` stand for.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace braid::models::text {

struct InputFile {
  std::string path;
  int64_t bytes = 0;
  bool named = false;  // given by the user, not found in a folder
};

// Files of folders that are not read, counted by kind: the end of the name, "empty", or "link" for a file that is read
// by another name.
struct LeftOut {
  int64_t files = 0, bytes = 0;
  std::map<std::string, int64_t> kinds;
  void add(const std::string& path, int64_t bytes_of_file, const std::string& kind = "");  // by default by the name
  void add(const LeftOut& other);
  std::string text() const;  // "143 files of 38 MiB (pdf 61, png 40, ...)"
};

struct InputList {
  std::vector<InputFile> files;  // in the order of reading
  LeftOut left_out;
  std::vector<std::string> notes;  // what was left out or looks odd, as messages
};

// An input is a file, a folder (its files at any depth, sorted by path, without hidden ones, one that has several names
// in it once), or a pattern with * ? [ ]
// when no file has that name (what it matches, sorted). `exclude`: a folder to leave out wherever it turns up.
// `exclude_files`: files to leave out of folders, and to note. Error(input): an input that is missing, a folder without
// files, a pattern that matches nothing, or a format that cannot be read, by its name.
InputList list_inputs(const std::vector<std::string>& inputs, const std::string& exclude,
                      const std::vector<std::string>& exclude_files);

}  // namespace braid::models::text
