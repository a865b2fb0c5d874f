// Trains a DCFormer of two layers for some seconds, then asks what its heads do.
#include "course/09_heads/trained.h"

#include <cmath>
#include <cstdio>
using namespace braid;

// 1 less the mean cosine of the maps of two different heads, (N, T, T).
static double diversity(const Tensor& maps) {
  const Tensor rows = reshape(tril(maps), {maps.dim(0), -1}), unit = rows / sqrt(sum(square(rows), {1}, true));
  const double n = static_cast<double>(maps.dim(0));
  return 1 - (sum(matmul(unit, transpose(unit))).item() - n) / (n * (n - 1));
}

// The share of the sizes of p (N, T, T) that stands where `where` (T, T) is 1, by heads.
static void show_share(const char* name, const Tensor& p, const Tensor& where) {
  std::printf("    %s:", name);
  for (const double x : (sum(abs(p) * where, {1, 2}) / sum(abs(p), {1, 2})).to_vector<double>())
    std::printf(" %.2f", x);
  std::printf("\n");
}

int main() {
  const course::Recaller trained;
  const Tensor ids = trained.shown(), earlier = roll(ids, 1, 1), place = arange(20), query = reshape(place, {20, 1});
  const Tensor one_back = cast(eq(place, query - 1), DType::f64);
  const Tensor behind_equal = cast(eq(earlier, transpose(ids)) & (place > 0) & (place <= query), DType::f64);
  const double loss = trained.loss();
  std::printf("loss %.3f nats per token; guessing: %.3f\n", loss, std::log(8.0));
  for (int layer = 0; layer < 2; ++layer) {
    const std::string part = "layers." + std::to_string(layer) + ".attention.";
    const Tensor wo = trained.parameter(part + "wo.weight"), wqkv = trained.parameter(part + "wqkv.weight");
    std::printf("layer %d, without head 0, 1, 2, 3:", layer);
    for (int64_t head = 0; head < 4; ++head) {
      Tensor columns = wo.sliced(1, 8 * head, 8 * head + 8);  // those that read the head
      const Tensor kept = columns.clone();
      columns.fill(0);
      std::printf(" %+.3f", trained.loss() - loss);
      columns.copy_(kept);
    }
    std::printf("\n  effective rank of W_QK:");
    for (int64_t head = 0; head < 4; ++head) {
      const Tensor q = slice(wqkv, 0, 8 * head, 8 * head + 8), k = slice(wqkv, 0, 32 + 8 * head, 40 + 8 * head);
      const Tensor s = svdvals(matmul(transpose(q), k)), p = clamp(s / sum(s), 1e-300, 1);
      std::printf(" %.1f", std::exp(-sum(p * log(p)).item()));
    }
    std::printf(" of at most 8\n");
    for (const char* name : {"attn_probs", "attn_probs_composed"}) {
      std::printf("  %s\n", name);
      show_share("on the token before", trained.map(layer, name), one_back);
      show_share("on tokens behind an equal one", trained.map(layer, name), behind_equal);
    }
    std::printf("  diversity: scores %.2f, composed %.2f; probabilities %.2f, composed %.2f\n",
                diversity(trained.map(layer, "attn_scores")), diversity(trained.map(layer, "attn_scores_composed")),
                diversity(trained.map(layer, "attn_probs")), diversity(trained.map(layer, "attn_probs_composed")));
  }
}
