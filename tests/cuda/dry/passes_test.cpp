// Passes over memory around the products of a training step: how many, and of how many bytes.
#include <boost/test/unit_test.hpp>

#include "braid/autograd.h"
#include "tests/cuda/dry/support.h"

using namespace braid;
using namespace braid::test;

namespace {

constexpr int64_t kTokens = 8 * 2048, kVocabulary = 50257;

int64_t count_op(const std::vector<DryWork>& log, std::string_view op) {
  return count(log, [&](const DryWork& w) { return w.op == op; });
}
double bytes_of_op(const std::vector<DryWork>& log, std::string_view op) {
  double sum = 0;
  for (const DryWork& w : log) sum += w.op == op ? static_cast<double>(w.bytes) : 0;
  return sum;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(dry_passes)

// Per chunk of 1024 rows: three products, of which a vocabulary of no multiple of 8 cuts two in two, and one kernel,
// which reads and writes the logits in bf16.
BOOST_AUTO_TEST_CASE(cross_entropy_from_hidden_states) {
  const DryDevice dry;
  Tensor h = empty({kTokens, 1024}, DType::bf16, dry.device()),
         w = empty({kVocabulary, 1024}, DType::bf16, dry.device());
  const Tensor ids = empty({kTokens}, DType::i64, dry.device());
  require_grad(h);
  require_grad(w);
  const size_t before = dry.log().size();
  const Tensor loss = linear_cross_entropy(h, w, ids);
  const std::vector<DryWork> log(dry.log().begin() + static_cast<int64_t>(before), dry.log().end());
  const int64_t chunks = kTokens / 1024;
  BOOST_TEST(count_op(log, "matmul") == 5 * chunks);
  BOOST_TEST(count_op(log, "cross_entropy_in_place") == chunks);
  BOOST_TEST(static_cast<int64_t>(log.size()) <= 6 * chunks + 6);
  const double kernels = bytes_of_op(log, "cross_entropy_in_place"), logits = double(kTokens) * kVocabulary;
  BOOST_TEST(kernels == 6 * logits);  // the second reading counts, although caches may serve it
  for (const DryWork& work : log)
    if (work.op != "matmul" && work.op != "cross_entropy_in_place")
      BOOST_TEST(static_cast<double>(work.bytes) <= 4.0 * kVocabulary * 1024, work.op);  // no other pass over logits
}

// A step of one micro-batch: nothing but squares and update reads the gradients; the update writes the bf16 copies.
BOOST_AUTO_TEST_CASE(optimizer) {
  DryTraining t({"dcformer-405m", 1, 1024, {{"n_layer", "2"}}});
  const std::vector<DryWork>& log = t.step();
  double copied = 0, all = 0;
  for (const nn::NamedTensor& p : t.trainer->parameters()) {
    const auto n = static_cast<double>(p.value.numel());
    all += n;
    if (!t.model->keeps_f32(p.name)) copied += n;
  }
  const double f32 = all - copied;
  BOOST_TEST(bytes_of_op(log, "optimizer_update") <= 28 * copied + 28 * f32);
  BOOST_TEST(bytes_of_op(log, "optimizer_update") >= 27.9 * copied + 27.9 * f32);
  BOOST_TEST(bytes_of_op(log, "sum_of_squares") <= 1.001 * ((2 + 4) * copied + (4 + 4) * f32));  // and of the weights
}

// SwiGLU of one layer: one product forward, three backward, two kernels, no sum of gradients.
BOOST_AUTO_TEST_CASE(gate_and_up) {
  const DryDevice dry;
  Tensor x = empty({8, 2048, 1024}, DType::bf16, dry.device()), w = empty({2 * 2816, 1024}, DType::bf16, dry.device());
  Tensor gate = w.sliced(0, 0, 2816), up = w.sliced(0, 2816, 2 * 2816);
  for (Tensor* leaf : {&x, &gate, &up}) require_grad(*leaf);
  size_t before = dry.log().size();
  const auto [a, b] = linear_pair(x, gate, up);
  const Tensor y = swiglu(a, b), dy = empty(y.shape(), y.dtype(), y.device());
  BOOST_TEST(dry.log().size() == before + 2);
  before = dry.log().size();
  backward(y, dy);
  BOOST_TEST(dry.log().size() == before + 4);
}

// One more layer: the only pointwise kernel of two inputs is SwiGLU. Norms add to the residual stream and to its
// gradient.
BOOST_AUTO_TEST_CASE(residual_stream) {
  const auto binary = [](const char* layers, bool recompute) {
    DryTraining t({"transformer-405m", 1, 1024, {{"n_layer", layers}}, recompute});
    return count_op(t.step(), "binary");
  };
  BOOST_TEST(binary("3", false) - binary("2", false) == 1);
  BOOST_TEST(binary("3", true) - binary("2", true) == 4);  // SwiGLU and the block's sum, each computed twice
}

BOOST_AUTO_TEST_SUITE_END()
