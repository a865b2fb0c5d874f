#include <limits>

#include "tests/cuda/support.h"

using namespace braid;
using namespace braid::test;

namespace {

// inputs: logits, targets, scale. The gradient is written over a copy of the logits.
std::vector<Tensor> losses(const std::vector<Tensor>& in) {
  const Backend& k = backend(in[0].device());
  Tensor loss = empty({in[1].numel()}, accumulate_type(in[0].dtype()), in[0].device());
  Tensor top = empty_like(loss), log_sum = empty_like(loss);
  k.loss.cross_entropy(in[0], in[1], loss, top, log_sum);
  Tensor apart = empty_like(in[0]), over = copy_of(in[0]);
  k.loss.cross_entropy_backward(in[0], in[1], top, log_sum, in[2], apart);
  k.loss.cross_entropy_backward(over, in[1], top, log_sum, in[2], over);
  return {loss, top, log_sum, apart, over};
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
            check_on_gpu(losses, {logits, targets, random_tensor({shape[0]}, 3, accumulate_type(t))}, tolerance,
                         misaligned);
            if (!misaligned) check_on_gpu(losses, {logits, targets, full({1}, 0.25, accumulate_type(t))}, tolerance);
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
    backend(kGpu).loss.cross_entropy_backward(logits, targets, top, log_sum, one, d);
    BOOST_TEST(is_close(loss.to_vector<double>(), {0, 0, 0}, 0));
    BOOST_TEST(is_close(top.to_vector<double>(), {1e4, 0, 5}, 0));
    BOOST_TEST(is_close(log_sum.to_vector<double>(), {0, 0, 0}, 0));
    BOOST_TEST(is_close(d.to_vector<double>(), std::vector<double>(9, 0), 0));
    logits = full({3, 3}, 1e30, t).to(kGpu);  // the gradient keeps its digits
    backend(kGpu).loss.cross_entropy(logits, targets, loss, top, log_sum);
    backend(kGpu).loss.cross_entropy_backward(logits, targets, top, log_sum, one, d);
    const double third = 1.0 / 3;
    BOOST_TEST(is_close(d.to_vector<double>(), {third - 1, third, third, 0, 0, 0, third, third - 1, third}, 1e-6));
  }
}

BOOST_AUTO_TEST_SUITE_END()
