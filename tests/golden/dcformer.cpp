// DCFormer++ in one file: forward pass, backward pass and AdamW in plain loops over doubles, with the standard library
// and nothing else. It is there to be read from top to bottom, and it is a second implementation: a test gives Braid's
// model and this one the same weights and tokens and compares the loss, every gradient and the trained weights. As a
// program it checks its derivatives by finite differences, trains a small model on a nursery rhyme and lets it recite:
//
//   g++ -std=c++20 -O2 tests/golden/dcformer.cpp -o dcformer && ./dcformer
//
// At the head of each piece stands its formula, and below it the derivatives. There dy means dL/dy, the derivative of
// the loss L by y. A forward function makes its first argument, which is zero before. The backward function of the same
// name reads the derivative of that argument and adds to those of the others: it adds, because an array that is used
// twice receives two contributions.
//
//   B sequences of T tokens make P = B T positions; p = b T + t is token t of sequence b
//   D  width of the model                      N  heads, each of d numbers
//   F  hidden units of the feed-forward layer  C  branches of dynamic weights, at most 4
//   V  words of the vocabulary                 R  rank of a branch, with K = 2 R N hidden units behind it
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <iterator>
#include <numbers>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace plain {

// ---- 1. Settings and arrays -----------------------------------------------------------------------------------------

// Sizes and switches. The switches start as in DCFormer++.
struct Settings {
  int V = 0, D = 0, N = 0, d = 0, F = 0, R = 2;
  std::vector<int> windows;                                 // keys that a query sees, for each layer; 0: all before it
  bool qk_norm = true;                                      // norms of queries and keys
  std::array<bool, 4> branches = {true, true, true, true};  // query, key before the softmax; query, key after it
  std::array<bool, 2> matrices = {false, false};            // the static matrix before, after the softmax
  double norm_eps = 1e-5, qk_norm_eps = 1e-5, down_eps = 1e-6, rope_base = 10000;

  int K() const { return 2 * R * N; }
  int C() const { return place(4); }  // a branch that is off takes no place
  int place(int branch) const { return static_cast<int>(std::count(&branches[0], &branches[0] + branch, true)); }
};

// Numbers in up to four axes, and the derivative of the loss by each of them: a(p, n, e) and a.d(p, n, e). The last
// index runs on through the axes that are not given. In an array (P, N, d), a(p, i) with i = n d + e and a(i) with
// i = (p N + n) d + e are the same number.
struct Array {
  std::vector<double> value, derivative;
  std::array<int, 4> step{};  // numbers from one index to the next, for each axis
  int rows = 0, last = 0;     // lengths of the first and the last axis

  Array() = default;
  Array(std::initializer_list<int> shape) : rows(*shape.begin()), last(*std::rbegin(shape)) {
    int numbers = 1, axis = static_cast<int>(shape.size());
    for (auto length = std::rbegin(shape); length != std::rend(shape); ++length) {
      step[--axis] = numbers;
      numbers *= *length;
    }
    value.resize(numbers);
    derivative.resize(numbers);
  }
  int size() const { return static_cast<int>(value.size()); }
  int columns() const { return step[0]; }  // of a row

  int at(auto... index) const {
    const std::array<int, sizeof...(index)> all = {index...};
    int place = all.back();
    for (size_t axis = 0; axis + 1 < all.size(); ++axis) place += all[axis] * step[axis];
    return place;
  }
  double operator()(auto... index) const { return value[at(index...)]; }
  double& operator()(auto... index) { return value[at(index...)]; }
  double d(auto... index) const { return derivative[at(index...)]; }
  double& d(auto... index) { return derivative[at(index...)]; }
};

// An array that is trained. Where a switch is off its parameters are empty.
struct Parameter : Array {
  std::string name;
  std::vector<double> m, v;  // of AdamW
  bool input_first = false;  // stored as (I, O), see linear()

  Parameter() = default;
  Parameter(const std::string& called, std::initializer_list<int> shape)
      : Array(shape), name(called), m(value.size()), v(value.size()) {}
};

// ---- 2. The pieces of any transformer -------------------------------------------------------------------------------

// y[p,o] = sum_i w[o,i] x[p,i]                     x (P, I), y (P, O), w (O, I), or (I, O) where it says so
//   dx[p,i] = sum_o w[o,i] dy[p,o]
//   dw[o,i] = sum_p dy[p,o] x[p,i]
// Several outputs may share one w: output number `part` is made by the rows part O ... (part + 1) O - 1.
int at(const Parameter& w, int o, int i) { return w.input_first ? w.at(i, o) : w.at(o, i); }

void linear(Array& y, const Array& x, const Parameter& w, int part = 0) {
  const int first = part * y.columns();
  for (int p = 0; p < x.rows; ++p)
    for (int o = 0; o < y.columns(); ++o)
      for (int i = 0; i < x.columns(); ++i) y(p, o) += w(at(w, first + o, i)) * x(p, i);
}

