// braid bench step --dry: launches, bytes, FLOPs and memory of a training step on a GPU that is not there, and the time
// that a roofline predicts for it.
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/bench/bench.h"
#include "apps/bench/profile.h"
#include "apps/bench/roofline.h"
#include "apps/cli/memory_text.h"
#include "apps/cli/text.h"
#include "apps/train/task/from_config.h"
#include "braid/models/cost/size.h"
#include "braid/models/cost/trace.h"
#include "braid/tensor/dry/graph_cost.h"

namespace braid::apps {

namespace {

Roofline given_roofline(const Arguments& arguments, DType arithmetic) {
  Roofline r = roofline_of(arguments.get("gpu"), arithmetic);
  const auto set = [&](const char* flag, double& value, double unit) {
    if (arguments.has(flag)) value = arguments.get_float(flag) * unit;
  };
  set("bandwidth", r.bandwidth, 1e12);
  set("tflops", r.flops, 1e12);
  set("launch", r.launch, 1e-6);
  set("memory", r.memory, 1024.0 * 1024 * 1024);
  return r;
}

struct Row {  // all launches of one kernel by one op
  std::string op, kernel;
  int64_t launches = 0;
  double bytes = 0, flops = 0, seconds = 0;
};

std::vector<Row> rows_of(const std::vector<DryWork>& log, const Roofline& roofline) {
  std::map<std::pair<std::string_view, std::string_view>, Row> sums;
  for (const DryWork& w : log) {
    Row& row = sums[{w.op, w.name}];
    row.op = w.op, row.kernel = w.name;
    ++row.launches;
    row.bytes += static_cast<double>(w.bytes), row.flops += w.flops, row.seconds += roofline.seconds(w);
  }
  std::vector<Row> rows;
  for (const auto& [names, row] : sums) rows.push_back(row);
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.seconds > b.seconds; });
  return rows;
}

// The log as a step whose launches follow each other.
Profile predicted_profile(const std::vector<DryWork>& log, const Roofline& roofline) {
  Profile profile{.calls = {}, .products = roofline.flops, .memory = roofline.bandwidth, .predicted = true};
  for (const DryWork& w : log) {
    KernelCall call{.name = w.name, .phase = w.phase, .layer = w.layer, .begin = profile.seconds};
    call.seconds = roofline.seconds(w);
    call.end = profile.seconds += call.seconds;
    call.flops = w.flops, call.bytes = static_cast<double>(w.bytes);
    profile.calls.push_back(call);
  }
  return profile;
}

}  // namespace

