// The order in which products of rows of weights and rows of x are formed, for instruction sets I with I::kTokens rows
// of x in a block. Each file that includes this one names its own I, so that no two share a function.
#pragma once
#include <cstdint>

namespace braid::cpu::int8 {

// Calls block<R, T>(row, token) for all R rows of weights and T rows of x.
template <class I, class Block>
void each_block(int64_t rows, int64_t tokens, Block block) {
  constexpr int T = I::kTokens;
  const auto rows_of = [&]<int R>(int64_t row) {
    int64_t token = 0;
    for (; token + T <= tokens; token += T) block.template operator()<R, T>(row, token);
    for (; token < tokens; ++token) block.template operator()<R, 1>(row, token);
  };
  int64_t row = 0;
  // With few tokens the time is that of reading the weights, which is shortest in one stream.
  for (; tokens > T && row + 4 <= rows; row += 4) rows_of.template operator()<4>(row);
  for (; row < rows; ++row) rows_of.template operator()<1>(row);
}

}  // namespace braid::cpu::int8