void linear_backward(const Array& y, Array& x, Parameter& w, int part = 0) {
  const int first = part * y.columns();
  for (int p = 0; p < x.rows; ++p)
    for (int o = 0; o < y.columns(); ++o)
      for (int i = 0; i < x.columns(); ++i) {
        x.d(p, i) += w(at(w, first + o, i)) * y.d(p, o);
        w.d(at(w, first + o, i)) += y.d(p, o) * x(p, i);
      }
}

// y = y + x, the residual connection: the one function whose first argument is not zero before    x, y (P, D)
//   dx = dy, and dy stays as it is
void add(Array& y, const Array& x) {
  for (int i = 0; i < y.size(); ++i) y(i) += x(i);
}

void add_backward(const Array& y, Array& x) {
  for (int i = 0; i < y.size(); ++i) x.d(i) += y.d(i);
}

// y[i] = s w[i] x[i],  s = 1 / sqrt(mean_i x[i]^2 + eps),  in every row of the last axis, of length n      w (n)
//   dx[i] = s w[i] dy[i] - s^3 x[i] mean_j(w[j] dy[j] x[j]),  since ds/dx[i] = -s^3 x[i] / n
//   dw[i] = sum over the rows of s x[i] dy[i]
double rms_scale(const Array& x, int row, double eps) {
  double squares = 0;
  for (int i = row; i < row + x.last; ++i) squares += x(i) * x(i);
  return 1 / std::sqrt(squares / x.last + eps);
}

void rms_norm(Array& y, const Array& x, const Array& w, double eps) {
  for (int row = 0; row < x.size(); row += x.last) {
    const double s = rms_scale(x, row, eps);
    for (int i = 0; i < x.last; ++i) y(row + i) = s * w(i) * x(row + i);
  }
}

void rms_norm_backward(const Array& y, Array& x, Array& w, double eps) {
  for (int row = 0; row < x.size(); row += x.last) {
    const double s = rms_scale(x, row, eps);
    double mean = 0;
    for (int i = 0; i < x.last; ++i) mean += w(i) * y.d(row + i) * x(row + i) / x.last;
    for (int i = 0; i < x.last; ++i) {
      x.d(row + i) += s * w(i) * y.d(row + i) - s * s * s * x(row + i) * mean;
      w.d(i) += s * x(row + i) * y.d(row + i);
    }
  }
}

// Rotary positions. In each head of token t the point (x[e], x[e+d/2]) is rotated by the angle t base^(-2e/d):
//   y[e] = x[e] cos - x[e+d/2] sin,   y[e+d/2] = x[e+d/2] cos + x[e] sin                         x, y (P, N, d)
//   dx is dy rotated back by the same angle
void rotate(std::vector<double>& y, const std::vector<double>& x, const Array& like, int T, double base, double sign) {
  const int d = like.last, half = d / 2;
  for (int head = 0; head < like.size(); head += d)
    for (int e = 0; e < half; ++e) {
      const int p = head / like.columns(), first = head + e, second = first + half;
      const double angle = sign * (p % T) * std::pow(base, -2.0 * e / d);
      y[first] += x[first] * std::cos(angle) - x[second] * std::sin(angle);
      y[second] += x[second] * std::cos(angle) + x[first] * std::sin(angle);
    }
}

void rope(Array& y, const Array& x, int T, double base) { rotate(y.value, x.value, x, T, base, 1); }
void rope_backward(const Array& y, Array& x, int T, double base) { rotate(x.derivative, y.derivative, x, T, base, -1); }

// y = silu(a) b,  silu(a) = a sigma,  sigma = 1 / (1 + exp(-a))                                    all (P, F)
//   da = dy b sigma (1 + a (1 - sigma)),  db = dy silu(a)
void swiglu(Array& y, const Array& a, const Array& b) {
  for (int i = 0; i < y.size(); ++i) y(i) = a(i) / (1 + std::exp(-a(i))) * b(i);
}

void swiglu_backward(const Array& y, Array& a, Array& b) {
  for (int i = 0; i < y.size(); ++i) {
    const double sigma = 1 / (1 + std::exp(-a(i)));
    a.d(i) += y.d(i) * b(i) * sigma * (1 + a(i) * (1 - sigma));
    b.d(i) += y.d(i) * a(i) * sigma;
  }
}

// GELU in its tanh form: y = x (1 + g) / 2 with g = tanh(k (x + 0.044715 x^3)) and k = sqrt(2 / pi)
//   dx = dy ((1 + g) / 2 + x (1 - g^2) k (1 + 3 0.044715 x^2) / 2)
const double kGelu = std::sqrt(2 / std::numbers::pi);

void gelu(Array& y, const Array& x) {
  for (int i = 0; i < y.size(); ++i) y(i) = x(i) * (1 + std::tanh(kGelu * (x(i) + 0.044715 * x(i) * x(i) * x(i)))) / 2;
}

