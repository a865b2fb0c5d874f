// braid bench step --kernels as the real program: times and FLOPs of every kernel of a step on the CPU.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "braid/tensor/io/json.h"
#include "tests/apps/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(bench_kernels)

BOOST_AUTO_TEST_CASE(the_kernels_of_a_step_hold_its_flops) {
  for (const std::string flags : {"", " --recompute", " --dtype bf16"}) {
    const Outcome result =
        run("bench step --preset dcformer-tiny --batch 2 --seq-len 32 --steps 1 --json --kernels" + flags);
    BOOST_REQUIRE_MESSAGE(result.code == 0, result.output);
    const auto json = io::parse_json(result.output, "output");
    double flops = 0, before = 1e300;
    bool products = false, attention = false;
    for (const auto& kernel : json.at("kernels")) {
      const auto name = kernel.at("name").get<std::string>();
      const auto milliseconds = kernel.at("ms").get<double>();
      BOOST_TEST(kernel.at("launches").get<int64_t>() >= 1);
      BOOST_TEST((milliseconds >= 0 && milliseconds <= before), name);
      before = milliseconds;
      flops += kernel.at("flops").get<double>();
      products |= name == "linear" && kernel.at("flops").get<double>() > 0;
      attention |= name == "dcmha_backward" && kernel.at("flops").get<double>() > 0;
    }
    BOOST_TEST(products);
    BOOST_TEST(attention);
    // Three forward passes; a step that recomputes blocks takes a fourth of them.
    const double ratio = flops / json.at("flops").get<double>();
    BOOST_TEST((flags == " --recompute" ? ratio > 1.2 && ratio < 1.34 : std::fabs(ratio - 1) < 0.02),
               flags << ": " << ratio);
  }
}

BOOST_AUTO_TEST_CASE(the_table_says_what_is_between_kernels) {
  const Outcome result = run("bench step --preset transformer-tiny --batch 1 --seq-len 16 --steps 1 --kernels");
  BOOST_TEST(result.code == 0);
  for (const char* word : {"GFLOP/s", "optimizer_update", "between kernels", "the step"})
    BOOST_TEST(result.output.find(word) != std::string::npos, result.output);
}

BOOST_AUTO_TEST_SUITE_END()
