// The convolution kernels beside plain loops in f64, over shapes drawn at random, and their bits at 1 to 4 threads.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "braid/tensor/cpu/instruction_sets.h"
#include "tests/support/in_child.h"
#include "tests/support/sanitizer.h"
#include "tests/tensor/cpu/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(convolution_kernels)

namespace {

struct Case {
  int64_t images, inputs, outputs;  // of a group
  ConvolutionShape s;
  Shape x() const { return {images, s.groups * inputs, s.rows.size, s.columns.size}; }
  Shape weight() const { return {s.groups * outputs, inputs, s.rows.kernel, s.columns.kernel}; }
  Shape y() const { return {images, s.groups * outputs, s.rows.count, s.columns.count}; }
  std::string name() const {
    const auto axis = [](const ConvolutionAxis& a) {
      return str(a.size, " by ", a.kernel, " stride ", a.stride, " dilation ", a.dilation, " before ", a.before,
                 " count ", a.count);
    };
    return str(x(), " with ", weight(), ", rows ", axis(s.rows), ", columns ", axis(s.columns));
  }
};

ConvolutionAxis axis(int64_t size, int64_t kernel, int64_t stride = 1, int64_t dilation = 1, int64_t before = 0,
                     int64_t after = 0) {
  return {size, kernel, stride, dilation, before, (size + before + after - dilation * (kernel - 1) - 1) / stride + 1};
}

// Calls f(indices of x, weight, y) for every product of the sum.
template <class F>
void for_each_product(const Case& c, F f) {
  const ConvolutionAxis &r = c.s.rows, &q = c.s.columns;
  for (int64_t b = 0; b < c.images; ++b)
    for (int64_t o = 0; o < c.s.groups * c.outputs; ++o)
      for (int64_t i = 0; i < r.count; ++i)
        for (int64_t j = 0; j < q.count; ++j)
          for (int64_t k = 0; k < c.inputs; ++k)
            for (int64_t u = 0; u < r.kernel; ++u)
              for (int64_t v = 0; v < q.kernel; ++v) {
                const int64_t row = i * r.stride + u * r.dilation - r.before;
                const int64_t column = j * q.stride + v * q.dilation - q.before;
                if (row < 0 || row >= r.size || column < 0 || column >= q.size) continue;
                const int64_t channel = o / c.outputs * c.inputs + k;
                f(size_t(((b * c.s.groups * c.inputs + channel) * r.size + row) * q.size + column),
                  size_t(((o * c.inputs + k) * r.kernel + u) * q.kernel + v),
                  size_t(((b * c.s.groups * c.outputs + o) * r.count + i) * q.count + j));
              }
}

struct Results {
  bool done[3];
  Tensor y, dx, dweight;
};

Results compute(const Backend& device, const Case& c, const Tensor& x, const Tensor& weight, const Tensor& dy) {
  const auto unset = [&](const Shape& shape) {
    return full(shape, std::numeric_limits<double>::quiet_NaN(), x.dtype());
  };
  Results r{.y = unset(c.y()), .dx = unset(c.x()), .dweight = unset(c.weight())};
  r.done[0] = device.convolution.forward(x, weight, c.s, r.y);
  r.done[1] = device.convolution.input_gradient(dy, weight, c.s, r.dx);
  r.done[2] = device.convolution.weight_gradient(dy, x, c.s, r.dweight);
  return r;
}

// Errors are measured against the sum of the products' sizes, and the smallest numbers of f16.
void check_values(const char* what, const Tensor& found, const std::vector<double>& want,
                  const std::vector<double>& sizes, double eps, const Case& c) {
  const std::vector<double> values = found.to_vector<double>();
  const double least = found.dtype() == DType::f16 ? 6e-8 : 0;
  int64_t wrong = 0;
  for (size_t i = 0; i < want.size(); ++i) wrong += !(std::fabs(values[i] - want[i]) <= eps * sizes[i] + least);
  BOOST_CHECK_MESSAGE(wrong == 0,
                      what << ": " << wrong << " wrong values of " << str(found.dtype()) << " for " << c.name());
}

// Whether the kernels took the case.
bool check_case(const Case& c, DType dtype) {
  const Tensor x = random_tensor(c.x(), 1, dtype), weight = random_tensor(c.weight(), 2, dtype),
               dy = random_tensor(c.y(), 3, dtype);
  const std::vector<double> xs = x.to_vector<double>(), ws = weight.to_vector<double>(), ds = dy.to_vector<double>();
  std::vector<double> y(ds.size()), y_size(ds.size()), dx(xs.size()), dx_size(xs.size()), dw(ws.size()),
      dw_size(ws.size());
  for_each_product(c, [&](size_t of_x, size_t of_w, size_t of_y) {
    const auto add = [](std::vector<double>& sum, std::vector<double>& size, size_t at, double product) {
      sum[at] += product, size[at] += std::fabs(product);
    };
    add(y, y_size, of_y, xs[of_x] * ws[of_w]);
    add(dx, dx_size, of_x, ds[of_y] * ws[of_w]);
    add(dw, dw_size, of_w, ds[of_y] * xs[of_x]);
  });
  const double eps = dtype == DType::f64 ? 1e-14 : dtype == DType::f32 ? 4e-6 : dtype == DType::bf16 ? 8e-3 : 1e-3;
  bool done = false;
  for (const cpu::InstructionSet* set : cpu::instruction_sets()) {
    BOOST_TEST_CONTEXT(set->name) {
      const Results r = compute(set->kernels(), c, x, weight, dy);
      done = r.done[0];
      if (r.done[0]) check_values("y", r.y, y, y_size, eps, c);
      if (r.done[1]) check_values("dx", r.dx, dx, dx_size, eps, c);
      if (r.done[2]) check_values("dweight", r.dweight, dw, dw_size, eps, c);
    }
  }
  return done;
}

int64_t below(std::mt19937& draw, int64_t n) { return static_cast<int64_t>(draw() % static_cast<uint32_t>(n)); }

ConvolutionAxis random_axis(std::mt19937& draw, int64_t largest) {
  const int64_t kernel = 1 + below(draw, 5), dilation = 1 + below(draw, 3), reach = dilation * (kernel - 1) + 1;
  const int64_t before = below(draw, reach + 1), after = below(draw, reach + 1), size = 1 + below(draw, largest);
  return axis(std::max(size, reach - before - after), kernel, 1 + below(draw, 3), dilation, before, after);
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_channel_by_itself) {
  std::mt19937 draw(7);
  for (int i = 0; i < 60; ++i) {
    Case c{.images = 1 + below(draw, 3), .inputs = 1, .outputs = 1};
    c.s = {random_axis(draw, 12), random_axis(draw, 70), 1 + below(draw, 5)};
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) BOOST_TEST(check_case(c, dtype));
  }
}

