// What the reader and the writer of GGUF files share (gguf.md).
#pragma once
#include <optional>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/io/gguf.h"

namespace braid::io::gguf {

inline constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
inline constexpr int64_t kAlignment = 32;       // of tensors, where the file does not say

struct Value {  // types of metadata
  enum Type : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };
};

inline int64_t padded(int64_t n, int64_t alignment) { return detail::ceil_div(n, alignment) * alignment; }

// The type of values that are stored as they are; none: they are in blocks, or Braid has no such type.
inline std::optional<DType> plain_type(const GgufType& type) {
  const std::string_view name = type.name;
  if (name == "F32") return DType::f32;
  if (name == "F16") return DType::f16;
  if (name == "BF16") return DType::bf16;
  return std::nullopt;
}

}  // namespace braid::io::gguf
