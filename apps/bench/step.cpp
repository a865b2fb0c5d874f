// braid bench step: the time of full training steps on this machine.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/bench/bench.h"
#include "apps/bench/profile.h"
#include "apps/bench/read_rate.h"
#include "apps/cli/commands.h"
#include "apps/cli/memory_text.h"
#include "apps/cli/model_flags.h"
#include "apps/cli/text.h"
#include "apps/train/plan/machine.h"
#include "apps/train/plan/matmul_rate.h"
#include "apps/train/task/from_config.h"
#include "braid/autograd/ops.h"
#include "braid/models/cost/size.h"
#include "braid/models/cost/trace.h"
#include "braid/models/image_model.h"
#include "braid/models/language_model.h"
#include "braid/models/study/intervals.h"
#include "braid/tensor/dry/graph_cost.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/kernels/attention.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/parallel.h"

namespace braid::apps {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& work) {
  auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double peak_rss_mib() { return peak_process_bytes() / (1 << 20); }

// The flags of each WHAT, beside --threads.
const std::map<std::string, std::set<std::string>> kFlags = {
    {"step",
     {"preset", "batch", "seq-len", "steps", "dtype", "device", "recompute", "no-graph", "kernels", "profile", "trace",
      "dry", "gpu", "bandwidth", "tflops", "launch", "memory", "no-cudnn", "json"}},
    {"decode", {"preset", "model", "batch", "dtype", "device", "context", "tokens", "json"}},
    {"comm", {"preset", "batch", "seq-len", "steps", "megabytes", "seconds"}},
};

// A flag that another WHAT reads would be ignored.
void check_flags(const std::string& what, const Arguments& arguments) {
  const std::set<std::string>& own = kFlags.at(what);
  std::map<std::string, std::string> readers;
  for (const auto& [reader, flags] : kFlags)
    for (const std::string& flag : flags) readers[flag] += (readers[flag].empty() ? "" : ", ") + reader;
  for (const auto& [flag, of] : readers) {
    check(own.contains(flag) || !arguments.has(flag), ErrorKind::setting, [&, flag = flag, of = of] {
      return "--" + flag + " is for bench " + of + ": leave it out of bench " + what;
    });
  }
}

int run_bench(const Arguments& arguments) {
  const std::string what = arguments.get("WHAT").empty() ? "step" : arguments.get("WHAT");
  check(!(what == "step" && weight_bits(arguments)), ErrorKind::setting, [&] {
    return "--dtype " + arguments.get("dtype") + " is for bench decode: expected f32, f64 or bf16 for training steps";
  });
  check_flags(what, arguments);
  if (int64_t n = arguments.get_int("threads"); n > 0) set_threads(static_cast<int>(n));
  if (what == "comm") return bench_comm(arguments);
  if (what == "decode") return bench_decode(arguments);
  check(!(arguments.has("dry") && arguments.has("kernels")), ErrorKind::setting,
        "--kernels is for a device that is there: --dry lists kernels with predicted times, leave --kernels out");
  check(arguments.has("profile") || !arguments.has("trace"), ErrorKind::setting,
        "--trace is a file for the calls of a profile: add --profile, or leave it out");
  if (arguments.has("trace")) io::AtomicFile(arguments.get("trace"));  // so that it fails now, not after the steps
  if (arguments.has("dry")) return bench_dry_step(arguments);
  for (const char* flag : {"gpu", "bandwidth", "tflops", "launch", "memory", "no-cudnn"}) {
    check(!arguments.has(flag), ErrorKind::setting, [&] {
      return str("--", flag, " is about a GPU that is not there: add --dry to predict a step, or leave it out");
    });
  }
  const BenchModel bench = bench_model(arguments);
  const models::Batch& batch = bench.batch;
  const int64_t B = batch.samples(), T = bench.tokens;
  TrainConfig config;
  config.train.dtype = arguments.get("dtype");
  config.train.recompute = arguments.has("recompute");
  const Arithmetic types = arithmetic(config);
  const Device device = device_of(arguments);
  const bool by_kernel = arguments.has("kernels"), profiled = arguments.has("profile");
  check(!profiled || device == kCpu, ErrorKind::setting, [&] {
    return str("--profile is for the CPU and for --dry, found ", device, ": use --kernels on a GPU that is there");
  });
  std::vector<std::string> notes;  // none: the weights are random
  const std::unique_ptr<models::Model> model = make_model(config, *bench.spec, {}, device, notes);
  models::Trainer trainer(*model, optimizer_options(config), 1.0, {}, types.compute);
  trainer.capture_steps(!arguments.has("no-graph"));
  std::vector<double> steps, forwards;
  int64_t count = arguments.get_int("steps");
  reset_peak_memory(device);
  for (int64_t i = -2; i < count; ++i) {  // two steps that are not counted: on a GPU the second one is captured
    double step = seconds_of([&] {
      trainer.step({batch}, 1e-4);
      synchronize(device);
    });
    double forward = seconds_of([&] { models::evaluate(*model, {batch}); });
    if (i >= 0) steps.push_back(step), forwards.push_back(forward);
  }
  double step = models::median(steps),
         flops = 3 * models::forward_flops(*bench.spec, T).total() * static_cast<double>(B);
  const double peak = measured_flops(device, types.compute);
  const std::string where = device == kCpu ? str(threads(), " threads") : str(device);
  const MemoryByUse memory = memory_by_use(device);
  const bool captured = trainer.replays_steps();
  const double peak_tensor_mib = double(memory_stats(device).peak) / (1 << 20), peak_rss = peak_rss_mib();
  Profile profile;
  std::vector<CostRow> kernels;
  if (by_kernel || profiled) {
    trainer.capture_steps(false);  // launched, not replayed
    const auto one_more = [&] { trainer.step({batch}, 1e-4); };
    if (device == kCpu) {
      profile = profile_step(one_more);
      profile.products = peak, profile.memory = measured_read_rate(device);
      kernels = kernel_rows(profile);
    } else {
      kernels = launch_rows(device, one_more);
    }
  }
  if (arguments.has("trace")) write_profile_trace(profile, arguments.get("trace"));
  if (arguments.has("json")) {
    std::printf(
        "{\"framework\": \"braid\", \"dtype\": \"%s\", \"device\": \"%s\", \"parameters\": %lld, \"batch\": %lld, "
        "\"seq\": %lld, \"threads\": %d, \"steps\": "
        "%lld, \"step_seconds\": %.6g, "
        "\"step_seconds_min\": %.6g, \"forward_seconds\": %.6g, \"%s_per_second\": %.6g, \"peak_rss_mib\": %.1f, "
        "\"peak_tensor_mib\": %.1f, \"flops\": %.6g, \"flops_utilisation\": %.4f, \"captured\": %s, "
        "\"graph_nodes\": %lld, \"graph_seconds\": %.4g, \"graph_mib\": %.1f, \"reserved_mib\": %.1f",
        str(types.compute).c_str(), str(device).c_str(),
        static_cast<long long>(models::model_size(*bench.spec).parameters), static_cast<long long>(B),
        static_cast<long long>(T), threads(), static_cast<long long>(count), step,
        *std::min_element(steps.begin(), steps.end()), models::median(forwards), bench.images ? "pictures" : "tokens",
        double(B * T) / step, peak_rss, peak_tensor_mib, flops, flops / step / peak, captured ? "true" : "false",
        static_cast<long long>(graph_cost().nodes), graph_cost().seconds, double(graph_cost().bytes) / (1 << 20),
        double(memory_stats(device).reserved) / (1 << 20));
    std::printf(", \"capture_given_up\": %s", nlohmann::json(trainer.capture_given_up_reason()).dump().c_str());
    for (size_t i = 0; i < kMemoryUses; ++i)
      std::printf(", \"peak_%s_mib\": %.1f", name(static_cast<MemoryUse>(i)), double(memory.at_peak[i]) / (1 << 20));
    std::printf(", \"attention\": %s", attention_json().c_str());
    if (by_kernel) std::printf(", \"kernels\": %s", rows_json(kernels).dump().c_str());
    if (profiled) std::printf(", \"profile\": %s", profile_json(profile).dump().c_str());
    std::printf("}\n");
    return 0;
  }
  const std::string of_sample = bench.images ? "images" : str("x ", T, " tokens");
  std::printf("training step of %s, batch %lld %s, %s%s, %s%s, median of %lld\n", arguments.get("preset").c_str(),
              static_cast<long long>(B), of_sample.c_str(), str(types.compute).c_str(),
              types.compute == types.masters ? "" : " with f32 master weights", where.c_str(),
              captured ? ", replayed from a CUDA graph" : "", static_cast<long long>(count));
  std::printf("  step             %.4g s (fastest %.4g s)\n", step, *std::min_element(steps.begin(), steps.end()));
  std::printf("  forward alone    %.4g s\n", models::median(forwards));
  std::printf("  %-16s %s/s\n", bench.images ? "images" : "tokens", human(double(B * T) / step, 4).c_str());
  std::printf("  arithmetic       %.1f GFLOP/s, %.0f%% of this machine's %s matrix product (%.1f GFLOP/s)\n",
              flops / step / 1e9, 100 * flops / step / peak, str(types.compute).c_str(), peak / 1e9);
  std::printf("  peak memory      %.0f MiB in tensors, %.0f MiB of the process\n", peak_tensor_mib, peak_rss);
  std::printf("                   %s\n", peak_text(memory).c_str());
  if (const std::string& reason = trainer.capture_given_up_reason(); !reason.empty())
    std::printf("  not captured     %s\n", reason.c_str());
  if (const std::string uses = text_of(attention_uses()); !uses.empty())
    std::printf("  attention        %s\n", uses.c_str());
  if (by_kernel) print_rows("kernel", kernels, peak, profile.memory);
  if (profiled) print_profile(profile);
  return 0;
}

}  // namespace

