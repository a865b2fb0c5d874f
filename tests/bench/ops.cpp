// Times ops one by one, forward and with gradients: the rows of the table of ops.md. A matrix has rows of 1000 (of 100
// below 1,000,000 elements). Usage: bench_ops [threads=2] [elements=10,1000,100000,1000000,10000000] [only=TEXT]
// [milliseconds=60] prints one JSON object per row: the shortest of several groups of calls, in microseconds a call.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "arguments.h"
#include "braid/autograd.h"
#include "braid/tensor/parallel.h"

using namespace braid;

namespace {

std::map<std::string, std::string> settings = {
    {"threads", "2"}, {"elements", "10,1000,100000,1000000,10000000"}, {"only", ""}, {"milliseconds", "60"}};

double seconds_of(const std::function<void()>& work, int64_t calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < calls; ++i) work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void measure(const std::string& op, int64_t elements, const std::function<void()>& work) {
  if (op.find(settings["only"]) == std::string::npos) return;
  constexpr int kGroups = 6;
  const double budget = std::stod(settings["milliseconds"]) * 1e-3;
  work();  // warms up
  const double once = seconds_of(work, 1);
  const auto calls = std::max<int64_t>(1, static_cast<int64_t>(budget / kGroups / std::max(once, 1e-8)));
  double best = 1e300;
  for (int group = 0; group < kGroups; ++group)
    best = std::min(best, seconds_of(work, calls) / static_cast<double>(calls));
  std::printf("{\"op\": \"%s\", \"elements\": %lld, \"us\": %.4g}\n", op.c_str(), static_cast<long long>(elements),
              best * 1e6);
  std::fflush(stdout);
}

uint64_t stream = 0;
Tensor random(const Shape& shape, DType dtype = DType::f32) { return randn(shape, {7, ++stream}).to(dtype); }

// A call without gradients.
void forward(const std::string& op, int64_t elements, const std::function<void()>& work) {
  measure(op, elements, [&] {
    const NoGrad off;
    work();
  });
}

// A call and the gradients of its inputs, from a gradient of the result's shape.
void gradients(const std::string& op, int64_t elements, std::vector<Tensor> inputs,
               const std::function<Tensor(const std::vector<Tensor>&)>& call) {
  for (Tensor& x : inputs) require_grad(x);
  Tensor dy;
  {
    const NoGrad off;
    dy = random(call(inputs).shape());
  }
  measure(op + ", gradients", elements, [&] {
    backward(call(inputs), dy);
    for (const Tensor& x : inputs) zero_grad(x);
  });
}

// Ops of a matrix of `rows` rows.
void of_rows(int64_t rows, int64_t columns) {
  const int64_t n = rows * columns;
  const Tensor x = random({rows, columns}), y = random({rows, columns}), positive = add(square(x), full({}, 0.1));
  const Tensor row = random({columns}), column = random({rows, 1}), mask = gt(x, full({}, 0.0));
  const Tensor weight = random({columns}), bias = random({columns}), half = x.to(DType::bf16);
  const Tensor integers = randint(-1000, 1000, {rows, columns}, {7, ++stream});
  const Tensor ids = randint(0, rows, {rows}, {7, ++stream});
  const std::vector<std::pair<const char*, std::function<void()>>> calls = {
      {"add", [&] { add(x, y); }},
      {"add a row", [&] { add(x, row); }},
      {"add a column", [&] { add(x, column); }},
      {"mul", [&] { mul(x, y); }},
      {"div", [&] { div(x, positive); }},
      {"maximum", [&] { maximum(x, y); }},
      {"greater", [&] { gt(x, y); }},
      {"where", [&] { where(mask, x, y); }},
      {"clamp", [&] { clamp(x, -1, 1); }},
      {"relu", [&] { relu(x); }},
      {"abs", [&] { abs(x); }},
      {"square", [&] { square(x); }},
      {"pow 3", [&] { pow(x, 3); }},
      {"pow 2.5", [&] { pow(positive, 2.5); }},
      {"pow of tensors", [&] { pow(positive, y); }},
      {"sqrt", [&] { sqrt(positive); }},
      {"rsqrt", [&] { rsqrt(positive); }},
      {"exp", [&] { exp(x); }},
      {"log", [&] { log(positive); }},
      {"expm1", [&] { expm1(x); }},
      {"log1p", [&] { log1p(positive); }},
      {"sin", [&] { sin(x); }},
      {"atan", [&] { atan(x); }},
      {"erf", [&] { erf(x); }},
      {"tanh", [&] { tanh(x); }},
      {"sigmoid", [&] { sigmoid(x); }},
      {"silu", [&] { silu(x); }},
      {"gelu", [&] { gelu(x); }},
      {"gelu_tanh", [&] { gelu_tanh(x); }},
      {"softplus", [&] { softplus(x); }},
      {"floor", [&] { floor(x); }},
      {"remainder", [&] { remainder(x, positive); }},
      {"add of i64", [&] { add(integers, integers); }},
      {"to bf16", [&] { x.to(DType::bf16); }},
      {"add of bf16", [&] { add(half, half); }},
      {"sum", [&] { sum(x); }},
      {"sum of columns", [&] { sum(x, {0}); }},
      {"sum of rows", [&] { sum(x, {1}); }},
      {"sum of i64", [&] { sum(integers); }},
      {"max of columns", [&] { max(x, 0); }},
      {"max of rows", [&] { max(x, 1); }},
      {"argmax", [&] { argmax(x); }},
      {"var of rows", [&] { var(x, {1}); }},
      {"norm", [&] { norm(x); }},
      {"logsumexp", [&] { logsumexp(x, 1); }},
      {"softmax", [&] { softmax(x); }},
      {"softmax of columns", [&] { softmax(x, 0); }},
      {"log_softmax", [&] { log_softmax(x); }},
      {"layer_norm", [&] { layer_norm(x, weight, bias, 1e-5); }},
      {"rms_norm", [&] { rms_norm(x, weight, 1e-5); }},
      {"cumsum of rows", [&] { cumsum(x, 1); }},
      {"cumsum of columns", [&] { cumsum(x, 0); }},
      {"sort", [&] { sort(x); }},
      {"topk 8", [&] { topk(x, std::min<int64_t>(8, columns)); }},
      {"transpose", [&] { contiguous(transpose(x)); }},
      {"flip", [&] { flip(x, 1); }},
      {"concat",
       [&] {
         concat({x, y}, 1);
       }},
      {"index_select", [&] { index_select(x, ids); }},
      {"rand",
       [&] {
         rand({rows, columns}, {1, 2});
       }},
      {"randn",
       [&] {
         randn({rows, columns}, {1, 2});
       }},
      {"dropout",
       [&] {
         dropout(x, 0.1, {1, 2});
       }},
  };
  for (const auto& [name, call] : calls) forward(name, n, call);
  gradients("mul", n, {x, y}, [](const std::vector<Tensor>& in) { return mul(in[0], in[1]); });
  gradients("add a row", n, {x, row}, [](const std::vector<Tensor>& in) { return add(in[0], in[1]); });
  gradients("gelu", n, {x}, [](const std::vector<Tensor>& in) { return gelu(in[0]); });
  gradients("pow 3", n, {x}, [](const std::vector<Tensor>& in) { return pow(in[0], 3); });
  gradients("softmax", n, {x}, [](const std::vector<Tensor>& in) { return softmax(in[0]); });
  gradients("layer_norm", n, {x, weight, bias},
            [](const std::vector<Tensor>& in) { return layer_norm(in[0], in[1], in[2], 1e-5); });
  gradients("index_select", n, {x}, [&](const std::vector<Tensor>& in) { return index_select(in[0], ids); });
}

// Products of square matrices, and convolutions of a batch of 8: their sizes are their own. elements: of the result.
void of_sizes(int64_t limit) {
  // Layers y = x W^T with few rows and many, narrow and wide, and a batch of small products, in both types.
  for (const DType type : {DType::f32, DType::bf16}) {
    const std::string of = type == DType::bf16 ? " bf16" : " f32";
    for (const int64_t n : {8, 16, 32, 64, 128, 256, 512, 1024, 1536, 2048}) {
      if (n * n > limit) continue;
      const Tensor a = random({n, n}, type), b = random({n, n}, type);
      forward("matmul" + of, n * n, [&] { matmul(a, b); });
    }
    struct Layer {
      int64_t rows, in, out;
    };
    for (const auto& [rows, in, out] :
         {Layer{1, 768, 3072}, Layer{8, 768, 3072}, Layer{49, 768, 768}, Layer{128, 768, 3072}, Layer{1024, 768, 3072},
          Layer{1024, 3072, 768}, Layer{4096, 256, 768}, Layer{4096, 768, 32}, Layer{4096, 32, 256}}) {
      if (rows * out > limit) continue;
      const Tensor x = random({rows, in}, type), w = random({out, in}, type);
      forward("product " + std::to_string(rows) + " x " + std::to_string(in) + " by " + std::to_string(out) + of,
              rows * out, [&] { linear(x, w, {}); });
    }
    const Tensor q = random({96, 128, 64}, type), k = random({96, 128, 64}, type);
    if (96 * 128 * 128 <= limit)
      forward("product 96 of 128 x 64 by 128" + of, 96 * 128 * 128, [&] { matmul(q, k.transposed()); });
  }
  struct Convolution {
    const char* name;
    int64_t channels, size, filters, kernel, stride, padding, groups;
  };
  for (const Convolution& c : {Convolution{"conv2d 3x3, 32 to 64 of 28", 32, 28, 64, 3, 1, 1, 1},
                               Convolution{"conv2d 7x7 by 2, 3 to 64 of 224", 3, 224, 64, 7, 2, 3, 1},
                               Convolution{"conv2d 1x1, 64 to 64 of 28", 64, 28, 64, 1, 1, 0, 1},
                               Convolution{"conv2d 3x3, 64 groups of 28", 64, 28, 64, 3, 1, 1, 64}}) {
    const Tensor x = random({8, c.channels, c.size, c.size});
    const Tensor w = random({c.filters, c.channels / c.groups, c.kernel, c.kernel});
    const Conv2dOptions options{.stride = {c.stride, c.stride}, .padding = {c.padding, c.padding}, .groups = c.groups};
    const int64_t out = 8 * c.filters * (c.size / c.stride) * (c.size / c.stride);
    if (out > limit) continue;
    forward(c.name, out, [&] { conv2d(x, w, {}, options); });
    gradients(c.name, out, {x, w}, [&](const std::vector<Tensor>& in) { return conv2d(in[0], in[1], {}, options); });
  }
  if (limit >= 1000000) {
    const Tensor q = random({4, 512, 8, 64});
    forward("attention, causal 4x8x512x64", q.numel(), [&] { scaled_dot_product_attention(q, q, q); });
    const Tensor logits = random({2048, 8192}), targets = randint(0, 8192, {2048}, {7, ++stream});
    gradients("cross_entropy 2048x8192", logits.numel(), {logits},
              [&](const std::vector<Tensor>& in) { return cross_entropy(in[0], targets); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (!bench::read_arguments(argc, argv, settings)) return 2;
  try {
    set_threads(std::stoi(settings["threads"]));
    std::istringstream sizes(settings["elements"]);
    int64_t largest = 0;
    for (std::string text; std::getline(sizes, text, ',');) {
      const int64_t n = std::stoll(text), columns = std::min<int64_t>(n, n < 1000000 ? 100 : 1000);
      of_rows(n / columns, columns);
      largest = std::max(largest, n);
    }
    of_sizes(largest);
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.kind());
  }
  return 0;
}
