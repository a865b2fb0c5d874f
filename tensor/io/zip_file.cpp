#include "braid/tensor/io/zip_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::io {
namespace {

constexpr const char* damaged_zip = "the archive is truncated, damaged or of another kind";
constexpr uint32_t entry_signature = 0x02014b50, local_signature = 0x04034b50, end_signature = 0x06054b50,
                   wide_end_signature = 0x06064b50, locator_signature = 0x07064b50;
constexpr int64_t entry_bytes = 46, local_bytes = 30, end_bytes = 22, wide_end_bytes = 56, locator_bytes = 20;
constexpr uint32_t wide32 = 0xFFFFFFFF;  // in a field of 32 bits: the value stands in the extra field
constexpr uint16_t stored_method = 0, deflate_method = 8, wide_tag = 1;
constexpr int64_t max_inflation = 1032;  // bytes that one deflated byte can make

// Reads fields in their order; a read beyond the end is an error of the file.
class Fields {
 public:
  Fields(const Reader& file, int64_t at, int64_t bytes) : file_(file), begin_(at), bytes_(static_cast<size_t>(bytes)) {
    file.read_at(at, bytes_.data(), bytes);
  }
  template <class T>
  T next() {
    T value;
    take(&value, sizeof value);
    return value;
  }
  std::string text(size_t n) {
    std::string value(std::min(n, left()), '\0');
    take(value.data(), n);
    return value;
  }
  Fields& skip(size_t n) {
    take(nullptr, n);
    return *this;
  }
  size_t left() const { return bytes_.size() - at_; }
  int64_t position() const { return begin_ + static_cast<int64_t>(at_); }

 private:
  void take(void* into, size_t n) {
    if (n > left())
      file_.fail("bad zip archive", position(), str(n, " bytes of a record"), str(left(), " before its end"),
                 damaged_zip);
    if (into) std::memcpy(into, bytes_.data() + at_, n);
    at_ += n;
  }

  const Reader& file_;
  int64_t begin_;
  std::vector<std::byte> bytes_;
  size_t at_ = 0;
};

struct Directory {
  int64_t begin, bytes, count;
};

class DirectoryReader {
 public:
  explicit DirectoryReader(const Reader& file) : file_(file) {}

  std::vector<ZipEntry> entries() {
    const Directory directory = find();
    Fields fields(file_, directory.begin, directory.bytes);
    std::vector<ZipEntry> entries;
    std::set<std::string> names;
    for (int64_t i = 0; i < directory.count; ++i) {
      const int64_t at = fields.position();
      entries.push_back(entry(fields, directory));
      if (!names.insert(entries.back().name).second)
        bad(at, "entries of different names", "\"" + detail::preview(entries.back().name) + "\" twice");
    }
    if (fields.left() > 0)
      bad(fields.position(), str("the end of a directory of ", directory.count, " entries"),
          str(fields.left(), " bytes"));
    check_places(entries);
    return entries;
  }

 private:
  [[noreturn]] void bad(int64_t byte, const std::string& expected, const std::string& found) const {
    file_.fail("bad zip archive", byte, expected, found, damaged_zip);
  }
  [[noreturn]] void unsupported(const std::string& name, const std::string& found) const {
    file_.fail("cannot read \"" + detail::preview(name) + "\"", -1, "an entry that is stored or deflated", found,
               "make the archive anew, for example with numpy.savez");
  }

  uint32_t signature(int64_t at) const {
    uint32_t value = 0;
    file_.read_at(at, &value, sizeof value);
    return value;
  }

  // The last record of the file says where the directory is; a comment may follow in it.
  Directory find() const {
    const int64_t first = std::max<int64_t>(0, file_.size() - end_bytes - UINT16_MAX);
    const int64_t window = file_.size() - first;
    std::string tail(static_cast<size_t>(window), '\0');
    file_.read_at(first, tail.data(), window);
    for (int64_t at = window - end_bytes; at >= 0; --at) {
      uint32_t found = 0;
      uint16_t comment = 0;
      std::memcpy(&found, tail.data() + at, sizeof found);
      std::memcpy(&comment, tail.data() + at + 20, sizeof comment);
      if (found == end_signature && at + end_bytes + comment == window) return directory(first + at);
    }
    bad(0, "the record that ends a zip archive", str("a file of ", file_.size(), " bytes without one"));
  }

