#include <vector>

#include "braid/autograd/dcmha.h"

namespace braid {

std::vector<Document> documents_of(const Tensor& positions) {
  check(positions.rank() == 2, "documents_of",
        [&] { return str("positions must be (B, T), got ", positions.shape()); });
  const std::vector<int64_t> place = positions.to_vector<int64_t>();
  const int64_t B = positions.dim(0), T = positions.dim(1);
  std::vector<Document> documents;
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t t = 0; t < T; ++t) {
      const int64_t p = place[static_cast<size_t>(b * T + t)];
      check(p == 0 || (t > 0 && p == place[static_cast<size_t>(b * T + t - 1)] + 1), ErrorKind::input, [&] {
        return str("bad positions of documents at sample ", b, ", token ", t,
                   ": expected 0 where a document begins, else one more than the value before, found ", p);
      });
      if (p == 0) documents.push_back({b, t, t + 1});
      documents.back().end = t + 1;
    }
  }
  return documents;
}

std::vector<Document> counted_from(std::vector<Document> documents, int64_t first) {
  for (Document& d : documents) d.begin -= first, d.end -= first;
  return documents;
}

}  // namespace braid
