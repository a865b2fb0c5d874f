#include <limits>

#include "braid/autograd.h"
#include "tests/cuda/support.h"

using namespace braid;
using namespace braid::test;

namespace {

// inputs: logits, targets, scale. The gradient is written over a copy of the logits.
Run losses(double z = 0) {
  return [z](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    const Backend& k = backend(in[0].device());
    Tensor loss = empty({in[1].numel()}, accumulate_type(in[0].dtype()), in[0].device());
    Tensor top = empty_like(loss), log_sum = empty_like(loss);
    k.loss.cross_entropy(in[0], in[1], loss, top, log_sum);
    Tensor apart = empty_like(in[0]), over = copy_of(in[0]);
    k.loss.cross_entropy_backward(in[0], in[1], top, log_sum, in[2], z, apart);
    k.loss.cross_entropy_backward(over, in[1], top, log_sum, in[2], z, over);
    return {loss, top, log_sum, apart, over};
  };
}

// inputs: logits, targets. Loss and gradient in one call, of rows that lie `gap` elements apart, and what lies between.
Run in_place(int64_t gap, double z = 0) {
  return [gap, z](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    const int64_t n = in[0].dim(1);
    Tensor loss = empty({in[1].numel()}, accumulate_type(in[0].dtype()), in[0].device());
    Tensor memory = full({in[0].dim(0), n + gap}, 7, in[0].dtype(), in[0].device()), logits = memory.sliced(1, 0, n);
    logits.copy_(in[0]);
    Tensor top = empty_like(loss), log_sum = empty_like(loss);
    backend(in[0].device()).loss.in_place(logits, in[1], z, loss, top, log_sum);
    return {loss, logits, memory.sliced(1, n, n + gap), top, log_sum};
  };
}

struct Outcome {
  double loss;
  std::vector<double> hidden, weight;
};
using Loss = std::function<Tensor(const Tensor& hidden, const Tensor& weight)>;
Outcome run(const Tensor& hidden, const Tensor& weight, const Loss& loss_of) {
  Tensor h = copy_of(hidden), w = copy_of(weight);
  require_grad(h);
  require_grad(w);
  const Tensor loss = loss_of(h, w);
  backward(loss);
  return {loss.item(), grad(h).to_vector<double>(), grad(w).to_vector<double>()};
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_cross_entropy)

BOOST_AUTO_TEST_CASE(rows_of_any_length_and_ignored_targets) {
  for (DType t : kFloats) {
    for (Shape shape : std::vector<Shape>{{0, 5}, {4, 1}, {70, 5}, {9, 33}, {5, 64}, {3, 1001}, {3, 9001}}) {
      for (DType index : {DType::i64, DType::i32}) {
        for (bool misaligned : {false, true}) {
          BOOST_TEST_CONTEXT(str(t) << " " << str(shape) << " " << str(index) << (misaligned ? " misaligned" : "")) {
            Tensor logits = random_tensor(shape, 1, t, -8, 8), targets = random_ids({shape[0]}, 2, -1, shape[1], index);
            double tolerance = t == DType::f64 ? 1e-12 : t == DType::f32 ? 4e-6 : 2 * tolerance_of(t);
            check_on_gpu(losses(), {logits, targets, random_tensor({shape[0]}, 3, accumulate_type(t))}, tolerance,
                         misaligned);
            if (!misaligned) check_on_gpu(losses(), {logits, targets, full({1}, 0.25, accumulate_type(t))}, tolerance);
            for (double z : {0.0, 0.05}) check_on_gpu(in_place(misaligned ? 3 : 0, z), {logits, targets}, tolerance);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(extreme_logits) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (DType t : {DType::f64, DType::f32}) {
    Tensor logits = from_values({1e4, 0, -kInf, std::nan(""), 1, 2, -kInf, 5, -kInf}, {3, 3}, t).to(kGpu);
    Tensor targets = from_values({0, -1, 1}, {3}, DType::i64).to(kGpu), one = full({1}, 1, t).to(kGpu);
    Tensor loss = empty({3}, t, kGpu), top = empty_like(loss), log_sum = empty_like(loss), d = empty_like(logits);
    backend(kGpu).loss.cross_entropy(logits, targets, loss, top, log_sum);
    backend(kGpu).loss.cross_entropy_backward(logits, targets, top, log_sum, one, 0, d);
    BOOST_TEST(is_close(loss.to_vector<double>(), {0, 0, 0}, 0));
    BOOST_TEST(is_close(top.to_vector<double>(), {1e4, 0, 5}, 0));
    BOOST_TEST(is_close(log_sum.to_vector<double>(), {0, 0, 0}, 0));
    BOOST_TEST(is_close(d.to_vector<double>(), std::vector<double>(9, 0), 0));
    logits = full({3, 3}, 1e30, t).to(kGpu);  // the gradient keeps its digits
    backend(kGpu).loss.cross_entropy(logits, targets, loss, top, log_sum);
    backend(kGpu).loss.cross_entropy_backward(logits, targets, top, log_sum, one, 0, d);
    const double third = 1.0 / 3;
    BOOST_TEST(is_close(d.to_vector<double>(), {third - 1, third, third, 0, 0, 0, third, third - 1, third}, 1e-6));
  }
}

BOOST_AUTO_TEST_CASE(one_kernel_has_the_bits_of_two) {
  for (DType t : kFloats) {
    Tensor logits = random_tensor({5, 1001}, 1, t, -8, 8).to(kGpu), targets = random_ids({5}, 2, -1, 1001).to(kGpu);
    const std::vector<Tensor> one = in_place(23)({logits, targets});
    const std::vector<Tensor> two = losses()({logits, targets, full({1}, 1, accumulate_type(t)).to(kGpu)});
    BOOST_TEST(same_bits(one[0], two[0]));
    BOOST_TEST(same_bits(one[1], two[4]));
  }
}

// In bf16 the logits of a chunk are bf16, in padded rows: no memory for them in f32. Errors against f64 are those of
// the composed form in the same precision.
BOOST_AUTO_TEST_CASE(logits_of_a_linear_loss_in_bf16) {
  constexpr int64_t kRows = 48, kWidth = 24, kVocabulary = 1001, kChunk = 32;
  const Tensor h = random_tensor({kRows, kWidth}, 1, DType::bf16, -2, 2);
  const Tensor w = random_tensor({kVocabulary, kWidth}, 2, DType::bf16, -1, 1), ids = random_ids({kRows}, 3, -8, 1001);
  const Loss fused = [&](const Tensor& x, const Tensor& y) {
    return linear_cross_entropy(x, y, ids.to(x.device()), kChunk);
  };
  const Loss composed = [&](const Tensor& x, const Tensor& y) {
    return sum(cross_entropy_per_token(linear(x, y), ids.to(x.device())));
  };
  const Outcome exact = run(h.to(DType::f64), w.to(DType::f64), composed);
  const Outcome plain = run(h.to(kGpu), w.to(kGpu), composed), got = run(h.to(kGpu), w.to(kGpu), fused);
  BOOST_TEST(distance(got.hidden, exact.hidden) <= 1.1 * distance(plain.hidden, exact.hidden));
  BOOST_TEST(distance(got.weight, exact.weight) <= 1.1 * distance(plain.weight, exact.weight));
  BOOST_TEST(std::fabs(got.loss - exact.loss) <= 1.1 * std::fabs(plain.loss - exact.loss) + 1e-5 * exact.loss);

  const NoGrad off;
  const Tensor there = h.to(kGpu), weight = w.to(kGpu), targets = ids.to(kGpu);
  reset_peak_memory(kGpu);
  const int64_t before = memory_stats(kGpu).current;
  linear_cross_entropy(there, weight, targets, kChunk);
  const int64_t padded = kChunk * 1024 * size_of(DType::bf16);
  BOOST_TEST(memory_stats(kGpu).peak - before < padded + 8192);
}

BOOST_AUTO_TEST_CASE(the_count_reads_nothing_back) {
  Tensor x = random_tensor({6, 9}, 1, DType::f32, -2, 2), ids = random_ids({6}, 2, -2, 9);
  for (DType t : {DType::f64, DType::f32}) {
    check_on_gpu(
        [](const std::vector<Tensor>& in) -> std::vector<Tensor> {
          Tensor some = empty({1}, in[0].dtype(), in[0].device()), none = empty_like(some);
          const LossKernels& k = backend(in[0].device()).loss;
          k.count_targets(in[1], some);
          k.count_targets(in[2], none);
          return {some, none};
        },
        {x.to(t), ids, full({3}, -1, DType::i64)}, 0);
  }
}

BOOST_AUTO_TEST_SUITE_END()
