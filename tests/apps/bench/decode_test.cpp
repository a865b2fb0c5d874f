// braid bench decode as the real program.
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "braid/models/folders/pretrained.h"
#include "braid/tensor/io/json.h"
#include "tests/apps/generate/byte_model.h"
#include "tests/apps/support.h"
#include "tests/support/places.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(bench_decode)

BOOST_AUTO_TEST_CASE(of_a_preset_and_of_a_folder) {
  const std::string tiny = "bench decode dim=16 n_head=2 n_layer=1 intermediate_size=24 block_size=40 ";
  const Outcome text = run(tiny + "--context 20 --tokens 6 --batch 2");
  BOOST_TEST(text.code == 0, text.output);
  BOOST_TEST(text.output.starts_with("decoding with dcformer-tiny, batch 2, after 20 tokens, f32, "), text.output);
  for (const char* part :
       {"\n  step ", "\n  tokens ", "\n  weights ", "\n  cache ", "\n  reads ", "\n  prompt ", "\n  peak memory "})
    BOOST_TEST(text.output.find(part) != std::string::npos, text.output);
  const Outcome few = run(tiny + "--tokens 6");  // the default context gives way
  BOOST_TEST(few.output.starts_with("decoding with dcformer-tiny, batch 1, after 32 tokens, "), few.output);
  const Outcome none = run(tiny);
  BOOST_TEST(none.output.find(", after 19 tokens, ") != std::string::npos, none.output);
  BOOST_TEST(none.output.find("median of 19 steps") != std::string::npos, none.output);
  const std::string golden = source_dir() + "/tests/golden/model_dcformer_lg";
  const Outcome json = run("bench decode --json --dtype bf16 --context 8 --tokens 4 --model " + golden);
  BOOST_REQUIRE_MESSAGE(json.code == 0, json.output);
  const nlohmann::json facts = io::parse_json(json.output, "output");
  BOOST_TEST(facts.at("context") == 8);
  BOOST_TEST(facts.at("batch") == 1);
  BOOST_TEST(facts.at("weight_bytes") == 2 * facts.at("parameters").get<int>());
  for (const char* number : {"tokens_per_second", "prompt_tokens_per_second", "cache_bytes", "read_rate", "read_share",
                             "product_rate", "prompt_flops_share"})
    BOOST_TEST(facts.at(number).get<double>() > 0, number);
  for (const std::string type : {"int8", "int4"}) {
    const Outcome quantised = run("bench decode --json --context 8 --tokens 4 --dtype " + type + " --model " + golden);
    BOOST_REQUIRE_MESSAGE(quantised.code == 0, quantised.output);
    const nlohmann::json found = io::parse_json(quantised.output, "output");
    BOOST_TEST(found.at("dtype") == type);
    BOOST_TEST(found.at("weight_bytes").get<double>() < 0.75 * 2 * facts.at("weight_bytes").get<double>());
    const nlohmann::json info = io::parse_json(run("info --json " + golden).output, "output");
    BOOST_TEST(found.at("weight_bytes") == info.at("inference_memory").at("weights_" + type));
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_timed) {
  const auto wrong = [](const std::string& arguments, const std::string& words) {
    const Outcome result = run("bench " + arguments);
    BOOST_TEST(result.code == 2);
    BOOST_TEST(result.output.find(words) != std::string::npos, result.output);
  };
  wrong("decode block_size=40 --context 30 --tokens 9", "expected at most 38 in all, found 30 + 9");
  wrong("decode --preset dcformer-tiny --model x", "name two models");
  wrong("step --dtype int8", "--dtype int8 is for bench decode");
  wrong("decode --dtype int8 --device cuda", "--dtype int8 is for the CPU: expected --device cpu, found cuda");
  wrong("step --model x", "--model is for bench decode");
  wrong("step --tokens 4", "--tokens is for bench decode: leave it out of bench step");
  wrong("decode --steps 4", "--steps is for bench comm, step: leave it out of bench decode");
  wrong("comm --model x", "--model is for bench decode: leave it out of bench comm");
  wrong("serve", "WHAT: expected one of step, decode, comm, found 'serve'");
}

// A text that fails is not waited for.
BOOST_AUTO_TEST_CASE(logits_that_are_not_finite_end_with_5) {
  const Scratch scratch;
  const auto model = byte_model();
  for (nn::NamedTensor& p : nn::parameters(*model))
    if (p.name == "norm.weight" || p.name == "output.weight") p.value.detach().fill(3e38);
  models::save_model(*model, nullptr, scratch.path);
  const Outcome result = run("bench decode --context 8 --tokens 4 --model " + scratch.path.string());
  BOOST_TEST(result.code == 5);
  BOOST_TEST(result.output.find("no token can be drawn for position 8: ") != std::string::npos, result.output);
}

BOOST_AUTO_TEST_SUITE_END()
