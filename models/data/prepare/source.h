// Documents from files and folders, in a fixed order and in bounded memory. Reading is one thing, done in order by one
// thread; making text of what was read is another, which several threads share (read_ahead.h).
//
// An input is a text file (one document), lines of JSON objects or a list of them (one document per object), either of
// them compressed by gzip or zstd, a folder of them or a pattern (input_files.h). What a file is, its bytes say
// (file_kind.h). Empty files and files that are not text are left out of a folder (and noted); given by name, they are
// an error.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/models/data/prepare/document_hash.h"
#include "braid/models/data/prepare/input_files.h"

namespace braid::models::text {

inline constexpr int64_t piece_bytes = 1 << 20;              // the text of a file comes in pieces of at most this size
inline constexpr int64_t max_line_bytes = int64_t{1} << 28;  // of a JSON object

// A place between two pieces, from which another source of the same inputs continues.
struct SourcePosition {
  int64_t files = 0;      // opened so far
  int64_t bytes = 0;      // size of the files that are finished
  bool inside = false;    // the last of them is not finished; then, in it:
  int64_t offset = 0;     // bytes of text, decompressed
  int64_t line = 0;       // JSON: line ends
  int64_t documents = 0;  // JSON
};

// A piece of the one document of a text file, or a JSON object, with a whole document.
struct Piece {
  std::string bytes;                 // as read; of text up to piece_bytes of the document
  size_t size = 0;                   // of bytes in this piece; the rest, if any, begins the next one
  bool jsonl = false;                // bytes are an object that text_of() has yet to parse
  bool first = false, last = false;  // of its document
  int64_t file = 0;                  // its number, from 1 on, in the order of reading
  int64_t offset = 0, line = 0;      // where it begins: byte, line from 1 on (JSON)
  std::optional<Hash128> hash;       // of the document, when it has several pieces and Options::hashes
  std::vector<std::string> notes;    // what was left out since the last piece
  SourcePosition after;              // the place behind this piece
  int64_t bytes_read = 0;            // of all files up to there, compressed size, for progress
};

// What becomes of bytes that are no UTF-8, and of lone surrogates in JSON.
enum class InvalidText : uint8_t {
  by_input,  // an error in a named file, else replaced; bytes as they are where text need not be UTF-8
  error,
  replace,  // by U+FFFD
  skip,     // left out
};

struct Repairs {
  int64_t first = -1;  // byte in the file (JSON: -1)
  int64_t count = 0;   // of ill-formed parts
};

class TextSource {
 public:
  struct Options {
    std::string text_field = "text";
    std::string exclude = {};                     // a folder to leave out wherever it turns up, usually the output
    std::vector<std::string> exclude_files = {};  // files to leave out of folders, and to note
    // For tokenizers that take only text; the byte tokenizer takes any bytes. Then pieces end where words end.
    bool require_utf8 = false;
    bool hashes = false;
    bool only_jsonl = false;  // other files of folders are left out; Error(input) for a named one
    InvalidText invalid = InvalidText::by_input;
  };
  // Lists every file; Error(input) as list_inputs().
  TextSource(const std::vector<std::string>& inputs, Options options);
  ~TextSource();

  // False after the last document; then `notes` has what was left out since the last piece.
  bool next(Piece& piece);
  void go_to(const SourcePosition& position);  // before the first next(); Error(input) when a file is shorter

  // The text of a piece, in the piece or in `storage`. Text that has to be UTF-8 and is not, as `invalid` says:
  // Error(input) naming the place, or repaired, which adds to `repairs` (unless null). Error(input) when an object has
  // no document. Safe to call from several threads.
  std::string_view text_of(const Piece& piece, std::string& storage, Repairs* repairs = nullptr) const;
  // The object of a piece of JSON, repaired in the same way.
  std::string_view object_of(const Piece& piece, std::string& storage, Repairs* repairs = nullptr) const;

  const std::vector<InputFile>& files() const { return list_.files; }
  const std::string& path(int64_t file) const { return list_.files[static_cast<size_t>(file - 1)].path; }
  bool skips_invalid() const { return options_.invalid == InvalidText::skip; }
  int64_t bytes_total() const { return bytes_total_; }
  const LeftOut& left_out() const { return left_out_; }  // so far, with those before the position of go_to()
  std::vector<std::string> notes;                        // of the list of files, and see next()

 private:
  struct Open;
  bool open_next();
  std::unique_ptr<Open> usable_file(const InputFile& input);  // null, noted and counted: it is left out
  void open(const InputFile& input);
  bool next_of_text(Piece& piece);
  bool next_of_lines(Piece& piece);
  bool next_of_list(Piece& piece);
  int next_character();                   // of the open file, behind white space; -1: the file ends
  void check_length(size_t bytes) const;  // of the object at hand
  bool is_checked() const { return options_.require_utf8 || options_.invalid != InvalidText::by_input; }
  void take_object(Piece& piece, size_t end);  // the bytes of the buffer up to there
  void pass_to(size_t place);                  // of the buffer
  // Whether it is worth reading: false with a note, or Error(input) for a named file.
  bool is_usable(const InputFile& input, const Open& file);
  bool repairs(const Piece& piece) const;  // or are ill-formed bytes an error?
  Hash128 hash_of_file(const std::string& path) const;

  Options options_;
  InputList list_;
  int64_t bytes_total_ = 0;
  LeftOut left_out_;
  SourcePosition at_;
  std::unique_ptr<Open> open_;  // the file being read
};

// Where to end the first part of a text that is cut in parts of at most `max_bytes` bytes, which are tokenised one by
// one: text.size() when it is no longer. Else behind a line end between other characters, where the words of every
// known byte-level pre-tokenizer end too; where there is none, before a blank between letters, else behind any
// character.
size_t part_of(std::string_view text, size_t max_bytes);

}  // namespace braid::models::text
