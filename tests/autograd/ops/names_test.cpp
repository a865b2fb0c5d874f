// An error names the op that the user called, not one that it is made of.
#include <boost/test/unit_test.hpp>
#include <functional>

#include "braid/autograd.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(ops_names)

namespace {

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

BOOST_AUTO_TEST_CASE(errors_name_the_op_that_was_called) {
  const Tensor x = full({2, 3}, 1), wide = full({2, 3}, 1, DType::f64), ids = full({2, 3}, 1, DType::i64);
  const Tensor large = zeros({1, 1, 1, 1, 1, 1, 1, 1}), row = full({2}, 9, DType::i64);
  const struct {
    const char* name;
    std::function<void()> call;
  } rows[] = {
      {"scale", [&] { scale(ids, 2); }},
      {"add", [&] { ids + 2.5; }},
      {"add", [&] { 2.5 + ids; }},
      {"sub", [&] { ids - 2.5; }},
      {"sub", [&] { 2.5 - ids; }},
      {"mul", [&] { ids * 2.5; }},
      {"mul", [&] { 2.5 * ids; }},
      {"div", [&] { ids / 2; }},
      {"div", [&] { 2 / ids; }},
      {"stack",
       [&] {
         stack({x, wide});
       }},
      {"stack", [&] { stack({large}); }},
      {"mse_loss", [&] { mse_loss(x, wide); }},
      {"mse_loss", [&] { mse_loss(ids, ids); }},
      {"linear_pair", [&] { linear_pair(x, wide, wide); }},
      {"cross_entropy", [&] { cross_entropy(x, row); }},
      {"cross_entropy_per_token", [&] { cross_entropy_per_token(ids, row); }},
      {"cross_entropy_per_token", [&] { cross_entropy_per_token(x, row); }},
      {"linear_cross_entropy", [&] { linear_cross_entropy(ids, ids, row); }},
      {"logsumexp",
       [&] {
         logsumexp(zeros({2, 0}), 1);
       }},
      {"log_softmax", [&] { log_softmax(ids, 0); }},
      {"add_rms_norm", [&] { add_rms_norm(ids, {}, {}, 1e-6); }},
      {"add_layer_norm", [&] { add_layer_norm(ids, {}, {}, {}, 1e-6); }},
      {"mean", [&] { mean(ids); }},
      {"var", [&] { var(ids); }},
      {"argsort", [&] { argsort(zeros({})); }},
      {"sum_product", [&] { sum_product(ids, ids, {0}); }},
      {"embedding", [&] { embedding(x, row); }},
      {"select", [&] { select(x, 3, 0); }},
      {"at",
       [&] {
         at(x, {0, 5});
       }},
      {"one_hot", [&] { one_hot(row, 3); }},
      {"binary_cross_entropy", [&] { binary_cross_entropy(ids, ids); }},
      {"binary_cross_entropy", [&] { binary_cross_entropy(x, wide); }},
      {"einsum", [&] { einsum("ab,bc->ac", x, wide); }},
      {"conv2d",
       [&] {
         conv2d(zeros({1, 1, 2, 2}), zeros({1, 1, 3, 3}));
       }},
      {"conv2d",
       [&] {
         conv2d(zeros({1, 1, 4, 4}), zeros({1, 1, 3, 3}, DType::f64));
       }},
      {"window_pixels",
       [&] {
         window_pixels({2, 2}, {3, 3});
       }},
  };
  for (const auto& row_of : rows) {
    const std::string message = message_of(row_of.call);
    BOOST_TEST(message.find("[" + std::string(row_of.name) + "] ") == 0u, row_of.name << ": " << message);
  }
}

BOOST_AUTO_TEST_SUITE_END()
