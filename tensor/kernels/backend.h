// Backend: the kernels of one device. A family of kernels has its contract in a header of this folder, and one table of
// functions per device at the end of the file that implements it (tensor/cpu/softmax.cpp, cuda/kernels/softmax.cu). A
// device without a kernel leaves it out of the table; a call of it then throws.
#pragma once
#include "braid/tensor/kernels/attention.h"
#include "braid/tensor/kernels/compose_factors.h"
#include "braid/tensor/kernels/convolution.h"
#include "braid/tensor/kernels/copy.h"
#include "braid/tensor/kernels/index.h"
#include "braid/tensor/kernels/int8.h"
#include "braid/tensor/kernels/integer.h"
#include "braid/tensor/kernels/kernel.h"
#include "braid/tensor/kernels/linalg.h"
#include "braid/tensor/kernels/loss.h"
#include "braid/tensor/kernels/math_functions.h"
#include "braid/tensor/kernels/matmul.h"
#include "braid/tensor/kernels/norm.h"
#include "braid/tensor/kernels/optimizer.h"
#include "braid/tensor/kernels/order.h"
#include "braid/tensor/kernels/pointwise.h"
#include "braid/tensor/kernels/random.h"
#include "braid/tensor/kernels/reduce.h"
#include "braid/tensor/kernels/rope.h"
#include "braid/tensor/kernels/scan.h"
#include "braid/tensor/kernels/softmax.h"
#include "braid/tensor/kernels/split_qkv.h"
#include "braid/tensor/kernels/stream.h"

namespace braid {

struct Backend {
  const char* name;
  Allocator& (*allocator)();
  StreamKernels stream;
  CopyKernels copy;
  PointwiseKernels pointwise;
  MathKernels math;
  RandomKernels random;
  ReduceKernels reduce;
  OrderKernels order;
  ScanKernels scan;
  MatmulKernels matmul;
  ConvolutionKernels convolution;
  Int8Kernels int8;
  SoftmaxKernels softmax;
  NormKernels norm;
  RopeKernels rope;
  IndexKernels index;
  LossKernels loss;
  AttentionKernels attention;
  ComposeFactorsKernels compose_factors;
  SplitQkvKernels split_qkv;
  OptimizerKernels optimizer;
  IntegerKernels integer;
  LinalgKernels linalg;
};

// backend(x.device()).softmax.forward(x, y);
const Backend& backend(Device device);
const Backend& cpu_backend();  // tensor/cpu/backend.cpp
// Makes the GPU the current one of this thread: its kernels, allocator and stream are then that GPU's.
const Backend& cuda_backend(int index);  // cuda/backend.cpp, or cuda/no_cuda.cpp
const Backend& meta_backend();           // tensor/meta.cpp
Allocator& cpu_allocator();

}  // namespace braid
