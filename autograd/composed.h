// Conveniences composed of the ops of ops.h: nothing here has a kernel or a derivative of its own.
#pragma once
#include <functional>
#include <initializer_list>

#include "braid/autograd/contract.h"
#include "braid/autograd/ops.h"

namespace braid {

// Entry `index` of an axis, which is removed: x (2, 3, 4), axis 1 -> (2, 4). A negative index counts from the end. x[i]
// of other libraries is select(x, 0, i).
Tensor select(const Tensor& x, int axis, int64_t index);
// The value at these indices, one per axis, as f64; negative ones count from the end. Waits for the device.
double at(const Tensor& x, std::initializer_list<int64_t> indices);
// ids (...) in [0, classes) -> (..., classes) of `dtype`: 1 at the id, else 0. No derivative.
Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype = DType::f32);
// Mean over all entries of -(t log sigmoid(x) + (1 - t) log(1 - sigmoid(x))) -> (). x: logits of any size, targets t
// from 0 to 1, shapes equal.
Tensor binary_cross_entropy(const Tensor& logits, const Tensor& targets);
// x, whose gradient f sees in a backward pass: to look at it, or to replace it by what f returns, if that is not empty.
// f must not write to it.
Tensor tap(const Tensor& x, std::function<Tensor(const Tensor& gradient)> f);

}  // namespace braid
