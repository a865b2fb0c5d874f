#include "braid/models/inspect/mixing_terms.h"

namespace braid::models {

namespace {

std::vector<double> first_sample(const Tensor& x) {
  return x.detach().sliced(0, 0, 1).contiguous().to_vector<double>();
}

}  // namespace

const char* name_of(MixingTerm term) {
  switch (term) {
    case MixingTerm::base:
      return "static";
    case MixingTerm::query:
      return "query-wise";
    case MixingTerm::key:
      return "key-wise";
    case MixingTerm::query_gate:
      return "query gate";
    default:
      return "key gate";
  }
}

MixingTerms::MixingTerms(const HeadMixing& w, int64_t heads) : heads_(heads) {
  const auto set = [&](MixingTerm term) -> Part& { return parts_[static_cast<size_t>(term)]; };
  if (w.base) set(MixingTerm::base) = {w.base.dim(0), 0, {}, w.base.detach().to_vector<double>(), {}};
  const auto low_rank = [&](MixingTerm term, const Tensor& down, const Tensor& up) {
    if (up) set(term) = {up.dim(2), up.dim(3), first_sample(down), first_sample(up), {}};
  };
  low_rank(MixingTerm::query, w.q_down, w.q_up);
  low_rank(MixingTerm::key, w.k_down, w.k_up);
  if (w.q_gate) set(MixingTerm::query_gate).diagonal = first_sample(w.q_gate);
  if (w.k_gate) set(MixingTerm::key_gate).diagonal = first_sample(w.k_gate);
}

void MixingTerms::add(MixingTerm term, int64_t query, int64_t key, const double* a, double* out) const {
  const Part& p = part(term);
  const int64_t N = heads_;
  const int64_t position = term == MixingTerm::query || term == MixingTerm::query_gate ? query : key;
  if (!p.diagonal.empty()) {
    const double* gate = p.diagonal.data() + position * N;
    for (int64_t n = 0; n < N; ++n) out[n] += a[n] * gate[n];
  }
  if (p.write.empty()) return;
  const int64_t G = p.groups, M = N / G;
  for (int64_t g = 0; g < G; ++g) {
    const double* in = a + g * M;
    double* to = out + g * M;
    if (term == MixingTerm::base) {
      for (int64_t m = 0; m < M; ++m)
        for (int64_t n = 0; n < M; ++n) to[n] += in[m] * p.write[static_cast<size_t>((g * M + m) * M + n)];
      continue;
    }
    for (int64_t r = 0; r < p.rank; ++r) {
      const size_t first = static_cast<size_t>(((position * G + g) * p.rank + r) * M);
      double read = 0;
      for (int64_t m = 0; m < M; ++m) read += in[m] * p.read[first + static_cast<size_t>(m)];
      for (int64_t n = 0; n < M; ++n) to[n] += read * p.write[first + static_cast<size_t>(n)];
    }
  }
}

std::vector<double> MixingTerms::matrix(MixingTerm term, int64_t query, int64_t key) const {
  const auto N = static_cast<size_t>(heads_);
  std::vector<double> w(N * N), unit(N);
  for (size_t m = 0; m < N; ++m) {
    unit[m] = 1;
    add(term, query, key, unit.data(), w.data() + m * N);
    unit[m] = 0;
  }
  return w;
}

}  // namespace braid::models
