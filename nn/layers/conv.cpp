#include "braid/nn/layers/conv.h"

namespace braid::nn {

namespace {

// The channels of one group: axis 1 of a weight.
int64_t per_group(int64_t channels, int64_t groups) {
  check(groups >= 1 && channels >= groups && channels % groups == 0, "conv",
        [&] { return str(channels, " channels cannot be divided into ", groups, " groups"); });
  return channels / groups;
}

Tensor starting_bias(bool wanted, int64_t out) {
  return wanted ? parameter(Init::constant(0).make({out}, {})) : Tensor();
}

}  // namespace

Conv2d::Conv2d(int64_t in, int64_t out, const Pixels& kernel, const Options& o, RandomKey key)
    : options_({.stride = o.stride, .padding = o.padding, .dilation = o.dilation, .groups = o.groups, .same = o.same}),
      weight_(parameter(
          o.init.make({per_group(out, o.groups) * o.groups, per_group(in, o.groups), kernel.rows, kernel.columns},
                      child(key, "weight")))),
      bias_(starting_bias(o.bias, out)) {}

Conv1d::Conv1d(int64_t in, int64_t out, int64_t kernel, const Options& o, RandomKey key)
    : options_({.stride = o.stride, .padding = o.padding, .dilation = o.dilation, .groups = o.groups, .same = o.same}),
      weight_(parameter(
          o.init.make({per_group(out, o.groups) * o.groups, per_group(in, o.groups), kernel}, child(key, "weight")))),
      bias_(starting_bias(o.bias, out)) {}

ConvTranspose2d::ConvTranspose2d(int64_t in, int64_t out, const Pixels& kernel, const Options& o, RandomKey key)
    : options_({.stride = o.stride,
                .padding = o.padding,
                .output_padding = o.output_padding,
                .dilation = o.dilation,
                .groups = o.groups}),
      weight_(parameter(
          o.init.make({per_group(in, o.groups) * o.groups, per_group(out, o.groups), kernel.rows, kernel.columns},
                      child(key, "weight")))),
      bias_(starting_bias(o.bias, out)) {}

ConvTranspose1d::ConvTranspose1d(int64_t in, int64_t out, int64_t kernel, const Options& o, RandomKey key)
    : options_({.stride = o.stride,
                .padding = o.padding,
                .output_padding = o.output_padding,
                .dilation = o.dilation,
                .groups = o.groups}),
      weight_(parameter(
          o.init.make({per_group(in, o.groups) * o.groups, per_group(out, o.groups), kernel}, child(key, "weight")))),
      bias_(starting_bias(o.bias, out)) {}

}  // namespace braid::nn