  Directory directory(int64_t end) const {
    Fields fields(file_, end, end_bytes);
    fields.skip(4);
    const auto disk = fields.next<uint16_t>(), disk_of_directory = fields.next<uint16_t>();
    const auto here = fields.next<uint16_t>(), all = fields.next<uint16_t>();
    const auto bytes = fields.next<uint32_t>(), begin = fields.next<uint32_t>();
    Directory found{begin, bytes, all};
    int64_t after = end;  // the directory
    if (end >= locator_bytes && signature(end - locator_bytes) == locator_signature) {
      found = wide_directory(end - locator_bytes, after);
    } else if (disk != 0 || disk_of_directory != 0 || here != all) {
      bad(end, "an archive in one file", "a part of one");
    }
    if (found.begin > after || found.bytes > after - found.begin || found.begin + found.bytes != after)
      bad(end, str("a directory that ends at byte ", after),
          str("one of ", found.bytes, " bytes from byte ", found.begin));
    if (found.count > found.bytes / entry_bytes)
      bad(end, str("at most ", found.bytes / entry_bytes, " entries"), std::to_string(found.count));
    return found;
  }

  // The record of 64 bits, which the locator behind it points to. `after` becomes its place.
  Directory wide_directory(int64_t locator, int64_t& after) const {
    Fields fields(file_, locator, locator_bytes);
    const auto disk = fields.skip(4).next<uint32_t>();
    const auto at = fields.next<uint64_t>();
    if (disk != 0 || fields.next<uint32_t>() > 1) bad(locator, "an archive in one file", "a part of one");
    if (locator < wide_end_bytes || at > static_cast<uint64_t>(locator - wide_end_bytes))
      bad(locator, "a record before this byte", str("one at ", at));
    after = static_cast<int64_t>(at);
    Fields record(file_, after, wide_end_bytes);
    if (record.next<uint32_t>() != wide_end_signature)
      bad(after, "the record that ends a zip archive", "something else");
    const auto size = record.next<uint64_t>();
    if (size != static_cast<uint64_t>(locator - after - 12))
      bad(after + 4, str("a record of ", locator - after - 12, " bytes"), std::to_string(size));
    record.skip(4 + 8);  // versions, numbers of disks
    const auto here = record.next<uint64_t>(), all = record.next<uint64_t>();
    const auto bytes = record.next<uint64_t>(), begin = record.next<uint64_t>();
    const auto most = static_cast<uint64_t>(after);
    if (here != all || all > most || bytes > most || begin > most)
      bad(after, str("a directory within the ", after, " bytes before"),
          str(all, " entries, ", bytes, " bytes at ", begin));
    return {static_cast<int64_t>(begin), static_cast<int64_t>(bytes), static_cast<int64_t>(all)};
  }

