// What attention and a stack of layers need at their peak, by the library's own count of requested bytes.
#include <braid/autograd/ops.h>
#include <braid/autograd/recompute.h>
#include <braid/tensor/memory.h>
#include <braid/tensor/parallel.h>

#include <cstdio>
using namespace braid;

static double mebibytes(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }
static int64_t in_use() {
  reset_peak_memory(kCpu);
  return memory_by_use(kCpu).peak();
}

// Beside q, k, v and dy.
static int64_t attention_peak(AttentionImpl impl, int64_t t, bool training) {
  Tensor qkv[3], dy = randn({1, t, 4, 32}, {10, 3});
  for (uint64_t i = 0; i < 3; ++i) {
    qkv[i] = randn({1, t, 4, 32}, {10, i});
    require_grad(qkv[i], training);
  }
  const int64_t before = in_use();
  const Tensor y = scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], {.impl = impl});
  if (training) backward(y, dy);
  return memory_by_use(kCpu).peak() - before;
}

// What eight MLPs keep for their backward pass.
static int64_t kept(bool again) {
  std::vector<Tensor> weights;
  for (uint64_t i = 0; i < 8; ++i) weights.push_back(randn({1024, 256}, {10, 10 + i}) * 0.05);
  for (Tensor& w : weights) require_grad(w);
  Tensor x = randn({512, 256}, {10, 9});
  const int64_t before = in_use();
  for (const Tensor& w : weights) {
    const Segment mlp = [w](const std::vector<Tensor>& in) {
      return in[0] + matmul(gelu(linear(in[0], w)), w);  // hidden (512, 1024)
    };
    x = again ? recompute(mlp, {x}) : mlp({x});
  }
  return in_use() - before;
}

int main() {
  set_threads(1);  // each thread of a fused kernel has a few rows of scores
  std::printf("   T   scores  reference  chunked   with backward: reference  chunked   (MiB)\n");
  for (const int64_t t : {256, 512, 1024}) {
    std::printf("%4d %8.1f %10.1f %8.1f %26.1f %8.1f\n", static_cast<int>(t), mebibytes(4 * t * t * 4),
                mebibytes(attention_peak(AttentionImpl::reference, t, false)),
                mebibytes(attention_peak(AttentionImpl::chunked, t, false)),
                mebibytes(attention_peak(AttentionImpl::reference, t, true)),
                mebibytes(attention_peak(AttentionImpl::chunked, t, true)));
  }
  const bool below = attention_peak(AttentionImpl::fused, 1024, true) < 4 * 1024 * 1024 * 4;
  std::printf("fused, T = 1024, with backward: below one tensor of scores: %s\n", below ? "yes" : "no");
  std::printf("eight MLPs keep %.1f MiB, with recompute() %.1f MiB\n", mebibytes(kept(false)), mebibytes(kept(true)));
}