void gelu_backward(const Array& y, Array& x) {
  for (int i = 0; i < y.size(); ++i) {
    const double g = std::tanh(kGelu * (x(i) + 0.044715 * x(i) * x(i) * x(i)));
    x.d(i) += y.d(i) * ((1 + g) / 2 + x(i) * (1 - g * g) * kGelu * (1 + 3 * 0.044715 * x(i) * x(i)) / 2);
  }
}

// y[p] = table[ids[p]]                             y (P, D), table (V, D)
//   dtable[v] = sum of dy[p] over the p with ids[p] = v
void embedding(Array& y, const Array& table, const std::vector<int>& ids) {
  for (int p = 0; p < y.rows; ++p)
    for (int i = 0; i < y.columns(); ++i) y(p, i) = table(ids[p], i);
}

void embedding_backward(const Array& y, Array& table, const std::vector<int>& ids) {
  for (int p = 0; p < y.rows; ++p)
    for (int i = 0; i < y.columns(); ++i) table.d(ids[p], i) += y.d(p, i);
}

// L = mean of -log softmax(z[p])[target of p] over the positions with a target,  softmax(z)[v] = exp z[v] / sum exp z
//   dz[p,v] = (softmax(z[p])[v] - [v is the target]) / number of these positions                   z (P, V)
// A target of -1 is none. The largest z is subtracted from all, which changes no quotient and avoids overflow.
double cross_entropy(Array& z, const std::vector<int>& targets) {
  const auto counted = static_cast<double>(std::ranges::count_if(targets, [](int target) { return target >= 0; }));
  double loss = 0;
  for (int p = 0; p < z.rows; ++p) {
    if (targets[p] < 0) continue;
    double largest = z(p, 0), sum = 0;
    for (int v = 0; v < z.columns(); ++v) largest = std::max(largest, z(p, v));
    for (int v = 0; v < z.columns(); ++v) sum += std::exp(z(p, v) - largest);
    loss += (largest + std::log(sum) - z(p, targets[p])) / counted;
    for (int v = 0; v < z.columns(); ++v)
      z.d(p, v) = (std::exp(z(p, v) - largest) / sum - (v == targets[p] ? 1 : 0)) / counted;
  }
  return loss;
}

// ---- 3. DCMHA -------------------------------------------------------------------------------------------------------

// The pairs of a query and a key that it sees, sorted by query: the keys of its sequence up to its own position, in a
// local layer the last `window` of them. Those of query p are begin[p] ... begin[p+1] - 1. Masked pairs do not exist.
struct Pairs {
  std::vector<int> query, key, begin;

  Pairs(int B, int T, int window) : begin{0} {
    for (int p = 0; p < B * T; ++p) {
      const int before = p % T, seen = window == 0 ? before : std::min(before, window - 1);
      for (int key_of_p = p - seen; key_of_p <= p; ++key_of_p) {
        query.push_back(p);
        key.push_back(key_of_p);
      }
      begin.push_back(size());
    }
  }
  int size() const { return static_cast<int>(query.size()); }
};

// S[pair,n] = sum_e q[query,n,e] k[key,n,e] / sqrt(d)                        S (pairs, N), q and k (P, N, d)
//   dq[query,n,e] = sum over its pairs of dS[pair,n] k[key,n,e] / sqrt(d),   dk[key,n,e] alike with q
void scores(Array& S, const Array& q, const Array& k, const Pairs& pairs) {
  for (int i = 0; i < pairs.size(); ++i)
    for (int n = 0; n < S.columns(); ++n)
      for (int e = 0; e < q.last; ++e) S(i, n) += q(pairs.query[i], n, e) * k(pairs.key[i], n, e) / std::sqrt(q.last);
}

void scores_backward(const Array& S, Array& q, Array& k, const Pairs& pairs) {
  const double scale = 1 / std::sqrt(q.last);
  for (int i = 0; i < pairs.size(); ++i)
    for (int n = 0; n < S.columns(); ++n)
      for (int e = 0; e < q.last; ++e) {
        q.d(pairs.query[i], n, e) += scale * S.d(i, n) * k(pairs.key[i], n, e);
        k.d(pairs.key[i], n, e) += scale * S.d(i, n) * q(pairs.query[i], n, e);
      }
}

// A[pair,n] = exp z[pair,n] / sum of exp z[.,n] over the pairs of the same query                   both (pairs, N)
//   dz[pair,n] = A[pair,n] (dA[pair,n] - sum of A[.,n] dA[.,n] over the pairs of the same query)
void softmax(Array& A, const Array& z, const Pairs& pairs) {
  for (int n = 0; n < z.columns(); ++n)
    for (size_t p = 0; p + 1 < pairs.begin.size(); ++p) {
      const int begin = pairs.begin[p], end = pairs.begin[p + 1];
      double largest = z(begin, n), sum = 0;
      for (int i = begin; i < end; ++i) largest = std::max(largest, z(i, n));
      for (int i = begin; i < end; ++i) sum += std::exp(z(i, n) - largest);
      for (int i = begin; i < end; ++i) A(i, n) = std::exp(z(i, n) - largest) / sum;
    }
}

