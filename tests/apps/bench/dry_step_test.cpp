// braid bench step --dry as the real program, and the roofline behind it.
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "apps/bench/roofline.h"
#include "braid/tensor/io/json.h"
#include "tests/apps/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(bench_dry_step)

BOOST_AUTO_TEST_CASE(of_a_model_that_this_machine_cannot_hold) {
  const std::string large = "bench step --dry --device cuda --preset dcformer-2.8b --batch 4 --dtype bf16 ";
  const Outcome text = run(large);
  BOOST_TEST(text.code == 0, text.output);
  BOOST_TEST(text.output.starts_with("dry training step of dcformer-2.8b, batch 4 x 2048 tokens, bf16 with f32 master "
                                     "weights, for an NVIDIA H100 SXM 80 GB: nothing is computed\n"),
             text.output);
  for (const char* part : {"\n  launches ", "\n  captured         as CUDA graphs, ", "\n  peak memory ",
                           "\n  predicted ", "\n  assumed ", "\n  optimizer_update "})
    BOOST_TEST(text.output.find(part) != std::string::npos, text.output);
  const nlohmann::json facts = io::parse_json(run(large + "--json").output, "output");
  BOOST_TEST(facts.at("captured") == true);
  BOOST_TEST(facts.at("capture_given_up") == "");
  BOOST_TEST(facts.at("allocations_per_step") == 0);
  BOOST_TEST(facts.at("reserved_mib").get<double>() > facts.at("peak_tensor_mib").get<double>());
  int64_t launches = 0;
  double seconds = 0;
  for (const nlohmann::json& row : facts.at("rows")) {
    launches += row.at("launches").get<int64_t>();
    seconds += row.at("predicted_seconds").get<double>();
  }
  BOOST_TEST(facts.at("launches") == launches);
  BOOST_TEST(std::abs(facts.at("predicted_seconds").get<double>() / seconds - 1) < 1e-9);
}

BOOST_AUTO_TEST_CASE(of_an_image_model) {
  const std::string images = "bench step --dry --preset vit-28 --batch 4 ";
  const Outcome text = run(images);
  BOOST_TEST(text.output.starts_with("dry training step of vit-28, batch 4 images, f32, for an "), text.output);
  BOOST_TEST(text.output.find(" images/s, ") != std::string::npos, text.output);
  BOOST_TEST(text.output.find("tokens") == std::string::npos, text.output);
  const nlohmann::json facts = io::parse_json(run(images + "--json").output, "output");
  BOOST_TEST(facts.at("predicted_images_per_second").get<double>() > 0);
}

BOOST_AUTO_TEST_CASE(rates_are_inputs) {
  const std::string tiny = "bench step --dry --preset transformer-tiny --batch 2 --json ";
  const auto seconds = [&](const std::string& flags) {
    const Outcome result = run(tiny + flags);
    BOOST_REQUIRE_MESSAGE(result.code == 0, result.output);
    const nlohmann::json facts = io::parse_json(result.output, "output");
    return std::pair{facts.at("predicted_seconds").get<double>(), facts.at("launches").get<double>()};
  };
  const auto [usual, launches] = seconds("");
  BOOST_TEST(std::abs(seconds("--launch 3.5").first - usual - 1e-6 * launches) < 1e-9 * launches);
  BOOST_TEST(seconds("--gpu h200").first < usual);
  BOOST_TEST(seconds("--bandwidth 1").first > usual);
  BOOST_TEST(seconds("--tflops 1").first > usual);
  BOOST_TEST(std::abs(seconds("--no-graph").first / usual - 1) < 0.02);
}

BOOST_AUTO_TEST_CASE(a_step_that_does_not_fit) {
  const Outcome result = run("bench step --dry --preset dcformer-2.8b --batch 64 --dtype bf16");
  BOOST_TEST(result.code == 2);
  BOOST_TEST(result.output.find("out of memory on the dry device (NVIDIA H100 SXM 80 GB)") != std::string::npos,
             result.output);
  const Outcome less = run("bench step --dry --preset dcformer-2.8b --batch 4 --dtype bf16 --memory 40");
  BOOST_TEST(less.code == 2);
  BOOST_TEST(less.output.find("takes less with --recompute, a smaller --batch") != std::string::npos, less.output);
  for (const char* of_others : {"train.", "--dtype", "--tokens"})
    BOOST_TEST(less.output.find(of_others) == std::string::npos, less.output);
}

// An A100 has too little shared memory for the kernel that reads keys and values once.
BOOST_AUTO_TEST_CASE(kernels_are_those_that_the_gpu_can_launch) {
  const std::string step = "bench step --dry --preset dcformer-405m --batch 2 --dtype bf16 --gpu ";
  BOOST_TEST(run(step + "h100").output.find("dcmha_one_pass") != std::string::npos);
  const Outcome a100 = run(step + "a100");
  BOOST_TEST(a100.code == 0, a100.output);
  BOOST_TEST(a100.output.find("dcmha_one_pass") == std::string::npos, a100.output);
}

// By the stated model, Transformer++ on an H100.
BOOST_AUTO_TEST_CASE(predicted_utilisation_of_the_baseline) {
  for (const auto& [model, least] :
       {std::pair{"transformer-405m --batch 8", 0.40}, {"transformer-2.8b --batch 4", 0.50}}) {
    const Outcome result = run(std::string("bench step --dry --dtype bf16 --json --preset ") + model);
    BOOST_REQUIRE_MESSAGE(result.code == 0, result.output);
    BOOST_TEST(io::parse_json(result.output, "output").at("predicted_flops_utilisation").get<double>() >= least);
  }
}

BOOST_AUTO_TEST_CASE(wrong_flags) {
  const auto wrong = [](const std::string& flags, const std::string& words) {
    const Outcome result = run("bench step " + flags);
    BOOST_TEST(result.code == 2);
    BOOST_TEST(result.output.find(words) != std::string::npos, result.output);
  };
  wrong("--dry --device cpu", "--dry is about a GPU: expected --device cuda, found cpu");
  wrong("--dry --gpu h10", "h100");
  wrong("--gpu h200", "add --dry to predict a step");
  wrong("--dry --kernels", "leave --kernels out");
  wrong("--dry --model x", "--model is for bench decode");
}

BOOST_AUTO_TEST_CASE(a_launch_takes_the_larger_of_its_times) {
  const apps::Roofline r{.flops = 1e12, .bandwidth = 1e9, .launch = 1e-6, .multiprocessors = 4};
  BOOST_TEST(r.seconds({}) == 1e-6);
  BOOST_TEST(std::abs(r.seconds({.bytes = 1000}) - 2e-6) < 1e-15);
  // Four tiles of 128 x 256 on four multiprocessors: all of them work, at the full rate.
  DryWork product{.kind = DryWork::Kind::product, .rows = 256, .columns = 512, .inner = 64, .batch = 1};
  BOOST_TEST(std::abs(r.seconds(product) - 1e-6 - 2.0 * 256 * 512 * 64 / 1e12) < 1e-12);
  product.rows = 257;  // another wave
  BOOST_TEST(r.seconds(product) > 1.2 * 2.0 * 257 * 512 * 64 / 1e12);
}

BOOST_AUTO_TEST_SUITE_END()
