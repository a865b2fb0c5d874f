#include "braid/tensor/tensor.h"

#include <boost/test/unit_test.hpp>
#include <limits>

#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(tensor)

namespace {
std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }
Tensor counting(const Shape& shape, DType dtype = DType::f32) { return arange(numel(shape), dtype).reshaped(shape); }
}  // namespace

BOOST_AUTO_TEST_CASE(making_tensors) {
  BOOST_TEST(is_close(values(full({2, 2}, 1.5)), {1.5, 1.5, 1.5, 1.5}, 0));
  BOOST_TEST(is_close(values(zeros({3}, DType::i32)), {0, 0, 0}, 0));
  BOOST_TEST(is_close(values(arange(4, DType::u8)), {0, 1, 2, 3}, 0));
  BOOST_TEST((from_values({1, 2}, {2}, DType::bf16).dtype() == DType::bf16));
  BOOST_TEST(full({}, 7).item() == 7.0);
  BOOST_TEST(full({0, 3}, 7).numel() == 0);
  BOOST_TEST(throws_with([] { from_vector(std::vector<float>{1, 2, 3}, {2}); }, "3 values do not fill shape (2)"));
  BOOST_TEST(throws_with([] { counting({2}).item(); }, "needs exactly one element, got shape (2); reduce it"));
  BOOST_TEST(throws_with([] { Tensor().shape(); }, "an empty Tensor handle was used, made without a value"));
  BOOST_TEST(throws_with([] { full({1}, 1).data<double>(); }, "[data] the tensor holds f32, not f64; cast() it"));
}

BOOST_AUTO_TEST_CASE(integer_types_take_their_own_numbers_alone) {
  BOOST_TEST(full({}, 255, DType::u8).item() == 255.0);
  BOOST_TEST(full({}, -0x1p63, DType::i64).item() == -0x1p63);
  BOOST_TEST(throws_with([] { full({2}, 300, DType::u8); }, "[full] 300 is not a number of u8"));
  BOOST_TEST(throws_with([] { full({2}, 1.5, DType::i64); }, "[full] 1.5 is not a number of i64"));
  BOOST_TEST(throws_with([] { full({2}, 0x1p63, DType::i64); }, "is not a number of i64"));
  BOOST_TEST(throws_with([] { arange(2, DType::i32).fill(0x1p31); }, "[fill] 2147483648 is not a number of i32"));
  BOOST_TEST(throws_with([] { zeros({2}, DType::u8).fill(std::nan("")); }, "[fill] nan is not a number of u8"));
}

BOOST_AUTO_TEST_CASE(views_share_memory) {
  Tensor x = counting({2, 3});
  Tensor t = x.transposed(), s = x.sliced(1, 1, 3), e = x.sliced(0, 0, 1).expanded({4, 3});
  BOOST_TEST(is_close(values(t), {0, 3, 1, 4, 2, 5}, 0));
  BOOST_TEST(is_close(values(s), {1, 2, 4, 5}, 0));
  BOOST_TEST(is_close(values(e.sliced(0, 3, 4)), {0, 1, 2}, 0));
  BOOST_TEST(!t.is_contiguous());
  BOOST_TEST(!s.is_contiguous());
  BOOST_TEST(x.sliced(0, 1, 2).is_contiguous());
  s.fill(9);
  BOOST_TEST(is_close(values(x), {0, 9, 9, 3, 9, 9}, 0));
  BOOST_TEST(t.shares_storage(x));
  BOOST_TEST(!t.clone().shares_storage(x));
  BOOST_TEST(
      is_close(values(counting({2, 3, 4}).permuted({1, 2, 0}).sliced(0, 1, 2)), {4, 16, 5, 17, 6, 18, 7, 19}, 0));
  BOOST_TEST(str(counting({2, 1, 3}).squeezed(1).unsqueezed(0).shape()) == "(1, 2, 3)");
  BOOST_TEST(str(counting({2, 6}).reshaped({-1, 3}).shape()) == "(4, 3)");
}

