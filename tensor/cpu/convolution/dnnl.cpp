#include "braid/tensor/cpu/convolution/dnnl.h"

#include <algorithm>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/cpu/convolution/dnnl_plan.h"
#include "braid/tensor/cpu/gemm/dnnl_call.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {

namespace {

using Plan = std::shared_ptr<const DnnlPlan>;
using Pass = ConvolutionPass;
constexpr const char* kWhat = "a convolution";
constexpr int64_t kUnit = 16;  // channels that oneDNN computes at once

// [0, size) in blocks of one size, a multiple of kUnit, but for the last.
struct Blocks {
  int64_t size, step, count;
  // As many as `count`, of at least `least`.
  Blocks(int64_t n, int64_t wanted, int64_t least)
      : size(n),
        step(std::max(detail::round_up(detail::ceil_div(n, wanted), kUnit), least)),
        count(detail::ceil_div(n, step)) {}
  int64_t begin(int64_t i) const { return i * step; }
  int64_t length(int64_t i) const { return std::min(step, size - i * step); }
};

// Buffers of one thread.
class Buffers {
 public:
  float* of(int i, size_t bytes) {
    if (bytes == 0) return nullptr;
    if (!tensors_[i] || static_cast<size_t>(tensors_[i].numel()) * sizeof(float) < bytes)
      tensors_[i] = empty({detail::ceil_div(static_cast<int64_t>(bytes), int64_t{sizeof(float)})});
    return tensors_[i].mutable_data<float>();
  }