void softmax_backward(const Array& A, Array& z, const Pairs& pairs) {
  for (int n = 0; n < z.columns(); ++n)
    for (size_t p = 0; p + 1 < pairs.begin.size(); ++p) {
      double sum = 0;
      for (int i = pairs.begin[p]; i < pairs.begin[p + 1]; ++i) sum += A(i, n) * A.d(i, n);
      for (int i = pairs.begin[p]; i < pairs.begin[p + 1]; ++i) z.d(i, n) += A(i, n) * (A.d(i, n) - sum);
    }
}

// y[query,n,e] = sum over its pairs of A[pair,n] v[key,n,e]                  A (pairs, N), v and y (P, N, d)
//   dA[pair,n] = sum_e dy[query,n,e] v[key,n,e],   dv[key,n,e] = sum over its pairs of A[pair,n] dy[query,n,e]
void weighted_values(Array& y, const Array& A, const Array& v, const Pairs& pairs) {
  for (int i = 0; i < pairs.size(); ++i)
    for (int n = 0; n < A.columns(); ++n)
      for (int e = 0; e < v.last; ++e) y(pairs.query[i], n, e) += A(i, n) * v(pairs.key[i], n, e);
}

void weighted_values_backward(const Array& y, Array& A, Array& v, const Pairs& pairs) {
  for (int i = 0; i < pairs.size(); ++i)
    for (int n = 0; n < A.columns(); ++n)
      for (int e = 0; e < v.last; ++e) {
        A.d(i, n) += y.d(pairs.query[i], n, e) * v(pairs.key[i], n, e);
        v.d(pairs.key[i], n, e) += A(i, n) * y.d(pairs.query[i], n, e);
      }
}

// The dynamic weights of Compose: each position makes its own from the input u (P, D) of the attention. A branch c is
// one side (query or key) of one stage (before or after the softmax).
//   hidden[p,c,k] = sum_a dw1[a,c,k] u[p,a],  active = GELU(hidden)                       dw1 (D, C, K)
//   wide[p,c,s,n] = sum_k active[p,c,k] qkw[c,k,s,n],  s = 0 ... 2R - 1                   qkw (C, K, 2R, N)
//   down[p,c,r,n] = wide[p,c,r,n] / sqrt(mean_n wide[p,c,r,n]^2 + eps),  r = 0 ... R - 1  reads the heads
//   up[p,c,r,n]   = wide[p,c,R+r,n]                                                       writes the heads
//   gate[p,c,n]   = tanh(sum[p,c,n]),  sum[p,c,n] = sum_a dd[a,c,n] u[p,a]                dd (D, C, N)
//     dactive[p,c,k] = sum_{s,n} qkw[c,k,s,n] dwide[p,c,s,n],   dqkw[c,k,s,n] = sum_p active[p,c,k] dwide[p,c,s,n]
//     dsum = dgate (1 - gate^2)
struct DynamicWeights {
  Array hidden, active;  // (P, C, K)
  Array wide, normed;    // (P, C, 2R, N): `down` is the first half of normed, `up` the second half of wide
  Array sum, gate;       // (P, C, N)
  Array ones;            // (N), in place of weights that the norm does not have

  DynamicWeights(int P, const Settings& s) : ones({s.N}) {
    hidden = active = Array({P, s.C(), s.K()});
    wide = normed = Array({P, s.C(), 2 * s.R, s.N});
    sum = gate = Array({P, s.C(), s.N});
    std::ranges::fill(ones.value, 1);
  }
};

void dynamic_weights(DynamicWeights& w, const Array& u, const Parameter& dw1, const Parameter& qkw, const Parameter& dd,
                     const Settings& s) {
  linear(w.hidden, u, dw1);
  gelu(w.active, w.hidden);
  for (int p = 0; p < u.rows; ++p)
    for (int c = 0; c < s.C(); ++c)
      for (int k = 0; k < s.K(); ++k)
        for (int sn = 0; sn < 2 * s.R * s.N; ++sn) w.wide(p, c, sn) += w.active(p, c, k) * qkw(c, k, sn);
  rms_norm(w.normed, w.wide, w.ones, s.down_eps);
  linear(w.sum, u, dd);
  for (int i = 0; i < w.gate.size(); ++i) w.gate(i) = std::tanh(w.sum(i));
}

