// Every member function of Tensor keeps a gradient or throws; none drops one silently.
#include <boost/test/unit_test.hpp>
#include <functional>

#include "braid/autograd.h"
#include "braid/tensor/print.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(tensor_members)

namespace {

struct Member {
  const char* name;
  std::function<Tensor(const Tensor&)> raw, recorded;
  const char* advice;  // the recorded op that the message names
};

// Every member that returns a tensor but detach(). x is f64 (2, 2); many of these calls change nothing: they throw too.
const std::vector<Member>& members() {
  static const std::vector<Member> list{
      {"view", [](const Tensor& x) { return x.view({2}, {2}, 1); },
       [](const Tensor& x) { return squeeze(slice(x, 1, 1, 2), 1); }, "braid::slice"},
      {"reshaped", [](const Tensor& x) { return x.reshaped({4}); }, [](const Tensor& x) { return reshape(x, {4}); },
       "braid::reshape"},
      {"transposed", [](const Tensor& x) { return x.transposed(); }, [](const Tensor& x) { return transpose(x); },
       "braid::transpose"},
      {"permuted",
       [](const Tensor& x) {
         return x.permuted({1, 0});
       },
       [](const Tensor& x) {
         return permute(x, {1, 0});
       },
       "braid::permute"},
      {"sliced", [](const Tensor& x) { return x.sliced(0, 0, 2); }, [](const Tensor& x) { return slice(x, 0, 0, 2); },
       "braid::slice"},
      {"expanded",
       [](const Tensor& x) {
         return x.expanded({3, 2, 2});
       },
       [](const Tensor& x) {
         return expand(x, {3, 2, 2});
       },
       "braid::expand"},
      {"unsqueezed", [](const Tensor& x) { return x.unsqueezed(0); }, [](const Tensor& x) { return unsqueeze(x, 0); },
       "braid::unsqueeze"},
      {"clone", [](const Tensor& x) { return x.clone(); }, [](const Tensor& x) { return affine(x, 1, 0); },
       "detach().clone("},
      {"contiguous", [](const Tensor& x) { return x.contiguous(); }, [](const Tensor& x) { return contiguous(x); },
       "braid::contiguous"},
      {"to a dtype", [](const Tensor& x) { return x.to(DType::f32); },
       [](const Tensor& x) { return cast(x, DType::f32); }, "braid::cast"},
      {"to its own dtype", [](const Tensor& x) { return x.to(DType::f64); },
       [](const Tensor& x) { return cast(x, DType::f64); }, "braid::cast"},
      {"to its own device", [](const Tensor& x) { return x.to(kCpu); }, [](const Tensor& x) { return to(x, kCpu); },
       "braid::to"},
  };
  return list;
}

Tensor values() { return from_values({1, 2, 3, 4}, {2, 2}, DType::f64); }
Tensor leaf() {
  Tensor x = values();
  return require_grad(x);
}

}  // namespace

BOOST_AUTO_TEST_CASE(raw_members_throw_on_leaves_and_results_and_name_the_recorded_op) {
  for (const Member& m : members()) {
    BOOST_TEST_CONTEXT(m.name) {
      BOOST_TEST(throws_with([&] { m.raw(leaf()); }, m.advice));
      BOOST_TEST(throws_with([&] { m.raw(leaf()); }, "detach()"));
      BOOST_TEST(throws_with([&] { m.raw(scale(leaf(), 2)); }, m.advice));
      BOOST_TEST(throws_with([&] { m.raw(transpose(leaf())); }, m.advice));  // strided
    }
  }
  Tensor one = full({1, 2}, 1);
  require_grad(one);
  BOOST_TEST(throws_with([&] { one.squeezed(0); }, "braid::squeeze"));
}

BOOST_AUTO_TEST_CASE(raw_members_work_where_no_gradient_is_at_stake) {
  for (const Member& m : members()) {
    BOOST_TEST_CONTEXT(m.name) {
      const Tensor plain = m.raw(values()), detached = m.raw(leaf().detach());
      const Tensor off = no_grad([&] { return m.raw(leaf()); });
      for (const Tensor& y : {plain, detached}) {
        BOOST_TEST(!requires_grad(y));
        BOOST_TEST(is_close(y, no_grad([&] { return m.recorded(values()); }), 0));
      }
      BOOST_TEST(is_close(off, plain, 0));
    }
  }
  Tensor one = full({1, 2}, 1);
  BOOST_TEST(str(one.squeezed(0).shape()) == "(2)");
}

