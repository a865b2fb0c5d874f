#include "braid/tensor/kernels/pointwise_ops.h"
#include "tests/cuda/support.h"

using namespace braid;
using namespace braid::test;

namespace {

constexpr double kEps = 1e-3;

Tensor like_if(const Tensor& x) { return x ? empty_like(x) : Tensor(); }

// inputs: x, weight, bias or empty handles, dy; with a residual, that and dsum. Values, statistics, and the gradients
// of what is there.
std::vector<Tensor> layer(const std::vector<Tensor>& in) {
  const Tensor &x = in[0], &w = in[1], &b = in[2], none, &residual = in.size() > 4 ? in[4] : none;
  const Backend& k = backend(x.device());
  Tensor y = empty_like(x), mean = empty({x.dim(0)}, accumulate_type(x.dtype()), x.device()), rstd = empty_like(mean);
  Tensor dx = empty_like(x), dw = like_if(w), db = like_if(b), sum = like_if(residual);
  k.norm.layer_forward(x, residual, w, b, kEps, sum, y, mean, rstd);
  k.norm.layer_backward(sum ? sum : x, w, mean, rstd, in[3], residual ? in[5] : none, dx, dw, db);
  std::vector<Tensor> out{y, dx};
  if (x.numel() > 0) out.insert(out.end(), {mean, rstd});
  if (sum) out.push_back(sum);
  if (w) out.push_back(dw);
  if (b) out.push_back(db);
  return out;
}

std::vector<Tensor> rms(const std::vector<Tensor>& in) {
  const Tensor &x = in[0], &w = in[1], none, &residual = in.size() > 4 ? in[4] : none;
  const Backend& k = backend(x.device());
  Tensor y = empty_like(x), rstd = empty({x.dim(0)}, accumulate_type(x.dtype()), x.device());
  Tensor dx = empty_like(x), dw = like_if(w), sum = like_if(residual);
  k.norm.rms_forward(x, residual, w, kEps, sum, y, rstd);
  k.norm.rms_backward(sum ? sum : x, w, rstd, in[3], residual ? in[5] : none, dx, dw);
  std::vector<Tensor> out{y, dx};
  if (x.numel() > 0) out.push_back(rstd);
  if (sum) out.push_back(sum);
  if (w) out.push_back(dw);
  return out;
}

double tolerance(DType t) { return t == DType::f32 ? 1e-5 : 2 * tolerance_of(t); }

// The gradient of a row of one element under LayerNorm is 0 up to the rounding of rstd, which is about 30.
void check(const Run& run, const std::vector<Tensor>& in, bool misaligned = false) {
  check_on_gpu(run, in, tolerance(in[0].dtype()), misaligned, 1);
}

void check_shape(const Shape& shape, DType t, bool misaligned) {
  BOOST_TEST_CONTEXT(str(t) << " " << str(shape) << (misaligned ? " misaligned" : "")) {
    Tensor x = random_tensor(shape, 1, t, -1, 2), g = random_tensor(shape, 2, t);
    Tensor w = random_tensor({shape[-1]}, 3, t), b = random_tensor({shape[-1]}, 4, t), none;
    check(layer, {x, w, b, g}, misaligned);
    check(rms, {x, w, none, g}, misaligned);
    Tensor residual = random_tensor(shape, 5, t), more = random_tensor(shape, 6, t);
    check(layer, {x, w, b, g, residual, more}, misaligned);
    check(rms, {x, w, none, g, residual, more}, misaligned);
    if (misaligned) return;
    check(layer, {x, w, none, g});
    check(layer, {x, none, b, g});
    check(layer, {x, none, none, g});
    check(rms, {x, none, none, g});
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_norm)

BOOST_AUTO_TEST_CASE(rows_of_any_length) {
  for (DType t : kFloats) {
    for (Shape shape : std::vector<Shape>{{4, 0}, {0, 4}, {5, 1}, {40, 3}, {7, 33}, {3, 64}, {2, 515}}) {
      check_shape(shape, t, false);
      if (shape[-1] == 3 || shape[-1] == 33 || shape[-1] == 515) check_shape(shape, t, true);
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_too_long_for_registers) {
  check_shape({3, 2051}, DType::f64, false);
  check_shape({3, 4099}, DType::f32, false);
  check_shape({2, 8203}, DType::bf16, true);
  check_shape({2, 8203}, DType::f16, true);
}

BOOST_AUTO_TEST_CASE(more_rows_than_blocks_that_add_up) {
  for (Shape shape : std::vector<Shape>{{560, 66}, {4300, 63}}) {  // a block, and an eighth of one, for each row
    Tensor x = random_tensor(shape, 1, DType::f64), g = random_tensor(shape, 2, DType::f64);
    check_on_gpu(rms, {x, random_tensor({shape[1]}, 3, DType::f64), {}, g}, 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(a_large_mean_does_not_cancel) {
  Tensor x = from_values({999, 1001, 999, 1001}, {1, 4}).to(kGpu), y = empty_like(x), none;
  Tensor mean = empty({1}, DType::f32, kGpu), rstd = empty_like(mean);
  backend(kGpu).norm.layer_forward(x, {}, {}, {}, 0, none, y, mean, rstd);
  BOOST_TEST(is_close(y.to_vector<double>(), {-1, 1, -1, 1}, 1e-6));
  BOOST_TEST(mean.item() == 1000);
}

// The same as two kernels: bit for bit where the sum is rounded before the norm reads it.
BOOST_AUTO_TEST_CASE(a_residual_is_added_first) {
  for (DType t : kFloats) {
    for (Shape shape : {Shape{7, 33}, Shape{2, 8203}}) {
      Tensor x = random_tensor(shape, 1, t).to(kGpu), r = random_tensor(shape, 2, t).to(kGpu), none;
      Tensor w = random_tensor({shape[1]}, 3, t).to(kGpu), h = empty_like(x), want = empty_like(x);
      Tensor sum = empty_like(x), y = empty_like(x), rstd = empty({shape[0]}, accumulate_type(t), kGpu);
      const Backend& k = backend(kGpu);
      k.pointwise.binary(BinaryOp::add, x, r, h);
      k.norm.rms_forward(h, none, w, kEps, none, want, rstd);
      k.norm.rms_forward(x, r, w, kEps, sum, y, rstd);
      BOOST_TEST((same_bits(sum, h) && same_bits(y, want)));
      Tensor mean = empty_like(rstd);
      k.norm.layer_forward(h, none, w, none, kEps, none, want, mean, rstd);
      k.norm.layer_forward(x, r, w, none, kEps, sum, y, mean, rstd);
      BOOST_TEST((same_bits(sum, h) && same_bits(y, want)));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