std::string attention_json() {
  nlohmann::json list = nlohmann::json::array();
  for (const AttentionUse& use : attention_uses())
    list.push_back({{"pass", use.pass}, {"kernel", use.kernel}, {"reason", use.reason}, {"calls", use.calls}});
  return list.dump();
}

static BenchModel image_bench(std::unique_ptr<const models::ModelSpec> spec, const models::ImageModel& model,
                              const Arguments& arguments) {
  check(arguments.get_int("seq-len") == 0, ErrorKind::setting,
        "--seq-len is for text: an image has the size that the model reads; leave it out");
  const int64_t B = arguments.get_int("batch");
  const Shape one = model.image_shape();
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < B; ++i) labels.push_back(random_bits(static_cast<uint64_t>(i), {1, 2}) % model.classes());
  return {std::move(spec),
          {{"pixel_values", randn({B, one[0], one[1], one[2]}, {1, 1})}, {"labels", from_vector(labels, {B})}},
          1,
          true};
}

static std::unique_ptr<const models::ModelSpec> bench_spec(const Arguments& arguments) {
  TrainConfig config;
  config.model.preset = arguments.get("preset");
  for (const std::string& item : arguments.overrides()) {
    size_t equal = item.find('=');
    config.model.values[item.substr(0, equal)] = item.substr(equal + 1);
  }
  return model_spec(config, 0);
}

