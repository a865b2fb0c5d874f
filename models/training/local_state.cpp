#include "braid/models/training/local_state.h"

#include <sstream>

namespace braid::models {

namespace {

Tensor gather(const LocalTensor& t, const dist::Communicator& world, Device device) {
  std::string mine;
  for (const dist::Span& s : t.spans)
    mine += std::to_string(s.whole) + " " + std::to_string(s.part) + " " + std::to_string(s.count) + " ";
  std::vector<std::vector<dist::Span>> spans;  // of each rank
  dist::Partition owned;                       // of the concatenation of all ranks' values
  int64_t end = 0;
  for (const std::string& text : world.gather_text(mine)) {
    std::istringstream in(text);
    const int64_t begin = end;
    spans.emplace_back();
    for (dist::Span s{}; in >> s.whole >> s.part >> s.count; end += s.count) spans.back().push_back(s);
    owned.ranges.push_back({{begin, end}});
  }
  const Tensor values = t.values ? t.values.reshaped({t.values.numel()}) : empty({0}, t.dtype, device);
  const Tensor all = world.all_gather(values, 0, owned);
  Tensor whole = empty({numel(t.shape)}, t.dtype, device);
  for (size_t rank = 0; rank < spans.size(); ++rank) {
    const int64_t begin = owned.single(static_cast<int>(rank)).begin;
    for (const dist::Span& s : spans[rank])
      whole.sliced(0, s.whole, s.whole + s.count).copy_(all.sliced(0, begin + s.part, begin + s.part + s.count));
  }
  return whole.reshaped(t.shape);
}

}  // namespace

std::vector<nn::NamedTensor> gather(const std::vector<LocalTensor>& tensors, const dist::Communicator& world,
                                    Device device) {
  std::vector<nn::NamedTensor> out;
  for (const LocalTensor& t : tensors) out.push_back({t.name, gather(t, world, device)});
  return out;
}

}  // namespace braid::models
