#include "apps/train/plan/machine.h"

#include "apps/cli/text.h"
#include "apps/train/plan/matmul_rate.h"
#include "apps/train/plan/memory.h"
#include "braid/tensor/error.h"
#include "braid/tensor/parallel.h"

namespace braid::apps {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

// A GPU in the maker's node of eight. Rates are those of NVIDIA's data sheets of the SXM boards, dense (the sheets also
// give twice as much for sparse matrices); f32 without TF32, which Braid does not use; f64 on tensor cores. Memory is
// what nvidia-smi reports. Links per GPU and direction: half of the "total" NVLink bandwidth; the network of a DGX
// node, one adapter per GPU (A100: 200 Gb/s, later ones: 400 Gb/s). plan.md shows this table.
struct GpuRow {
  const char* name;
  const char* label;
  double memory_gib;
  double bf16, f32, f64;   // TFLOP/s
  double nvlink, network;  // GB/s
  double bandwidth;        // TB/s of its memory
  int multiprocessors;
  int major, shared_kib;  // compute capability; most shared memory of a block
};
constexpr GpuRow gpus[] = {
    {"a100", "NVIDIA A100 SXM 80 GB", 80.0, 312, 19.5, 19.5, 300, 25, 2.04, 108, 8, 163},
    {"a100-40gb", "NVIDIA A100 SXM 40 GB", 40.0, 312, 19.5, 19.5, 300, 25, 1.56, 108, 8, 163},
    {"h100", "NVIDIA H100 SXM 80 GB", 79.6, 989, 67, 67, 450, 50, 3.35, 132, 9, 227},
    {"h200", "NVIDIA H200 SXM 141 GB", 140.4, 989, 67, 67, 450, 50, 4.8, 132, 9, 227},
    {"b200", "NVIDIA B200 SXM 180 GB", 179.0, 2250, 75, 37, 900, 50, 8.0, 148, 10, 227},
};
constexpr int64_t kGpusPerNode = 8;
constexpr double kContextGib = 1;  // that CUDA and its libraries take of a GPU's memory

// "h100x64" is 64 of "h100"; "h100" leaves the count to the settings.
std::pair<std::string, int64_t> name_and_count(const std::string& text) {
  const size_t x = text.rfind('x');
  const auto count = x == std::string::npos ? std::nullopt : parse_int(text.substr(x + 1));
  if (!count) return {text, 0};
  check(*count >= 1 && *count <= 1 << 20, ErrorKind::setting,
        [&] { return str("bad number of GPUs in --for ", preview(text), ": expected 1 to 1048576, found ", *count); });
  return {text.substr(0, x), *count};
}

double tflops_of(const GpuRow& row, DType arithmetic) {
  return arithmetic == DType::f64 ? row.f64 : arithmetic == DType::f32 ? row.f32 : row.bf16;
}

void set_given_rates(Machine& machine, const MachineRequest& request) {
  if (request.tflops > 0) machine.flops = request.tflops * 1e12, machine.flops_source = "as given";
  if (request.memory_gib > 0) machine.memory = request.memory_gib * kGiB;
  if (request.link_gbs > 0) {
    machine.far_link = request.link_gbs * 1e9;
    if (machine.near_link == 0) machine.near_link = machine.far_link;
    machine.link_source = machine.link_source.empty() ? "as given" : "between nodes as given";
  }
  machine.efficiency = request.efficiency > 0 ? request.efficiency : kStepEfficiency;
  machine.efficiency_source = request.efficiency > 0 ? "as given" : "assumed; --efficiency sets another share";
}

}  // namespace

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  for (const GpuRow& row : gpus) names.emplace_back(row.name);
  return names;
}

Machine machine_elsewhere(const MachineRequest& request, DType arithmetic) {
  Machine machine{.name = "GPU of the given rates", .per_node = kGpusPerNode, .gpu = true};
  const auto [name, count] = name_and_count(request.name);
  machine.count = count;
  const GpuRow* row = nullptr;
  for (const GpuRow& candidate : gpus)
    if (candidate.name == name) row = &candidate;
  check(row || request.name.empty(), ErrorKind::setting, [&, name = name] {
    return "unknown machine '" + preview(name) + "' in --for: expected one of " + join(machine_names(), ", ") +
           ", with a number of GPUs as in h100x64" + did_you_mean(name, machine_names()) +
           "; for others give --tflops, --memory and --link";
  });
  if (row) {
    machine.name = row->label;
    machine.memory = (row->memory_gib - kContextGib) * kGiB;
    machine.flops = tflops_of(*row, arithmetic) * 1e12;
    machine.flops_source = "NVIDIA's data sheet";
    machine.bandwidth = row->bandwidth * 1e12;
    machine.multiprocessors = row->multiprocessors;
    machine.major = row->major, machine.shared_kib = row->shared_kib;
    machine.near_link = row->nvlink * 1e9;
    machine.far_link = row->network * 1e9;
    machine.link_source = "NVLink, and the network of a DGX node";
  }
  set_given_rates(machine, request);
  check(machine.flops > 0, ErrorKind::setting,
        "the rate of the machine is not known: expected --for NAME, or --tflops F with the TFLOP/s of its matrix "
        "product");
  return machine;
}

Machine share_of_this_machine(Device device, int64_t processes) {
  Machine machine{.name = processes > 1 ? "share of this machine" : "machine like this", .gpu = device != kCpu};
  if (device == kCpu)  // of a GPU it is not known
    machine.memory = memory_of_this_machine() / static_cast<double>(processes);
  return machine;
}

Machine this_machine(const MachineRequest& request, Device device, DType arithmetic, int64_t processes) {
  Machine machine = share_of_this_machine(device, processes);
  set_given_rates(machine, request);
  machine.flops = usual_flops(device, arithmetic);
  machine.flops_source = "measured now on " + (device == kCpu ? str(threads(), " threads") : str(device));
  return machine;
}

}  // namespace braid::apps
