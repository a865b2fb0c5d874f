#include <cmath>

#include "tests/support/op_table.h"

namespace braid::test {

namespace {

// y[i] = table[ids[i]]
Array select_reference(const std::vector<Array>& in) {
  const Array &table = in[0], &ids = in[1];
  Array y{ids.shape, {}};
  int64_t width = 1;
  for (int a = 1; a < table.shape.rank(); ++a) {
    y.shape.push_back(table.shape[a]);
    width *= table.shape[a];
  }
  for (double id : ids.values) {
    for (int64_t j = 0; j < width; ++j)
      y.values.push_back(table.values[static_cast<size_t>(static_cast<int64_t>(id) * width + j)]);
  }
  return y;
}

Array gather_reference(const std::vector<Array>& in) {
  Array y{in[1].shape, {}};
  int64_t n = in[0].shape[-1];
  for (size_t r = 0; r < in[1].values.size(); ++r) {
    y.values.push_back(in[0].values[r * static_cast<size_t>(n) + static_cast<size_t>(in[1].values[r])]);
  }
  return y;
}

double row_loss(const double* x, int64_t n, int64_t target) {
  double sum = 0;
  for (int64_t j = 0; j < n; ++j) sum += std::exp(x[j]);
  return std::log(sum) - x[target];
}

Array token_losses_reference(const std::vector<Array>& in) {
  Array y{in[1].shape, {}};
  int64_t n = in[0].shape[-1];
  for (size_t r = 0; r < in[1].values.size(); ++r) {
    y.values.push_back(row_loss(&in[0].values[r * static_cast<size_t>(n)], n, static_cast<int64_t>(in[1].values[r])));
  }
  return y;
}

Array mean_loss_reference(const std::vector<Array>& in) {
  double sum = 0;
  Array losses = token_losses_reference(in);
  for (double v : losses.values) sum += v;
  return {{}, {losses.values.empty() ? 0 : sum / static_cast<double>(losses.values.size())}};
}

Array linear_loss_reference(const std::vector<Array>& in, double cap, double z) {
  const Array &h = in[0], &w = in[1];
  int64_t d = w.shape[1], v = w.shape[0];
  double sum = 0;
  for (size_t r = 0; r < in[2].values.size(); ++r) {
    std::vector<double> logits(static_cast<size_t>(v), 0);
    for (int64_t j = 0; j < v; ++j) {
      for (int64_t l = 0; l < d; ++l) {
        logits[static_cast<size_t>(j)] +=
            h.values[r * static_cast<size_t>(d) + static_cast<size_t>(l)] * w.values[static_cast<size_t>(j * d + l)];
      }
    }
    if (cap > 0)
      for (double& x : logits) x = cap * std::tanh(x / cap);
    const double loss = row_loss(logits.data(), v, static_cast<int64_t>(in[2].values[r]));
    const double logsumexp = loss + logits[static_cast<size_t>(in[2].values[r])];
    sum += loss + z * logsumexp * logsumexp;
  }
  return {{}, {sum}};
}

OpRow linear_loss_row(const std::string& name, const LinearLossOptions& options) {
  return {.name = name,
          .op = [options](const auto& in) { return linear_cross_entropy(in[0], in[1], in[2], options); },
          .reference = [options](const auto& in) { return linear_loss_reference(in, options.softcap, options.z_loss); },
          .cases = {{{7, 4}, {5, 4}, {7}}, {{2, 3, 4}, {6, 4}, {2, 3}}, {{0, 4}, {5, 4}, {0}}, {{3}, {5, 3}, {}}},
          .index_limits = {0, 0, 5}};
}

}  // namespace

std::vector<OpRow> language_rows() {
  return {
      {.name = "index_select",
       .op = [](const auto& in) { return index_select(in[0], in[1]); },
       .reference = select_reference,
       .cases = {{{5, 3}, {4}},
                 {{5, 2, 3}, {2, 3}},
                 {{6}, {2, 2}},
                 {{5, 300}, {40}},
                 {{5, 3}, {0}},
                 {{5, 0}, {4}},
                 {{5, 2}, {}}},
       .index_limits = {0, 5}},
      {.name = "gather",
       .op = [](const auto& in) { return gather(in[0], in[1]); },
       .reference = gather_reference,
       .cases = {{{4, 5}, {4}}, {{2, 3, 6}, {2, 3}}, {{5}, {}}, {{0, 5}, {0}}},
       .index_limits = {0, 5}},
      {.name = "embedding",
       .op = [](const auto& in) { return embedding(in[0], in[1]); },
       .reference = select_reference,
       .cases = {{{7, 4}, {3}}, {{7, 4}, {2, 5}}, {{7, 1}, {0, 2}}},
       .index_limits = {0, 7}},
      {.name = "mse_loss",
       .op = [](const auto& in) { return mse_loss(in[0], in[1]); },
       .reference =
           [](const auto& in) {
             double sum = 0;
             for (size_t i = 0; i < in[0].values.size(); ++i) sum += std::pow(in[0].values[i] - in[1].values[i], 2);
             return Array{{}, {sum / static_cast<double>(in[0].values.size())}};
           },
       .cases = {{{7}, {7}}, {{3, 5}, {3, 5}}, {{}, {}}},
       .roundings = 4},
      {.name = "cross_entropy",
       .op = [](const auto& in) { return cross_entropy(in[0], in[1]); },
       .reference = mean_loss_reference,
       .cases = {{{4, 5}, {4}}, {{2, 3, 7}, {2, 3}}, {{3, 130}, {3}}, {{5}, {}}, {{0, 5}, {0}}},
       .index_limits = {0, 5}},
      {.name = "cross_entropy_per_token",
       .op = [](const auto& in) { return cross_entropy_per_token(in[0], in[1]); },
       .reference = token_losses_reference,
       .cases = {{{4, 5}, {4}}, {{2, 3, 7}, {2, 3}}, {{3, 130}, {3}}, {{5}, {}}, {{0, 5}, {0}}},
       .index_limits = {0, 5}},
      linear_loss_row("linear_cross_entropy", {}),
      linear_loss_row("linear_cross_entropy:3", {.chunk_rows = 3}),
      linear_loss_row("linear_cross_entropy:1", {.chunk_rows = 1}),
      linear_loss_row("linear_cross_entropy:softcap", {.chunk_rows = 2, .softcap = 2.5}),
      linear_loss_row("linear_cross_entropy:z_loss", {.chunk_rows = 3, .z_loss = 0.2}),
      linear_loss_row("linear_cross_entropy:both", {.softcap = 2.5, .z_loss = 0.2}),
  };
}

}  // namespace braid::test