void dynamic_weights_backward(DynamicWeights& w, Array& u, Parameter& dw1, Parameter& qkw, Parameter& dd,
                              const Settings& s) {
  for (int i = 0; i < w.gate.size(); ++i) w.sum.d(i) += w.gate.d(i) * (1 - w.gate(i) * w.gate(i));
  linear_backward(w.sum, u, dd);
  rms_norm_backward(w.normed, w.wide, w.ones, s.down_eps);
  for (int p = 0; p < u.rows; ++p)
    for (int c = 0; c < s.C(); ++c)
      for (int k = 0; k < s.K(); ++k)
        for (int sn = 0; sn < 2 * s.R * s.N; ++sn) {
          w.active.d(p, c, k) += qkw(c, k, sn) * w.wide.d(p, c, sn);
          qkw.d(c, k, sn) += w.active(p, c, k) * w.wide.d(p, c, sn);
        }
  gelu_backward(w.active, w.hidden);
  linear_backward(w.hidden, u, dw1);
}

// Compose mixes the heads of each pair by an N x N matrix M that is the pair's own:
//   O[pair,n] = sum_m A[pair,m] M[m,n]                                                   O and A (pairs, N)
//   M[m,n] = [m = n] + W[m,n]                                                            W (N, N), the static matrix
//          + [m = n] gate[p,c,n] + sum_r down[p,c,r,m] up[p,c,r,n]   with p the query and c the branch of its side
//          + the same                                                with p the key and c the branch of that side
//     dA[pair,m] = sum_n M[m,n] dO[pair,n],         dM[m,n] = A[pair,m] dO[pair,n]
//   and, summed over the pairs:
//     dW[m,n] = dM[m,n],                            dgate[p,c,n] = dM[n,n]
//     ddown[p,c,r,m] = sum_n dM[m,n] up[p,c,r,n],   dup[p,c,r,n] = sum_m dM[m,n] down[p,c,r,m]
// A term that is switched off is left out of M. The stage is 0 before the softmax, 1 after it.
using Sides = std::vector<std::pair<int, int>>;  // p and c of those that are on

Sides sides(const Pairs& pairs, int i, int stage, const Settings& s) {
  Sides on;
  if (s.branches[2 * stage]) on.emplace_back(pairs.query[i], s.place(2 * stage));
  if (s.branches[2 * stage + 1]) on.emplace_back(pairs.key[i], s.place(2 * stage + 1));
  return on;
}

Array mixing_matrix(const DynamicWeights& w, const Array& W, const Sides& on, const Settings& s) {
  Array M({s.N, s.N});
  for (int n = 0; n < s.N; ++n) M(n, n) = 1;
  for (int i = 0; i < W.size(); ++i) M(i) += W(i);
  for (const auto& [p, c] : on)
    for (int n = 0; n < s.N; ++n) {
      M(n, n) += w.gate(p, c, n);
      for (int m = 0; m < s.N; ++m)
        for (int r = 0; r < s.R; ++r) M(m, n) += w.normed(p, c, r, m) * w.wide(p, c, s.R + r, n);
    }
  return M;
}

void compose(Array& O, const Array& A, const DynamicWeights& w, const Array& W, const Pairs& pairs, int stage,
             const Settings& s) {
  for (int i = 0; i < pairs.size(); ++i) {
    const Array M = mixing_matrix(w, W, sides(pairs, i, stage, s), s);
    for (int m = 0; m < s.N; ++m)
      for (int n = 0; n < s.N; ++n) O(i, n) += A(i, m) * M(m, n);
  }
}

void compose_backward(const Array& O, Array& A, DynamicWeights& w, Array& W, const Pairs& pairs, int stage,
                      const Settings& s) {
  for (int i = 0; i < pairs.size(); ++i) {
    Array M = mixing_matrix(w, W, sides(pairs, i, stage, s), s);
    for (int m = 0; m < s.N; ++m)
      for (int n = 0; n < s.N; ++n) {
        A.d(i, m) += M(m, n) * O.d(i, n);
        M.d(m, n) += A(i, m) * O.d(i, n);
      }
    for (int j = 0; j < W.size(); ++j) W.d(j) += M.d(j);
    for (const auto& [p, c] : sides(pairs, i, stage, s))
      for (int n = 0; n < s.N; ++n) {
        w.gate.d(p, c, n) += M.d(n, n);
        for (int m = 0; m < s.N; ++m)
          for (int r = 0; r < s.R; ++r) {
            w.normed.d(p, c, r, m) += M.d(m, n) * w.wide(p, c, s.R + r, n);
            w.wide.d(p, c, s.R + r, n) += M.d(m, n) * w.normed(p, c, r, m);
          }
      }
  }
}

// ---- 4. Blocks and the model ----------------------------------------------------------------------------------------

// The weights of a block, named and stored as in published folders.
struct Block {
  Parameter attention_norm, wqkv, q_scale, k_scale, dw1, qkw, dd, pre_matrix, post_matrix, wo;
  Parameter ffn_norm, w1, w3, w2;

