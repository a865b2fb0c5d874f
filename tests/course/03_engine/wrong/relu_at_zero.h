// expect: a with a 0, gradient of input 0, element 1 in row-major order: expected 0, found 1
#pragma once
#include <braid/autograd.h>

namespace braid {
inline Tensor right_relu(const Tensor& x) { return relu(x); }  // which the solution calls, under the name below
}  // namespace braid
#define relu right_relu
#include "tests/course/03_engine/exercise.h"
#undef relu

namespace exercise {

inline Value relu(const Value& a) {
  return std::make_shared<Node>(Node{braid::relu(a->value), {}, {a}, [x = a->value](const Tensor& dy) {
                                       return std::vector<Tensor>{braid::where(ge(x, 0), dy, zeros_like(x))};
                                     }});
}

}  // namespace exercise
