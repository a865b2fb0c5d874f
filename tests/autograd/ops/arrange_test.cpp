// autograd/manipulate.h beyond its rows of the op table: other types, views, special values, errors.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "braid/autograd.h"
#include "braid/tensor/print.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(ops_arrange)

namespace {

Tensor numbered(const Shape& shape, DType dtype = DType::f32) { return arange(numel(shape), dtype).reshaped(shape); }

// The derivative of sum(f(x)^2) once more, against finite differences. It sees the second derivative of mul and the
// recorded gradient of f.
double second_derivative_error(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  const auto slope = [&](const std::vector<Tensor>& in) {
    const EnableGrad on;  // gradcheck measures without
    Tensor at = requires_grad(in[0]) ? in[0] : in[0].detach();
    require_grad(at);
    const Tensor y = f(at);
    return grad(sum(mul(y, mul(y, y))), {at}, {.create_graph = true})[0];
  };
  return gradcheck(slope, {x}).error;
}

}  // namespace

BOOST_AUTO_TEST_CASE(integers_and_masks_move_too) {
  for (const DType dtype : {DType::i64, DType::i32, DType::u8}) {
    const Tensor x = numbered({2, 3}, dtype);
    BOOST_TEST(is_close(flip(x, 1).to_vector<double>(), {2, 1, 0, 5, 4, 3}, 0));
    BOOST_TEST(is_close(roll(x, 1, 1).to_vector<double>(), {2, 0, 1, 5, 3, 4}, 0));
    BOOST_TEST(is_close(rot90(x).to_vector<double>(), {2, 5, 1, 4, 0, 3}, 0));
    BOOST_TEST(is_close(repeat_interleave(x, 2, 0).to_vector<double>(), {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}, 0));
    BOOST_TEST(is_close(tile(x, {1, 2}).to_vector<double>(), {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}, 0));
    BOOST_TEST(is_close(pad(x, {{1, 1, 0}}, Padding::constant, 9).to_vector<double>(), {9, 0, 1, 2, 9, 3, 4, 5}, 0));
    BOOST_TEST(is_close(pad(x, {{1, 1, 1}}, Padding::reflect).to_vector<double>(), {1, 0, 1, 2, 1, 4, 3, 4, 5, 4}, 0));
    BOOST_TEST(is_close(tril(x).to_vector<double>(), {0, 0, 0, 3, 4, 0}, 0));
    BOOST_TEST(is_close(triu(x, 1).to_vector<double>(), {0, 1, 2, 0, 0, 5}, 0));
    BOOST_TEST(is_close(diag(diag(x)).to_vector<double>(), {0, 0, 0, 4}, 0));
    BOOST_TEST(is_close(windows(x, 1, 2).to_vector<double>(), {0, 1, 1, 2, 3, 4, 4, 5}, 0));
    BOOST_TEST((flip(x, 0).dtype() == dtype));
  }
}

BOOST_AUTO_TEST_CASE(views_share_memory) {
  const Tensor x = numbered({4, 4});
  BOOST_TEST(windows(x, 0, 2).shares_storage(x));
  BOOST_TEST(diagonal(x).shares_storage(x));
  BOOST_TEST(moveaxis(x, 0, 1).shares_storage(x));
  BOOST_TEST(flatten(x).shares_storage(x));
  BOOST_TEST(narrow(x, 0, 1, 2).shares_storage(x));
  BOOST_TEST(broadcast_to(x, {3, 4, 4}).shares_storage(x));
  for (const Tensor& part : unbind(x)) BOOST_TEST(part.shares_storage(x));
  BOOST_TEST(roll(x, 8, 0).shares_storage(x));  // twice round
}

// What a mask hides is not multiplied by 0.
BOOST_AUTO_TEST_CASE(special_values_stay_where_they_are) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  Tensor x = from_values({nan, inf, -inf, -0.0}, {2, 2}, DType::f64);
  BOOST_TEST(is_close(triu(x, 2).to_vector<double>(), {0, 0, 0, 0}, 0));
  const std::vector<double> left = flip(tril(x, -1), {0, 1}).to_vector<double>();
  BOOST_TEST(left[1] == -inf);
  BOOST_TEST(left[3] == 0);
  BOOST_TEST(std::isnan(flip(x, {0, 1}).to_vector<double>()[3]));
  BOOST_TEST(std::signbit(rot90(x).to_vector<double>()[1]));
  require_grad(x);
  backward(sum(triu(x, 1)));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {0, 1, 0, 0}, 0));
}

