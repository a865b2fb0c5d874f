// Checks of exercise 4: against Braid's softmax and its derivative, and formulas in f64.
#include EXERCISE

#include <cmath>

#include "braid/autograd/ops.h"
#include "braid/tensor/parallel.h"
#include "course/checks.h"

using namespace braid;
using exercise::Part;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor row_of(const Tensor& x) {
  Tensor y = full(x.shape(), -7, x.dtype());
  if (x.dtype() == DType::f64) {
    exercise::softmax_row(x.data<double>(), y.mutable_data<double>(), x.numel());
  } else {
    exercise::softmax_row(x.data<float>(), y.mutable_data<float>(), x.numel());
  }
  return y;
}

void expect_number(const std::string& name, double found, double expected) {
  const bool close = std::abs(found - expected) <= 1e-13 * std::abs(expected) || found == expected;
  course::expect(close, name, ": expected ", expected, ", found ", found);
}
void expect_part(const std::string& name, const Part<double>& found, double max, double sum) {
  expect_number(name + ", max", found.max, max);
  expect_number(name + ", sum", found.sum, sum);
}

Tensor values(const Shape& shape, uint64_t stream) { return randn(shape, {4, stream}, DType::f64) * 3; }
Part<double> part(const Tensor& x) { return exercise::part_of(x.data<double>(), x.numel()); }

void expect_rows(const std::string& name, const Tensor& x) {
  course::expect_close(name + ", f64", exercise::softmax(x), softmax(x), 1e-14);
  const Tensor narrow = x.to(DType::f32);
  course::expect_close(name + ", f32", exercise::softmax(narrow), softmax(narrow.to(DType::f64)).to(DType::f32), 5e-7);
}

}  // namespace