  Block(const Settings& s, const std::string& block) {
    const std::string attention = block + "attention.", dynamic = attention + "dyn_w_proj.";
    attention_norm = Parameter(block + "attention_norm.weight", {s.D});
    wqkv = Parameter(attention + "wqkv.weight", {3 * s.N * s.d, s.D});  // rows: all queries, all keys, all values
    wo = Parameter(attention + "wo.weight", {s.D, s.N * s.d});
    if (s.qk_norm) q_scale = Parameter(attention + "q_norm.scale", {s.d});
    if (s.qk_norm) k_scale = Parameter(attention + "k_norm.scale", {s.d});
    dw1 = Parameter(dynamic + "dw1", {s.D, s.C(), s.K()});
    qkw = Parameter(dynamic + "qkw", {s.C(), s.K(), 2 * s.R, s.N});
    dd = Parameter(dynamic + "dd", {s.D, s.C(), s.N});
    dw1.input_first = dd.input_first = true;
    if (s.matrices[0]) pre_matrix = Parameter(dynamic + "pre_proj.w", {s.N, s.N});
    if (s.matrices[1]) post_matrix = Parameter(dynamic + "post_proj.w", {s.N, s.N});
    ffn_norm = Parameter(block + "ffn_norm.weight", {s.D});
    w1 = Parameter(block + "feed_forward.w1.weight", {s.F, s.D});
    w3 = Parameter(block + "feed_forward.w3.weight", {s.F, s.D});
    w2 = Parameter(block + "feed_forward.w2.weight", {s.D, s.F});
  }
};

struct Model {
  Settings settings;
  Parameter table, norm, output;
  std::vector<Block> blocks;

  explicit Model(const Settings& s) : settings(s) {
    table = Parameter("tok_embeddings.weight", {s.V, s.D});
    norm = Parameter("norm.weight", {s.D});
    output = Parameter("output.weight", {s.V, s.D});
    for (size_t l = 0; l < s.windows.size(); ++l) blocks.emplace_back(s, "layers." + std::to_string(l) + ".");
  }

  std::vector<Parameter*> parameters() {
    std::vector<Parameter*> all = {&table, &norm, &output};
    for (Block& b : blocks)
      all.insert(all.end(), {&b.attention_norm, &b.wqkv, &b.q_scale, &b.k_scale, &b.dw1, &b.qkw, &b.dd, &b.pre_matrix,
                             &b.post_matrix, &b.wo, &b.ffn_norm, &b.w1, &b.w3, &b.w2});
    std::erase_if(all, [](const Parameter* p) { return p->value.empty(); });
    return all;
  }
};

struct Batch {
  int B = 0, T = 0;
  std::vector<int> ids, targets;  // (B, T): tokens, and for each the one that follows, or -1
};

// All that a block computes from its input x (P, D).
struct BlockPass {
  Pairs pairs;
  Array u, h, z, y;                                        // (P, D)
  Array q_raw, k_raw, q_normed, k_normed, q, k, v, heads;  // (P, N, d)
  DynamicWeights dynamic;
  Array S, composed, A, recomposed;  // (pairs, N)
  Array gate, factor, hidden;        // (P, F)

  BlockPass(const Settings& s, const Batch& batch, int window)
      : pairs(batch.B, batch.T, window), dynamic(batch.B * batch.T, s) {
    const int P = batch.B * batch.T;
    u = h = z = y = Array({P, s.D});
    q_raw = k_raw = q_normed = k_normed = q = k = v = heads = Array({P, s.N, s.d});
    S = composed = A = recomposed = Array({pairs.size(), s.N});
    gate = factor = hidden = Array({P, s.F});
  }
};

// u = norm(x),  h = x + Wo DCMHA(u),  z = norm(h),  y = h + W2 (silu(W1 z) W3 z)
// DCMHA: queries and keys are normed and rotated, their scores composed, the softmax composed, the values weighted.
void block_forward(BlockPass& a, const Array& x, const Block& w, const Settings& s, int T) {
  rms_norm(a.u, x, w.attention_norm, s.norm_eps);
  linear(a.q_raw, a.u, w.wqkv, 0);
  linear(a.k_raw, a.u, w.wqkv, 1);
  linear(a.v, a.u, w.wqkv, 2);
  if (s.qk_norm) rms_norm(a.q_normed, a.q_raw, w.q_scale, s.qk_norm_eps);
  if (s.qk_norm) rms_norm(a.k_normed, a.k_raw, w.k_scale, s.qk_norm_eps);
  rope(a.q, s.qk_norm ? a.q_normed : a.q_raw, T, s.rope_base);
  rope(a.k, s.qk_norm ? a.k_normed : a.k_raw, T, s.rope_base);
  dynamic_weights(a.dynamic, a.u, w.dw1, w.qkw, w.dd, s);
  scores(a.S, a.q, a.k, a.pairs);
  compose(a.composed, a.S, a.dynamic, w.pre_matrix, a.pairs, 0, s);
  softmax(a.A, a.composed, a.pairs);
  compose(a.recomposed, a.A, a.dynamic, w.post_matrix, a.pairs, 1, s);
  weighted_values(a.heads, a.recomposed, a.v, a.pairs);
  linear(a.h, a.heads, w.wo);
  add(a.h, x);
  rms_norm(a.z, a.h, w.ffn_norm, s.norm_eps);
  linear(a.gate, a.z, w.w1);
  linear(a.factor, a.z, w.w3);
  swiglu(a.hidden, a.gate, a.factor);
  linear(a.y, a.hidden, w.w2);
  add(a.y, a.h);
}

