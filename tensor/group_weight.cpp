#include "braid/tensor/group_weight.h"

#include <algorithm>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/parallel.h"

namespace braid {

GroupPanels in_panels(const GroupWeight& w) {
  const int64_t out = w.values.dim(0), n = w.scale.dim(1), bits = w.bits;
  const Tensor values = w.values.contiguous(), scale = w.scale.contiguous();
  GroupPanels panels{empty({out, 4 * bits * n}, DType::u8), empty({out, n}, DType::f16)};
  const uint8_t* from = values.data<uint8_t>();
  const auto* s = scale.data<float16>();
  uint8_t* to = panels.values.mutable_data<uint8_t>();
  auto* to_s = panels.scale.mutable_data<float16>();
  parallel_for(detail::ceil_div(out, kPanelRows), grain_for(kGroup * n * kPanelRows), [&](int64_t begin, int64_t end) {
    for (int64_t first = begin * kPanelRows; first < std::min(end * kPanelRows, out); first += kPanelRows) {
      const int64_t rows = std::min(kPanelRows, out - first);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t g = 0; g < n; ++g) {
          const uint8_t* q = from + ((first + r) * n + g) * kGroup;
          to_s[first * n + g * rows + r] = s[(first + r) * n + g];
          for (int64_t j = 0; j < bits; ++j) {
            uint8_t* bytes = to + (first * n * bits + (g * bits + j) * rows + r) * 4;
            for (int64_t b = 0; b < 4; ++b)
              bytes[b] = static_cast<uint8_t>(bits == 8 ? q[4 * j + b / 2 + b % 2 * 2]
                                                        : (q[8 * j + b] - 120) | (q[8 * j + 4 + b] - 120) << 4);
          }
        }
      }
    }
  });
  return panels;
}

}  // namespace braid