 private:
  Tensor tensors_[4];
};
enum : int { kScratch = 3 };  // behind those of the operands

// Whether images are worth calls of oneDNN and their copies, and the bytes of one can be counted in 32 bits.
bool suits(const ConvolutionShape& s, int64_t inputs, int64_t outputs) {
  constexpr double least = 1e5, most = 1 << 28;  // multiply-adds; elements of an operand
  const double kernel = double(inputs) * double(outputs) * double(s.window());
  return kernel * double(s.groups) * double(s.windows()) >= least &&
         std::max({kernel, double(inputs) * double(s.pixels()), double(outputs) * double(s.windows())}) <= most;
}

// A matrix product without columns.
bool pointwise(const ConvolutionShape& s) {
  const auto is = [](const ConvolutionAxis& a) { return a.kernel == 1 && a.stride == 1 && a.count == a.size; };
  return is(s.rows) && is(s.columns);
}

// The result of some images, one group and one block of the result's channels is a piece. Forward, in is x and out is
// y; for the gradient of the input, in is dy and out is dx.
bool by_images(Pass pass, In in, In weight, const ConvolutionShape& s, Out out) {
  const bool forward = pass == Pass::forward;
  const int64_t images = in.dim(0), outputs = weight.dim(0) / s.groups, inputs = weight.dim(1), window = s.window();
  if (pointwise(s) || !suits(s, inputs, outputs)) return false;
  const int64_t of_in = forward ? inputs * s.pixels() : outputs * s.windows();  // elements of one group of an image
  const int64_t channels = forward ? outputs : inputs, pixels = forward ? s.windows() : s.pixels();
  // Blocks share an image's copy where threads have images enough.
  const Blocks blocks(
      channels, std::max(detail::ceil_div(channels, int64_t{256}), detail::ceil_div(int64_t{8}, images * s.groups)),
      2 * kUnit);
  // Several images a call where they are small, or the kernels large: a divisor of their number.
  const int64_t at_once = std::max(int64_t{64} << 10, inputs * outputs * window / 8);  // elements
  int64_t count = std::clamp<int64_t>(at_once / (of_in + blocks.length(0) * pixels), 1,
                                      std::max<int64_t>(images * s.groups * blocks.count / 8, 1));
  while (images % count != 0) --count;
  const auto plan_of = [&](int64_t length) {
    return DnnlPlan::of({.pass = pass,
                         .images = count,
                         .inputs = forward ? inputs : length,
                         .outputs = forward ? length : outputs,
                         .x_stride = s.groups * inputs * s.pixels(),
                         .weight_stride = inputs * window,
                         .y_stride = s.groups * outputs * s.windows(),
                         .shape = s});
  };
  Plan first, last;
  {
    const DnnlCall call(kWhat);
    first = plan_of(blocks.length(0)), last = plan_of(blocks.length(blocks.count - 1));
  }
  if (!first || !last) return false;
  const auto plan = [&](int64_t block) -> const DnnlPlan& { return block + 1 < blocks.count ? *first : *last; };
  const auto of_in_plan = forward ? DnnlPlan::x : DnnlPlan::y, of_out_plan = forward ? DnnlPlan::y : DnnlPlan::x;

  // The kernels in oneDNN's layout, by group and block.
  const auto copied = static_cast<int64_t>(std::max(first->bytes(DnnlPlan::weight), last->bytes(DnnlPlan::weight)));
  const int64_t each = detail::round_up(copied / int64_t{sizeof(float)}, kUnit);
  Tensor kernels = empty({s.groups * blocks.count * each});
  const float *x = in.data<float>(), *plain = weight.data<float>();
  float *copies = kernels.mutable_data<float>(), *y = out.mutable_data<float>();
  const auto plain_kernels = [&](int64_t g, int64_t k) {
    return plain + (g * outputs + (forward ? blocks.begin(k) : 0)) * inputs * window +
           (forward ? 0 : blocks.begin(k) * window);
  };
  if (each > 0)
    parallel_for(s.groups * blocks.count, grain_for(each), [&](int64_t begin, int64_t end) {
      const DnnlCall call(kWhat);
      for (int64_t i = begin; i < end; ++i)
        if (plan(i % blocks.count).bytes(DnnlPlan::weight) > 0)
          plan(i % blocks.count)
              .to_dnnl(DnnlPlan::weight, plain_kernels(i / blocks.count, i % blocks.count), copies + i * each);
    });

  parallel_for(images / count * s.groups * blocks.count, 1, [&](int64_t begin, int64_t end) {
    const DnnlCall call(kWhat);
    Buffers buffers;
    int64_t copied_part = -1, copied_block = -1;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t k = i % blocks.count, part = i / blocks.count, g = part % s.groups;  // part: a group of images
      const int64_t first_plane = part / s.groups * count * s.groups + g;
      const DnnlPlan& p = plan(k);
      const float* from = x + first_plane * of_in;
      if (const size_t bytes = p.bytes(of_in_plan); bytes > 0) {
        float* to = buffers.of(of_in_plan, bytes);
        const bool there = copied_part == part && &plan(copied_block) == &p;
        if (!there) p.to_dnnl(of_in_plan, from, to);
        copied_part = part, copied_block = k;
        from = to;
      }
      float* const result = y + (first_plane * channels + blocks.begin(k)) * pixels;
      const bool copies_back = p.bytes(of_out_plan) > 0;
      float* const computed = copies_back ? buffers.of(of_out_plan, p.bytes(of_out_plan)) : result;
      const float* w = p.bytes(DnnlPlan::weight) > 0 ? copies + (g * blocks.count + k) * each : plain_kernels(g, k);
      float* scratch = buffers.of(kScratch, p.scratch_bytes());
      p.run(forward ? from : computed, w, forward ? computed : from, scratch);
      if (copies_back) p.to_plain(of_out_plan, computed, result);
    }
  });
  return true;
}

}  // namespace

bool convolve_dnnl(In x, In weight, const ConvolutionShape& s, Out y) {
  return by_images(Pass::forward, x, weight, s, y);
}

bool input_gradient_dnnl(In dy, In weight, const ConvolutionShape& s, Out dx) {
  return by_images(Pass::input_gradient, dy, weight, s, dx);
}

