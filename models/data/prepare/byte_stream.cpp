#include "braid/models/data/prepare/byte_stream.h"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <vector>

#include "braid/tensor/error.h"
#include "braid/tensor/io/reader.h"

namespace braid::models::text {
namespace {

constexpr int64_t input_bytes = 1 << 17;

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(const std::string& path) : file_(path) {}
  int64_t read(char* into, int64_t n) override { return file_.read_some(into, n); }
  int64_t skip(int64_t n) override {
    n = std::min(n, file_.remaining());
    file_.seek(file_.position() + n);
    return n;
  }
  int64_t file_position() const override { return file_.position(); }

 private:
  io::Reader file_;
};

// The part that both decompressors share: a window onto the compressed bytes.
class CompressedStream : public ByteStream {
 public:
  explicit CompressedStream(const std::string& path) : file_(path), input_(static_cast<size_t>(input_bytes)) {}
  int64_t file_position() const override { return file_.position() - (end_ - begin_); }

 protected:
  void refill() {
    if (begin_ < end_) return;
    begin_ = 0;
    end_ = file_.read_some(input_.data(), input_bytes);
  }
  [[noreturn]] void damaged(const char* kind, const std::string& found) const {
    file_.fail(str("damaged ", kind, " data"), file_position(), "a complete stream", found,
               "the file is truncated or damaged; fetch or compress it again");
  }

  io::Reader file_;
  std::vector<char> input_;
  int64_t begin_ = 0, end_ = 0;  // unread part of input_
};

class GzipStream final : public CompressedStream {
 public:
  explicit GzipStream(const std::string& path) : CompressedStream(path) {
    check(inflateInit2(&z_, 15 + 16) == Z_OK, ErrorKind::input, "zlib cannot start: out of memory");
  }
  ~GzipStream() override { inflateEnd(&z_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  int64_t read(char* into, int64_t n) override {
    n = std::min<int64_t>(n, 1 << 30);  // zlib counts in 32 bits
    z_.next_out = reinterpret_cast<Bytef*>(into);
    z_.avail_out = static_cast<uInt>(n);
    while (z_.avail_out == static_cast<uInt>(n)) {
      refill();
      // Zeros behind a member are padding, as tapes and block devices leave it.
      while (!inside_ && begin_ < end_ && input_[static_cast<size_t>(begin_)] == '\0') ++begin_, refill();
      if (begin_ == end_) {
        if (inside_) damaged("gzip", "the end of the file");
        return 0;
      }
      inside_ = true;
      z_.next_in = reinterpret_cast<Bytef*>(input_.data() + begin_);
      z_.avail_in = static_cast<uInt>(end_ - begin_);
      const int result = inflate(&z_, Z_NO_FLUSH);
      begin_ = end_ - z_.avail_in;
      if (result == Z_STREAM_END) {  // another member may follow, as `cat a.gz b.gz` makes
        inside_ = false;
        inflateReset(&z_);
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        damaged("gzip", z_.msg ? z_.msg : str("an error of zlib, code ", result));
      }
    }
    return n - z_.avail_out;
  }

 private:
  z_stream z_{};
  bool inside_ = true;  // of a member: an empty file is no gzip file
};

class ZstdStream final : public CompressedStream {
 public:
  explicit ZstdStream(const std::string& path) : CompressedStream(path), z_(ZSTD_createDStream()) {
    check(z_ != nullptr, ErrorKind::input, "zstd cannot start: out of memory");
    // Windows of any size, as zstd --long=31 reads them; memory is taken for the window that a file has.
    ZSTD_DCtx_setParameter(z_, ZSTD_d_windowLogMax, ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound);
  }
  ~ZstdStream() override { ZSTD_freeDStream(z_); }
  ZstdStream(const ZstdStream&) = delete;
  ZstdStream& operator=(const ZstdStream&) = delete;

  int64_t read(char* into, int64_t n) override {
    ZSTD_outBuffer out{into, static_cast<size_t>(n), 0};
    while (out.pos == 0) {
      refill();
      // At the end of the input zstd may still hold output back, so it is called once more without input.
      const bool drained = begin_ == end_;
      if (drained && !inside_) return 0;
      ZSTD_inBuffer in{input_.data(), static_cast<size_t>(end_), static_cast<size_t>(begin_)};
      const size_t result = ZSTD_decompressStream(z_, &out, &in);
      if (ZSTD_isError(result)) failed(result);
      begin_ = static_cast<int64_t>(in.pos);
      inside_ = result != 0;
      if (drained && out.pos == 0 && inside_) damaged("zstd", "the end of the file");
    }
    return static_cast<int64_t>(out.pos);
  }

 private:
  [[noreturn]] void failed(size_t result) const {
    const ZSTD_ErrorCode code = ZSTD_getErrorCode(result);
    if (code == ZSTD_error_frameParameter_windowTooLarge || code == ZSTD_error_memory_allocation)
      file_.fail("cannot decompress zstd data", file_position(), "a window of at most 2 GiB that memory has room for",
                 "a larger one", "compress it with a smaller window (zstd --long=27), or use more memory");
    if (code == ZSTD_error_dictionary_wrong)
      file_.fail("cannot decompress zstd data", file_position(), "data without a dictionary",
                 "data that need the dictionary of their compression", "decompress it with zstd -d -D DICTIONARY");
    damaged("zstd", ZSTD_getErrorName(result));
  }

  ZSTD_DStream* z_;
  bool inside_ = true;
};

}  // namespace

int64_t ByteStream::skip(int64_t n) {
  std::vector<char> passed(static_cast<size_t>(std::min<int64_t>(n, 1 << 16)));
  int64_t done = 0, got = 1;
  for (; done < n && got > 0; done += got) got = read(passed.data(), std::min<int64_t>(n - done, std::ssize(passed)));
  return done;
}

bool is_gzip(std::string_view begin) { return begin.starts_with("\x1F\x8B"); }

bool is_zstd(std::string_view begin) {
  if (begin.size() < 4) return false;
  const auto first = static_cast<unsigned char>(begin[0]);
  const bool frame = first == 0x28 || (first >= 0x22 && first <= 0x27);  // of version 0.8, of older ones
  return (frame && begin.substr(1, 3) == "\xB5\x2F\xFD") ||
         ((first & 0xF0) == 0x50 && begin.substr(1, 3) == "\x2A\x4D\x18");  // a frame that is passed over
}

bool ends_in(std::string_view path, std::string_view ending) {
  return path.size() >= ending.size() &&
         std::ranges::equal(path.substr(path.size() - ending.size()), ending, [](char in_path, char in_ending) {
           return (in_path >= 'A' && in_path <= 'Z' ? in_path + ('a' - 'A') : in_path) == in_ending;
         });
}

std::unique_ptr<ByteStream> open_stream(const std::string& path) {
  std::string begin(4, '\0');
  begin.resize(static_cast<size_t>(io::Reader(path).read_some(begin.data(), std::ssize(begin))));
  if (is_gzip(begin)) return std::make_unique<GzipStream>(path);
  if (is_zstd(begin)) return std::make_unique<ZstdStream>(path);
  // What the name promises, and is not there, is an error of its decompression.
  if (ends_in(path, ".gz")) return std::make_unique<GzipStream>(path);
  if (ends_in(path, ".zst")) return std::make_unique<ZstdStream>(path);
  return std::make_unique<PlainStream>(path);
}

std::string without_compression(const std::string& path) {
  for (const std::string_view ending : {".gz", ".zst"})
    if (ends_in(path, ending)) return path.substr(0, path.size() - ending.size());
  return path;
}

}  // namespace braid::models::text
