#include "tests/support/attention_loops.h"

#include <cmath>
#include <limits>

namespace braid::test {

double element(const Array& x, std::initializer_list<int64_t> index) {
  int64_t offset = 0;
  int axis = 0;
  for (const int64_t i : index) offset = offset * x.shape[axis++] + i;
  return x.values[static_cast<size_t>(offset)];
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

size_t u(int64_t i) { return static_cast<size_t>(i); }

// One group's M values of one pair, mixed; `in` are the seven tensors of the stage.
std::vector<double> mixed(const std::vector<double>& a, const Array* in, int64_t b, int64_t i, int64_t j, int64_t g) {
  const int64_t M = std::ssize(a), R = in[1].shape[3];
  std::vector<double> out(a.size());
  for (int64_t n = 0; n < M; ++n) {
    double o = a[u(n)] * (1 + element(in[5], {b, i, g, n}) + element(in[6], {b, j, g, n}));
    for (int64_t m = 0; m < M; ++m) {
      double p = element(in[0], {g, m, n});
      for (int64_t r = 0; r < R; ++r) {
        p += element(in[1], {b, i, g, r, m}) * element(in[2], {b, i, g, r, n}) +
             element(in[3], {b, j, g, r, m}) * element(in[4], {b, j, g, r, n});
      }
      o += a[u(m)] * p;
    }
    out[u(n)] = o;
  }
  return out;
}

class Loops {
 public:
  Loops(const std::vector<Array>& in, const DcmhaOptions& options) : in_(in), o_(options) {
    if (o_.attend) attend_ = {o_.attend.shape(), o_.attend.to_vector<double>()};
  }

  Array operator()() const {
    const int64_t N = in_[0].shape[2], dv = in_[2].shape[3], M = N / o_.groups;
    Array y{{in_[0].shape[0], T_, N, dv}, {}};
    y.values.resize(u(numel(y.shape)));
    for (int64_t b = 0; b < y.shape[0]; ++b) {
      for (int64_t i = 0; i < T_; ++i) {
        for (int64_t g = 0; g < o_.groups; ++g) {
          const std::vector<std::vector<double>> p = probabilities(b, i, g, M);
          for (int64_t j = 0; j < S_; ++j)
            for (int64_t m = 0; m < M; ++m)
              for (int64_t e = 0; e < dv; ++e)
                y.values[u(((b * T_ + i) * N + g * M + m) * dv + e)] +=
                    p[u(j)][u(m)] * element(in_[2], {b, j, g * M + m, e});
        }
      }
    }
    return y;
  }

 private:
  // Entries (1 or B, 1 or N, T, S).
  static double entry(const Array& x, int64_t b, int64_t n, int64_t i, int64_t j) {
    return element(x, {x.shape[0] == 1 ? 0 : b, x.shape[1] == 1 ? 0 : n, i, j});
  }

  bool seen(int64_t b, int64_t n, int64_t i, int64_t j) const {
    const int64_t keys = o_.key_lengths.empty() ? S_ : o_.key_lengths[u(b)];
    const bool last = o_.alignment == CausalAlignment::bottom_right;
    const int64_t query = i + o_.mask.offset + (last ? keys - T_ : 0);
    if (j >= keys || (o_.mask.causal && j > query)) return false;
    if (o_.mask.causal && o_.mask.window > 0 && j <= query - o_.mask.window) return false;
    return !o_.attend || entry(attend_, b, n, i, j) != 0;
  }

  // 0 or 1 / (1 - p), as SdpaOptions::dropout says.
  double kept(int64_t b, int64_t n, int64_t i, int64_t j) const {
    if (o_.dropout == 0) return 1;
    const auto place = static_cast<uint64_t>((j * in_[0].shape[2] + n) * 16 + i % 16);
    const RandomKey key = child(child(o_.dropout_key, b), i / 16);
    return unit(random_bits(place, key)) > static_cast<float>(o_.dropout) ? 1 / (1 - o_.dropout) : 0;
  }

  // P' of a query and a group: [j][m].
  std::vector<std::vector<double>> probabilities(int64_t b, int64_t i, int64_t g, int64_t M) const {
    const Array &q = in_[0], &k = in_[1];
    const bool mixes = in_.size() > 4;
    const bool before = o_.bias_place == BiasPlace::before_compose;
    std::vector<std::vector<double>> p(u(S_));
    std::vector<double> top(u(M), -kInfinity), sum(u(M));
    for (int64_t j = 0; j < S_; ++j) {
      std::vector<double> a(u(M));
      const auto add_bias = [&] {
        for (int64_t m = 0; m < M; ++m) a[u(m)] += o_.bias ? entry(in_.back(), b, g * M + m, i, j) : 0;
      };
      for (int64_t m = 0; m < M; ++m) {
        for (int64_t e = 0; e < q.shape[3]; ++e)
          a[u(m)] += element(q, {b, i, g * M + m, e}) * element(k, {b, j, g * M + m, e});
        a[u(m)] /= std::sqrt(static_cast<double>(q.shape[3]));
        if (o_.softcap > 0) a[u(m)] = o_.softcap * std::tanh(a[u(m)] / o_.softcap);
      }
      if (before) add_bias();
      if (mixes) a = mixed(a, &in_[3], b, i, j, g);
      if (!before) add_bias();
      for (int64_t m = 0; m < M; ++m) {
        if (!seen(b, g * M + m, i, j)) a[u(m)] = -kInfinity;
        top[u(m)] = std::fmax(top[u(m)], a[u(m)]);
      }
      p[u(j)] = a;
    }
    for (auto& row : p) {
      for (size_t m = 0; m < row.size(); ++m) sum[m] += row[m] = top[m] == -kInfinity ? 0 : std::exp(row[m] - top[m]);
    }
    for (int64_t j = 0; j < S_; ++j) {
      std::vector<double>& row = p[u(j)];
      for (size_t m = 0; m < row.size(); ++m) row[m] = sum[m] > 0 ? row[m] / sum[m] : 0;
      if (mixes) row = mixed(row, &in_[10], b, i, j, g);
      for (int64_t m = 0; m < M; ++m) row[u(m)] *= seen(b, g * M + m, i, j) ? kept(b, g * M + m, i, j) : 0;
    }
    return p;
  }

  const std::vector<Array>& in_;
  const DcmhaOptions& o_;
  Array attend_;
  int64_t T_ = in_[0].shape[1], S_ = in_[1].shape[1];
};

}  // namespace

Array attention_by_loops(const std::vector<Array>& in, const DcmhaOptions& options) { return Loops(in, options)(); }

}  // namespace braid::test