// A piece is a group, a block of its outputs and some images, of which oneDNN takes a few at once.
bool weight_gradient_dnnl(In dy, In x, const ConvolutionShape& s, Out dweight) {
  const int64_t images = x.dim(0), outputs = dweight.dim(0) / s.groups, inputs = dweight.dim(1), window = s.window();
  if (pointwise(s) || !suits(s, inputs, outputs)) return false;
  constexpr int64_t pieces = 8, at_once = 256 << 10;  // at_once: elements of x and y whose copies stay in a cache
  // A block copies x for itself; images that are summed apart take a dweight each.
  const bool few = images * s.groups < pieces, wide = few || inputs * outputs * window > inputs * s.pixels();
  const Blocks blocks(outputs,
                      std::max(detail::ceil_div(outputs, int64_t{128}), wide ? detail::ceil_div(pieces, s.groups) : 1),
                      few ? 2 * kUnit : 4 * kUnit);
  const int64_t some = std::min(detail::ceil_div(pieces, s.groups * blocks.count), images);
  const int64_t of_piece = detail::ceil_div(images, some), parts = detail::ceil_div(images, of_piece);
  const int64_t step =
      std::clamp<int64_t>(at_once / (inputs * s.pixels() + blocks.length(0) * s.windows()), 1, of_piece);
  const auto plan_of = [&](int64_t count, int64_t length) {
    return DnnlPlan::of({.pass = Pass::weight_gradient,
                         .images = count,
                         .inputs = inputs,
                         .outputs = length,
                         .x_stride = s.groups * inputs * s.pixels(),
                         .weight_stride = inputs * window,
                         .y_stride = s.groups * outputs * s.windows(),
                         .shape = s});
  };
  {
    const DnnlCall call(kWhat);
    const int64_t of_last_piece = images - (parts - 1) * of_piece;
    for (const int64_t count : {step, of_piece % step, of_last_piece % step})
      for (const int64_t block : {int64_t{0}, blocks.count - 1})
        if (count > 0 && !plan_of(count, blocks.length(block))) return false;
  }
  const int64_t size = dweight.numel();
  Tensor sums = empty({(parts - 1) * size});  // of the parts behind the first
  float *const first = dweight.mutable_data<float>(), *const others = sums.mutable_data<float>();
  const float *const x0 = x.data<float>(), *const dy0 = dy.data<float>();
  parallel_for(parts * s.groups * blocks.count, 1, [&](int64_t begin, int64_t end) {
    const DnnlCall call(kWhat);
    Buffers buffers;
    Tensor more;  // of the images behind the first
    for (int64_t i = begin; i < end; ++i) {
      const int64_t k = i % blocks.count, g = i / blocks.count % s.groups, part = i / (blocks.count * s.groups);
      const int64_t row = g * outputs + blocks.begin(k), n = blocks.length(k) * inputs * window;
      float* const sum = (part == 0 ? first : others + (part - 1) * size) + row * inputs * window;
      const int64_t stop = std::min(images, (part + 1) * of_piece);
      for (int64_t image = part * of_piece; image < stop; image += step) {
        const Plan plan = plan_of(std::min(step, stop - image), blocks.length(k));
        const auto moved = [&](DnnlPlan::Operand operand, const float* from) {
          const size_t bytes = plan->bytes(operand);
          if (bytes == 0) return from;
          float* const to = buffers.of(operand, bytes);
          plan->to_dnnl(operand, from, to);
          return static_cast<const float*>(to);
        };
        const float* const of_x = moved(DnnlPlan::x, x0 + (image * s.groups + g) * inputs * s.pixels());
        const float* const of_y = moved(DnnlPlan::y, dy0 + (image * s.groups * outputs + row) * s.windows());
        const bool adds = image > part * of_piece;
        if (adds && !more) more = empty({blocks.step * inputs * window});
        float* const result = adds ? more.mutable_data<float>() : sum;
        const size_t copied = plan->bytes(DnnlPlan::weight);
        float* const there = copied > 0 ? buffers.of(DnnlPlan::weight, copied) : result;
        plan->run(of_x, there, of_y, buffers.of(kScratch, plan->scratch_bytes()));
        if (copied > 0) plan->to_plain(DnnlPlan::weight, there, result);
        for (int64_t j = 0; adds && j < n; ++j) sum[j] += result[j];
      }
    }
  });
  parallel_for(size, grain_for(parts), [&](int64_t begin, int64_t end) {
    for (int64_t part = 0; part + 1 < parts; ++part)
      for (int64_t j = begin; j < end; ++j) first[j] += others[part * size + j];
  });
  return true;
}

}  // namespace braid::cpu