BOOST_AUTO_TEST_CASE(windows_that_overlap_add_up_their_gradients) {
  Tensor x = zeros({5}, DType::f64);
  require_grad(x);
  backward(sum(windows(x, 0, 3)));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {1, 2, 3, 2, 1}, 0));
  Tensor overlapping = windows(zeros({5}), 0, 3), apart = windows(zeros({6}), 0, 2, 2);
  BOOST_CHECK_THROW(overlapping.fill(1), Error);
  apart.fill(1);
  BOOST_TEST(sum(apart).item() == 6);
}

BOOST_AUTO_TEST_CASE(nothing_and_scalars) {
  const Tensor none = zeros({0, 3}), one = full({}, 2);
  BOOST_TEST(str(flip(none, 0).shape()) == "(0, 3)");
  BOOST_TEST(str(roll(none, 1, 0).shape()) == "(0, 3)");
  BOOST_TEST(str(tile(none, {2, 0}).shape()) == "(0, 0)");
  BOOST_TEST(str(repeat(one.reshaped({1}), 0, 0).shape()) == "(0)");
  BOOST_TEST(str(diag_embed(zeros({0}), 2).shape()) == "(2, 2)");
  BOOST_TEST(str(diagonal(zeros({2, 2}), 5).shape()) == "(0)");
  BOOST_TEST(str(diagonal(zeros({2, 2}), -5).shape()) == "(0)");
  const int64_t far = std::numeric_limits<int64_t>::max();
  BOOST_TEST(is_close(tril(full({2, 2}, 1), far).to_vector<double>(), {1, 1, 1, 1}, 0));
  BOOST_TEST(is_close(triu(full({2, 2}, 1), far).to_vector<double>(), {0, 0, 0, 0}, 0));
  BOOST_TEST(is_close(triu(full({2, 2}, 1), -far).to_vector<double>(), {1, 1, 1, 1}, 0));
  BOOST_TEST(str(windows(zeros({3, 0}), 0, 2).shape()) == "(2, 0, 2)");
  BOOST_TEST(unbind(none, 0).empty());
  BOOST_TEST(chunk(none, 3).size() == 1u);
  BOOST_TEST(tensor_split(none, 3).size() == 3u);
  BOOST_TEST(chunk(zeros({5}), 4).size() == 3u);  // 2, 2, 1
  BOOST_TEST(str(flatten(one).shape()) == "(1)");
  BOOST_TEST(str(ravel(one).shape()) == "(1)");
  BOOST_TEST(str(atleast_3d(one).shape()) == "(1, 1, 1)");
  BOOST_TEST(str(hstack({one, one}).shape()) == "(2)");
  BOOST_TEST(str(vstack({one, one}).shape()) == "(2, 1)");
  BOOST_TEST(kron(one, one).item() == 4);
  BOOST_TEST(is_close(block_diag({one, zeros({0, 1}), one}).to_vector<double>(), {2, 0, 0, 0, 0, 2}, 0));
  BOOST_TEST(str(meshgrid({zeros({2}), zeros({3}), zeros({4})}, MeshOrder::xy)[2].shape()) == "(3, 2, 4)");
  BOOST_TEST(
      is_close(meshgrid({numbered({2}), numbered({3})}, MeshOrder::xy)[0].to_vector<double>(), {0, 1, 0, 1, 0, 1}, 0));
}

BOOST_AUTO_TEST_CASE(long_padding_goes_there_and_back) {
  const Tensor x = numbered({3});
  BOOST_TEST(
      is_close(pad(x, {{0, 5, 4}}, Padding::reflect).to_vector<double>(), {1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2}, 0));
  BOOST_TEST(
      is_close(pad(x, {{0, 4, 4}}, Padding::circular).to_vector<double>(), {2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0}, 0));
}

BOOST_AUTO_TEST_CASE(gradients_are_recorded) {
  const Tensor x = affine(rand({3, 4}, {4, 4}, DType::f64), 2, -1);
  const std::pair<const char*, std::function<Tensor(const Tensor&)>> ops[] = {
      {"flip", [](const Tensor& v) { return flip(v, 1); }},
      {"roll", [](const Tensor& v) { return roll(v, 1, 1); }},
      {"repeat",
       [](const Tensor& v) {
         return repeat(v, {2, 0, 1}, 0);
       }},
      {"pad",
       [](const Tensor& v) {
         return pad(v, {{1, 3, 2}}, Padding::reflect);
       }},
      {"windows", [](const Tensor& v) { return windows(v, 1, 3); }},
      {"diagonal", [](const Tensor& v) { return diagonal(v, 1); }},
      {"diag_embed", [](const Tensor& v) { return diag_embed(v, -1); }},
      {"tile",
       [](const Tensor& v) {
         return tile(v, {2, 2});
       }},
      {"kron", [](const Tensor& v) { return kron(v, v); }},
  };
  for (const auto& [name, op] : ops) BOOST_TEST_CONTEXT(name) BOOST_TEST(second_derivative_error(op, x) < 1e-6);
}