// The same lines from the last to the first.
void block_backward(BlockPass& a, Array& x, Block& w, const Settings& s, int T) {
  add_backward(a.y, a.h);
  linear_backward(a.y, a.hidden, w.w2);
  swiglu_backward(a.hidden, a.gate, a.factor);
  linear_backward(a.factor, a.z, w.w3);
  linear_backward(a.gate, a.z, w.w1);
  rms_norm_backward(a.z, a.h, w.ffn_norm, s.norm_eps);
  add_backward(a.h, x);
  linear_backward(a.h, a.heads, w.wo);
  weighted_values_backward(a.heads, a.recomposed, a.v, a.pairs);
  compose_backward(a.recomposed, a.A, a.dynamic, w.post_matrix, a.pairs, 1, s);
  softmax_backward(a.A, a.composed, a.pairs);
  compose_backward(a.composed, a.S, a.dynamic, w.pre_matrix, a.pairs, 0, s);
  scores_backward(a.S, a.q, a.k, a.pairs);
  dynamic_weights_backward(a.dynamic, a.u, w.dw1, w.qkw, w.dd, s);
  rope_backward(a.k, s.qk_norm ? a.k_normed : a.k_raw, T, s.rope_base);
  rope_backward(a.q, s.qk_norm ? a.q_normed : a.q_raw, T, s.rope_base);
  if (s.qk_norm) rms_norm_backward(a.k_normed, a.k_raw, w.k_scale, s.qk_norm_eps);
  if (s.qk_norm) rms_norm_backward(a.q_normed, a.q_raw, w.q_scale, s.qk_norm_eps);
  linear_backward(a.v, a.u, w.wqkv, 2);
  linear_backward(a.k_raw, a.u, w.wqkv, 1);
  linear_backward(a.q_raw, a.u, w.wqkv, 0);
  rms_norm_backward(a.u, x, w.attention_norm, s.norm_eps);
}

// All that the model computes from a batch: embedding, blocks, norm, logits. It is used once.
struct Pass {
  Array x, normed, logits;  // (P, D), (P, D), (P, V)
  std::vector<BlockPass> blocks;

  Pass(const Settings& s, const Batch& batch) {
    x = normed = Array({batch.B * batch.T, s.D});
    logits = Array({batch.B * batch.T, s.V});
    for (int window : s.windows) blocks.emplace_back(s, batch, window);
  }
  Array& into(size_t l) { return l == 0 ? x : blocks[l - 1].y; }  // the input of block l, or of the last norm
};

double forward(Pass& a, const Model& m, const Batch& batch) {
  const size_t L = m.blocks.size();
  embedding(a.x, m.table, batch.ids);
  for (size_t l = 0; l < L; ++l) block_forward(a.blocks[l], a.into(l), m.blocks[l], m.settings, batch.T);
  rms_norm(a.normed, a.into(L), m.norm, m.settings.norm_eps);
  linear(a.logits, a.normed, m.output);
  return cross_entropy(a.logits, batch.targets);
}

void backward(Pass& a, Model& m, const Batch& batch) {
  const size_t L = m.blocks.size();
  linear_backward(a.logits, a.normed, m.output);
  rms_norm_backward(a.normed, a.into(L), m.norm, m.settings.norm_eps);
  for (size_t l = L; l-- > 0;) block_backward(a.blocks[l], a.into(l), m.blocks[l], m.settings, batch.T);
  embedding_backward(a.x, m.table, batch.ids);
}

// The loss, and its derivative by every parameter.
double loss_and_gradients(Model& model, const Batch& batch) {
  for (Parameter* p : model.parameters()) std::ranges::fill(p->derivative, 0);
  Pass pass(model.settings, batch);
  const double loss = forward(pass, model, batch);
  backward(pass, model, batch);
  return loss;
}

// ---- 5. AdamW -------------------------------------------------------------------------------------------------------

// In update t = 1, 2, ... for every weight x with gradient g:
//   m = b1 m + (1 - b1) g,   v = b2 v + (1 - b2) g^2
//   x = x - lr (mh / (sqrt(vh) + eps) + decay x)   with mh = m / (1 - b1^t),  vh = v / (1 - b2^t)
struct AdamW {
  double b1 = 0.9, b2 = 0.95, eps = 1e-8, decay = 0.1;
  int t = 0;

