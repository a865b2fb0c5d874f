#include "braid/tensor/dtype.h"

#include <utility>

namespace braid {

namespace {
struct Row {
  DType type;
  const char* name;
  int64_t bytes;
};
constexpr Row kTypes[] = {{DType::f64, "f64", 8}, {DType::f32, "f32", 4}, {DType::bf16, "bf16", 2},
                          {DType::f16, "f16", 2}, {DType::i64, "i64", 8}, {DType::i32, "i32", 4},
                          {DType::u8, "u8", 1}};
}  // namespace

int64_t size_of(DType t) { return kTypes[static_cast<int>(t)].bytes; }
const char* name(DType t) { return kTypes[static_cast<int>(t)].name; }

bool holds(DType t, int64_t x) {
  if (t == DType::i32) return std::in_range<int32_t>(x);
  return t != DType::u8 || std::in_range<uint8_t>(x);
}

bool parse_dtype(const std::string& text, DType& out) {
  for (const Row& row : kTypes) {
    if (text == row.name) {
      out = row.type;
      return true;
    }
  }
  return false;
}

}  // namespace braid