BenchModel bench_model(const Arguments& arguments) {
  auto spec = bench_spec(arguments);
  const std::unique_ptr<models::Model> shape_only = spec->make_shape_only();
  if (dynamic_cast<const models::ImageModel*>(shape_only.get()))
    return image_bench(std::move(spec), dynamic_cast<const models::ImageModel&>(*shape_only), arguments);
  int64_t B = arguments.get_int("batch"), T = arguments.get_int("seq-len"), V = spec->vocab_size();
  check(dynamic_cast<const models::LanguageModel*>(shape_only.get()) != nullptr, ErrorKind::setting, [&] {
    return "bench runs on random tokens or images, and a model of type " + spec->model_type() +
           " reads neither: expected a language model or an image model";
  });
  const int64_t longest = spec->max_sequence_length();
  if (T == 0) T = longest;
  check(T <= longest, ErrorKind::setting, [&] {
    return str("--seq-len is longer than the model's block_size: expected at most ", longest, ", found ", T);
  });
  std::vector<int64_t> ids, targets;
  for (int64_t i = 0; i < B * T; ++i) {
    ids.push_back(random_bits(static_cast<uint64_t>(i), {1, 1}) % V);
    targets.push_back(random_bits(static_cast<uint64_t>(i), {1, 2}) % V);
  }
  return {std::move(spec), models::text_batch(from_vector(ids, {B, T}), from_vector(targets, {B, T})), T};
}