  ZipEntry entry(Fields& fields, const Directory& directory) const {
    const int64_t at = fields.position();
    if (fields.next<uint32_t>() != entry_signature) bad(at, "an entry of the directory", "something else");
    const auto flags = fields.skip(4).next<uint16_t>(), method = fields.next<uint16_t>();
    ZipEntry entry;
    entry.crc = fields.skip(4).next<uint32_t>();
    uint64_t compressed = fields.next<uint32_t>(), bytes = fields.next<uint32_t>();
    const auto name_bytes = fields.next<uint16_t>(), extra_bytes = fields.next<uint16_t>();
    const auto comment_bytes = fields.next<uint16_t>();
    uint64_t offset = fields.skip(2 + 2 + 4).next<uint32_t>();
    entry.name = fields.text(name_bytes);
    if (entry.name.empty() || entry.name.find('\0') != std::string::npos)
      bad(at + entry_bytes, "a name", "\"" + detail::preview(entry.name) + "\"");
    widen(fields.text(extra_bytes), {&bytes, &compressed, &offset}, at);
    fields.skip(comment_bytes);
    if (flags & 0x2041) unsupported(entry.name, "an encrypted one");
    if (method != stored_method && method != deflate_method)
      unsupported(entry.name, str("compression method ", method));
    entry.deflated = method == deflate_method;
    const auto limit = static_cast<uint64_t>(directory.begin);
    if (offset > limit || compressed > limit)
      bad(at, str("an entry within the ", limit, " bytes before the directory"), str(compressed, " bytes at ", offset));
    entry.compressed = static_cast<int64_t>(compressed);
    const int64_t most = entry.deflated ? entry.compressed * max_inflation : entry.compressed;
    if (bytes > static_cast<uint64_t>(most) || (!entry.deflated && bytes != compressed))
      bad(at, str("an entry of ", entry.deflated ? "at most " : "", most, " bytes, from ", compressed),
          std::to_string(bytes));
    entry.bytes = static_cast<int64_t>(bytes);
    entry.offset = data_of(entry.name, static_cast<int64_t>(offset), method, directory);
    if (entry.compressed > directory.begin - entry.offset)
      bad(at, str("data within the ", directory.begin, " bytes before the directory"),
          str(entry.compressed, " bytes at ", entry.offset));
    return entry;
  }

  // Values that did not fit 32 bits, from the extra field.
  void widen(const std::string& extra, const std::array<uint64_t*, 3>& values, int64_t entry) const {
    size_t at = 0;
    std::string wide;
    while (extra.size() - at >= 4) {
      uint16_t head[2] = {};  // tag, bytes
      std::memcpy(head, extra.data() + at, sizeof head);
      at += sizeof head;
      if (head[1] > extra.size() - at) bad(entry, "complete extra fields", "one that is cut off");
      if (head[0] == wide_tag && wide.empty()) wide = extra.substr(at, head[1]);
      at += head[1];
    }
    size_t next = 0;
    for (uint64_t* value : values) {
      if (*value != wide32) continue;
      if (wide.size() - next < sizeof *value) {
        if (wide.empty()) continue;  // the value is 2^32 - 1
        bad(entry, "an extra field of 64-bit sizes", "one that is cut off");
      }
      std::memcpy(value, wide.data() + next, sizeof *value);
      next += sizeof *value;
    }
  }

  // Where the data of an entry begins, behind a header that repeats what the directory says.
  int64_t data_of(const std::string& name, int64_t local, uint16_t method, const Directory& directory) const {
    if (directory.begin - local < local_bytes) bad(local, "the header of an entry", "the directory");
    Fields fields(file_, local, local_bytes);
    if (fields.next<uint32_t>() != local_signature) bad(local, "the header of an entry", "something else");
    if (fields.skip(4).next<uint16_t>() != method) bad(local, "the compression of the directory", "another");
    const auto name_bytes = fields.skip(16).next<uint16_t>(), extra_bytes = fields.next<uint16_t>();
    const int64_t data = local + local_bytes + name_bytes + extra_bytes;
    if (data > directory.begin) bad(local, "the header of an entry", "the directory");
    if (name_bytes != name.size() || Fields(file_, local + local_bytes, name_bytes).text(name_bytes) != name)
      bad(local + local_bytes, "the name \"" + detail::preview(name) + "\", as in the directory", "another");
    return data;
  }

  // Entries that share bytes are a way to make a small archive expand without end.
  void check_places(const std::vector<ZipEntry>& entries) const {
    std::vector<const ZipEntry*> order;
    for (const ZipEntry& entry : entries) order.push_back(&entry);
    std::ranges::sort(order, {}, &ZipEntry::offset);
    for (size_t i = 1; i < order.size(); ++i)
      if (order[i - 1]->offset + order[i - 1]->compressed > order[i]->offset - local_bytes)
        bad(order[i]->offset, "entries that lie behind each other",
            "\"" + detail::preview(order[i]->name) + "\" inside of another");
  }

