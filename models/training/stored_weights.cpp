#include "braid/models/training/stored_weights.h"

#include <algorithm>

namespace braid::models {

std::vector<std::vector<dist::Span>> spans_in_stored(const StoredParameter& stored,
                                                     const std::vector<dist::Span>& spans) {
  std::vector<std::vector<dist::Span>> found(stored.tensors.size());
  int64_t begin = 0;  // of the run in the parameter
  auto span = spans.begin();
  for (const StoredParameter::Run& run : stored.runs) {
    const int64_t end = begin + run.count;
    while (span != spans.end() && span->full + span->count <= begin) ++span;
    for (auto at = span; at != spans.end() && at->full < end; ++at) {
      const int64_t first = std::max(begin, at->full), last = std::min(end, at->full + at->count);
      found[run.tensor].push_back({run.first + first - begin, at->local + first - at->full, last - first});
    }
    begin = end;
  }
  return found;
}

std::vector<LocalTensor> as_stored(const std::vector<LocalTensor>& parameters,
                                   const std::function<StoredParameter(const std::string&, const Shape&)>& stored_of) {
  std::vector<LocalTensor> tensors;
  for (const LocalTensor& p : parameters) {
    const StoredParameter stored = stored_of(p.name, p.shape);
    const std::vector<std::vector<dist::Span>> spans = spans_in_stored(stored, p.spans);
    for (size_t i = 0; i < stored.tensors.size(); ++i)
      tensors.push_back({stored.tensors[i].name, p.dtype, stored.tensors[i].shape, spans[i], p.values});
    for (const std::string& name : stored.copies) tensors.push_back({name, p.dtype, p.shape, p.spans, p.values});
  }
  return tensors;
}

}  // namespace braid::models
