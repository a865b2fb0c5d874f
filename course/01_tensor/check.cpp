// Checks of exercise 1: every position is compared with that of Braid's own view of the same buffer.
#include EXERCISE

#include "braid/autograd.h"
#include "course/checks.h"

using namespace braid;
using exercise::View;
using Numbers = std::vector<int64_t>;

namespace {

std::string list(const Numbers& values) {
  std::string out = "(";
  for (size_t i = 0; i < values.size(); ++i) out += (i ? ", " : "") + std::to_string(values[i]);
  return out + ")";
}

void expect_list(const char* what, const Numbers& found, const Numbers& expected) {
  course::expect(found == expected, what, ": expected ", list(expected), ", found ", list(found));
}

View whole(const Numbers& shape) { return {shape, exercise::row_major(shape), 0}; }

// Every element of the view lies where Braid's has it: the elements of `expected` are their own positions.
void expect_same(const View& found, const Tensor& expected) {
  expect_list("shape", found.shape, Numbers(expected.shape().begin(), expected.shape().end()));
  const std::vector<int64_t> places = expected.to_vector<int64_t>();
  Numbers index(found.shape.size(), 0);
  for (const int64_t place : places) {
    course::expect(exercise::position(found, index) == place, "the element ", list(index), ": expected position ",
                   place, ", found ", exercise::position(found, index));
    for (size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < found.shape[axis]) break;
      index[axis] = 0;
    }
  }
}

}  // namespace

int main() {
  course::Checks check;
  const Tensor buffer = arange(24).reshaped({2, 3, 4});  // each element is its position
  check("row_major: the last axis moves by 1, the one before it by a row", "walk from the last axis to the first", [] {
    expect_list("strides of (2, 3)", exercise::row_major({2, 3}), {3, 1});
    expect_list("strides of (2, 3, 4)", exercise::row_major({2, 3, 4}), {12, 4, 1});
    course::hint("without an axis there is no stride: an empty list");
    expect_list("strides of ()", exercise::row_major({}), {});
  });
  check("position: offset + sum of index times stride", "add index[axis] * strides[axis] of all axes", [&] {
    expect_same(whole({2, 3, 4}), buffer);
    course::hint("the strides are those of the view, and its offset counts too");
    course::expect(exercise::position({{2, 2}, {5, 3}, 7}, {1, 1}) == 15,
                   "strides (5, 3), offset 7, index (1, 1): ", "expected 15, found ",
                   exercise::position({{2, 2}, {5, 3}, 7}, {1, 1}));
  });
  check("transposed: shape and strides are exchanged, no element moves", "exchange both lists", [&] {
    expect_same(exercise::transposed(whole({2, 3, 4}), 0, 2), buffer.transposed(0, 2));
    course::hint("of a view: its own strides are exchanged, and its offset stays");
    expect_same(exercise::transposed({{2, 2, 4}, {12, 4, 1}, 4}, 0, 1), buffer.sliced(1, 1, 3).transposed(0, 1));
  });
  check(
      "sliced: a part of an axis, every step-th entry", "the offset moves by begin strides, the size is end - begin",
      [&] {
        expect_same(exercise::sliced(whole({2, 3, 4}), 1, 1, 3, 1), buffer.sliced(1, 1, 3));
        course::hint(
            "every step-th entry: the stride is step times as large, the size (end - begin) / step, rounded up");
        expect_same(exercise::sliced(whole({2, 3, 4}), 2, 1, 4, 2), index(buffer, {Slice{}, Slice{}, Slice{1, 4, 2}}));
        course::hint("of a view: its strides are not those of a whole tensor of its shape");
        const View columns = exercise::transposed(whole({2, 3, 4}), 1, 2);
        expect_same(exercise::sliced(columns, 1, 2, 4, 1), buffer.transposed(1, 2).sliced(1, 2, 4));
        course::hint("of a view that has an offset: the offsets add up");
        const View part = exercise::sliced(whole({2, 3, 4}), 1, 1, 3, 1);
        expect_same(exercise::sliced(part, 2, 1, 3, 1), buffer.sliced(1, 1, 3).sliced(2, 1, 3));
      });
  check("expanded: a repeated axis has the stride 0",
        "an axis of size 1 gets the new size and the stride 0; the others stay", [&] {
          const Tensor row = buffer.sliced(0, 1, 2).sliced(2, 3, 4);  // (1, 3, 1)
          expect_same(exercise::expanded({{1, 3, 1}, {12, 4, 1}, 15}, {5, 3, 2}), row.expanded({5, 3, 2}));
          course::hint("the new axes are in front: compare the sizes from the last axis on");
          expect_same(exercise::expanded({{3}, {1}, 0}, {2, 3}), arange(3).expanded({2, 3}));
        });
  check("contiguous: row-major order without gaps", "compare the strides with those of row_major()", [&] {
    const View a = whole({2, 3, 4});
    course::expect(exercise::contiguous(a), "(2, 3, 4) with strides (12, 4, 1): expected contiguous");
    course::expect(!exercise::contiguous(exercise::transposed(a, 0, 1)), "transposed: expected not contiguous");
    course::expect(exercise::contiguous(exercise::sliced(a, 0, 1, 2, 1)),
                   "a slice of the first axis: expected contiguous");
    course::hint("each stride has to be the product of the sizes behind it: a part of a middle axis leaves gaps");
    course::expect(!exercise::contiguous(exercise::sliced(a, 1, 0, 2, 1)),
                   "(2, 2, 4) with strides (12, 4, 1): expected not contiguous");
    course::hint("nothing moves along an axis of size 1: its stride does not matter");
    course::expect(exercise::contiguous({{1, 4}, {99, 1}, 0}), "(1, 4) with strides (99, 1): expected contiguous");
    course::hint("a stride of 0 along an axis of size 3 is not the 1 of row-major order");
    course::expect(!exercise::contiguous(exercise::expanded({{1}, {1}, 0}, {3})), "expanded: expected not contiguous");
  });
  return check.result();
}