int bench_dry_step(const Arguments& arguments) {
  const std::string on = arguments.get("device");
  check(on == "auto" || on == "cuda", ErrorKind::setting,
        [&] { return "--dry is about a GPU: expected --device cuda, found " + on; });
  TrainConfig config;
  config.train.dtype = arguments.get("dtype");
  config.train.recompute = arguments.has("recompute");
  const Arithmetic types = arithmetic(config);
  const Roofline roofline = given_roofline(arguments, types.compute);
  const BenchModel bench = bench_model(arguments);
  const int64_t B = bench.batch.samples(), T = bench.tokens;

  DryDevice dry({.name = roofline.gpu.c_str(),
                 .multiprocessors = roofline.multiprocessors,
                 .major = roofline.major,
                 .shared_bytes = roofline.shared_kib * 1024,
                 .memory = static_cast<int64_t>(roofline.memory),
                 .cudnn = !arguments.has("no-cudnn")});
  const std::unique_ptr<models::Model> model = bench.spec->make_shape_only();
  {
    const MemoryScope scope(MemoryUse::weights);
    model->to(types.masters);
    model->to(dry.device());
  }
  model->set_recompute(config.train.recompute);
  model->set_attention_workspace(attention_workspace(config, dry.device()));
  models::Trainer trainer(*model, optimizer_options(config), 1.0, {}, types.compute);
  trainer.capture_steps(!arguments.has("no-graph"));
  reset_peak_memory(dry.device());
  int64_t allocations = 0;
  for (int step = 0; step < 4; ++step) {  // launched, captured, replayed; the last one is as all others to come
    dry.clear();
    trainer.step({bench.batch}, 1e-4);
    allocations = dry.counts().allocations;
  }
  const std::vector<Row> rows = rows_of(dry.log(), roofline);
  Row all;
  for (const Row& r : rows)
    all.launches += r.launches, all.bytes += r.bytes, all.flops += r.flops, all.seconds += r.seconds;
  int64_t products = 0, cudnn = 0;
  for (const DryWork& w : dry.log()) {
    products += w.kind == DryWork::Kind::product;
    cudnn += w.kind == DryWork::Kind::attention;
  }
  const MemoryStats memory = memory_stats(dry.device());
  const double mfu =
      3 * models::forward_flops(*bench.spec, T).total() * static_cast<double>(B) / all.seconds / roofline.peak_flops;
  const std::string& reason = trainer.capture_given_up_reason();
  const Profile profile = predicted_profile(dry.log(), roofline);
  if (arguments.has("trace")) write_profile_trace(profile, arguments.get("trace"));

  if (arguments.has("json")) {
    nlohmann::ordered_json j = {{"framework", "braid"},
                                {"dry", true},
                                {"preset", arguments.get("preset")},
                                {"dtype", str(types.compute)},
                                {"parameters", models::model_size(*bench.spec).parameters},
                                {"batch", B},
                                {"seq", T},
                                {"gpu", roofline.gpu},
                                {"assumed",
                                 {{"bytes_per_second", roofline.bandwidth},
                                  {"product_flops_per_second", roofline.flops},
                                  {"launch_seconds", roofline.launch},
                                  {"multiprocessors", roofline.multiprocessors},
                                  {"memory_mib", roofline.memory / (1 << 20)}}},
                                {"launches", all.launches},
                                {"products", products},
                                {"cudnn_calls", cudnn},
                                {"bytes", all.bytes},
                                {"flops", all.flops},
                                {"predicted_seconds", all.seconds},
                                {bench.images ? "predicted_images_per_second" : "predicted_tokens_per_second",
                                 static_cast<double>(B * T) / all.seconds},
                                {"predicted_flops_utilisation", mfu},
                                {"peak_tensor_mib", static_cast<double>(memory.peak) / (1 << 20)},
                                {"reserved_mib", static_cast<double>(memory.reserved) / (1 << 20)},
                                {"allocations_per_step", allocations},
                                {"captured", trainer.replays_steps()},
                                {"capture_given_up", reason},
                                {"graph_nodes", graph_cost().nodes}};
    for (const Row& r : rows)
      j["rows"].push_back({{"op", r.op},
                           {"kernel", r.kernel},
                           {"launches", r.launches},
                           {"bytes", r.bytes},
                           {"flops", r.flops},
                           {"predicted_seconds", r.seconds}});
    if (arguments.has("profile")) j["profile"] = profile_json(profile);
    std::printf("%s\n", j.dump().c_str());
    return 0;
  }
  const std::string of_sample = bench.images ? "images" : str("x ", T, " tokens");
  std::printf("dry training step of %s, batch %lld %s, %s%s, for an %s: nothing is computed\n",
              arguments.get("preset").c_str(), static_cast<long long>(B), of_sample.c_str(), str(types.compute).c_str(),
              types.compute == types.masters ? "" : " with f32 master weights", roofline.gpu.c_str());
  std::printf("  launches         %lld: %lld kernels, %lld products, %lld calls of cuDNN\n",
              static_cast<long long>(all.launches), static_cast<long long>(all.launches - products - cudnn),
              static_cast<long long>(products), static_cast<long long>(cudnn));
  std::printf("  captured         %s\n", trainer.replays_steps()
                                             ? str("as CUDA graphs, ", graph_cost().nodes, " nodes").c_str()
                                         : reason.empty() ? "no, every kernel is launched"
                                                          : ("given up: " + reason).c_str());
  std::printf("  peak memory      %s in tensors, %s reserved, of %s\n",
              bytes_text(static_cast<double>(memory.peak)).c_str(),
              bytes_text(static_cast<double>(memory.reserved)).c_str(), bytes_text(roofline.memory).c_str());
  std::printf("                   %s\n", peak_text(memory_by_use(dry.device())).c_str());
  if (allocations > 0)
    std::printf("                   %lld allocations of the driver in every step: memory is short\n",
                static_cast<long long>(allocations));
  std::printf("  predicted        %.4g ms, %s %s/s, %.1f%% of %.4g TFLOP/s (MFU)\n", 1e3 * all.seconds,
              human(static_cast<double>(B * T) / all.seconds, 4).c_str(), bench.images ? "images" : "tokens", 100 * mfu,
              roofline.peak_flops / 1e12);
  std::printf(
      "  assumed          %.3g TB/s, %.4g TFLOP/s in large products, %.3g us a launch; a launch takes the larger of\n"
      "                   the times for its bytes and its arithmetic, products in tiles on %d multiprocessors\n\n",
      roofline.bandwidth / 1e12, roofline.flops / 1e12, 1e6 * roofline.launch, roofline.multiprocessors);
  std::printf("  %-24s %-30s %9s %9s %9s %9s\n", "op", "kernel", "launches", "GB", "TFLOP", "ms");
  const auto print = [](const Row& r) {
    std::printf("  %-24s %-30s %9lld %9.2f %9.2f %9.2f\n", r.op.c_str(), r.kernel.c_str(),
                static_cast<long long>(r.launches), r.bytes / 1e9, r.flops / 1e12, 1e3 * r.seconds);
  };
  for (const Row& r : rows) print(r);
  all.op = "all";
  print(all);
  if (arguments.has("profile")) print_profile(profile);
  return 0;
}

}  // namespace braid::apps
