#include "braid/tensor/io/zip_writer.h"

#include <zlib.h>

#include <algorithm>

#include "braid/tensor/error.h"

namespace braid::io {
namespace {

constexpr uint32_t maximum32 = 0xFFFFFFFF;
constexpr uint16_t maximum16 = 0xFFFF, version = 20, wide_version = 45, utf8_names = 1 << 11;
constexpr uint32_t first_day = 0x00210000;  // 1980-01-01 00:00:00, so that the bytes do not depend on the time

// The little-endian bytes of integers, one behind the other.
template <class... Integers>
std::string packed(Integers... values) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
  return bytes;
}

uint16_t length16(const std::string& text) { return static_cast<uint16_t>(text.size()); }

class Deflater {
 public:
  Deflater() {
    check(deflateInit2(&z_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK, ErrorKind::output,
          "zlib cannot start: out of memory");
  }
  ~Deflater() { deflateEnd(&z_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  // Calls put(bytes, n) with what becomes of these bytes; with the last ones, of all that is left.
  template <class Put>
  void take(std::span<const std::byte> bytes, bool last, Put&& put) {
    do {
      const size_t n = std::min<size_t>(bytes.size(), 1 << 30);  // zlib counts in 32 bits
      z_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
      z_.avail_in = static_cast<uInt>(n);
      bytes = bytes.subspan(n);
      const int flush = last && bytes.empty() ? Z_FINISH : Z_NO_FLUSH;
      do {
        z_.next_out = output_.data();
        z_.avail_out = static_cast<uInt>(output_.size());
        deflate(&z_, flush);  // cannot fail: the stream is right and there is room
        put(output_.data(), static_cast<int64_t>(output_.size() - z_.avail_out));
      } while (z_.avail_out == 0);
    } while (!bytes.empty());
  }

 private:
  z_stream z_{};
  std::vector<Bytef> output_ = std::vector<Bytef>(1 << 16);
};

}  // namespace

ZipWriter::ZipWriter(const std::string& path, int64_t wide_from) : wide_from_(wide_from), file_(path) {}

// What stands before the data. Both sizes of a wide entry stand in the extra field.
std::string ZipWriter::head_of(const Entry& e) const {
  const std::string extra = e.wide ? packed(uint16_t{1}, uint16_t{16}, e.bytes, e.compressed) : "";
  return packed(uint32_t{0x04034b50}, e.wide ? wide_version : version, utf8_names,
                static_cast<uint16_t>(e.deflated ? 8 : 0), first_day, e.crc,
                e.wide ? maximum32 : static_cast<uint32_t>(e.compressed),
                e.wide ? maximum32 : static_cast<uint32_t>(e.bytes), length16(e.name), length16(extra)) +
         e.name + extra;
}

std::string ZipWriter::directory_entry(const Entry& e) const {
  const bool far = e.offset >= wide_from_;
  std::string extra;
  if (e.wide) extra += packed(e.bytes, e.compressed);
  if (far) extra += packed(e.offset);
  if (!extra.empty()) extra = packed(uint16_t{1}, length16(extra)) + extra;
  return packed(uint32_t{0x02014b50}, wide_version, extra.empty() ? version : wide_version, utf8_names,
                static_cast<uint16_t>(e.deflated ? 8 : 0), first_day, e.crc,
                e.wide ? maximum32 : static_cast<uint32_t>(e.compressed),
                e.wide ? maximum32 : static_cast<uint32_t>(e.bytes), length16(e.name), length16(extra), uint16_t{0},
                uint16_t{0}, uint16_t{0}, uint32_t{0},  // comment, disk, attributes
                far ? maximum32 : static_cast<uint32_t>(e.offset)) +
         e.name + extra;
}

void ZipWriter::add(const std::string& name, const std::vector<std::span<const std::byte>>& parts, bool deflate) {
  check(!name.empty() && name.size() <= 65'000, "zip", "a name has 1 to 65,000 bytes");
  Entry entry{name, deflate, false, 0, 0, 0, file_.size()};
  for (const std::span<const std::byte> part : parts) {
    entry.bytes += static_cast<int64_t>(part.size());
    if (!part.empty())
      entry.crc = static_cast<uint32_t>(crc32_z(entry.crc, reinterpret_cast<const Bytef*>(part.data()), part.size()));
  }
  entry.compressed = entry.bytes;
  // Data that cannot be compressed grow by a thousandth at most.
  entry.wide = entry.bytes + (deflate ? entry.bytes / 1000 + 64 : 0) >= wide_from_;
  file_.write(head_of(entry));
  if (deflate) {
    entry.compressed = write_deflated(parts);
    const std::string head = head_of(entry);
    file_.write_at(entry.offset, head.data(), static_cast<int64_t>(head.size()));
  } else {
    for (const std::span<const std::byte> part : parts) file_.write(part.data(), static_cast<int64_t>(part.size()));
  }
  entries_.push_back(std::move(entry));
}

int64_t ZipWriter::write_deflated(const std::vector<std::span<const std::byte>>& parts) {
  const int64_t begin = file_.size();
  Deflater deflater;
  const auto put = [&](const void* bytes, int64_t n) { file_.write(bytes, n); };
  for (const std::span<const std::byte> part : parts) deflater.take(part, false, put);
  deflater.take({}, true, put);
  return file_.size() - begin;
}

void ZipWriter::commit() {
  const int64_t begin = file_.size(), count = std::ssize(entries_);
  for (const Entry& entry : entries_) file_.write(directory_entry(entry));
  const int64_t end = file_.size(), bytes = end - begin;
  const bool wide = begin >= wide_from_ || bytes >= wide_from_ || count >= maximum16;
  if (wide) {
    file_.write(packed(uint32_t{0x06064b50}, int64_t{44}, wide_version, wide_version, uint32_t{0}, uint32_t{0}, count,
                       count, bytes, begin));
    file_.write(packed(uint32_t{0x07064b50}, uint32_t{0}, end, uint32_t{1}));
  }
  const uint16_t count16 = wide ? maximum16 : static_cast<uint16_t>(count);
  file_.write(packed(uint32_t{0x06054b50}, uint16_t{0}, uint16_t{0}, count16, count16,
                     wide ? maximum32 : static_cast<uint32_t>(bytes), wide ? maximum32 : static_cast<uint32_t>(begin),
                     uint16_t{0}));
  file_.commit();
}

}  // namespace braid::io