int main() {
  course::Checks check;
  check("softmax_row: [1, 2, 3] and rows of other lengths", "three loops over n entries; y_i = e_i / sum", [] {
    course::expect_close("softmax of (1, 2, 3)", row_of(from_values({1, 2, 3}, {3}, DType::f64)),
                         from_values({0.09003057317038046, 0.24472847105479764, 0.6652409557748218}, {3}, DType::f64),
                         1e-15);
    for (const int64_t n : {1, 2, 7, 1000}) {
      const Tensor x = values({n}, 1), narrow = x.to(DType::f32);
      course::expect_close(course::words("row of ", n), row_of(x), softmax(x), 1e-14);
      course::expect_close(course::words("row of ", n, " in f32"), row_of(narrow), softmax(narrow), 2e-6);
    }
  });
  check("softmax_row: large values, where exp() of f32 overflows", "subtract the maximum before exp()", [] {
    const Tensor x = from_values({1001, 1002, 1003}, {3});
    course::expect_close("large values", row_of(x), softmax(x), 1e-6);
  });
  check("softmax_row: masked entries, and rows without any other",
        "exp(-inf) is 0: with a finite maximum there is nothing to do", [] {
          const Tensor x = from_values({-kInf, 2, -kInf, 3}, {4}), none = from_values({-kInf, -kInf}, {2});
          course::expect_close("masked entries", row_of(x), softmax(x), 1e-6);
          course::hint("the maximum is -inf here: -inf - -inf is NaN, and 0 / 0 is, too");
          course::expect_close("only masked entries", row_of(none), zeros({2}), 0);
          course::hint("a row of n = 0 entries: x[0] does not exist");
          row_of(zeros({0}));
        });
  check("softmax_backward_row: as Braid's derivative", "every dx_i depends on all dy_j: sum y_j dy_j first", [] {
    Tensor x = values({9}, 2), dy = values({9}, 3), dx = zeros({9}, DType::f64);
    const Tensor y = softmax(x);
    exercise::softmax_backward_row(y.data<double>(), dy.data<double>(), dx.mutable_data<double>(), 9);
    require_grad(x);
    course::expect_close("dx", dx, grad(softmax(x), {x}, {.dy = dy})[0], 1e-14);
  });
  check("part_of: maximum and sum in one pass", "begin with a maximum of -inf and a sum of 0", [] {
    expect_part("no entries", part(zeros({0}, DType::f64)), -kInf, 0);
    course::hint("a new maximum scales the sum so far by exp(old - new)");
    expect_number("sum of (1, 2, 3)", part(from_values({1, 2, 3}, {3}, DType::f64)).sum, 1.5032147244080551);
    course::hint("without a new maximum the sum so far stays: exp(x - max) is added");
    expect_part("(3, 1, 2)", part(from_values({3, 1, 2}, {3}, DType::f64)), 3, 1.5032147244080551);
    course::hint("-inf - -inf is NaN: skip entries of -inf");
    expect_part("(-inf, 5, -inf)", part(from_values({-kInf, 5, -kInf}, {3}, DType::f64)), 5, 1);
    expect_part("(-inf, -inf)", part(from_values({-kInf, -kInf}, {2}, DType::f64)), -kInf, 0);
    course::hint(nullptr);
    const Tensor x = values({333}, 4);
    expect_part("333 entries", part(x), max(x, 0).item(), std::exp(logsumexp(x, 0).item() - max(x, 0).item()));
  });
  check("merge: a part without entries changes no bit", "the maximum of two empty parts is -inf: no exp() there", [] {
    const Part<double> none, some{1.7, 3.3};
    expect_part("two parts without entries", exercise::merge(none, none), -kInf, 0);
    course::hint("1 times the one sum and exp(-inf) = 0 times the other: does an empty part come first or second?");
    for (const Part<double>& both : {exercise::merge(none, some), exercise::merge(some, none)}) {
      course::expect(both.max == some.max && both.sum == some.sum, "a part and an empty one: expected (1.7, 3.3), ",
                     "found (", both.max, ", ", both.sum, ")");
    }
  });
  check("merge: any split of a row gives its part, up to rounding", "scale both sums to the larger maximum", [] {
    const Tensor x = values({50}, 5);
    const Part<double> whole = part(x);
    for (int64_t i = 0; i <= 50; i += 5) {
      const Part<double> a = part(x.sliced(0, 0, i)), b = part(x.sliced(0, i, 50));
      expect_part(course::words("split at ", i), exercise::merge(a, b), whole.max, whole.sum);
      expect_part(course::words("split at ", i, ", right part first"), exercise::merge(b, a), whole.max, whole.sum);
      const Part<double> c = part(values({20}, 6)), left = exercise::merge(exercise::merge(a, b), c);
      const Part<double> right = exercise::merge(a, exercise::merge(b, c));
      expect_part(course::words("(a b) c and a (b c), split at ", i), left, right.max, right.sum);
    }
  });
  check("softmax: rows of all lengths, f64 and f32",
        "the last block of a row may be shorter; the result has the type of x (empty_like)", [] {
          for (const int64_t n : {1, 63, 64, 65, 200})
            expect_rows(course::words("rows of ", n, " entries"), values({3, 2, n}, 7));
          Tensor x = values({4, 150}, 8);
          x.sliced(0, 1, 2).sliced(1, 0, 100).fill(-kInf);
          x.sliced(0, 2, 3).fill(-kInf);
          course::hint("a block of -inf alone has the maximum -inf, and so may a whole row, whose softmax is 0");
          expect_rows("masked rows", x);
          course::hint("subtract the maximum of the row, not that of the block");
          expect_rows("large values", x * 300);
        });
  check("softmax: no bit depends on the threads or on the other rows", "each row is the work of one call", [] {
    const Tensor x = values({300, 129}, 9).to(DType::f32);
    const std::vector<double> expected = exercise::softmax(x.sliced(0, 150, 151)).to_vector<double>();
    for (const int count : {1, 3}) {
      set_threads(count);
      const std::vector<double> found = exercise::softmax(x).sliced(0, 150, 151).to_vector<double>();
      course::expect(found == expected, "row 150 of 300 with ", count, " threads: expected the bits of that row alone");
    }
  });
  return check.result();
}
