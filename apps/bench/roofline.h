// The time that a GPU would take for the work of a dry step, by a roofline: the larger of the time for its bytes and
// the time for its arithmetic, and a time for every launch. A prediction; nothing in it was measured by Braid.
#pragma once
#include <string>

#include "apps/train/plan/machine.h"
#include "braid/tensor/dry/dry_device.h"

namespace braid::apps {

struct Roofline {
  std::string gpu;
  double memory = 0;       // bytes that tensors can have
  double peak_flops = 0;   // FLOP/s of the data sheet, for the share that a step reaches (MFU)
  double flops = 0;        // FLOP/s that a large product reaches while all multiprocessors have tiles
  double bandwidth = 0;    // bytes/s that kernels reach
  double launch = 2.5e-6;  // s: the least time of a launch beyond its work, in a graph
  int multiprocessors = 0;
  int major = 0, shared_kib = 0;  // compute capability, most shared memory of a block

  // Seconds of a kernel, a product or a call of cuDNN.
  double seconds(const DryWork& work) const;
};

// Shares of the data sheet's rates that large products and passes over memory usually reach, and of a product's rate
// that cuDNN's attention does.
inline constexpr double kProductShare = 0.75, kBandwidthShare = 0.9, kAttentionShare = 0.5;

// The roofline of a GPU in the table of machines. Error(setting) for an unknown name.
Roofline roofline_of(const std::string& gpu, DType arithmetic);

}  // namespace braid::apps
