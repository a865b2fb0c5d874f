#include "braid/tensor/io/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <set>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/gguf_format.h"
#include "braid/tensor/parallel.h"

namespace braid::io {

namespace {

constexpr const char* kDamaged = "the file is damaged or of another kind";
constexpr int64_t kMaxName = 1 << 16, kMaxText = 1 << 28, kMaxAlignment = 1 << 16;

constexpr int64_t kValueBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};  // at least, of a value

bool is_integer(uint32_t type) {
  return type <= gguf::Value::i32 || type == gguf::Value::u64 || type == gguf::Value::i64;
}
bool is_number(uint32_t type) { return type == gguf::Value::f32 || type == gguf::Value::f64; }

// 1e-5, not 9.99999974737875e-06.
double shortest(float x) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), x).ptr;
  double y = x;
  std::from_chars(digits.data(), end, y);
  return y;
}

}  // namespace

GgufFile::GgufFile(const std::string& path) : file_(path) { open(); }
GgufFile::GgufFile(std::span<const std::byte> memory, const std::string& name) : file_(memory, name) { open(); }

std::string GgufFile::read_text(const std::string& what, int64_t max_bytes) {
  const int64_t at = file_.position();
  const auto n = file_.read<uint64_t>();
  const int64_t limit = std::min(max_bytes, file_.remaining());
  if (n > static_cast<uint64_t>(limit))
    file_.fail("bad length of " + what, at, str("at most ", limit, " bytes"), std::to_string(n), kDamaged);
  return file_.read_string(static_cast<int64_t>(n));
}

GgufValue GgufFile::read_value(const std::string& key) {
  const auto type = file_.read<uint32_t>();
  const auto bad = [&](const std::string& expected, const std::string& found) {
    file_.fail("bad value of " + detail::preview(key), file_.position(), expected, found, kDamaged);
  };
  const auto integer = [&](uint32_t of) -> int64_t {
    switch (of) {
      case gguf::Value::u8:
        return file_.read<uint8_t>();
      case gguf::Value::i8:
        return file_.read<int8_t>();
      case gguf::Value::u16:
        return file_.read<uint16_t>();
      case gguf::Value::i16:
        return file_.read<int16_t>();
      case gguf::Value::u32:
        return file_.read<uint32_t>();
      case gguf::Value::i32:
        return file_.read<int32_t>();
      default:
        break;
    }
    const auto x = file_.read<int64_t>();
    if (of == gguf::Value::u64 && x < 0) bad("an integer below 2^63", std::to_string(static_cast<uint64_t>(x)));
    return x;
  };
  const auto number = [&](uint32_t of) {
    return of == gguf::Value::f32 ? shortest(file_.read<float>()) : file_.read<double>();
  };
  const auto flag = [&]() -> bool {
    const auto x = file_.read<uint8_t>();
    if (x > 1) bad("0 or 1", std::to_string(x));
    return x == 1;
  };
  if (is_integer(type)) return integer(type);
  if (is_number(type)) return number(type);
  if (type == gguf::Value::boolean) return flag();
  if (type == gguf::Value::text) return read_text(detail::preview(key), kMaxText);
  if (type != gguf::Value::array) bad("a type of 0 to 12", std::to_string(type));
  const auto of = file_.read<uint32_t>();
  const auto n = file_.read<uint64_t>();
  if (of > gguf::Value::f64 || of == gguf::Value::array)
    bad("an array of numbers, flags or strings", "type " + std::to_string(of));
  if (n > static_cast<uint64_t>(file_.remaining() / kValueBytes[of]))
    bad(str("at most ", file_.remaining() / kValueBytes[of], " values, which the file can hold"), std::to_string(n));
  const auto values = [&](auto read) {
    std::vector<decltype(read())> list;
    for (uint64_t i = 0; i < n; ++i) list.push_back(read());
    return list;
  };
  if (of == gguf::Value::text) return values([&] { return read_text(detail::preview(key), kMaxText); });
  if (is_number(of)) return values([&] { return number(of); });
  return values([&] { return of == gguf::Value::boolean ? int64_t{flag()} : integer(of); });
}

