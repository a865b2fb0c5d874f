#include "braid/models/text/prepare/source.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "braid/models/text/prepare/byte_stream.h"
#include "braid/models/text/prepare/jsonl.h"
#include "braid/tensor/detail/utf8.h"
#include "braid/tensor/error.h"

namespace braid::models::text {
namespace {

namespace fs = std::filesystem;

constexpr size_t max_notes = 20;
constexpr int64_t sniffed_bytes = 8192;  // of a file in a folder, to tell text from other things

bool is_jsonl(const std::string& path) {
  const std::string name = without_compression(path);
  return name.ends_with(".jsonl") || name.ends_with(".ndjson");
}

bool hidden(const fs::path& path) { return path.filename().string().starts_with("."); }

// Regular files below the folder, without hidden ones; links to files are followed, links to folders are not.
std::vector<std::string> files_below(const std::string& folder, const std::string& exclude) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error), end;
  for (; !error && it != end; it.increment(error)) {
    std::error_code ignored;  // a dangling link is no file
    const bool left_out = !exclude.empty() && it->is_directory(ignored) && fs::equivalent(it->path(), exclude, ignored);
    if (left_out || hidden(it->path())) {
      if (it->is_directory(ignored)) it.disable_recursion_pending();
      continue;
    }
    if (it->is_regular_file(ignored)) files.push_back(it->path().string());
  }
  check(!error, ErrorKind::input, [&] { return "cannot list the folder " + folder + ": " + error.message(); });
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

struct TextSource::Open {
  Open(const std::string& path, bool by_name) : stream(open_stream(path)), jsonl(is_jsonl(path)), named(by_name) {}

  // Fills `buffer` up to `want` bytes; sets at_end when the stream has no more.
  void fill(size_t want) {
    while (!at_end && buffer.size() < want) {
      const size_t had = buffer.size();
      buffer.resize(want);
      const int64_t got = stream->read(buffer.data() + had, static_cast<int64_t>(want - had));
      buffer.resize(had + static_cast<size_t>(got));
      at_end = got == 0;
    }
  }

