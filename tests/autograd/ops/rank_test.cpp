// Seven and eight axes: each op against loops over coordinates, derivatives against finite differences, and the error
// of a ninth axis.
#include <boost/test/unit_test.hpp>
#include <functional>
#include <numeric>

#include "braid/autograd.h"
#include "braid/autograd/gradcheck.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(rank)

namespace {

using At = std::vector<int64_t>;
const Shape kShapes[] = {{2, 3, 1, 2, 2, 3, 2}, {2, 1, 3, 2, 1, 2, 3, 2}};

Tensor counted(const Shape& shape) {
  std::vector<double> values(static_cast<size_t>(numel(shape)));
  std::iota(values.begin(), values.end(), 1);
  return from_vector(values, shape);
}

// The element of a contiguous x at these coordinates; those along axes of size 1 count as 0.
double element(const Tensor& x, const At& at) {
  int64_t i = 0;
  for (int a = 0; a < x.rank(); ++a) i = i * x.dim(a) + (x.dim(a) == 1 ? 0 : at[static_cast<size_t>(a)]);
  return x.data<double>()[i];
}

// y has this shape, and f of its coordinates.
void gives(const Tensor& y, const Shape& shape, const std::function<double(const At&)>& f) {
  BOOST_TEST(str(y.shape()) == str(shape));
  std::vector<double> want;
  for (int64_t i = 0; i < numel(shape); ++i) {
    At at(static_cast<size_t>(shape.rank()));
    int64_t rest = i;
    for (int a = shape.rank() - 1; a >= 0; rest /= shape[a], --a) at[static_cast<size_t>(a)] = rest % shape[a];
    want.push_back(f(at));
  }
  BOOST_TEST(is_close(y.to_vector<double>(), want, 1e-14));
}

// The sum (or the largest) of x over the axes in `over`, at the coordinates of the others.
double reduced(const Tensor& x, unsigned over, const At& at, bool largest = false) {
  double result = largest ? -INFINITY : 0;
  At from = at;
  const std::function<void(int)> walk = [&](int axis) {
    if (axis == x.rank()) {
      const double v = element(x, from);
      result = largest ? std::fmax(result, v) : result + v;
    } else if (over >> axis & 1u) {
      for (int64_t i = 0; i < x.dim(axis); ++i) {
        from[static_cast<size_t>(axis)] = i;
        walk(axis + 1);
      }
    } else {
      walk(axis + 1);
    }
  };
  walk(0);
  return result;
}

// Axes 0 and 1, 2 and 3, ... swapped.
Tensor swapped(Tensor x) {
  for (int a = 0; a + 1 < x.rank(); a += 2) x = transpose(x, a, a + 1);
  return x;
}

void check_gradients(const Function& f, const std::vector<Tensor>& inputs) {
  const GradcheckResult first = gradcheck(f, inputs);
  BOOST_TEST(first.error < 1e-8, first.where);
  const GradcheckResult second = gradgradcheck(f, inputs);
  BOOST_TEST(second.error < 1e-6, second.where);
}

}  // namespace

BOOST_AUTO_TEST_CASE(broadcasting) {
  for (const Shape& shape : kShapes) {
    Shape other = shape, both = shape;
    for (int a = 0; a < shape.rank(); ++a) other[a] = a % 2 == 0 ? 1 : shape[a] == 1 ? 2 : shape[a];
    both = broadcast(shape, other, "test");
    const Tensor x = counted(shape), y = scale(counted(other), 0.5);
    gives(add(x, y), both, [&](const At& at) { return element(x, at) + element(y, at); });
    gives(maximum(x, scale(y, 8)), both, [&](const At& at) { return std::fmax(element(x, at), 8 * element(y, at)); });
    gives(where(gt(x, 20.0), x, y), both,
          [&](const At& at) { return element(x, at) > 20 ? element(x, at) : element(y, at); });
    const Tensor last = counted({shape[-1]});
    gives(mul(x, last), shape, [&](const At& at) { return element(x, at) * static_cast<double>(at.back() + 1); });
  }
}

