// Queries, keys and values in one kernel each way, against the ops that the CPU composes.
#include "braid/autograd/ops.h"
#include "tests/cuda/support.h"

using namespace braid;
using namespace braid::test;

namespace {

struct Case {
  int64_t B, T, N, Nkv, d, half;
  bool norm = true, per_sample = false;
  double eps = 0.05;
};

// x, the two weights, the two tables -> q, k, v, dx and the gradients of the weights. unused: that result has no
// gradient.
std::vector<Tensor> split_and_gradients(const std::vector<Tensor>& in, const Case& c, int unused) {
  Tensor x = in[0].detach();
  QkvSplit how{.heads = c.N, .kv_heads = c.Nkv, .head_dim = c.d, .norm_eps = c.eps, .cosine = in[3], .sine = in[4]};
  if (c.norm) how.q_norm = in[1].detach(), how.k_norm = in[2].detach();
  for (Tensor* t : {&x, &how.q_norm, &how.k_norm})
    if (*t) require_grad(*t);
  const Qkv r = split_qkv(x, how);
  std::vector<Tensor> results{r.q.detach().contiguous(), r.k.detach().contiguous(), r.v.detach().contiguous()};
  Tensor loss;
  for (int i = 0; i < 3; ++i) {
    if (i == unused) continue;
    const Tensor& y = i == 0 ? r.q : i == 1 ? r.k : r.v;
    Tensor weight = random_tensor(y.shape(), 11 + static_cast<uint64_t>(i), y.dtype()).to(y.device());
    if (i != 1) weight = weight.transposed(1, 2).clone().transposed(1, 2);  // heads first, as attention returns it
    const Tensor term = sum(y * weight);
    loss = loss ? loss + term : term;
  }
  backward(loss);
  for (const Tensor& t : {x, how.q_norm, how.k_norm})
    if (t) results.push_back(grad(t) ? grad(t) : zeros_like(t));
  return results;
}

void check_case(const Case& c, DType t, int unused, bool misaligned) {
  BOOST_TEST_CONTEXT(str(t) << " B" << c.B << " T" << c.T << " N" << c.N << " Nkv" << c.Nkv << " d" << c.d << " half "
                            << c.half << (c.norm ? " norm" : "") << " without " << unused) {
    const DType wide = accumulate_type(t);
    const Shape table{c.per_sample ? c.B : 1, c.T, c.half};
    const Tensor none;
    check_on_gpu([&](const auto& in) { return split_and_gradients(in, c, unused); },
                 {random_tensor({c.B, c.T, (c.N + 2 * c.Nkv) * c.d}, 1, t), random_tensor({c.d}, 2, t),
                  random_tensor({c.d}, 3, t), c.half > 0 ? random_tensor(table, 4, wide, -1, 1) : none,
                  c.half > 0 ? random_tensor(table, 5, wide, -1, 1) : none},
                 2 * tolerance_of(t), misaligned, 0.01);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_split_qkv)

BOOST_AUTO_TEST_CASE(has_the_values_of_the_composed_ops) {
  for (DType t : kFloats) {
    for (const Case& c : std::vector<Case>{{2, 3, 4, 4, 64, 32},
                                           {2, 2, 8, 2, 32, 4, false},
                                           {1, 3, 4, 2, 80, 40, true, true},
                                           {2, 2, 3, 1, 7, 3, true, true},
                                           {1, 2, 2, 2, 16, 0},
                                           {2, 5, 3, 3, 12, 0, false},
                                           {1, 2, 2, 0, 8, 4},
                                           {1, 5, 2, 1, 64, 0, true, false, 0}}) {
      if (c.d * size_of(t) > backend(kGpu).split_qkv.largest_head_bytes) continue;
      check_case(c, t, -1, false);
      check_case(c, t, static_cast<int>(c.d % 3), c.d != 80);
    }
  }
}

// The largest heads that lanes hold, and larger ones, which the ops compute.
BOOST_AUTO_TEST_CASE(heads_of_any_size) {
  const int64_t largest = backend(kGpu).split_qkv.largest_head_bytes;
  for (DType t : {DType::f64, DType::bf16}) {
    const int64_t d = largest / size_of(t);
    check_case({1, 2, 2, 1, d, d / 4 + 1}, t, -1, false);
    check_case({1, 2, 2, 1, d - 1, d / 2 - 1}, t, -1, true);
    check_case({1, 2, 1, 1, d + 2, 3}, t, -1, false);
  }
}

// Every block has many rows, and the blocks' sums are added.
BOOST_AUTO_TEST_CASE(more_rows_than_blocks_that_add_up) { check_case({2, 900, 10, 4, 33, 8}, DType::f32, -1, false); }

BOOST_AUTO_TEST_CASE(results_lie_heads_first) {
  const QkvSplit how{.heads = 4, .kv_heads = 2, .head_dim = 8};
  const Qkv r = split_qkv(random_tensor({2, 3, 64}, 1, DType::f32).to(kGpu), how);
  for (const Tensor& t : {r.q, r.k, r.v}) {
    BOOST_TEST(t.dim(1) == 3);
    BOOST_TEST(t.transposed(1, 2).is_contiguous());
  }
}

BOOST_AUTO_TEST_SUITE_END()
