// The order in which products of rows of weights and rows of x are formed.
#pragma once
#include <cstdint>

namespace braid::cpu::int8 {

// Calls block<R, T>(row, token) for all R rows of weights and T rows of x, at most kRows and kTokens: the rows of x
// stay in the first-level cache while the weights pass by. With up to `few` tokens the time is that of reading the
// weights, which is shortest in one stream. Inlined, because files of several instruction sets share it.
template <int kRows, int kTokens, class Block>
[[gnu::always_inline]] inline void each_block(int64_t rows, int64_t tokens, int64_t few, Block block,
                                              int64_t token = 0) {
  for (; token + kTokens <= tokens; token += kTokens) {
    int64_t row = 0;
    for (; tokens > few && row + kRows <= rows; row += kRows) block.template operator()<kRows, kTokens>(row, token);
    for (; row < rows; ++row) block.template operator()<1, kTokens>(row, token);
  }
  if constexpr (kTokens > 1) each_block<kRows, kTokens / 2>(rows, tokens, few, block, token);
}

}  // namespace braid::cpu::int8