BOOST_AUTO_TEST_CASE(permuting_and_joining) {
  for (const Shape& shape : kShapes) {
    const Tensor x = counted(shape);
    const int rank = shape.rank();
    std::vector<int> order(static_cast<size_t>(rank));
    for (int a = 0; a < rank; ++a)
      order[static_cast<size_t>(a)] = (3 * a + 2) % rank;  // 3 and the rank share no factor
    Shape permuted, back;
    for (const int a : order) permuted.push_back(shape[a]);
    const auto moved = [&](const At& at) {
      At from(at.size());
      for (size_t a = 0; a < at.size(); ++a) from[static_cast<size_t>(order[a])] = at[a];
      return element(x, from);
    };
    gives(contiguous(permute(x, order)), permuted, moved);
    gives(scale(permute(x, order), 1), permuted, moved);
    Shape twice = shape;
    twice[3] *= 2;
    gives(concat({x, scale(x, 2)}, 3), twice, [&](const At& at) {
      At from = at;
      from[3] %= shape[3];
      return element(x, from) * (at[3] < shape[3] ? 1 : 2);
    });
    gives(transpose(x, 1, -1), transpose(x, 1, -1).shape(), [&](const At& at) {
      At from = at;
      std::swap(from[1], from.back());
      return element(x, from);
    });
  }
  const Tensor x = counted(kShapes[0]);
  gives(stack({x, scale(x, 3)}, 4), {2, 3, 1, 2, 2, 2, 3, 2}, [&](const At& at) {
    At from = at;
    from.erase(from.begin() + 4);
    return element(x, from) * (at[4] == 0 ? 1 : 3);
  });
}

BOOST_AUTO_TEST_CASE(reducing_over_several_axes) {
  for (const Shape& shape : kShapes) {
    const Tensor x = counted(shape);
    const int rank = shape.rank();
    for (const unsigned over : {0b1u, 0b1001010u, 0b0100101u, 0b0110100u, 0b1111110u}) {
      std::vector<int> axes;
      Shape kept = shape;
      double n = 1;
      for (int a = 0; a < rank; ++a)
        if (over >> a & 1u) axes.push_back(a), n *= static_cast<double>(shape[a]), kept[a] = 1;
      gives(sum(x, axes, true), kept, [&](const At& at) { return reduced(x, over, at); });
      gives(mean(x, axes, true), kept, [&](const At& at) { return reduced(x, over, at) / n; });
      gives(max(x, axes, true), kept, [&](const At& at) { return reduced(x, over, at, true); });
      gives(neg(min(neg(x), axes, true)), kept, [&](const At& at) { return reduced(x, over, at, true); });
      gives(sum_product(x, x, axes), kept, [&](const At& at) { return reduced(square(x), over, at); });
      gives(sum(x.to(DType::i64), axes, true), kept, [&](const At& at) { return reduced(x, over, at); });
      const Tensor y = swapped(x);
      Shape left = y.shape();
      for (const int a : axes) left[a] = 1;
      gives(sum(y.to(DType::f32), axes, true), left, [&](const At& at) { return reduced(y.contiguous(), over, at); });
    }
    BOOST_TEST(sum(x).item() == static_cast<double>(x.numel() * (x.numel() + 1) / 2));
    gives(argmax(x, 1, true), argmax(x, 1, true).shape(), [&](const At&) { return static_cast<double>(shape[1] - 1); });
  }
}

BOOST_AUTO_TEST_CASE(order_and_scans) {
  for (const Shape& shape : kShapes) {
    const Tensor x = counted(shape);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const auto a = static_cast<size_t>(axis);
      const auto mirrored = [&](const At& at) {
        At from = at;
        from[a] = shape[axis] - 1 - at[a];
        return element(x, from);
      };
      gives(flip(x, axis), shape, mirrored);
      gives(sort(x, axis, true).values, shape, mirrored);  // x ascends along every axis
      gives(argsort(x, axis, true), shape, [&](const At& at) { return static_cast<double>(shape[axis] - 1 - at[a]); });
      gives(cumsum(x, axis), shape, [&](const At& at) {
        double total = 0;
        At from = at;
        for (from[a] = 0; from[a] <= at[a]; ++from[a]) total += element(x, from);
        return total;
      });
      gives(cummax(x, axis).values, shape, [&](const At& at) { return element(x, at); });
      gives(roll(x, 1, axis), shape, [&](const At& at) {
        At from = at;
        from[a] = (at[a] + shape[axis] - 1) % shape[axis];
        return element(x, from);
      });
      gives(logsumexp(scale(x, 0), axis, true), sum(x, {axis}, true).shape(),
            [&](const At&) { return std::log(static_cast<double>(shape[axis])); });
    }
    gives(flip(x, {0, 3, -1}), shape, [&](const At& at) {
      At from = at;
      for (const int axis : {0, 3, shape.rank() - 1})
        from[static_cast<size_t>(axis)] = shape[axis] - 1 - at[static_cast<size_t>(axis)];
      return element(x, from);
    });
  }
}

