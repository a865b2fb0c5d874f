// One row buys an op all its checks: against a double reference written by hand, derivative by finite differences
// (f64), strided inputs (transposed, sliced, repeated by stride 0), f32 and 16-bit error, device against device.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "braid/autograd.h"

namespace braid::test {

// A plain array: what references are written with, independent of Tensor.
struct Array {
  Shape shape;
  std::vector<double> values;
};

struct OpRow {
  std::string name;  // the function's name in ops.h (a suffix after ':' is free)
  std::function<Tensor(const std::vector<Tensor>&)> op;
  std::function<Array(const std::vector<Array>&)> reference;
  std::vector<std::vector<Shape>> cases;   // each case: the shapes of the inputs
  double low = -2, high = 2;               // range of the random inputs
  std::vector<int64_t> index_limits = {};  // per input: > 0 makes it i64 ids in [0, limit); 0 floats
  double f32_tolerance = 2e-6;             // relative to the largest |value|
  double gradient_tolerance = 1e-7;
  bool differentiable = true;
  bool twice = true;      // has a second derivative; else taking it throws
  bool in_16_bit = true;  // false for ops that are only defined in f32/f64
  int roundings = 1;      // to 16 bits on the way to a value
};

// The rows, by family (tests/support/op_rows_*.cpp).
std::vector<OpRow> pointwise_rows();
std::vector<OpRow> shape_rows();
std::vector<OpRow> reduce_rows();
std::vector<OpRow> product_rows();
std::vector<OpRow> row_rows();       // softmax, norms, rope
std::vector<OpRow> language_rows();  // embedding, cross-entropy
std::vector<OpRow> order_rows();     // comparisons, where, sort
std::vector<OpRow> factory_rows();   // ones, eye, rand, randn
std::vector<OpRow> attention_rows();
std::vector<OpRow> attention_mask_rows();
std::vector<OpRow> composed_rows();    // of composed.h
std::vector<OpRow> linalg_rows();      // of linalg.h and fft.h
std::vector<OpRow> math_rows();        // of math.h
std::vector<OpRow> reductions_rows();  // of reductions.h, scans.h and order.h
std::vector<OpRow> layer_rows();       // of convolution.h, pooling.h and losses.h
std::vector<OpRow> arrange_rows();     // of manipulate.h: order, padding, windows
std::vector<OpRow> axes_rows();        // of manipulate.h: diagonals, axes, parts
std::vector<OpRow> contract_rows();    // of contract.h
std::vector<OpRow> number_rows();      // of integers.h
std::vector<OpRow> sequence_rows();    // of convolution.h, pooling.h and losses.h: one axis, labels
std::vector<OpRow> indexing_rows();    // of indexing.h
std::vector<OpRow> all_rows();

void check_row(const OpRow& row);

// The row on another device: values in every type against the reference, derivatives and strided inputs against the
// CPU's. Returns "", or the name of a kernel that the row needs and the device does not have; then nothing is known.
std::string check_row(const OpRow& row, Device device);

// The inputs with which rows are checked, the same in every run.
std::vector<Tensor> random_inputs(const OpRow& row, const std::vector<Shape>& shapes, DType dtype);
std::vector<Array> arrays(const std::vector<Tensor>& inputs);

// Helpers for references.
Array map(const Array& x, const std::function<double(double)>& f);
Array zip(const Array& x, const Array& y, const std::function<double(double, double)>& f);  // broadcasts
// Calls f(row index, pointer to the row's n = last axis values, output pointer) for every row; output has x's shape.
Array rows(const Array& x, const std::function<void(const double* x, double* y, int64_t n)>& f);

// x plus steps of 5 in a scrambled order: no two elements are so close that a finite difference changes their order.
Array spread(const Array& x);
Tensor spread(const Tensor& x);

}  // namespace braid::test
