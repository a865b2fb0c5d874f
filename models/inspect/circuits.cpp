#include "braid/models/inspect/circuits.h"

#define EIGEN_DONT_PARALLELIZE
#include <Eigen/QR>
#include <cmath>

#include "braid/models/inspect/parameter_named.h"
#include "braid/models/inspect/spectrum.h"

namespace braid::models {

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Map<const RowMajor> matrix(const HeadWeights& head, const std::vector<double>& values) {
  return {values.data(), head.dim, head.width};
}

// |A^T B| for A, B (d, D), by products of d x d: sum of (A A^T) * (B B^T), element by element.
double product_norm(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  return std::sqrt(std::max(0.0, (a * a.transpose()).cwiseProduct(b * b.transpose()).sum()));
}

// The singular values of A^T B for A, B (d, D): those of the d x d matrix R_A R_B^T of A^T = Q_A R_A, B^T = Q_B R_B.
std::vector<double> product_singular_values(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  const auto upper = [](const Eigen::MatrixXd& x) -> Eigen::MatrixXd {
    const Eigen::HouseholderQR<Eigen::MatrixXd> qr(x.transpose());
    const auto n = std::min(x.rows(), x.cols());
    return qr.matrixQR().topRows(n).triangularView<Eigen::Upper>();
  };
  const RowMajor product = upper(a) * upper(b).transpose();
  return singular_values({product.data(), static_cast<size_t>(product.size())}, product.rows(), product.cols());
}

}  // namespace

std::vector<HeadWeights> head_weights(const LanguageModel& model, int64_t layer) {
  const Tensor qkv = parameter_named(model, layer_name(layer, "attention.wqkv.weight")),
               out = parameter_named(model, layer_name(layer, "attention.wo.weight")),
               norm = parameter_named(model, layer_name(layer, "attention_norm.weight"));
  if (!qkv || !out || !norm) return {};
  const int64_t D = qkv.dim(1), N = heads_of(model), kv = kv_heads_of(model), d = head_dim_of(model);
  const std::vector<double> w = qkv.to_vector<double>(), o = out.to_vector<double>(), g = norm.to_vector<double>();
  std::vector<HeadWeights> heads;
  for (int64_t n = 0; n < N; ++n) {
    HeadWeights head{D, d, {}, {}, {}, {}};
    const int64_t shared = n / (N / kv);  // the key/value head
    const auto rows = [&](int64_t first, double scale) {
      std::vector<double> result;
      for (int64_t r = first; r < first + d; ++r)
        for (int64_t c = 0; c < D; ++c)
          result.push_back(w[static_cast<size_t>(r * D + c)] * g[static_cast<size_t>(c)] * scale);
      return result;
    };
    head.q = rows(n * d, 1 / std::sqrt(static_cast<double>(d)));
    head.k = rows((N + shared) * d, 1);
    head.v = rows((N + kv + shared) * d, 1);
    for (int64_t r = n * d; r < (n + 1) * d; ++r)
      for (int64_t c = 0; c < D; ++c) head.o_t.push_back(o[static_cast<size_t>(c * N * d + r)]);
    heads.push_back(std::move(head));
  }
  return heads;
}

std::vector<double> qk_singular_values(const HeadWeights& head) {
  return product_singular_values(matrix(head, head.q), matrix(head, head.k));
}
std::vector<double> ov_singular_values(const HeadWeights& head) {
  return product_singular_values(matrix(head, head.o_t), matrix(head, head.v));
}

double qk_value(const HeadWeights& head, std::span<const double> x, std::span<const double> y) {
  const Eigen::Map<const Eigen::VectorXd> a(x.data(), head.width), b(y.data(), head.width);
  return (matrix(head, head.q) * a).dot(matrix(head, head.k) * b);
}
double ov_value(const HeadWeights& head, std::span<const double> x, std::span<const double> y) {
  const Eigen::Map<const Eigen::VectorXd> a(x.data(), head.width), b(y.data(), head.width);
  return (matrix(head, head.o_t) * b).dot(matrix(head, head.v) * a);
}

CompositionScores composition_scores(const HeadWeights& earlier, const HeadWeights& later) {
  const auto q = matrix(later, later.q), k = matrix(later, later.k), v = matrix(later, later.v),
             o_t = matrix(later, later.o_t), written = matrix(earlier, earlier.o_t), read = matrix(earlier, earlier.v);
  const double ov = product_norm(written, read), qk = product_norm(q, k), later_ov = product_norm(o_t, v);
  // W_QK^T W_OV = k^T (q o) v and so on, with the product in brackets of d x d.
  const auto through = [&](const Eigen::MatrixXd& reads, const Eigen::MatrixXd& rest) {
    const Eigen::MatrixXd middle = reads * written.transpose();  // (d, d)
    return product_norm(middle.transpose() * rest, read);
  };
  const auto share = [](double x, double norm) { return norm > 0 ? x / norm : 0; };
  return {share(through(q, k), qk * ov), share(through(k, q), qk * ov), share(through(v, o_t), later_ov * ov)};
}

}  // namespace braid::models