BOOST_AUTO_TEST_CASE(padding) {
  for (const Shape& shape : kShapes) {
    const Tensor x = counted(shape);
    std::vector<AxisPadding> amounts;
    Shape padded = shape;
    for (const int axis : {0, 2, 5, shape.rank() - 1}) {
      amounts.push_back({axis, axis % 2, 1});
      padded[axis] += axis % 2 + 1;
    }
    gives(pad(x, amounts, Padding::constant, -7), padded, [&](const At& at) {
      At from = at;
      for (const AxisPadding& p : amounts) {
        int64_t& i = from[static_cast<size_t>(p.axis)];
        i -= p.before;
        if (i < 0 || i >= shape[p.axis]) return -7.0;
      }
      return element(x, from);
    });
    gives(pad(x, {{1, 2, 1}}, Padding::circular), pad(x, {{1, 2, 1}}).shape(), [&](const At& at) {
      At from = at;
      from[1] = (at[1] + 2 * shape[1] - 2) % shape[1];
      return element(x, from);
    });
  }
}

BOOST_AUTO_TEST_CASE(indexing) {
  const Tensor x = counted(kShapes[1]);  // (2, 1, 3, 2, 1, 2, 3, 2)
  const Tensor ids = from_vector(std::vector<int64_t>{2, 0, 2}, {3});
  gives(index(x, {1, Slice{}, Slice{.step = -1}, ellipsis, 1, newaxis, Slice{1, 2}}), {1, 3, 2, 1, 2, 1, 1},
        [&](const At& at) {
          return element(x, {1, 0, 2 - at[1], at[2], 0, at[4], 1, 1});
        });
  gives(index(x, {Slice{}, Slice{}, ids, ellipsis}), {2, 1, 3, 2, 1, 2, 3, 2}, [&](const At& at) {
    return element(x, {at[0], 0, at[2] == 1 ? 0 : 2, at[3], 0, at[5], at[6], at[7]});
  });
  gives(index(x, {ellipsis, ids, Slice{}}), {2, 1, 3, 2, 1, 2, 3, 2}, [&](const At& at) {
    return element(x, {at[0], 0, at[2], at[3], 0, at[5], at[6] == 1 ? 0 : 2, at[7]});
  });
  const Tensor odd = eq(remainder(x, 2), 1);
  gives(index(x, {odd}), {72}, [&](const At& at) { return static_cast<double>(2 * at[0] + 1); });
  BOOST_TEST(str(nonzero(odd).shape()) == "(72, 8)");
  const std::vector<Index> some{1, Slice{}, ids, ellipsis, Slice{1, 3}, 0};  // element 2 of axis 2 twice
  const Tensor values = scale(ones({3, 1, 2, 1, 2, 2}, DType::f64), -1);
  const auto taken = [](const At& at) { return at[0] == 1 && at[2] != 1 && at[6] >= 1 && at[7] == 0; };
  gives(index_put(x, some, values), x.shape(), [&](const At& at) { return taken(at) ? -1 : element(x, at); });
  gives(index_add(x, some, values), x.shape(), [&](const At& at) {
    return element(x, at) - (!taken(at) ? 0 : at[2] == 2 ? 2 : 1);
  });
  gives(take_along_axis(x, argsort(x, 6, true), 6), x.shape(), [&](const At& at) {
    At from = at;
    from[6] = 2 - at[6];
    return element(x, from);
  });
  gives(diagonal(x, 0, 2, 6), {2, 1, 2, 1, 2, 2, 3}, [&](const At& at) {
    return element(x, {at[0], 0, at[6], at[2], 0, at[4], at[6], at[5]});
  });
}

