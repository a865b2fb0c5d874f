// Documents from files and folders, in a fixed order and in bounded memory.
//
// An input is a text file (one document), a .jsonl or .ndjson file (one document per line), either of them with .gz or
// .zst, or a folder: its files, at any depth, sorted by path. Hidden files and folders, empty files and files that are
// not text are left out of a folder (and noted); given by name, an empty file is an error.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace braid::models::text {

inline constexpr int64_t piece_bytes = 1 << 20;              // a document comes in pieces of at most this size
inline constexpr int64_t max_line_bytes = int64_t{1} << 28;  // of a .jsonl file

// A part of a document. The bytes are valid until the next call of next().
struct Piece {
  std::string_view bytes;
  bool first = false, last = false;  // of its document; a small document is one piece with both
};

class TextSource {
 public:
  struct Options {
    std::string text_field = "text";
    std::string exclude;                          // a folder to leave out wherever it turns up, usually the output
    std::vector<std::string> exclude_files = {};  // files to leave out of folders, and to note
    bool require_utf8 = false;  // for tokenizers that take only text; the byte tokenizer takes any bytes
  };
  // Lists every file; Error(input) when an input is missing or a folder holds no file.
  TextSource(const std::vector<std::string>& inputs, Options options);
  ~TextSource();

  bool next(Piece& piece);  // false after the last document

  const std::string& file() const;              // being read
  size_t file_number() const { return next_; }  // of the file being read, from 1 on, in the order of reading
  int64_t bytes_read() const;                   // of all files, compressed size, for progress
  int64_t bytes_total() const { return bytes_total_; }
  int64_t files() const { return static_cast<int64_t>(paths_.size()); }
  std::vector<std::string> paths() const;                           // of all files, in the order of reading
  const std::vector<std::string>& notes() const { return notes_; }  // what was left out or looks odd, as messages

 private:
  struct Input {
    std::string path;
    int64_t bytes;
    bool named;  // given by the user, not found in a folder
  };
  struct Open;
  bool open_next();
  bool next_of_text(Piece& piece);
  bool next_of_jsonl(Piece& piece);
  void check_text(std::string_view bytes, bool last);
  void note(std::string message);

  Options options_;
  std::vector<Input> paths_;
  std::vector<std::string> notes_;
  int64_t bytes_total_ = 0, bytes_done_ = 0;
  size_t next_ = 0;             // in paths_
  std::unique_ptr<Open> open_;  // the file being read
};

}  // namespace braid::models::text
