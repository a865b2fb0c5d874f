#include "braid/models/data/prepare/source.h"

#include <algorithm>

#include "braid/models/data/prepare/byte_stream.h"
#include "braid/models/data/prepare/jsonl.h"
#include "braid/tensor/base/utf8.h"
#include "braid/tensor/error.h"

namespace braid::models::text {
namespace {

constexpr size_t sniffed_bytes = 8192;  // of a file in a folder, to tell text from other things

bool is_jsonl(const std::string& path) {
  const std::string name = without_compression(path);
  return name.ends_with(".jsonl") || name.ends_with(".ndjson");
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Is this character, or the one that ends here, certainly no white space? Beyond ASCII: the White_Space of Unicode is
// U+0085, U+00A0 and parts of U+1680, U+2000 ... 205F, U+3000.
bool solid(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(at) < 0x80) return byte(at) > 0x20 && byte(at) != 0x7F;
  while (at > 0 && (byte(at) & 0xC0) == 0x80) --at;
  if (at + 1 >= text.size()) return false;
  if (byte(at) == 0xC2) return byte(at + 1) != 0x85 && byte(at + 1) != 0xA0;
  if (byte(at) == 0xE1) return byte(at + 1) != 0x9A;
  if (byte(at) == 0xE2) return byte(at + 1) != 0x80 && byte(at + 1) != 0x81;
  return !(byte(at) == 0xE3 && byte(at + 1) == 0x80);
}

}  // namespace

size_t part_of(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text.size();
  for (size_t i = max_bytes; i-- > 1;)
    if (text[i] == '\n' && solid(text, i - 1) && solid(text, i + 1)) return i + 1;
  for (size_t i = max_bytes; i-- > 1;)
    if (text[i] == ' ' && is_letter(text[i - 1]) && is_letter(text[i + 1])) return i;
  size_t end = max_bytes;
  while (end > 1 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80 && max_bytes - end < 4) --end;
  return (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80 ? max_bytes : end;
}

struct TextSource::Open {
  explicit Open(const InputFile& input)
      : stream(open_stream(input.path)), jsonl(is_jsonl(input.path)), bytes(input.bytes) {}

  // Fills `buffer` up to `size` bytes from `begin` on; sets at_end when the stream has no more.
  void fill(size_t size) {
    buffer.erase(0, begin);
    begin = 0;
    while (!at_end && buffer.size() < size) {
      const size_t had = buffer.size();
      buffer.resize(size);
      const int64_t got = stream->read(buffer.data() + had, static_cast<int64_t>(size - had));
      buffer.resize(had + static_cast<size_t>(got));
      at_end = got == 0;
    }
  }

  std::unique_ptr<ByteStream> stream;
  bool jsonl;
  int64_t bytes;       // of the file
  std::string buffer;  // unread from `begin` on
  size_t begin = 0;
  bool at_end = false;  // of the stream
  std::optional<Hash128> hash;
};

TextSource::TextSource(const std::vector<std::string>& inputs, Options options)
    : options_(std::move(options)), list_(list_inputs(inputs, options_.exclude, options_.exclude_files)) {
  if (options_.only_jsonl) {
    for (const InputFile& file : list_.files)
      check(is_jsonl(file.path) || !file.named, ErrorKind::input, [&] {
        return "cannot read samples from " + file.path + ": expected a file .jsonl or .ndjson, also as .gz or .zst";
      });
    std::erase_if(list_.files, [](const InputFile& file) { return !is_jsonl(file.path); });
  }
  for (const InputFile& file : list_.files) bytes_total_ += file.bytes;
  notes = list_.notes;
}

TextSource::~TextSource() = default;

// Opens the next file worth reading; false when there is none.
bool TextSource::open_next() {
  while (at_.files < std::ssize(list_.files)) {
    const InputFile& input = list_.files[static_cast<size_t>(at_.files++)];
    std::unique_ptr<Open> file;
    if (input.bytes > 0 || input.named) {  // an empty .gz is a damaged stream, which is no reason to reject its folder
      file = std::make_unique<Open>(input);
      file->fill(sniffed_bytes);
    }
    const std::string_view begin = file ? std::string_view(file->buffer) : std::string_view();
    if (begin.empty() && input.named)
      fail(ErrorKind::input,
           "cannot use " + input.path + ": expected text, found an empty file; leave it out or fill it");
    if (begin.empty()) {
      notes.push_back(input.path + " is empty: left out");
    } else if (!input.named && begin.substr(0, sniffed_bytes).find('\0') != std::string_view::npos) {
      notes.push_back(input.path + " is not text (it has NUL bytes): left out; name it to use its bytes as they are");
    } else {
      open_ = std::move(file);
      at_.inside = true;
      at_.offset = at_.line = at_.documents = 0;
      return true;
    }
    at_.bytes += input.bytes;
  }
  return false;
}

void TextSource::go_to(const SourcePosition& position) {
  check(position.files <= std::ssize(list_.files), ErrorKind::input, "there are fewer files than before");
  at_ = position;
  if (!at_.inside) return;
  open_ = std::make_unique<Open>(list_.files[static_cast<size_t>(at_.files - 1)]);
  if (options_.hashes && !open_->jsonl) open_->hash = Hash128{};  // its first piece is read
  check(open_->stream->skip(at_.offset) == at_.offset, ErrorKind::input,
        [&] { return path(at_.files) + " is shorter than before"; });
}

bool TextSource::next(Piece& piece) {
  piece = {};
  while (open_ || open_next()) {
    if (open_->jsonl ? next_of_jsonl(piece) : next_of_text(piece)) {
      piece.file = at_.files;
      piece.notes = std::exchange(notes, {});
      piece.after = at_;
      piece.bytes_read = at_.bytes + std::min(open_->bytes, open_->stream->file_position());
      return true;
    }
    if (open_->jsonl && at_.documents == 0) notes.push_back(path(at_.files) + " holds only blank lines: left out");
    at_.bytes += open_->bytes;
    at_.inside = false;
    open_.reset();
  }
  return false;
}

bool TextSource::next_of_text(Piece& piece) {
  Open& f = *open_;
  f.fill(static_cast<size_t>(piece_bytes) + 1);  // one byte more shows whether this piece is the last
  if (f.buffer.empty()) return false;
  constexpr auto max_bytes = static_cast<size_t>(piece_bytes);
  piece.bytes = f.buffer.substr(0, max_bytes);
  piece.size = options_.require_utf8 ? part_of(f.buffer, max_bytes) : piece.bytes.size();
  piece.first = at_.offset == 0;
  piece.last = f.buffer.size() == piece.size;
  piece.offset = at_.offset;
  if (options_.hashes && piece.first && !piece.last) f.hash = hash_of_file(path(at_.files));
  piece.hash = f.hash;
  f.begin = piece.size;
  at_.offset += static_cast<int64_t>(piece.size);
  return true;
}

Hash128 TextSource::hash_of_file(const std::string& path) const {
  const std::unique_ptr<ByteStream> stream = open_stream(path);
  DocumentHasher hasher;
  std::string some(static_cast<size_t>(piece_bytes), '\0');
  while (const int64_t n = stream->read(some.data(), piece_bytes))
    hasher.add(std::string_view(some).substr(0, static_cast<size_t>(n)));
  return hasher.finish();
}

bool TextSource::next_of_jsonl(Piece& piece) {
  Open& f = *open_;
  for (;;) {
    // Find the end of the next line, reading on as far as needed.
    size_t end, searched = f.begin;
    while ((end = f.buffer.find('\n', searched)) == std::string::npos && !f.at_end) {
      searched = f.buffer.size() - f.begin;
      if (static_cast<int64_t>(searched) > max_line_bytes)
        fail(ErrorKind::input,
             str("cannot read ", path(at_.files), " at line ", at_.line + 1, ": expected a line of at most ",
                 max_line_bytes, " bytes, found a longer one; split the document"));
      f.fill(searched + static_cast<size_t>(piece_bytes));
    }
    if (end == std::string::npos) end = f.buffer.size();
    if (f.begin >= f.buffer.size()) return false;
    const std::string_view line = std::string_view(f.buffer).substr(f.begin, end - f.begin);
    const size_t behind = std::min(end + 1, f.buffer.size());
    at_.offset += static_cast<int64_t>(behind - f.begin);
    f.begin = behind;
    ++at_.line;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    ++at_.documents;
    piece.bytes = line;
    piece.size = line.size();
    piece.jsonl = piece.first = piece.last = true;
    piece.line = at_.line;
    return true;
  }
}

std::string_view TextSource::text_of(const Piece& piece, std::string& storage, int64_t* ill_formed) const {
  const std::string& file = path(piece.file);
  if (piece.jsonl) {
    storage = jsonl_text(piece.bytes, options_.text_field, file, piece.line);
    if (options_.require_utf8 && storage.find('\0') != std::string::npos)
      fail(ErrorKind::input,
           str("cannot use ", file, " at line ", piece.line,
               ": expected text, found a NUL character; use the byte tokenizer, which takes any bytes"));
    return storage;
  }
  const std::string_view text = std::string_view(piece.bytes).substr(0, piece.size);
  if (!options_.require_utf8) return text;
  const bool named = list_.files[static_cast<size_t>(piece.file - 1)].named;
  const size_t nul = named ? text.find('\0') : std::string_view::npos;
  if (nul != std::string_view::npos)
    fail(ErrorKind::input, str("cannot use ", file, " at byte ", piece.offset + static_cast<int64_t>(nul),
                               ": expected text, found a NUL byte; leave the file out, or use the byte tokenizer, which"
                               " takes any bytes"));
  detail::Utf8Checker utf8;
  if (utf8.feed(text) && utf8.finish()) return text;
  const int64_t byte = piece.offset + utf8.error_byte();
  if (named)
    fail(ErrorKind::input, str("cannot use ", file, " at byte ", byte,
                               ": expected UTF-8 text, found another encoding; convert it (iconv -t UTF-8), or use the"
                               " byte tokenizer, which takes any bytes"));
  if (ill_formed) *ill_formed = byte;
  storage = detail::replace_invalid_utf8(text);
  return storage;
}

}  // namespace braid::models::text