BOOST_AUTO_TEST_CASE(products) {
  const Tensor x = counted(kShapes[1]), y = counted({2, 4});
  Shape shape = x.shape();
  shape[-1] = 4;
  const auto row_times_y = [&](const At& at) {
    At from = at;
    double total = 0;
    for (int64_t k = 0; k < 2; ++k) {
      from.back() = k;
      total += element(x, from) * element(y, {k, at.back()});
    }
    return total;
  };
  gives(matmul(x, y), shape, row_times_y);
  gives(einsum("abcdefgh,hi->abcdefgi", x, y), shape, row_times_y);
  gives(tensordot(x, y, 1), shape, row_times_y);
  // Batch axes that broadcast, some of them repeated: (2, 1, 3, 2, 1, 2, 3, 2) (1, 4, 1, 2, 3, 1, 2, 1)
  const Tensor z = counted({1, 4, 1, 2, 3, 1, 2, 1});
  gives(matmul(x, z), {2, 4, 3, 2, 3, 2, 3, 1}, [&](const At& at) {
    At left = at, right = at;
    double total = 0;
    for (int64_t k = 0; k < 2; ++k) {
      left[7] = right[6] = k;
      total += element(x, left) * element(z, right);
    }
    return total;
  });
  gives(einsum("abcdefgh->hgca", {x}), {2, 3, 3, 2}, [&](const At& at) {
    return reduced(x, 0b00111010, {at[3], 0, at[2], 0, 0, 0, at[1], at[0]});
  });
  gives(kron(counted({1, 2, 1, 2}), counted({2, 1, 1, 3})), {2, 2, 1, 6},
        [&](const At& at) { return static_cast<double>((at[1] * 2 + at[3] / 3 + 1) * (at[0] * 3 + at[3] % 3 + 1)); });
}

BOOST_AUTO_TEST_CASE(derivatives) {
  const Tensor x = scale(counted({2, 1, 2, 1, 2, 1, 1, 2}), 0.1), row = scale(counted({2}), 0.3);
  check_gradients([](const auto& in) { return mul(in[0], sum(in[0], {0, 4, -1}, true)); }, {x});
  check_gradients(
      [](const auto& in) {
        return square(mul(permute(in[0], {7, 6, 5, 4, 3, 2, 1, 0}), in[1]));
      },
      {x, row});
  check_gradients([](const auto& in) { return square(pad(flip(roll(in[0], 1, 2), {0, 7}), {{4, 1, 0}})); }, {x});
  check_gradients([](const auto& in) { return square(cumsum(concat({in[0], in[0]}, 3), 4)); }, {x});
  check_gradients(
      [](const auto& in) {
        return square(index(in[0], {Slice{}, 0, from_vector(std::vector<int64_t>{1, 1}, {2}), ellipsis}));
      },
      {x});
  check_gradients(
      [](const auto& in) {
        return square(index_put(in[0], {Slice{}, ellipsis, from_vector(std::vector<int64_t>{1, 1}, {2})}, in[1]));
      },
      {x, row});
  check_gradients([](const auto& in) { return einsum("abcdefgh,abcdefgi->hi", in[0], in[0]); }, {x});
}

BOOST_AUTO_TEST_CASE(a_ninth_axis_is_an_error) {
  const Tensor x = zeros(kShapes[1]);
  const char* most = "a tensor has at most 8 axes";
  BOOST_TEST(throws_with([&] { unsqueeze(x, 0); }, most));
  BOOST_TEST(throws_with([&] { stack({x, x}); }, most));
  BOOST_TEST(throws_with([&] { reshape(x, {2, 1, 3, 2, 1, 2, 3, 2, 1}); }, most));
  BOOST_TEST(throws_with([&] { index(x, {newaxis}); }, most));
  BOOST_TEST(throws_with([&] { zeros({1, 1, 1, 1, 1, 1, 1, 1, 1}); }, most));
  BOOST_TEST(throws_with([&] { windows(x, 0, 1); }, "[windows] needs at most 7 axes"));
  BOOST_TEST(throws_with([&] { diag_embed(x); }, "[diag_embed] needs 1 to 7 axes"));
  BOOST_TEST(
      throws_with([&] { one_hot(x.to(DType::i64), 2); }, "[one_hot] needs at least one class and at most 7 axes"));
  BOOST_TEST(throws_with([&] { unflatten(x, 0, {2, 1}); }, "at most 8 axes in all"));
  BOOST_TEST(throws_with([&] { einsum("abcdefgh,ij->abcdefghij", x, zeros({1, 1})); }, "more than 8 axes"));
}

BOOST_AUTO_TEST_SUITE_END()