void GgufFile::read_tensor(int64_t index) {
  GgufTensor t;
  const std::string what = "tensor " + std::to_string(index);
  t.name = read_text("the name of " + what, kMaxName);
  const auto bad = [&](const std::string& expected, const std::string& found) {
    file_.fail("bad tensor " + detail::preview(t.name), file_.position(), expected, found, kDamaged);
  };
  const auto rank = file_.read<uint32_t>();
  if (rank < 1 || rank > 4) bad("1 to 4 axes", std::to_string(rank));
  std::vector<int64_t> sizes;
  int64_t count = 1;
  for (uint32_t a = 0; a < rank; ++a) {
    const auto n = file_.read<uint64_t>();
    if (n < 1 || n > INT64_MAX || __builtin_mul_overflow(count, static_cast<int64_t>(n), &count))
      bad("sizes of at least 1 whose product fits 63 bits", std::to_string(n));
    sizes.insert(sizes.begin(), static_cast<int64_t>(n));
  }
  for (const int64_t n : sizes) t.shape.push_back(n);
  const auto id = file_.read<uint32_t>();
  const auto types = gguf_types();
  const auto type = std::ranges::find(types, id, &GgufType::id);
  if (type == types.end()) bad("a type that Braid knows the size of", "type " + std::to_string(id));
  t.type = &*type;
  if (sizes.back() % t.type->block != 0)
    bad(str("rows of ", t.type->name, " of a multiple of ", t.type->block), std::to_string(sizes.back()));
  if (__builtin_mul_overflow(count / t.type->block, t.type->bytes, &t.bytes)) bad("bytes that fit 63 bits", "more");
  const auto offset = file_.read<uint64_t>();
  if (offset > static_cast<uint64_t>(file_.size()) || t.bytes > file_.size() - static_cast<int64_t>(offset))
    bad(str("data within the ", file_.size(), " bytes of the file"), str(t.bytes, " bytes from ", offset, " on"));
  t.offset = static_cast<int64_t>(offset);
  tensors_.push_back(std::move(t));
}

void GgufFile::open() {
  if (file_.size() < 24)
    file_.fail("not a GGUF file", 0, "24 bytes of header", str("a file of ", file_.size()), kDamaged);
  if (const auto magic = file_.read<uint32_t>(); magic != gguf::kMagic)
    file_.fail("not a GGUF file", 0, "GGUF", detail::hex(magic, 8), kDamaged);
  if (const auto version = file_.read<uint32_t>(); version != 2 && version != 3)
    file_.fail("cannot read the GGUF file", 4, "version 2 or 3, little-endian", std::to_string(version),
               "write it again with a newer program");
  const auto tensors = file_.read<uint64_t>(), pairs = file_.read<uint64_t>();
  constexpr int64_t kLeastTensor = 8 + 1 + 4 + 8 + 4 + 8, kLeastPair = 8 + 1 + 4 + 1;
  if (tensors > static_cast<uint64_t>(file_.remaining() / kLeastTensor) ||
      pairs > static_cast<uint64_t>(file_.remaining() / kLeastPair))
    file_.fail("bad GGUF header", 8, str("counts that fit a file of ", file_.size(), " bytes"),
               str(tensors, " tensors and ", pairs, " values"), kDamaged);
  for (uint64_t i = 0; i < pairs; ++i) {
    const int64_t at = file_.position();
    std::string key = read_text("a key", kMaxName);
    GgufValue value = read_value(key);
    if (!metadata_.try_emplace(key, std::move(value)).second)
      file_.fail("bad GGUF header", at, "every key once", detail::preview(key) + " twice", kDamaged);
  }
  for (uint64_t i = 0; i < tensors; ++i) read_tensor(static_cast<int64_t>(i));

  int64_t alignment = gguf::kAlignment;
  if (const auto at = metadata_.find("general.alignment"); at != metadata_.end()) {
    const auto* value = std::get_if<int64_t>(&at->second);
    if (!value || *value < 1 || *value > kMaxAlignment || !std::has_single_bit(static_cast<uint64_t>(*value)))
      file_.fail("bad general.alignment", -1, str("a power of two up to ", kMaxAlignment), "another value", kDamaged);
    alignment = *value;
  }
  const int64_t data = gguf::padded(file_.position(), alignment);
  int64_t end = 0;  // of the tensors so far, behind `data`
  std::set<std::string_view> names;
  for (GgufTensor& t : tensors_) {
    if (!names.insert(t.name).second)
      file_.fail("bad GGUF header", -1, "every tensor once", detail::preview(t.name) + " twice", kDamaged);
    if (t.offset != gguf::padded(end, alignment))
      file_.fail("bad tensor " + detail::preview(t.name), -1,
                 str("its data at ", gguf::padded(end, alignment), ", behind the tensor before"),
                 std::to_string(t.offset), kDamaged);
    end = t.offset + t.bytes;
    t.offset += data;
  }
  if (file_.size() < data + end || file_.size() > gguf::padded(data + end, alignment))
    file_.fail("bad end of the GGUF file", data + end, str("a file of ", data + end, " bytes, or padding behind them"),
               std::to_string(file_.size()), kDamaged);
}