// oneDNN takes sizes of a hundred thousand products an image in f32.
BOOST_AUTO_TEST_CASE(channels_together) {
  std::mt19937 draw(7);
  int taken = 0;
  for (int i = 0; i < 24; ++i) {
    Case c{.images = 1 + below(draw, 5), .inputs = 10 + below(draw, 40), .outputs = 10 + below(draw, 90)};
    c.s = {random_axis(draw, 30), random_axis(draw, 60), 1 + below(draw, 2)};
    taken += check_case(c, DType::f32);
    BOOST_TEST(
        !compute(cpu_backend(), c, zeros(c.x(), DType::f64), zeros(c.weight(), DType::f64), zeros(c.y(), DType::f64))
             .done[0]);
  }
  const bool has_dnnl = std::string(cpu::instruction_set().products().f32.kernels.back().name) == "dnnl";
  BOOST_TEST((has_dnnl ? taken >= 8 : taken == 0), taken << " taken");
}

// Blocks of channels, a last one that is smaller, several images a call and images left over.
BOOST_AUTO_TEST_CASE(sizes_of_several_pieces) {
  check_case({.images = 1, .inputs = 24, .outputs = 150, .s = {axis(9, 3), axis(11, 3), 1}}, DType::f32);
  check_case({.images = 2, .inputs = 300, .outputs = 20, .s = {axis(7, 2), axis(8, 3, 1, 1, 1, 1), 1}}, DType::f32);
  check_case({.images = 24, .inputs = 16, .outputs = 40, .s = {axis(8, 3, 1, 1, 1, 1), axis(8, 3, 1, 1, 1, 1), 1}},
             DType::f32);
  check_case({.images = 35, .inputs = 16, .outputs = 16, .s = {axis(52, 1), axis(48, 2), 1}}, DType::f32);
}