BOOST_AUTO_TEST_CASE(misfits_are_named) {
  const Tensor x = zeros({2, 3});
  const std::pair<std::function<void()>, const char*> calls[] = {
      {[&] { flip(x, 2); }, "[flip] axis 2 does not exist in a tensor of rank 2"},
      {[&] {
         flip(x, {0, -2});
       },
       "[flip] axis -2 stands twice; name each axis once"},
      {[&] {
         roll(x, {1}, {0, 1});
       },
       "[roll] needs one shift per axis, got 1 and 2"},
      {[&] { rot90(x, 1, 0, -2); }, "[rot90] needs two axes of (2, 3), got 0 and -2"},
      {[&] { repeat(x, -1, 0); }, "[repeat] needs a count of at least 0, got -1"},
      {[&] {
         repeat(x, {1, 2, 3}, 0);
       },
       "[repeat] needs one count per entry of axis 0 of (2, 3), got 3"},
      {[&] { tile(x, {-1}); }, "[tile] needs counts of at least 0, got -1"},
      {[&] {
         tile(x, {1, 1, 1, 1, 1, 1, 1, 1, 1});
       },
       "[tile] needs at most"},
      {[&] {
         broadcast_to(x, {2, 4});
       },
       "[broadcast_to] cannot expand (2, 3) to (2, 4)"},
      {[&] {
         broadcast_tensors({x, zeros({4})});
       },
       "[broadcast_tensors]"},
      {[&] { meshgrid({x}); }, "[meshgrid] needs vectors, got (2, 3)"},
      {[&] { meshgrid({}); }, "[meshgrid] needs 1 to"},
      {[&] {
         pad(x, {{0, -1, 0}});
       },
       "[pad] needs amounts of at least 0, got -1 and 0"},
      {[&] {
         pad(x, {{0, 1, 0}, {-2, 1, 0}});
       },
       "[pad] axis -2 stands twice"},
      {[&] {
         pad(zeros({0}), {{0, 1, 0}}, Padding::replicate);
       },
       "[pad] axis 0 of (0) has no entry to pad with"},
      {[&] { windows(x, 1, 4); }, "[windows] needs a size of 1 to 3 and a step of at least 1 for axis 1 of (2, 3)"},
      {[&] { windows(x, 1, 2, 0); }, "[windows]"},
      {[&] { tril(zeros({3})); }, "[tril] needs at least two axes, got (3)"},
      {[&] { diagonal(x, 0, 1, 1); }, "[diagonal] needs two axes"},
      {[&] {
         diag(zeros({1, 2, 3}));
       },
       "[diag] needs a vector or a matrix, got (1, 2, 3)"},
      {[&] { diag_embed(zeros({})); }, "[diag_embed] needs 1 to"},
      {[&] { trace(zeros({3})); }, "[trace] needs at least two axes, got (3)"},
      {[&] { block_diag({}); }, "[block_diag] needs at least one matrix"},
      {[&] {
         kron(zeros({1, 1, 1, 1, 1}), x);
       },
       "[kron] needs at most"},
      {[&] { flatten(x, 1, 0); }, "[flatten] axis 1 of (2, 3) does not stand before 0"},
      {[&] {
         unflatten(x, 1, {2, 2});
       },
       "[unflatten] sizes (2, 2) do not make up axis 1 of (2, 3)"},
      {[&] {
         unflatten(x, 1, {-1, -1});
       },
       "[unflatten] sizes (-1, -1) do not make up axis 1"},
      {[&] { moveaxis(x, 0, 2); }, "[moveaxis] axis 2 does not exist"},
      {[&] {
         t(zeros({1, 2, 3}));
       },
       "[t] needs at most two axes, got (1, 2, 3)"},
      {[&] { hstack({}); }, "[hstack] needs at least one tensor"},
      {[&] {
         vstack({x, zeros({2})});
       },
       "[vstack] shapes (2, 3) and (1, 2) differ"},
      {[&] { narrow(x, 1, 2, 2); }, "[narrow] axis 1 of (2, 3) does not have 2 entries from 2"},
      {[&] { unbind(zeros({})); }, "[unbind] axis 0 does not exist"},
      {[&] { chunk(x, 0); }, "[chunk] needs a count of at least 1, got 0"},
      {[&] { tensor_split(x, 0); }, "[tensor_split] needs a count of at least 1, got 0"},
      {[&] {
         split_at(x, {2, 1});
       },
       "[split_at] needs places from 2 to 2 of axis 0 of (2, 3), got 1"},
  };
  for (const auto& [call, words] : calls) BOOST_TEST(throws_with(call, words));
}

BOOST_AUTO_TEST_SUITE_END()
