// The order in which products of rows of weights and rows of x are formed. Each file that includes this one names its
// own instruction set I, so that no two share a function.
#pragma once
#include <cstdint>

namespace braid::cpu::int8 {

// Calls block<R, T>(row, token) for all R rows of weights and T rows of x, at most kRows and kTokens: the rows of x
// stay in the first-level cache while the weights pass by.
template <class I, int kRows, int kTokens, class Block>
void each_block(int64_t rows, int64_t tokens, Block block) {
  int64_t token = 0;
  const auto cover = [&]<int R, int T>(auto&& self) -> void {
    for (; token + T <= tokens; token += T) {
      int64_t row = 0;
      for (; row + R <= rows; row += R) block.template operator()<R, T>(row, token);
      for (; row < rows; ++row) block.template operator()<1, T>(row, token);
    }
    if constexpr (T > 1) self.template operator()<R, T / 2>(self);
  };
  // With few tokens the time is that of reading the weights, which is shortest in one stream.
  if (tokens > 3)
    cover.template operator()<kRows, kTokens>(cover);
  else
    cover.template operator()<1, kTokens>(cover);
}

}  // namespace braid::cpu::int8
