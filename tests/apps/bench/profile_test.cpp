// braid bench step --kernels and --profile as the real program: time, FLOPs and bytes of a step on the CPU and of a
// predicted one, by kernel, phase and kind of layer, and as a trace.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "braid/models/cost/trace.h"
#include "braid/models/registry.h"
#include "braid/tensor/io/json.h"
#include "tests/apps/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(bench_profile)

namespace {

const std::string kStep = "bench step --preset dcformer-tiny --batch 2 --seq-len 32 --steps 1 ";

nlohmann::json json_of(const std::string& command) {
  const Outcome result = run(command + " --json");
  BOOST_REQUIRE_MESSAGE(result.code == 0, result.output);
  return io::parse_json(result.output, "output");
}
double sum(const nlohmann::json& rows, const char* what) {
  double all = 0;
  for (const auto& row : rows) all += row.at(what).get<double>();
  return all;
}
const nlohmann::json* row_named(const nlohmann::json& rows, const std::string& name) {
  for (const auto& row : rows)
    if (row.at("name") == name) return &row;
  return nullptr;
}
bool close(double a, double b) { return std::fabs(a - b) <= 1e-9 * std::fabs(b); }

}  // namespace

BOOST_AUTO_TEST_CASE(tables_add_up_to_the_step_and_its_flops) {
  for (const std::string flags : {"", "--recompute", "--dtype bf16"}) {
    const nlohmann::json json = json_of(kStep + "--kernels --profile " + flags), profile = json.at("profile");
    const auto spec = models::configure_model("dcformer-tiny", {});
    const double flops = models::training_flops(*spec, models::blank_batch(*spec, 2, 32),
                                                {.compute = flags == "--dtype bf16" ? DType::bf16 : DType::f32,
                                                 .recompute = flags == "--recompute"})
                             .total();
    for (const nlohmann::json& rows : {json.at("kernels"), profile.at("phases"), profile.at("layers")}) {
      BOOST_TEST(sum(rows, "flops") == flops, flags);
      BOOST_TEST(sum(rows, "bytes") == sum(json.at("kernels"), "bytes"), flags);
      BOOST_TEST(close(sum(rows, "ms"), 1e3 * profile.at("seconds").get<double>()), flags);
    }
    double before = INFINITY;
    for (const auto& row : profile.at("phases")) {
      BOOST_TEST((row.at("ms").get<double>() >= 0 && row.at("ms").get<double>() <= before));
      before = row.at("ms");
    }
    for (const char* phase : {"products", "attention", "mixing", "norms", "pointwise", "optimizer", "between kernels"})
      BOOST_TEST(row_named(profile.at("phases"), phase), flags << phase);
    for (const char* row : {"attention: attention", "attention: products", "compose: mixing", "compose: products",
                            "feed-forward: products", "feed-forward: pointwise", "norm: norms", "embedding: pointwise",
                            "head: products", "optimizer: optimizer"})
      BOOST_TEST(row_named(profile.at("layers"), row), flags << row);
    std::set<std::string> kinds;  // each in one piece
    std::string last;
    for (const auto& row : profile.at("layers")) {
      const auto name = row.at("name").get<std::string>();
      const std::string kind = name.substr(0, name.find(':'));
      BOOST_TEST((kind == last || kinds.insert(kind).second), kind);
      last = kind;
    }
  }
}

BOOST_AUTO_TEST_CASE(tables_as_text) {
  const Outcome result =
      run("bench step --preset transformer-tiny --batch 1 --seq-len 16 --steps 1 --kernels --profile");
  BOOST_TEST(result.code == 0);
  for (const char* part : {"\n  kernel ", "GFLOP", "optimizer_update", "between kernels", "\n  the step", "\n  phase ",
                           "\n  layer: phase ", "\n  feed-forward: products ",
                           "\n  % of two measured limits: products at ", "\n  page faults "})
    BOOST_TEST(result.output.find(part) != std::string::npos, part << result.output);
}