BOOST_AUTO_TEST_CASE(the_recorded_ops_carry_the_gradient) {
  for (const Member& m : members()) {
    BOOST_TEST_CONTEXT(m.name) {
      Tensor x = leaf(), y = cast(m.recorded(x), DType::f64);
      backward(sum(mul(y, y)));
      const Tensor weight = m.name == std::string("view") ? from_values({0, 2, 0, 2}, {2, 2}, DType::f64)
                                                          : full({2, 2}, m.name == std::string("expanded") ? 6 : 2);
      BOOST_TEST(is_close(grad(x), mul(values(), weight.to(DType::f64)), 1e-6));
    }
  }
}

// sum(x x) through two views of one leaf was x instead of 2x: the raw view dropped half of the gradient.
BOOST_AUTO_TEST_CASE(half_a_gradient_is_an_error) {
  Tensor x = leaf();
  BOOST_TEST(throws_with([&] { mul(reshape(x, {4}), x.reshaped({4})); }, "braid::reshape"));
  backward(sum(mul(reshape(x, {4}), reshape(x, {4}))));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {2, 4, 6, 8}, 0));
}

BOOST_AUTO_TEST_CASE(detach_leaves_the_graph_and_shares_the_data) {
  Tensor x = leaf(), y = x.detach();
  BOOST_TEST(!requires_grad(y));
  BOOST_TEST(requires_grad(x));
  BOOST_TEST(y.shares_storage(x));
}

BOOST_AUTO_TEST_CASE(reading_is_free) {
  Tensor x = leaf(), y = scale(x, 2);
  BOOST_TEST(sum(y).item() == 20.0);
  BOOST_TEST(y.to_vector<float>()[3] == 8.0f);
  BOOST_TEST(x.data<double>()[3] == 4.0);
  BOOST_TEST(x.raw() == x.detach().raw());
  BOOST_TEST(str(x).find("[[1, 2],\n [3, 4]]") != std::string::npos);
  BOOST_TEST(requires_grad(x));
  BOOST_TEST(requires_grad(y));
}

BOOST_AUTO_TEST_CASE(a_result_cannot_be_written) {
  Tensor y = scale(leaf(), 2);
  BOOST_TEST(throws_with([&] { y.fill(0); }, "[fill] writing in place"));
  BOOST_TEST(throws_with([&] { no_grad([&] { y.fill(0); }); }, "or write to x.detach().clone()"));
  BOOST_TEST(throws_with([&] { y.copy_(values()); }, "[copy_] writing in place"));
  BOOST_TEST(throws_with([&] { y.add_(values()); }, "[add_] writing in place"));
  BOOST_TEST(throws_with([&] { y.mutable_data<double>(); }, "[mutable_data] writing in place"));
  BOOST_TEST(throws_with([&] { y.mutable_raw(); }, "[mutable_raw] writing in place"));
}

// PyTorch's "modified by an inplace operation": the closure would compute with the new values.
BOOST_AUTO_TEST_CASE(a_leaf_written_between_forward_and_backward_is_noticed) {
  const std::vector<std::function<void(Tensor&)>> writes{[](Tensor& x) { x.fill(0); },
                                                         [](Tensor& x) {
                                                           x.copy_(full({2, 2}, 7, DType::f64));
                                                         },
                                                         [](Tensor& x) { x.add_(values()); },
                                                         [](Tensor& x) { x.mutable_data<double>()[0] = 5; },
                                                         [](Tensor& x) { *static_cast<double*>(x.mutable_raw()) = 5; },
                                                         [](Tensor& x) { x.detach().sliced(0, 0, 1).fill(0); }};
  for (const auto& write : writes) {
    Tensor x = leaf(), y = sum(square(x));
    write(x);
    BOOST_TEST(throws_with([&] { backward(y); }, "[square] input 0 was written in place"));
    BOOST_TEST(!grad(x));
  }
  Tensor x = leaf(), factor = values(), y = sum(mul(x, factor));  // an input without a gradient is saved as well
  factor.fill(0);
  BOOST_TEST(throws_with([&] { backward(y); }, "[mul] input 1 was written in place"));
  Tensor z = softmax(x);  // its derivative is made of the result
  z.detach().fill(0);
  BOOST_TEST(throws_with([&] { backward(sum(z)); }, "[softmax] its result was written in place"));
}

BOOST_AUTO_TEST_CASE(a_leaf_may_be_written_where_no_derivative_needs_it) {
  Tensor x = leaf(), y = sum(add(x, x));  // add saves shapes only
  x.fill(0);
  backward(y);
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {2, 2, 2, 2}, 0));
  x.add_(grad(x));  // an update after the backward pass
  zero_grad(x);
  backward(sum(square(x)));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {4, 4, 4, 4}, 0));
}

BOOST_AUTO_TEST_SUITE_END()