// Those that this call does not have yet.
static std::vector<std::string> memory_ways(const Arguments& arguments) {
  const std::string what = arguments.get("WHAT");
  const bool decode = what == "decode", comm = what == "comm";
  const std::string types = smaller_types(arguments, decode);
  std::vector<std::string> ways;
  if (comm) ways.emplace_back("a smaller --megabytes");
  if (!decode && !comm && !arguments.has("recompute")) ways.emplace_back("--recompute");
  if (!comm && !types.empty()) ways.push_back("--dtype " + types);
  if (arguments.get_int("batch") > 1 && (!decode || arguments.has("batch"))) ways.emplace_back("a smaller --batch");
  if (decode) ways.emplace_back("a smaller --context");
  const auto model = decode ? nullptr : bench_spec(arguments)->make_shape_only();
  if (dynamic_cast<const models::LanguageModel*>(model.get())) ways.emplace_back("a smaller --seq-len");
  ways.emplace_back("a smaller model");
  return ways;
}

Command bench_command() {
  return {
      .name = "bench",
      .summary = "time training steps, decoding, or the collectives of several processes",
      .positionals = {{.name = "WHAT",
                       .help = "step: training steps (also without it); decode: one-token steps; comm: collectives",
                       .required = false,
                       .choices = {"step", "decode", "comm"}}},
      .flags =
          {{.name = "preset", .value = "NAME", .help = "model, as in braid info", .fallback = "dcformer-tiny"},
           {.name = "model", .value = "FOLDER", .help = "decode: a model folder or run folder instead of a preset"},
           integer_flag("batch", "B", "sequences per step; decode: 1 unless given", "8", 1, 1e6),
           integer_flag("seq-len", "T", "tokens per sequence, 0 = the model's block_size", "0", 0, 1e9),
           integer_flag("steps", "N", "timed steps, after two that are not", "10", 1, 1e6),
           dtype_or_bits_flag(
               "arithmetic; bf16 with f32 master weights in training; decode: also int8 and int4 weights"),
           device_flag(),
           integer_flag("threads", "N", "CPU threads, 0 = all that the process may use", "0", 0, 4096),
           {.name = "recompute", .help = "recompute blocks in the backward pass"},
           {.name = "no-graph", .help = "on a GPU, launch every kernel instead of replaying a captured step"},
           {.name = "kernels", .help = "also the time of each kernel, in one more step"},
           {.name = "profile", .help = "step: also time, FLOPs and bytes by phase and kind of layer, of one more step"},
           {.name = "trace", .value = "FILE", .help = "profile: its kernels, for Chrome's trace viewer and Perfetto"},
           integer_flag("context", "T", "decode: tokens in the cache before the timed steps", "256", 1, 1e9),
           integer_flag("tokens", "N", "decode: timed steps", "64", 1, 1e9),
           integer_flag("megabytes", "N", "comm: largest tensor", "64", 1, 1 << 20),
           number_flag("seconds", "S", "comm: time for each size, 1 unless given", "", 0, 1e6),
           {.name = "dry", .help = "step: count launches, bytes and memory for a GPU that is not there"},
           value_flag("gpu", "NAME", "dry: the GPU that is not there", "h100", models::one_of(machine_names())),
           number_flag("bandwidth", "TB/S", "dry: of memory; 90% of the data sheet unless given", "", 1e-3, 1e3),
           number_flag("tflops", "F", "dry: of large products; 75% of the data sheet unless given", "", 1e-3, 1e6),
           number_flag("launch", "US", "dry: microseconds of a launch beside its work; 2.5 unless given", "", 0, 1e3),
           number_flag("memory", "GIB", "dry: of the GPU, less than its name says", "", 0.1, 1e5),
           {.name = "no-cudnn", .help = "dry: attention without compose by kernels of its own"},
           {.name = "json", .help = "print one JSON object instead of text"}},
      .overrides = "model settings, for example dim=512 n_layer=8",
      .details =
          "tests/bench/compare_step.py runs this beside the same model in PyTorch, in turn, and prints both as a "
          "table.",
      .examples = {"braid bench", "braid bench step --dtype bf16 --recompute",
                   "braid bench step --profile --trace step.json",
                   "braid bench --preset transformer-tiny --batch 4 --steps 20",
                   "braid bench step --dry --device cuda --preset dcformer-2.8b --batch 4 --dtype bf16 --gpu h200",
                   "braid bench decode --preset dcformer-405m --context 1024 --dtype bf16",
                   "braid bench decode --model out/demo --batch 4 --dtype int8",
                   "mpirun -np 4 braid bench comm --threads 1"},
      .run = run_bench,
      .memory_ways = memory_ways,
      .shared = [](const Arguments& arguments) { return arguments.get("WHAT") == "comm"; },
  };
}

}  // namespace braid::apps
