// The machine that a run is planned for: this one, one of a table of published rates, or rates that are given.
#pragma once
#include <string>
#include <vector>

#include "braid/tensor/device.h"
#include "braid/tensor/dtype.h"

namespace braid::apps {

// What --for, --tflops, --memory, --link and --efficiency say; 0 and "": not given.
struct MachineRequest {
  std::string name = "";                                          // "h100x64"
  double tflops = 0;                                              // of a matrix product in train.dtype
  double memory_gib = 0;                                          // of a GPU
  double link_gbs = 0;                                            // GB/s that a GPU sends to other nodes
  double efficiency = 0;                                          // share of tflops that a training step reaches
  bool elsewhere() const { return !name.empty() || tflops > 0; }  // else: machines like this one
};

// Rates are those of one process: a GPU, or this machine.
struct Machine {
  std::string name;
  double memory = 0;                   // bytes; 0: not known
  double flops = 0;                    // FLOP/s of a matrix product
  double efficiency = 0;               // share of `flops` that a training step reaches
  double near_link = 0, far_link = 0;  // bytes/s that it sends within a node, between nodes; 0: not known
  int64_t per_node = 1;                // processes of a node, at least
  int64_t count = 0;                   // of them; 0: as many as the settings parallel.* require
  bool gpu = false;
  double bandwidth = 0;                                      // bytes/s of its memory; 0: not known
  int multiprocessors = 0;                                   // of a GPU; 0: not known
  int major = 0, shared_kib = 0;                             // compute capability, shared memory of a block
  std::string flops_source, link_source, efficiency_source;  // for people
};

// Training steps reach about a third of the rate of the matrix product alone: small models on CPUs do, and it is
// assumed for GPUs.
inline constexpr double kStepEfficiency = 1.0 / 3;

std::vector<std::string> machine_names();
// Error(setting) for a name that is not in the table, or rates without a name where the arithmetic's rate is missing.
Machine machine_elsewhere(const MachineRequest& request, DType arithmetic);
// This one, for one of `processes` that run on it and share its memory, without rates.
Machine share_of_this_machine(Device device, int64_t processes = 1);
// The same with rates; that of the matrix product is measured, so all processes on it call this at the same time.
Machine this_machine(const MachineRequest& request, Device device, DType arithmetic, int64_t processes = 1);

}  // namespace braid::apps
