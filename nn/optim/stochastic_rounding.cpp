#include "braid/nn/optim/stochastic_rounding.h"

#include <algorithm>
#include <bit>

#include "braid/tensor/kernels/kernel.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/random_blocks.h"

namespace braid::nn {

bfloat16 rounded_at_random(float x, uint32_t random) {
  const auto bits = std::bit_cast<uint32_t>(x);
  constexpr uint32_t kExponent = 0x7f800000;
  const uint32_t rounded = bits + random;  // the low half of bits is what lies above the neighbour towards 0
  const uint32_t finite = (rounded & kExponent) == kExponent ? bits : rounded;
  bfloat16 y;
  y.bits = static_cast<uint16_t>((x != x ? bits | 0x400000 : finite) >> 16);
  return y;
}

namespace {

constexpr int64_t kElements = 512;  // at once

// The 16 bits of n elements from 8 * block on.
void draw_halves(uint64_t block, int64_t n, RandomKey key, uint32_t* random) {
  RandomBlocks<kElements / 8> blocks;
  const int64_t count = (n + 7) / 8;
  blocks.draw(block, count, key);
  for (int64_t b = 0; b < count; ++b) {
    for (int w = 0; w < 4; ++w) {
      random[8 * b + 2 * w] = blocks.word[w][b] & 0xffff;
      random[8 * b + 2 * w + 1] = blocks.word[w][b] >> 16;
    }
  }
}

}  // namespace

void round_at_random(const Tensor& x, RandomKey key, const std::vector<ElementSpan>& spans, int64_t begin, Tensor to) {
  check(x.dtype() == DType::f32 && to.dtype() == DType::bf16 && x.device() == kCpu && to.device() == kCpu,
        "round_at_random", [&] {
          return str("rounds f32 to bf16 on the CPU, found ", x.dtype(), " on ", x.device(), " and ", to.dtype(),
                     " on ", to.device());
        });
  constexpr int64_t kPiece = 1 << 14;
  const int64_t end = begin + x.numel();
  std::vector<ElementSpan> pieces;
  const auto add = [&](const ElementSpan& span) {
    const int64_t last = std::min(end, span.local + span.count);
    for (int64_t at = std::max(begin, span.local); at < last; at += kPiece)
      pieces.push_back({span.full + at - span.local, at, std::min(kPiece, last - at)});
  };
  std::ranges::for_each(spans, add);
  if (spans.empty()) add({0, 0, to.numel()});
  const auto* from = x.data<float>();
  auto* into = to.mutable_data<bfloat16>();
  const braid::detail::KernelScope running("round_at_random");
  parallel_for(std::ssize(pieces), 1, [&](int64_t first, int64_t stop) {
    for (int64_t p = first; p < stop; ++p) {
      const auto& [full, local, count] = pieces[static_cast<size_t>(p)];
      for (int64_t i = 0; i < count;) {  // in blocks of Philox, of which the first may begin with other elements
        const int64_t before = (full + i) % 8, n = std::min(count - i, kElements - before);
        uint32_t random[kElements];
        draw_halves(static_cast<uint64_t>(full + i) / 8, before + n, key, random);
        for (int64_t j = 0; j < n; ++j)
          into[local + i + j] = rounded_at_random(from[local + i + j - begin], random[before + j]);
        i += n;
      }
    }
  });
}

}  // namespace braid::nn