const GgufTensor* GgufFile::find(const std::string& name) const {
  const auto at = std::ranges::find(tensors_, name, &GgufTensor::name);
  return at == tensors_.end() ? nullptr : &*at;
}

bool GgufFile::in_groups(const GgufTensor& t) {
  const std::string_view type = t.type->name;
  return t.shape.rank() == 2 && (type == "Q8_0" || type == "Q4_0");
}

std::string GgufFile::bytes_of(const GgufTensor& t) const {
  std::string bytes(static_cast<size_t>(t.bytes), '\0');
  file_.read_at(t.offset, bytes.data(), t.bytes);
  return bytes;
}

Tensor GgufFile::load(const GgufTensor& t) const {
  if (const auto type = gguf::plain_type(*t.type)) {
    Tensor x = empty(t.shape, *type);
    file_.read_at(t.offset, x.mutable_raw(), t.bytes);
    return x;
  }
  if (!t.type->decode) {
    std::vector<std::string> read;
    for (const GgufType& type : gguf_types())
      if (is_read(type)) read.emplace_back(type.name);
    file_.fail("cannot load the tensor " + detail::preview(t.name), t.offset, detail::join(read, ", "), t.type->name,
               "convert the model to one of them");
  }
  const std::string bytes = bytes_of(t);
  Tensor x = empty(t.shape, DType::f32);
  const auto* blocks = reinterpret_cast<const uint8_t*>(bytes.data());
  auto* y = x.mutable_data<float>();
  parallel_for(t.bytes / t.type->bytes, 64, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) t.type->decode(blocks + b * t.type->bytes, y + b * t.type->block);
  });
  return x;
}

GroupWeight GgufFile::groups(const GgufTensor& t) const {
  check(in_groups(t), "gguf", [&] { return t.name + " is no matrix in Q8_0 or Q4_0"; });
  const int64_t out = t.shape[0], groups = t.shape[1] / kGroup;
  GroupWeight w{empty({out, t.shape[1]}, DType::u8), empty({out, groups}, DType::f16), t.type->bytes == 34 ? 8 : 4};
  auto* values = w.values.mutable_data<uint8_t>();
  auto* scale = w.scale.mutable_data<float16>();
  const std::string bytes = bytes_of(t);
  for (int64_t g = 0; g < out * groups; ++g) {
    const char* block = bytes.data() + g * t.type->bytes;
    std::memcpy(&scale[g].bits, block, 2);
    if ((scale[g].bits & 0x7c00) == 0x7c00)
      file_.fail("bad tensor " + detail::preview(t.name), t.offset, "finite scales", "NaN or Inf", kDamaged);
    const auto* q = reinterpret_cast<const uint8_t*>(block + 2);
    for (int64_t i = 0; i < kGroup; ++i)
      values[g * kGroup + i] = static_cast<uint8_t>(w.bits == 8 ? q[i] ^ 0x80 : 120 + (q[i % 16] >> (i / 16 * 4) & 15));
  }
  return w;
}

}  // namespace braid::io
