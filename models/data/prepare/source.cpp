#include "braid/models/data/prepare/source.h"

#include <algorithm>

#include "braid/models/data/prepare/byte_stream.h"
#include "braid/models/data/prepare/file_kind.h"
#include "braid/models/data/prepare/jsonl.h"
#include "braid/models/data/prepare/repair.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/base/utf8.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/json.h"

namespace braid::models::text {
namespace {

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
  explicit Open(const InputFile& input) : stream(open_stream(input.path)), bytes(input.bytes) {
    fill(sniffed_bytes);
    found = kind_of_file(input.path, buffer);
  }
  bool json() const { return found.kind == FileKind::json_lines || found.kind == FileKind::json_list; }

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
  // Passes over n bytes, or as many as there are; returns how many.
  int64_t pass(int64_t n) {
    const auto buffered = std::min(n, static_cast<int64_t>(buffer.size() - begin));
    begin += static_cast<size_t>(buffered);
    return buffered + stream->skip(n - buffered);
  }

  std::unique_ptr<ByteStream> stream;
  FoundKind found;
  int64_t bytes;       // of the file
  std::string buffer;  // unread from `begin` on
  size_t begin = 0;
  bool at_end = false;  // of the stream
  std::optional<Hash128> hash;
};

TextSource::TextSource(const std::vector<std::string>& inputs, Options options)
    : options_(std::move(options)), list_(list_inputs(inputs, options_.exclude, options_.exclude_files)) {
  if (options_.only_jsonl)
    std::erase_if(list_.files, [&](const InputFile& file) {
      const bool out = !file.named && file.bytes > 0 && !names_json_lines(file.path) && !Open(file).json();
      if (out) list_.left_out.add(file.path, file.bytes);
      return out;
    });
  for (const InputFile& file : list_.files) bytes_total_ += file.bytes;
  notes = list_.notes;
  left_out_ = list_.left_out;
}

TextSource::~TextSource() = default;

bool TextSource::is_usable(const InputFile& input, const Open& file) {
  const std::string_view begin = file.buffer;
  const auto& [kind, what, advice] = file.found;
  if (begin.empty() && input.named)
    fail(ErrorKind::input,
         "cannot use " + input.path + ": expected text, found an empty file; leave it out or fill it");
  std::string problem = begin.empty() ? "is empty" : "", advice_then;
  if (kind == FileKind::other) {
    if (input.named)
      fail(ErrorKind::input, "cannot use " + input.path +
                                 ": expected text or JSON Lines, also as gzip or zstd, found " + what + "; " + advice);
    problem = "is not text (" + what + ")";
  } else if (options_.only_jsonl && !file.json()) {
    fail(ErrorKind::input, "cannot read samples from " + input.path +
                               ": expected a file .jsonl or .ndjson, or another one of JSON objects, found text");
  } else if (!input.named && begin.substr(0, sniffed_bytes).find('\0') != std::string_view::npos) {
    problem = "is not text (it has NUL bytes)", advice_then = "; name it to use its bytes as they are";
  } else if (!input.named && file.json() && !options_.only_jsonl && !names_json_lines(input.path)) {
    // Lines of JSON by their content alone: a file of a folder may be there for something else.
    const size_t object = begin.find('{'), end = io::end_of_json(begin, object);
    if (end != std::string_view::npos && !has_text_field(begin.substr(object, end - object), options_.text_field))
      problem = "is JSON without text in the field \"" + options_.text_field + "\"";
  }
  if (!problem.empty()) {
    notes.push_back(input.path + " " + problem + ": left out" + advice_then);
    return false;
  }
  detail::Utf8Checker utf8;
  if (kind == FileKind::text && !is_checked() && begin.find('\0') == std::string_view::npos && !utf8.feed(begin))
    notes.push_back(str(input.path, " is no UTF-8 (byte ", utf8.error_byte(), "): its bytes are used as they are"));
  return true;
}

std::unique_ptr<TextSource::Open> TextSource::usable_file(const InputFile& input) {
  // An empty .gz is a damaged stream, which is no reason to reject its folder.
  if (input.bytes == 0 && !input.named) {
    notes.push_back(input.path + " is empty: left out");
  } else if (auto file = std::make_unique<Open>(input); is_usable(input, *file)) {
    return file;
  }
  left_out_.add(input.path, input.bytes);
  return nullptr;
}

// Opens the next file worth reading; false when there is none.
bool TextSource::open_next() {
  while (at_.files < std::ssize(list_.files)) {
    const InputFile& input = list_.files[static_cast<size_t>(at_.files++)];
    if (auto file = usable_file(input)) {
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
  const std::vector<std::string> noted = notes;
  for (int64_t i = 0; i < position.files - position.inside; ++i) usable_file(list_.files[static_cast<size_t>(i)]);
  notes = noted;  // those of earlier files were given when they were read
  if (!at_.inside) return;
  open_ = std::make_unique<Open>(list_.files[static_cast<size_t>(at_.files - 1)]);
  if (options_.hashes && !open_->json()) open_->hash = Hash128{};  // its first piece is read
  check(open_->pass(at_.offset) == at_.offset, ErrorKind::input,
        [&] { return path(at_.files) + " is shorter than before"; });
}

bool TextSource::next(Piece& piece) {
  piece = {};
  while (open_ || open_next()) {
    const FileKind kind = open_->found.kind;
    if (kind == FileKind::json_lines  ? next_of_lines(piece)
        : kind == FileKind::json_list ? next_of_list(piece)
                                      : next_of_text(piece)) {
      piece.file = at_.files;
      piece.notes = std::exchange(notes, {});
      piece.after = at_;
      piece.bytes_read = at_.bytes + std::min(open_->bytes, open_->stream->file_position());
      return true;
    }
    if (open_->json() && at_.documents == 0) notes.push_back(path(at_.files) + " holds only blank lines: left out");
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
  piece.size = is_checked() ? part_of(f.buffer, max_bytes) : piece.bytes.size();
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

bool TextSource::next_of_lines(Piece& piece) {
  Open& f = *open_;
  for (;;) {
    // Find the end of the next line, reading on as far as needed.
    size_t end, searched = f.begin;
    while ((end = f.buffer.find('\n', searched)) == std::string::npos && !f.at_end) {
      searched = f.buffer.size() - f.begin;
      check_length(searched);
      f.fill(searched + static_cast<size_t>(piece_bytes));
    }
    if (end == std::string::npos) end = f.buffer.size();
    if (f.begin >= f.buffer.size()) return false;
    const bool blank =
        std::string_view(f.buffer).substr(f.begin, end - f.begin).find_first_not_of(" \t\r") == std::string_view::npos;
    ++at_.line;
    if (!blank) take_object(piece, end);
    pass_to(std::min(end + 1, f.buffer.size()));
    if (blank) continue;
    piece.line = at_.line;
    return true;
  }
}

int TextSource::next_character() {
  Open& f = *open_;
  for (;; ++f.begin, ++at_.offset) {
    if (f.begin == f.buffer.size()) f.fill(sniffed_bytes);
    if (f.begin == f.buffer.size()) return -1;
    const char c = f.buffer[f.begin];
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') return static_cast<unsigned char>(c);
    at_.line += c == '\n';
  }
}

bool TextSource::next_of_list(Piece& piece) {
  Open& f = *open_;
  const auto expect = [&](bool ok, const char* expected, int found) {
    check(ok, ErrorKind::input, [&] {
      return str("cannot read ", path(at_.files), " at line ", at_.line + 1, ": expected ", expected, ", found ",
                 found < 0 ? "the end of the file" : detail::preview(std::string(1, static_cast<char>(found))),
                 "; the file is damaged or no list of JSON objects");
    });
  };
  if (at_.offset == 0 && f.buffer.starts_with("\xEF\xBB\xBF")) pass_to(3);
  int c = next_character();
  if (at_.documents > 0 && c == ']') {
    pass_to(f.begin + 1);
    c = next_character();
    expect(c < 0, "nothing behind the list", c);
    return false;
  }
  const char before = at_.documents == 0 ? '[' : ',';
  expect(c == before, before == '[' ? "a list of objects" : "a comma or ] behind an object", c);
  pass_to(f.begin + 1);
  c = next_character();
  expect(c == '{', "an object", c);
  size_t end;
  while ((end = io::end_of_json(f.buffer, f.begin)) == std::string::npos) {
    const size_t had = f.buffer.size() - f.begin;
    check_length(had);
    expect(!f.at_end, "the end of the object", -1);
    f.fill(2 * had + static_cast<size_t>(piece_bytes));
  }
  piece.line = at_.line + 1;
  at_.line += std::count(f.buffer.begin() + static_cast<std::ptrdiff_t>(f.begin),
                         f.buffer.begin() + static_cast<std::ptrdiff_t>(end), '\n');
  take_object(piece, end);
  pass_to(end);
  return true;
}

void TextSource::take_object(Piece& piece, size_t end) {
  Open& f = *open_;
  piece.bytes.assign(f.buffer, f.begin, end - f.begin);
  piece.size = piece.bytes.size();
  piece.jsonl = piece.first = piece.last = true;
  piece.offset = at_.offset;
  ++at_.documents;
}

void TextSource::pass_to(size_t place) {
  at_.offset += static_cast<int64_t>(place - open_->begin);
  open_->begin = place;
}

void TextSource::check_length(size_t bytes) const {
  check(static_cast<int64_t>(bytes) <= max_line_bytes, ErrorKind::input, [&] {
    return str("cannot read ", path(at_.files), " at line ", at_.line + 1, ": expected an object of at most ",
               max_line_bytes, " bytes, found a longer one; split the document");
  });
}

bool TextSource::repairs(const Piece& piece) const {
  if (options_.invalid == InvalidText::by_input) return !list_.files[static_cast<size_t>(piece.file - 1)].named;
  return options_.invalid != InvalidText::error;
}

std::string_view TextSource::object_of(const Piece& piece, std::string& storage, Repairs* repaired) const {
  const auto sound = [&] { return detail::valid_utf8(piece.bytes) && piece.bytes.find("\\u") == std::string::npos; };
  if (!repairs(piece) || sound()) return piece.bytes;
  int64_t count = 0;
  storage = repaired_json(piece.bytes, options_.invalid != InvalidText::skip, count);
  if (count == 0) return piece.bytes;
  if (repaired) repaired->count += count;
  return storage;
}

std::string_view TextSource::text_of(const Piece& piece, std::string& storage, Repairs* repaired) const {
  const std::string& file = path(piece.file);
  if (piece.jsonl) {
    std::string object;
    storage = jsonl_text(object_of(piece, object, repaired), options_.text_field, file, piece.line);
    if (options_.require_utf8 && storage.find('\0') != std::string::npos)
      fail(ErrorKind::input,
           str("cannot use ", file, " at line ", piece.line,
               ": expected text, found a NUL character; use the byte tokenizer, which takes any bytes"));
    return storage;
  }
  const std::string_view text = std::string_view(piece.bytes).substr(0, piece.size);
  if (!is_checked()) return text;
  const bool named = list_.files[static_cast<size_t>(piece.file - 1)].named;
  const size_t nul = named && options_.require_utf8 ? text.find('\0') : std::string_view::npos;
  if (nul != std::string_view::npos)
    fail(ErrorKind::input, str("cannot use ", file, " at byte ", piece.offset + static_cast<int64_t>(nul),
                               ": expected text, found a NUL byte; leave the file out, or use the byte tokenizer, which"
                               " takes any bytes"));
  detail::Utf8Checker utf8;
  if (utf8.feed(text) && utf8.finish()) return text;
  const int64_t byte = piece.offset + utf8.error_byte();
  if (!repairs(piece))
    fail(ErrorKind::input, str("cannot use ", file, " at byte ", byte,
                               ": expected UTF-8 text, found another encoding; convert it (iconv -t UTF-8), set"
                               " `invalid` to replace or skip, or use the byte tokenizer, which takes any bytes"));
  int64_t count = 0;
  storage = repaired_utf8(text, options_.invalid != InvalidText::skip, count);
  if (repaired) repaired->first = byte, repaired->count += count;
  return storage;
}

}  // namespace braid::models::text