BOOST_AUTO_TEST_CASE(impossible_views_are_rejected) {
  Tensor x = counting({2, 3});
  BOOST_TEST(throws_with(
      [&] {
        x.reshaped({4, -1});
      },
      "[reshape] cannot view (2, 3) as (4, -1): there are 6 elements"));
  BOOST_TEST(throws_with([&] { x.reshaped({-1, -1}); }, "only one size may be -1"));
  BOOST_TEST(throws_with([&] { x.transposed().reshaped({6}); }, "needs a contiguous tensor"));
  BOOST_TEST(
      throws_with([&] { x.sliced(1, 2, 4); }, "does not lie in axis 1 of (2, 3); index(x, {Slice{begin, end}}) cuts"));
  BOOST_TEST(throws_with([&] { x.sliced(0, 1, 0); }, "[slice] range [1, 0)"));
  BOOST_TEST(throws_with([&] { x.permuted({0}); }, "[permute] needs one entry per axis of (2, 3)"));
  BOOST_TEST(throws_with([&] { x.permuted({0, -2}); }, "stands twice; name each axis once"));
  BOOST_TEST(throws_with([&] { x.squeezed(1); }, "[squeeze] axis 1 of (2, 3) is not 1; select(x, axis, i) takes one"));
  BOOST_TEST(throws_with([&] { x.expanded({3, 3}); }, "[expand] cannot expand (2, 3) to (3, 3)"));
  BOOST_TEST(throws_with([&] { zeros({1}).expanded({3, -1}); }, "a size is negative in (3, -1)"));
  BOOST_TEST(throws_with([&] { arange(-1); }, "[arange] needs at least 0 elements, got -1"));
}

BOOST_AUTO_TEST_CASE(views_stay_within_their_buffer) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const Tensor x = counting({2, 3}), part = x.sliced(0, 1, 2);  // begins at element 3
  BOOST_TEST(is_close(values(x.view({6}, {-1}, 5).clone()), {5, 4, 3, 2, 1, 0}, 0));
  BOOST_TEST(is_close(values(part.view({2, 2}, {-3, 2}, 0).clone()), {3, 5, 0, 2}, 0));
  BOOST_TEST(x.view({1, 2}, {kMost, 0}, 5).numel() == 2);  // a stride that is not followed
  BOOST_TEST(x.view({3, 0}, {kMost, kMost}, kMost).numel() == 0);
  BOOST_TEST(throws_with(
      [&] {
        zeros({4}).view({2, 2}, {3, 1}, 0);
      },
      "[view] (2, 2) with strides (3, 1) and offset 0 leaves the buffer of 4 elements"));
  const auto outside = [](const Tensor& t, const Shape& shape, const Strides& strides, int64_t offset) {
    return throws_with([&] { t.view(shape, strides, offset); }, "leaves the buffer of 6 elements");
  };
  BOOST_TEST(outside(x, {1}, {1}, 6));
  BOOST_TEST(outside(x, {1}, {1}, -2));
  BOOST_TEST(outside(x, {6}, {-1}, 4));
  BOOST_TEST(outside(x, {2}, {kMost}, 1));
  BOOST_TEST(outside(x, {3}, {kMost}, 0));
  BOOST_TEST(outside(x, {kMost}, {1}, 0));
  BOOST_TEST(outside(part, {4}, {1}, 0));
  BOOST_TEST(outside(part, {1}, {1}, kMost));
  BOOST_TEST(throws_with([&] { part.view({4}, {1}, 0); }, "of which this tensor begins at number 3"));
  BOOST_TEST(throws_with([&] { x.view({2, 2}, {1}, 0); }, "[view] needs one stride per axis of (2, 2), got (1)"));
  BOOST_TEST(throws_with([&] { x.view({-1}, {1}, 0); }, "a size is negative in (-1)"));
}

BOOST_AUTO_TEST_CASE(empty_and_single_tensors_are_contiguous) {
  BOOST_TEST(counting({4, 0}).transposed().is_contiguous());
  BOOST_TEST(counting({1, 5}).transposed().is_contiguous());
  BOOST_TEST(full({}, 1).is_contiguous());
}

BOOST_AUTO_TEST_CASE(writing_in_place) {
  Tensor x = counting({2, 3});
  x.copy_(full({2, 3}, 2, DType::i64));
  x.transposed().add_(counting({3, 2}));
  BOOST_TEST(is_close(values(x), {2, 4, 6, 3, 5, 7}, 0));
  Tensor same = x.detach();
  x.add_(same);  // the very same view
  BOOST_TEST(is_close(values(x), {4, 8, 12, 6, 10, 14}, 0));
  Tensor n = counting({2, 3}, DType::i64);
  n.transposed().add_(counting({3, 2}, DType::i64));
  BOOST_TEST(is_close(values(n), {0, 3, 6, 4, 7, 10}, 0));
  BOOST_TEST(throws_with([&] { x.copy_(full({3}, 1)); }, "[copy_] shapes differ: (2, 3) and (3)"));
  BOOST_TEST(throws_with([&] { x.add_(full({2, 3}, 1, DType::f64)); }, "[add_] shapes or types differ"));
}

