// Fourier transforms beside the rows: norms, axes, sizes, frequencies, mistakes.
#include "braid/autograd/fft.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/tensor/parallel.h"
#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(fourier_transforms)

namespace {
Tensor random_pairs(Shape shape) { return randn(shape, RandomKey(3), DType::f64); }
std::vector<double> numbers(const Tensor& x) { return x.to_vector<double>(); }
}  // namespace

// Powers of two, small factors, primes (which take the convolution), and products of both.
BOOST_AUTO_TEST_CASE(the_inverse_undoes_every_size) {
  for (const int64_t n : {1, 2, 3, 7, 8, 17, 97, 128, 221, 360, 1009, 2048, 4001, 65536}) {
    const Tensor x = random_pairs({n, 2});
    BOOST_TEST_CONTEXT(n) {
      BOOST_TEST(is_close(numbers(ifft(fft(x))), numbers(x), 1e-13));
      const Tensor signal = contiguous(real_part(x));
      BOOST_TEST(is_close(numbers(irfft(rfft(signal), n)), numbers(signal), 1e-13));
      // Parseval: the energies are equal up to the size.
      const double energy = sum(square(fft(x))).item(), before = sum(square(x)).item();
      BOOST_TEST(energy == before * static_cast<double>(n), boost::test_tools::tolerance(1e-12));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_wave_has_one_frequency) {
  const int64_t n = 1000;  // not a power of two
  std::vector<double> wave;
  for (int64_t j = 0; j < n; ++j) wave.push_back(std::cos(2 * M_PI * 37 * static_cast<double>(j) / n));
  const std::vector<double> found = numbers(rfft(from_vector(wave, {n})));
  for (size_t k = 0; k < found.size() / 2; ++k) {
    BOOST_TEST(std::fabs(found[2 * k] - (k == 37 ? 500 : 0)) < 1e-10);
    BOOST_TEST(std::fabs(found[2 * k + 1]) < 1e-10);
  }
}

BOOST_AUTO_TEST_CASE(norms_put_the_factor_where_they_say) {
  const Tensor x = random_pairs({6, 2});
  const std::vector<double> plain = numbers(fft(x));
  BOOST_TEST(is_close(numbers(scale(fft(x, -1, FftNorm::ortho), std::sqrt(6))), plain, 1e-14));
  BOOST_TEST(is_close(numbers(scale(fft(x, -1, FftNorm::forward), 6)), plain, 1e-14));
  for (const FftNorm norm : {FftNorm::backward, FftNorm::ortho, FftNorm::forward}) {
    BOOST_TEST(is_close(numbers(ifft(fft(x, -1, norm), -1, norm)), numbers(x), 1e-14));
    const Tensor signal = random_pairs({7});
    BOOST_TEST(is_close(numbers(irfft(rfft(signal, -1, norm), 7, -1, norm)), numbers(signal), 1e-14));
  }
}

BOOST_AUTO_TEST_CASE(axes) {
  const Tensor x = random_pairs({4, 5, 2});
  const Tensor by_hand = transpose(fft(transpose(x, 0, 1)), 0, 1);
  BOOST_TEST(is_close(numbers(fft(x, 0)), numbers(by_hand), 1e-15));
  BOOST_TEST(is_close(numbers(fftn(x, {0, 1})), numbers(fft(fft(x, 0), 1)), 1e-15));
  BOOST_TEST(is_close(numbers(ifftn(fftn(x, {0, 1}), {0, 1})), numbers(x), 1e-14));
  const Tensor signal = random_pairs({4, 6});
  BOOST_TEST(str(rfft(signal, 0).shape()) == str(Shape{3, 6, 2}));
  BOOST_TEST(is_close(numbers(irfft(rfft(signal, 0), 4, 0)), numbers(signal), 1e-14));
}

BOOST_AUTO_TEST_CASE(frequencies_and_shifts_as_numpy) {
  BOOST_TEST(is_close(numbers(fftfreq(5, 0.5, DType::f64)), {0, 0.4, 0.8, -0.8, -0.4}, 1e-15));
  BOOST_TEST(is_close(numbers(fftfreq(4, 1, DType::f64)), {0, 0.25, -0.5, -0.25}, 1e-15));
  BOOST_TEST(is_close(numbers(rfftfreq(4, 1, DType::f64)), {0, 0.25, 0.5}, 1e-15));
  const Tensor x = from_vector(std::vector<double>{0, 1, 2, 3, 4}, {5});
  BOOST_TEST(is_close(numbers(fftshift(x, 0)), {3, 4, 0, 1, 2}, 0));
  BOOST_TEST(is_close(numbers(ifftshift(fftshift(x, 0), 0)), {0, 1, 2, 3, 4}, 0));
}

// What the transform of a real signal cannot have does not count, and has no gradient.
BOOST_AUTO_TEST_CASE(the_imaginary_parts_at_the_ends_are_not_read) {
  Tensor x = from_vector(std::vector<double>{1, 5, 2, 3, 4, 7}, {3, 2});
  const Tensor same = from_vector(std::vector<double>{1, 0, 2, 3, 4, 0}, {3, 2});
  BOOST_TEST(is_close(numbers(irfft(x)), numbers(irfft(same)), 0));
  require_grad(x);
  backward(sum(square(irfft(x))));
  const std::vector<double> g = numbers(grad(x));
  BOOST_TEST(g[1] == 0);
  BOOST_TEST(std::fabs(g[5]) < 1e-15);
}

BOOST_AUTO_TEST_CASE(equal_bits_at_any_number_of_threads) {
  const Tensor x = random_pairs({64, 97, 2});
  const int before = threads();
  set_threads(1);
  const std::vector<double> one = numbers(fft(x));
  set_threads(4);
  BOOST_TEST((numbers(fft(x)) == one));
  set_threads(before);
}

BOOST_AUTO_TEST_CASE(mistakes) {
  BRAID_CHECK_FAILS(fft(zeros({4, 3})), ErrorKind::misuse, "[fft] needs complex numbers as pairs",
                    "(4, 3); rfft() takes real");
  BRAID_CHECK_FAILS(fft(zeros({0, 2})), ErrorKind::misuse, "[fft] axis -1", "is empty");
  BRAID_CHECK_FAILS(irfft(zeros({4, 2}), 5), ErrorKind::misuse, "[irfft] needs n/2 + 1 numbers", "n = 5",
                    "fits 6 or 7");
  BRAID_CHECK_FAILS(rfft(zeros({4}, DType::bf16)), ErrorKind::misuse, "[rfft] needs f32 or f64, got bf16");
  BRAID_CHECK_FAILS(rfft(zeros({4}), 2), ErrorKind::misuse, "rfft");
  BRAID_CHECK_FAILS(fft(zeros({4, 2}), 1), ErrorKind::misuse, "[fft] axis 1 does not exist in (4, 2)",
                    "axes are -1 to 0");
  BRAID_CHECK_FAILS(complex_mul(zeros({4}), zeros({4})), ErrorKind::misuse, "[complex_mul]", "got shape (4)");
  BRAID_CHECK_FAILS(fftfreq(0), ErrorKind::misuse, "[fftfreq] needs a size of at least 1");
}

BOOST_AUTO_TEST_SUITE_END()