  std::unique_ptr<ByteStream> stream;
  bool jsonl, named;
  std::string buffer;    // text: the next piece; jsonl: unread bytes from `begin`
  size_t begin = 0;      // jsonl: where the next line starts
  std::string document;  // jsonl: the document being handed out
  size_t handed = 0;     // bytes of it already handed out
  int64_t line = 0;
  int64_t documents = 0;
  int64_t offset = 0;  // text: bytes handed out before this piece
  bool at_end = false;
  bool noted_nul = false;
  detail::Utf8Checker utf8;
};

TextSource::TextSource(const std::vector<std::string>& inputs, Options options) : options_(std::move(options)) {
  std::error_code ignored;
  std::set<fs::path> excluded;
  for (const std::string& path : options_.exclude_files) excluded.insert(fs::weakly_canonical(path, ignored));
  for (const std::string& input : inputs) {
    std::error_code error;
    const fs::file_status status = fs::status(input, error);
    check(fs::exists(status), ErrorKind::input,
          [&] { return "cannot read " + input + ": there is no such file or folder; check the path"; });
    const bool folder = fs::is_directory(status);
    std::vector<std::string> files = folder ? files_below(input, options_.exclude) : std::vector<std::string>{input};
    check(!files.empty(), ErrorKind::input,
          [&] { return "cannot read " + input + ": the folder holds no file; give a folder with text files"; });
    std::erase_if(files, [&](const std::string& path) {
      const bool out = folder && !excluded.empty() && excluded.contains(fs::weakly_canonical(path, ignored));
      if (out) note(path + " is for validation: left out of " + input);
      return out;
    });
    for (const std::string& path : files) {
      const auto bytes = fs::file_size(path, error);
      check(!error, ErrorKind::input, [&] { return "cannot read " + path + ": " + error.message(); });
      paths_.push_back({path, static_cast<int64_t>(bytes), !folder});
      bytes_total_ += static_cast<int64_t>(bytes);
    }
  }
}

TextSource::~TextSource() = default;

std::vector<std::string> TextSource::paths() const {
  std::vector<std::string> all;
  for (const Input& input : paths_) all.push_back(input.path);
  return all;
}

const std::string& TextSource::file() const {
  static const std::string none;
  return next_ == 0 ? none : paths_[next_ - 1].path;
}

int64_t TextSource::bytes_read() const { return bytes_done_ + (open_ ? open_->stream->file_position() : 0); }

void TextSource::note(std::string message) {
  if (notes_.size() < max_notes) notes_.push_back(std::move(message));
  if (notes_.size() == max_notes) notes_.push_back("further notes of this kind are left out");
}

// Opens the next file worth reading; false when there is none.
bool TextSource::open_next() {
  while (next_ < paths_.size()) {
    const Input& input = paths_[next_++];
    std::unique_ptr<Open> file;
    if (input.bytes > 0 || input.named) {  // an empty .gz is a damaged stream, which is no reason to reject its folder
      file = std::make_unique<Open>(input.path, input.named);
      file->fill(sniffed_bytes);
    }
    const std::string_view begin = file ? std::string_view(file->buffer) : std::string_view();
    if (begin.empty() && input.named)
      fail(ErrorKind::input,
           "cannot use " + input.path + ": expected text, found an empty file; leave it out or fill it");
    if (begin.empty()) {
      note(input.path + " is empty: left out");
    } else if (!input.named && begin.substr(0, sniffed_bytes).find('\0') != std::string_view::npos) {
      note(input.path + " is not text (it has NUL bytes): left out; name it to use its bytes as they are");
    } else {
      open_ = std::move(file);
      return true;
    }
    bytes_done_ += input.bytes;
  }
  return false;
}

bool TextSource::next(Piece& piece) {
  while (open_ || open_next()) {
    if (open_->jsonl ? next_of_jsonl(piece) : next_of_text(piece)) return true;
    if (open_->jsonl && open_->documents == 0) note(paths_[next_ - 1].path + " holds only blank lines: left out");
    bytes_done_ += paths_[next_ - 1].bytes;
    open_.reset();
  }
  return false;
}

void TextSource::check_text(std::string_view bytes, bool last) {
  const std::string& path = paths_[next_ - 1].path;
  const size_t nul = bytes.find('\0');
  if (nul != std::string_view::npos && options_.require_utf8)
    fail(ErrorKind::input, "cannot use " + path + " at byte " +
                               std::to_string(open_->offset + static_cast<int64_t>(nul)) +
                               ": expected text, found a NUL byte; leave the file out, or use the byte tokenizer, which"
                               " takes any bytes");
  if (nul != std::string_view::npos && !open_->noted_nul) {
    open_->noted_nul = true;
    note(path + " is not text (NUL at byte " + std::to_string(open_->offset + static_cast<int64_t>(nul)) +
         "): the byte tokenizer uses its bytes as they are");
  }
  if (options_.require_utf8 && !(open_->utf8.feed(bytes) && (!last || open_->utf8.finish())))
    fail(ErrorKind::input, "cannot use " + path + " at byte " + std::to_string(open_->utf8.error_byte()) +
                               ": expected UTF-8 text, found another encoding; convert it (iconv -t UTF-8), or use the"
                               " byte tokenizer, which takes any bytes");
}

bool TextSource::next_of_text(Piece& piece) {
  Open& f = *open_;
  const auto handed = static_cast<size_t>(f.offset > 0 || f.documents > 0 ? f.begin : 0);
  f.buffer.erase(0, handed);  // the piece before this one
  f.offset += static_cast<int64_t>(handed);
  f.fill(static_cast<size_t>(piece_bytes) + 1);  // one byte more shows whether this piece is the last
  if (f.buffer.empty()) return false;
  const std::string_view bytes = std::string_view(f.buffer).substr(0, static_cast<size_t>(piece_bytes));
  f.begin = bytes.size();
  piece = {bytes, f.offset == 0, f.buffer.size() == bytes.size()};
  ++f.documents;
  check_text(bytes, piece.last);
  return true;
}

bool TextSource::next_of_jsonl(Piece& piece) {
  Open& f = *open_;
  while (f.handed == f.document.size()) {
    // Find the end of the next line, reading on as far as needed.
    size_t end, searched = f.begin;
    while ((end = f.buffer.find('\n', searched)) == std::string::npos && !f.at_end) {
      if (f.begin > 0) {
        f.buffer.erase(0, f.begin);
        f.begin = 0;
      }
      searched = f.buffer.size();
      if (static_cast<int64_t>(searched) > max_line_bytes)
        fail(ErrorKind::input, "cannot read " + file() + " at line " + std::to_string(f.line + 1) +
                                   ": expected a line of at most " + std::to_string(max_line_bytes) +
                                   " bytes, found a longer one; split the document");
      f.fill(f.buffer.size() + static_cast<size_t>(piece_bytes));
    }
    if (end == std::string::npos) end = f.buffer.size();
    if (f.begin >= f.buffer.size()) return false;
    const std::string_view line = std::string_view(f.buffer).substr(f.begin, end - f.begin);
    f.begin = std::min(end + 1, f.buffer.size());
    ++f.line;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    f.document = jsonl_text(line, options_.text_field, file(), f.line);
    f.handed = 0;
    ++f.documents;
    if (f.document.empty()) note(file() + " has an empty document at line " + std::to_string(f.line) + ": left out");
  }
  const std::string_view rest = std::string_view(f.document).substr(f.handed);
  const std::string_view bytes = rest.substr(0, static_cast<size_t>(piece_bytes));
  piece = {bytes, f.handed == 0, bytes.size() == rest.size()};
  f.handed += bytes.size();
  if (options_.require_utf8 && bytes.find('\0') != std::string_view::npos)
    fail(ErrorKind::input, "cannot use " + file() + " at line " + std::to_string(f.line) +
                               ": expected text, found a NUL character; use the byte tokenizer, which takes any bytes");
  return true;
}

}  // namespace braid::models::text
