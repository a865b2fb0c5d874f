// autograd/contract.h beyond its rows of the op table.
#include "braid/autograd/contract.h"

#include <boost/test/unit_test.hpp>

#include "braid/autograd/gradcheck.h"
#include "braid/tensor/print.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(ops_contract)

BOOST_AUTO_TEST_CASE(subscripts_that_do_not_fit) {
  const Tensor x = zeros({2, 3}), y = zeros({3, 4});
  const auto fails = [&](const std::string& text, const std::string& words) {
    return throws_with([&] { einsum(text, x, y); }, words);
  };
  BOOST_TEST(fails("ij->i", "1 operand for 2 tensors in \"ij->i\""));
  BOOST_TEST(fails("i,j,k", "3 operands for 2 tensors"));
  BOOST_TEST(fails("ii,jk->k", "'i' is 2 and 3"));
  BOOST_TEST(fails("ij,jk->kk", "'k' is twice in the result"));
  BOOST_TEST(fails("ij,jk->iz", "'z' of the result is in no operand"));
  BOOST_TEST(fails("ijk,jk->i", "\"ijk\" names the axes of (2, 3)"));
  BOOST_TEST(fails("i,jk->i", "\"i\" names the axes of (2, 3)"));
  BOOST_TEST(fails("ijk...,jk->i", "\"ijk...\" names the axes of (2, 3)"));
  BOOST_TEST(fails("ij,ik->j", "'i' is 2 and 3"));
  BOOST_TEST(fails("i.,jk->i", "'.' is no letter"));
  BOOST_TEST(fails("i0,jk->i", "'0' is no letter"));
  BOOST_TEST(fails("i...,j...->ij", "the result has no \"...\""));
  BOOST_TEST(fails("...,...", "axes of \"...\" are 2 and 3"));
  BOOST_TEST(throws_with([] { einsum("", {}); }, "[einsum] needs at least one operand"));
  BOOST_TEST(throws_with([&] { einsum("ij,jk", x, y.to(DType::f64)); }, "[einsum] the inputs are f32 and f64"));
  BOOST_TEST(throws_with([] { einsum("i->", {arange(3)}); }, "[einsum] needs a floating-point tensor, got i64"));
  const Tensor large = zeros({1, 1, 1, 1, 1});
  BOOST_TEST(throws_with([&] { einsum("abcde,fghij->abcdefghij", large, large); }, "axes"));
}

// The chain of three matrices begins where the products are small: (1, n) (n, n) (n, 1) never forms (n, n) (n, n).
BOOST_AUTO_TEST_CASE(the_order_of_products_changes_no_value) {
  const Tensor a = randn({1, 8}, {1, 1}, DType::f64), b = randn({8, 8}, {1, 2}, DType::f64),
               c = randn({8, 8}, {1, 3}, DType::f64), d = randn({8, 1}, {1, 4}, DType::f64);
  const Tensor want = matmul(matmul(matmul(a, b), c), d);
  BOOST_TEST(is_close(einsum("ij,jk,kl,lm->im", {a, b, c, d}), want, 1e-13));
  BOOST_TEST(is_close(einsum("lm,kl,jk,ij->im", {d, c, b, a}), want, 1e-13));
}

// Two operands are one matrix product, with its bits.
BOOST_AUTO_TEST_CASE(two_operands_are_one_product) {
  const Tensor x = randn({5, 7}, {2, 1}), y = randn({7, 3}, {2, 2});
  BOOST_TEST(is_close(einsum("ij,jk->ik", x, y), matmul(x, y), 0));
  BOOST_TEST(is_close(einsum("ij,jk", {x, y}), matmul(x, y), 0));
  BOOST_TEST(is_close(einsum("...j,jk->...k", x, y), matmul(x, y), 0));
  BOOST_TEST(is_close(tensordot(x, y, 1), matmul(x, y), 0));
}

BOOST_AUTO_TEST_CASE(capitals_come_first) {
  const Tensor x = arange(6, DType::f32).reshaped({2, 3});
  BOOST_TEST(str(einsum("aB", {x}).shape()) == "(3, 2)");
}

BOOST_AUTO_TEST_CASE(powers_of_a_matrix) {
  const Tensor x = from_values({1, 1, 0, 1}, {2, 2}, DType::f64);
  BOOST_TEST(is_close(matrix_power(x, 0).to_vector<double>(), {1, 0, 0, 1}, 0));
  BOOST_TEST(is_close(matrix_power(log(zeros({2, 2, 2})), 0).to_vector<double>(), {1, 0, 0, 1, 1, 0, 0, 1}, 0));
  BOOST_TEST(is_close(matrix_power(x, 1).to_vector<double>(), {1, 1, 0, 1}, 0));
  BOOST_TEST(is_close(matrix_power(x, 10).to_vector<double>(), {1, 10, 0, 1}, 0));
  BOOST_TEST(throws_with([&] { matrix_power(x, -1); }, "[matrix_power] needs an exponent of at least 0, got -1"));
  BOOST_TEST(throws_with([&] { matrix_power(zeros({2, 3}), 2); }, "[matrix_power] needs square matrices, got (2, 3)"));
}

BOOST_AUTO_TEST_CASE(misfits_are_named) {
  const Tensor x = zeros({2, 3}), v = zeros({4});
  BOOST_TEST(throws_with(
      [&] {
        einsum("ij,jk->ik", {x, x});
      },
      "'j' is 3 and 2 in \"ij,jk->ik\" for (2, 3), (2, 3): a letter has one size"));
  BOOST_TEST(throws_with([&] { outer(x, v); }, "[outer] needs two vectors, got (2, 3) and (4)"));
  BOOST_TEST(throws_with([&] { inner(zeros({}), v); }, "[inner] needs at least one axis"));
  BOOST_TEST(throws_with([&] { inner(x, v); }, "[inner] axis -1 of (2, 3) and axis -1 of (4) differ in size"));
  BOOST_TEST(throws_with([&] { dot(v, zeros({3})); }, "[dot] needs two vectors of one size, got (4) and (3)"));
  BOOST_TEST(throws_with([&] { vecdot(x, v); }, "[vecdot] axis -1 of (2, 3) and (4) is not the same"));
  BOOST_TEST(throws_with([&] { tensordot(x, v, 2); }, "[tensordot] needs a count of axes that (2, 3) and (4) have"));
  BOOST_TEST(throws_with([&] { tensordot(x, x, {0, 0}, {0, 1}); }, "[tensordot] axis 0 of x or 1 of y stands twice"));
  BOOST_TEST(throws_with([&] { tensordot(x, v, {0}, {}); }, "[tensordot] needs as many axes of x as of y"));
  BOOST_TEST(throws_with([&] { cross(x, v); }, "[cross] needs size 3 along axis -1, got (2, 3) and (4)"));
  BOOST_TEST(throws_with([&] { bilinear(x, x, zeros({3, 3})); }, "[bilinear] needs x (..., i), z (..., j)"));
}

BOOST_AUTO_TEST_SUITE_END()
