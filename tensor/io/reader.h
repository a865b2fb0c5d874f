// The one bounded reader under every binary parser. It counts the bytes that are left, so a parser can never read past
// the end nor allocate a size that the file cannot back, and every error names the file and the byte.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace braid::io {

static_assert(std::endian::native == std::endian::little, "the file formats of Braid are little-endian");

// Throws ErrorKind::input: "<what> in <path> at byte <byte>: expected <expected>, found <found>; <advice>".
// A negative byte omits the position, an empty advice omits the last part.
[[noreturn]] void fail_input(const std::string& what, const std::string& path, int64_t byte,
                             const std::string& expected, const std::string& found, const std::string& advice);

class Reader {
 public:
  // Opens a regular file for reading. Error(input) when it is missing, a folder, or not readable.
  explicit Reader(const std::string& path);
  // Reads bytes that are already in memory; they must outlive the reader. `name` stands in for the path in errors.
  Reader(std::span<const std::byte> memory, std::string name);
  Reader(Reader&& other) noexcept;
  Reader& operator=(Reader&&) = delete;
  ~Reader();

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }
  int64_t position() const { return position_; }
  int64_t remaining() const { return size_ - position_; }

  void seek(int64_t position);               // 0 <= position <= size()
  void read(void* into, int64_t n);          // exactly n bytes, or Error(input) naming the byte where the file ends
  std::string read_string(int64_t n);        // checked against remaining() before anything is allocated
  int64_t read_some(void* into, int64_t n);  // up to n bytes; 0 only at the end

  template <class T>
  T read() {
    static_assert(std::is_arithmetic_v<T>, "read<T>() is for numbers; read structures member by member");
    T value;
    read(&value, sizeof value);
    return value;
  }

  // Exactly n bytes from `offset`, leaving the position alone. Safe to call from several threads at once.
  void read_at(int64_t offset, void* into, int64_t n) const;

  // fail_input() with this file's path.
  [[noreturn]] void fail(const std::string& what, int64_t byte, const std::string& expected, const std::string& found,
                         const std::string& advice = "") const;

 private:
  std::string path_;
  int fd_ = -1;  // -1: reads from memory_
  const std::byte* memory_ = nullptr;
  int64_t size_ = 0;
  int64_t position_ = 0;
};

// The full contents of a file, or of a pipe up to its end; Error(input) when they are longer than max_bytes.
std::string read_text_file(const std::string& path, int64_t max_bytes);

}  // namespace braid::io