BOOST_AUTO_TEST_CASE(the_bits_do_not_depend_on_threads) {
  const Case cases[] = {
      {.images = 5, .inputs = 1, .outputs = 1, .s = {axis(20, 3, 1, 1, 1, 1), axis(33, 3, 2, 1, 1, 1), 3}},
      {.images = 40, .inputs = 16, .outputs = 24, .s = {axis(14, 3, 1, 1, 1, 1), axis(15, 3, 1, 1, 1, 1), 2}},
      {.images = 1, .inputs = 32, .outputs = 100, .s = {axis(20, 3, 2), axis(20, 5), 1}}};
  for (const Case& c : cases) {
    const Tensor x = random_tensor(c.x(), 1), weight = random_tensor(c.weight(), 2), dy = random_tensor(c.y(), 3);
    const auto result = [&](auto member) {
      return [&, member] {
        const Results r = compute(cpu_backend(), c, x, weight, dy);
        return r.done[0] ? r.*member : zeros({1});  // a NaN that nothing wrote has the same bits too
      };
    };
    BOOST_TEST(same_at_any_thread_count(result(&Results::y)), c.name());
    BOOST_TEST(same_at_any_thread_count(result(&Results::dx)), c.name());
    BOOST_TEST(same_at_any_thread_count(result(&Results::dweight)), c.name());
  }
}

// A NaN reaches the windows that it lies in, and the elements of the kernel that meet it, and nothing else.
BOOST_AUTO_TEST_CASE(a_nan_stays_where_it_belongs) {
  const Case cases[] = {{.images = 1, .inputs = 1, .outputs = 1, .s = {axis(5, 3), axis(21, 2, 2), 2}},
                        {.images = 1, .inputs = 16, .outputs = 33, .s = {axis(40, 3), axis(21, 2, 2), 1}}};
  for (const Case& c : cases) {
    std::vector<float> values(size_t(numel(c.x())), 1.0f);
    values[20] = std::nanf("");  // the last pixel of the first row, which no window reads
    values[21] = std::nanf("");  // the first of the next row
    std::vector<bool> y(size_t(numel(c.y()))), dw(size_t(numel(c.weight())));
    for_each_product(c, [&](size_t of_x, size_t of_w, size_t of_y) {
      if (of_x == 20 || of_x == 21) y[of_y] = dw[of_w] = true;
    });
    const Results r = compute(cpu_backend(), c, from_vector(values, c.x()), full(c.weight(), 1), full(c.y(), 1));
    const auto check = [&](const Tensor& found, const std::vector<bool>& want) {
      const std::vector<double> all = found.to_vector<double>();
      for (size_t i = 0; i < all.size(); ++i) BOOST_REQUIRE(std::isnan(all[i]) == want[i]);
    };
    if (r.done[0]) check(r.y, y);
    if (r.done[2]) check(r.dweight, dw);
  }
}

// oneDNN ends the process by a signal where it gets no memory.
BOOST_AUTO_TEST_CASE(a_convolution_without_memory_is_an_error) {
  if (kAddressSanitizer || kThreadSanitizer) return;  // they need their own address space
  const Case c{.images = 1, .inputs = 32, .outputs = 40, .s = {axis(30, 3), axis(30, 3), 1}};
  const Tensor x = random_tensor(c.x(), 1), weight = random_tensor(c.weight(), 2);
  Tensor y = zeros(c.y());
  BOOST_TEST(in_child([&] {
    leave_no_memory();
    try {
      return !cpu_backend().convolution.forward(x, weight, c.s, y);  // a build without oneDNN
    } catch (const OutOfMemory&) {
      return true;
    }
  }));
}

BOOST_AUTO_TEST_CASE(nothing_to_compute_is_left_to_the_op) {
  const Case c{.images = 0, .inputs = 1, .outputs = 1, .s = {axis(5, 3), axis(5, 3), 2}};
  const Results r = compute(cpu_backend(), c, zeros(c.x()), zeros(c.weight()), zeros(c.y()));
  BOOST_TEST(!r.done[0]);
  BOOST_TEST(!r.done[2]);
}

BOOST_AUTO_TEST_SUITE_END()