  const Reader& file_;
};

// The bytes of one entry, in order.
class EntryStream {
 public:
  EntryStream(const Reader& file, const ZipEntry& entry) : file_(file), entry_(entry), at_(entry.offset) {
    if (entry.deflated && inflateInit2(&z_, -15) != Z_OK) fail(ErrorKind::input, "zlib cannot start: out of memory");
  }
  ~EntryStream() {
    if (entry_.deflated) inflateEnd(&z_);
  }
  EntryStream(const EntryStream&) = delete;
  EntryStream& operator=(const EntryStream&) = delete;

  void read(void* into, int64_t n) {
    if (n > entry_.bytes - done_) bad(str(n, " bytes"), str(entry_.bytes - done_, " before the end of the entry"));
    if (entry_.deflated)
      inflate_into(into, n);
    else
      file_.read_at(at_, into, n), at_ += n;
    crc_ = static_cast<uint32_t>(crc32_z(crc_, static_cast<const Bytef*>(into), static_cast<size_t>(n)));
    done_ += n;
  }

  // After the last byte.
  void finish() {
    if (entry_.deflated) {
      char more = 0;
      while (!ended_) {
        if (step(&more, 1) > 0) bad(str(entry_.bytes, " bytes"), "more");
      }
      if (at_ < end() || z_.avail_in > 0) bad(str("data of ", entry_.compressed, " bytes"), "fewer");
    }
    if (crc_ != entry_.crc) bad("the checksum " + detail::hex(entry_.crc, 8), detail::hex(crc_, 8));
  }

 private:
  [[noreturn]] void bad(const std::string& expected, const std::string& found) const {
    file_.fail("bad entry \"" + detail::preview(entry_.name) + "\"", at_, expected, found, damaged_zip);
  }
  int64_t end() const { return entry_.offset + entry_.compressed; }

  void inflate_into(void* into, int64_t n) {
    for (int64_t done = 0; done < n;) {
      if (ended_) bad(str(entry_.bytes, " bytes"), "the end of the compressed data");
      done += step(static_cast<char*>(into) + done, n - done);
    }
  }

  // Up to n bytes of output; sets ended_ behind the last.
  int64_t step(char* into, int64_t n) {
    if (z_.avail_in == 0 && at_ < end()) {
      const int64_t taken = std::min<int64_t>(end() - at_, std::ssize(input_));
      file_.read_at(at_, input_.data(), taken);
      at_ += taken;
      z_.next_in = input_.data();
      z_.avail_in = static_cast<uInt>(taken);
    }
    n = std::min<int64_t>(n, 1 << 30);  // zlib counts in 32 bits
    z_.next_out = reinterpret_cast<Bytef*>(into);
    z_.avail_out = static_cast<uInt>(n);
    const int result = inflate(&z_, Z_NO_FLUSH);
    ended_ = result == Z_STREAM_END;
    const int64_t made = n - z_.avail_out;
    if (!ended_ && (result != Z_OK || (made == 0 && z_.avail_in == 0 && at_ == end())))
      bad("complete deflated data", z_.msg ? z_.msg : "data that are cut off");
    return made;
  }

  const Reader& file_;
  const ZipEntry& entry_;
  int64_t at_, done_ = 0;
  uint32_t crc_ = 0;
  bool ended_ = false;
  z_stream z_{};
  std::vector<Bytef> input_ = std::vector<Bytef>(entry_.deflated ? 1 << 16 : 0);
};

}  // namespace

ZipFile::ZipFile(const std::string& path) : file_(path), entries_(DirectoryReader(file_).entries()) {}
ZipFile::ZipFile(std::span<const std::byte> memory, const std::string& name)
    : file_(memory, name), entries_(DirectoryReader(file_).entries()) {}

void ZipFile::open(const ZipEntry& entry, const std::function<void(const Read& read)>& use) const {
  EntryStream stream(file_, entry);
  use([&](void* into, int64_t n) { stream.read(into, n); });
  stream.finish();
}

}  // namespace braid::io
