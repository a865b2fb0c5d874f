#include "braid/models/inspect/mixing_terms.h"

#include <algorithm>

namespace braid::models {

namespace {

std::vector<double> first_sample(const Tensor& x) {
  return x.detach().sliced(0, 0, 1).contiguous().to_vector<double>();
}

}  // namespace

const char* name_of(MixingTerm term) {
  constexpr const char* names[] = {"static", "query-wise", "key-wise", "query gate", "key gate"};
  return names[static_cast<size_t>(term)];
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
  const Part& p = part(term);
  const int64_t N = heads_, G = std::max<int64_t>(1, p.groups), M = N / G;
  const int64_t position = term == MixingTerm::query || term == MixingTerm::query_gate ? query : key;
  std::vector<double> w(static_cast<size_t>(N * N));
  const auto at = [&](int64_t m, int64_t n) -> double& { return w[static_cast<size_t>(m * N + n)]; };
  for (int64_t n = 0; n < N && !p.diagonal.empty(); ++n) at(n, n) = p.diagonal[static_cast<size_t>(position * N + n)];
  for (int64_t m = 0; m < N && !p.write.empty(); ++m)
    for (int64_t n = 0; n < M; ++n) {
      const int64_t g = m / M;
      double& out = at(m, g * M + n);
      if (term == MixingTerm::base) out = p.write[static_cast<size_t>(m * M + n)];
      for (int64_t r = 0; r < p.rank; ++r) {
        const int64_t row = ((position * G + g) * p.rank + r) * M;
        out += p.read[static_cast<size_t>(row + m % M)] * p.write[static_cast<size_t>(row + n)];
      }
    }
  return w;
}

HeadMixing observed_mixing(const std::map<std::string, Tensor>& layer, const std::string& stage) {
  const auto of = [&](const char* term) {
    const auto at = layer.find("dyn." + stage + term);
    return at == layer.end() ? Tensor() : at->second;
  };
  return {of(".w"), of("_q.w1"), of("_q.w2"), of("_k.w1"), of("_k.w2"), of("_q.dd"), of("_k.dd")};
}

std::pair<int64_t, int64_t> groups_and_rank(const std::map<std::string, Tensor>& layer) {
  int64_t G = 1, R = 0;
  for (const auto& [name, x] : layer) {
    if (name.ends_with(".w")) G = x.dim(0);
    if (name.ends_with(".dd") || name.ends_with(".w1")) G = x.dim(2);
    if (name.ends_with(".w1")) R = x.dim(3);
  }
  return {G, R};
}

}  // namespace braid::models