BOOST_AUTO_TEST_CASE(a_trace_has_the_calls_of_the_tables) {
  const Scratch scratch;
  const std::string file = (scratch / "step.json").string(), flags = "--kernels --profile --trace " + file;
  for (const std::string& command : {kStep + flags,
                                     "bench step --dry --preset dcformer-405m --batch 1 --dtype bf16 "
                                     "--profile --trace " +
                                         file}) {
    const nlohmann::json profile = json_of(command).at("profile");
    const nlohmann::json trace = io::read_json_file(file);
    double microseconds = 0, flops = 0, end = 0;
    std::map<std::string, int64_t> calls;
    for (const auto& event : trace.at("traceEvents")) {
      BOOST_TEST(event.at("ph") == "X");
      const auto begin = event.at("ts").get<double>(), length = event.at("dur").get<double>();
      BOOST_TEST(length >= 0);
      if (begin >= end - 1e-3) {  // kernels follow each other
        end = begin + length;
        microseconds += length;
      } else {  // or lie within the one that calls them
        BOOST_TEST(begin + length <= end + 1e-3);
      }
      flops += event.at("args").at("flops").get<double>();
      ++calls[event.at("cat")];
    }
    const nlohmann::json& phases = profile.at("phases");
    double in_kernels = sum(phases, "ms");
    if (const auto* rest = row_named(phases, "between kernels")) in_kernels -= rest->at("ms").get<double>();
    BOOST_TEST(std::fabs(microseconds / 1e3 / in_kernels - 1) < 1e-6);
    BOOST_TEST(flops == sum(phases, "flops"));
    BOOST_TEST(end <= 1e6 * profile.at("seconds").get<double>() * (1 + 1e-9));
    for (const auto& [phase, n] : calls) BOOST_TEST(row_named(phases, phase)->at("launches") == n, phase);
  }
}

BOOST_AUTO_TEST_CASE(of_a_gpu_that_is_not_there) {
  const std::string dry = "bench step --dry --preset dcformer-405m --batch 1 --dtype bf16 --profile";
  const nlohmann::json json = json_of(dry), profile = json.at("profile");
  for (const char* rows : {"phases", "layers"}) {
    BOOST_TEST(close(sum(profile.at(rows), "ms"), 1e3 * json.at("predicted_seconds").get<double>()));
    BOOST_TEST(sum(profile.at(rows), "flops") == json.at("flops").get<double>());
    BOOST_TEST(sum(profile.at(rows), "bytes") == json.at("bytes").get<double>());
    BOOST_TEST(sum(profile.at(rows), "launches") == json.at("launches").get<double>());
  }
  // The FLOPs that braid info counts; derivatives of DCMHA compute scores again.
  const auto spec = models::configure_model("dcformer-405m", {});
  const models::Batch batch = models::blank_batch(*spec, 1, spec->max_sequence_length());
  const TracedFlops flops = models::training_flops(*spec, batch), forward = models::forward_flops(*spec, batch);
  BOOST_TEST(row_named(profile.at("phases"), "products")->at("flops") == flops.products);
  BOOST_TEST(std::fabs(json.at("flops").get<double>() / flops.total() - 1) < 0.03);
  for (const auto& row : json.at("rows"))
    if (row.at("kernel") == "dcmha_one_pass") BOOST_TEST(row.at("flops") == forward.total() - forward.products);
  BOOST_TEST(row_named(profile.at("layers"), "compose: mixing"));
  BOOST_TEST(!profile.contains("page_faults"));
  BOOST_TEST(has(run(dry), "\n  % of the assumed limits: products at "));
}

BOOST_AUTO_TEST_CASE(wrong_flags) {
  const auto wrong = [](const std::string& flags, int code, const std::string& words) {
    const Outcome result = run("bench " + flags);
    BOOST_TEST(result.code == code);
    BOOST_TEST(has(result, words), result.output);
  };
  wrong("step --trace x.json", 2, "--trace is a file for the calls of a profile: add --profile");
  wrong("step --profil", 2, "--profile");
  wrong("decode --profile", 2, "--profile is for bench step: leave it out of bench decode");
  wrong("step --profile --trace /nowhere/x.json", 4, "/nowhere");
}

BOOST_AUTO_TEST_SUITE_END()