// Their bounds were taken the wrong way round, beyond the end of a list of bits.
BOOST_AUTO_TEST_CASE(views_with_negative_strides_are_written) {
  Tensor x = counting({6}), back = x.view({3}, {-1}, 2);
  back.copy_(counting({3}));
  BOOST_TEST(is_close(values(x), {2, 1, 0, 3, 4, 5}, 0));
  back.add_(x.view({3}, {-1}, 5));
  BOOST_TEST(is_close(values(x), {5, 5, 5, 3, 4, 5}, 0));
  back.fill(9);
  BOOST_TEST(is_close(values(x), {9, 9, 9, 3, 4, 5}, 0));
  BOOST_TEST(throws_with([&] { back.copy_(x.sliced(0, 0, 3)); }, "shares elements with the destination"));
  BOOST_TEST(throws_with([&] { x.view({2, 2}, {1, -1}, 2).fill(1); }, "several of its indices are one element"));
}

// The results depended on the blocks and threads of the kernels.
BOOST_AUTO_TEST_CASE(writes_that_depend_on_the_order_of_elements_throw) {
  Tensor repeated = zeros({3}).expanded({4, 3});
  const std::string one_element = "cannot write to the view (4, 3) with strides (0, 1): several of its indices are one";
  BOOST_TEST(throws_with([&] { repeated.add_(full({4, 3}, 1)); }, "[add_] " + one_element));
  BOOST_TEST(throws_with([&] { repeated.copy_(full({4, 3}, 1)); }, "[copy_] " + one_element));
  BOOST_TEST(throws_with([&] { repeated.fill(1); }, "[fill] " + one_element));
  BOOST_TEST(throws_with([&] { zeros({4}).view({2, 2}, {1, 1}, 0).fill(1); }, "[fill] cannot write to the view"));
  BOOST_TEST(is_close(values(repeated), std::vector<double>(12, 0), 0));
  Tensor x = counting({8}), square = counting({3, 3}), moved = x.sliced(0, 1, 8);
  const std::string shared = "shares elements with the destination";
  BOOST_TEST(throws_with([&] { moved.add_(x.sliced(0, 0, 7)); }, shared));
  BOOST_TEST(throws_with([&] { moved.copy_(x.sliced(0, 0, 7)); }, shared));
  BOOST_TEST(throws_with([&] { square.copy_(square.transposed()); }, "call copy_(source.clone())"));
  BOOST_TEST(is_close(values(x), {0, 1, 2, 3, 4, 5, 6, 7}, 0));
  square.copy_(square.transposed().clone());
  BOOST_TEST(is_close(values(square), {0, 3, 6, 1, 4, 7, 2, 5, 8}, 0));
  // Views of one buffer without a common element, and the same view.
  square.sliced(1, 0, 1).add_(square.sliced(1, 2, 3));
  BOOST_TEST(is_close(values(square), {6, 3, 6, 8, 4, 7, 10, 5, 8}, 0));
  x.sliced(0, 0, 4).copy_(x.sliced(0, 4, 8));
  x.copy_(x.detach());
  x.reshaped({1, 8}).copy_(x.unsqueezed(0));
  BOOST_TEST(is_close(values(x), {4, 5, 6, 7, 4, 5, 6, 7}, 0));
  Tensor row = zeros({3}).expanded({1, 3});
  row.fill(2);
  BOOST_TEST(is_close(values(row), {2, 2, 2}, 0));
}

BOOST_AUTO_TEST_CASE(sizes_whose_products_overflow) {
  const int64_t huge = int64_t{1} << 40;
  const Tensor none = zeros({huge, huge, 0});
  BOOST_TEST(none.is_contiguous());
  BOOST_TEST(str(none.transposed(0, 2).contiguous().shape()) == str(Shape{0, huge, huge}));
  BOOST_TEST(str(none.reshaped({0, huge, 7}).shape()) == str(Shape{0, huge, 7}));
  BOOST_TEST(throws_with([&] { zeros({2}).reshaped({huge, huge, -1}); }, "does not fit 63 bits"));
  BOOST_TEST(throws_with([&] { zeros({huge, huge}); }, "does not fit 63 bits"));
  BOOST_TEST(throws_with([&] { arange(std::numeric_limits<int64_t>::max()); }, "is larger than any memory"));
}

BOOST_AUTO_TEST_CASE(handles_and_buffers) {
  Tensor x = full({4}, 1);
  BOOST_TEST(x.unique_storage());
  {
    Tensor y = x;
    BOOST_TEST(!x.unique_storage());
  }
  Tensor view = x.sliced(0, 0, 2);
  BOOST_TEST(!x.unique_storage());
  BOOST_TEST(x.to(DType::f32).shares_storage(x));  // nothing to convert
  BOOST_TEST(x.contiguous().shares_storage(x));
}

BOOST_AUTO_TEST_SUITE_END()
