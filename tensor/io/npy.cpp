#include "braid/tensor/io/npy.h"

#include <algorithm>
#include <cstring>

#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/npy_format.h"
#include "braid/tensor/io/reader.h"

namespace braid::io {
namespace {

constexpr const char* damaged_array = "the file is truncated, damaged or of another kind";
constexpr int64_t max_npy_header = 1 << 20;  // those of NumPy have some hundred bytes

void swap_bytes(std::byte* elements, int64_t bytes, int64_t size) {
  for (std::byte* element = elements; element < elements + bytes; element += size)
    std::reverse(element, element + size);
}

Tensor load(Reader&& file) {
  return read_npy({file.path(), file.size(), [&](void* into, int64_t n) { file.read(into, n); }});
}

}  // namespace

Tensor read_npy(const NpySource& source) {
  const auto bad = [&](const char* what, int64_t byte, const std::string& expected, const std::string& found) {
    fail_input(what, source.path, byte, expected, found, damaged_array);
  };
  unsigned char start[12] = {};  // magic number, version, length of the header
  if (source.bytes < 10) bad("not an .npy array", 0, "at least 10 bytes", std::to_string(source.bytes));
  source.read(start, 10);
  if (std::memcmp(start, "\x93NUMPY", 6) != 0) bad("not an .npy array", 0, "the bytes 93 4E 55 4D 50 59", "others");
  if (start[6] < 1 || start[6] > 3 || start[7] != 0)
    bad("not an .npy array", 6, "format version 1.0, 2.0 or 3.0", str(int{start[6]}, ".", int{start[7]}));
  int64_t at = 10, length = start[8] | start[9] << 8;
  if (start[6] > 1) {
    at = 12;
    if (source.bytes < at) bad("not an .npy array", 8, "a header", "the end of the file");
    source.read(start + 10, 2);
    length |= static_cast<int64_t>(start[10]) << 16 | static_cast<int64_t>(start[11]) << 24;
  }
  const int64_t max_length = std::min(max_npy_header, source.bytes - at);
  if (length > max_length)
    bad("bad .npy header", 8, str("a header of at most ", max_length, " bytes"), std::to_string(length));
  std::string text(static_cast<size_t>(length), '\0');
  source.read(text.data(), length);
  const NpyHeader header = parse_npy_header(text, source.path, at);
  at += length;
  if (header.bytes != source.bytes - at)
    bad("bad .npy array", at, str(header.bytes, " bytes for ", header.dtype, " ", header.shape),
        std::to_string(source.bytes - at));

  Shape shape = header.shape;
  if (header.fortran_order)
    for (int a = 0; a < shape.rank(); ++a) shape[a] = header.shape[-1 - a];
  Tensor x = empty(shape, header.dtype);
  if (header.bytes > 0) {
    auto* data = static_cast<std::byte*>(x.mutable_raw());
    source.read(data, header.bytes);
    if (header.big_endian) swap_bytes(data, header.bytes, size_of(header.dtype));
    if (header.is_bool)
      std::for_each(data, data + header.bytes, [](std::byte& b) { b = std::byte{b != std::byte{0}}; });
  }
  if (!header.fortran_order) return x;
  int axes[Shape::max_rank];
  for (int a = 0; a < shape.rank(); ++a) axes[a] = shape.rank() - 1 - a;
  return x.permuted(std::span<const int>(axes, static_cast<size_t>(shape.rank()))).contiguous();
}

Tensor load_npy(const std::string& path) { return load(Reader(path)); }
Tensor load_npy(std::span<const std::byte> memory, const std::string& name) { return load(Reader(memory, name)); }

void save_npy(const std::string& path, const Tensor& x) {
  const Tensor values = x.detach().to(kCpu).contiguous();
  const std::string head = npy_head(values.dtype(), values.shape(), "save_npy");
  AtomicFile file(path);
  file.write(head);
  if (values.numel() > 0) file.write(values.raw(), values.numel() * size_of(values.dtype()));
  file.commit();
}

}  // namespace braid::io