  void update(Model& model, double lr) {
    ++t;
    const double c1 = 1 - std::pow(b1, t), c2 = 1 - std::pow(b2, t);
    for (Parameter* p : model.parameters())
      for (int i = 0; i < p->size(); ++i) {
        double &x = p->value[i], &m = p->m[i], &v = p->v[i], g = p->derivative[i];
        m = b1 * m + (1 - b1) * g;
        v = b2 * v + (1 - b2) * g * g;
        x -= lr * (m / c1 / (std::sqrt(v / c2) + eps) + decay * x);
      }
  }
};

// ---- 6. The program -------------------------------------------------------------------------------------------------

std::mt19937_64 bits(1);  // the same numbers everywhere

// Norms start as 1, and matrices so that they keep the variance; what Compose adds starts a tenth as large.
void initialise(Model& model) {
  for (Parameter* p : model.parameters()) {
    const bool vector = p->columns() == 1, added = p->name.ends_with("qkw") || p->name.ends_with("dd");
    const double scale = (added ? 0.1 : 1) * std::sqrt(3.0 / (p->input_first ? p->rows : p->last));
    for (double& x : p->value) x = vector ? 1 : scale * (std::ldexp(static_cast<double>(bits()), -63) - 1);
  }
}

// Whether (L(w + h s) - L(w - h s)) / 2h is sum_i s[i] dw[i], with random signs s, for every parameter w.
bool derivatives_agree(Model& model, const Batch& batch) {
  bool agree = true;
  const double h = 1e-5;
  loss_and_gradients(model, batch);
  for (Parameter* w : model.parameters()) {
    std::vector<double> start = w->value, s = start;
    double by_hand = 0, by_differences = 0, squares = 0;
    for (int i = 0; i < w->size(); ++i) {
      s[i] = bits() % 2 == 0 ? 1 : -1;
      by_hand += s[i] * w->d(i);
      squares += w->d(i) * w->d(i);
    }
    for (const double side : {1, -1}) {
      for (int i = 0; i < w->size(); ++i) w->value[i] = start[i] + side * h * s[i];
      Pass pass(model.settings, batch);
      by_differences += side * forward(pass, model, batch) / (2 * h);
    }
    w->value = start;
    const bool close = std::fabs(by_hand - by_differences) <= 1e-6 * std::sqrt(squares);
    if (!close) std::printf("%s: by hand %.10g, by differences %.10g\n", w->name.c_str(), by_hand, by_differences);
    agree = agree && close;
  }
  if (agree) std::puts("the derivatives agree with finite differences");
  return agree;
}

// Text as tokens: a letter is its place in `letters`. Each is to predict the next one.
Batch batch_of(const std::vector<std::string>& texts, const std::string& letters) {
  Batch batch{static_cast<int>(texts.size()), static_cast<int>(texts[0].size()) - 1, {}, {}};
  for (const std::string& text : texts)
    for (int t = 0; t < batch.T; ++t) {
      batch.ids.push_back(static_cast<int>(letters.find(text[t])));
      batch.targets.push_back(static_cast<int>(letters.find(text[t + 1])));
    }
  return batch;
}

}  // namespace plain

#ifndef GOLDEN_DCFORMER_WITHOUT_MAIN
int main() {
  using namespace plain;
  const std::string verse =
      "Twinkle, twinkle, little star, how I wonder what you are! "
      "Up above the world so high, like a diamond in the sky. ";
  std::string letters = verse;
  std::ranges::sort(letters);
  letters.erase(std::unique(letters.begin(), letters.end()), letters.end());

  const int T = 32, steps = 100;
  Settings s{.V = static_cast<int>(letters.size()), .D = 32, .N = 4, .d = 8, .F = 64, .windows = {16, 0}};
  s.matrices = {true, true};
  Model model(s);
  initialise(model);
  AdamW adamw;
  double loss = 0;
  for (int step = 0; step < steps; ++step) {
    std::vector<std::string> texts(4);
    for (std::string& text : texts) text = (verse + verse).substr(bits() % verse.size(), T + 1);
    const Batch batch = batch_of(texts, letters);
    if (step == 10 && !derivatives_agree(model, batch)) return 1;
    loss = loss_and_gradients(model, batch);
    if (step % 10 == 0) std::printf("step %3d  loss %.4f\n", step, loss);
    adamw.update(model, 0.01 * (steps - step) / steps);
  }

  std::string text = "Twinkle, ";
  while (text.size() < verse.size()) {  // the most probable letter after the last T of them
    const Batch batch = batch_of({text.substr(text.size() > T ? text.size() - T : 0) + '.'}, letters);
    Pass pass(s, batch);
    forward(pass, model, batch);
    const auto last = pass.logits.value.end() - s.V;
    text += letters[std::max_element(last, pass.logits.value.end()) - last];
  }
  std::printf("%s\n", text.c_str());
  return loss < 1 ? 0 : 1;
}
#endif
