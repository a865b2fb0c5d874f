// The info command, run as the real program.
#include <boost/test/unit_test.hpp>

#include "braid/models/families/dcformer/config.h"
#include "tests/apps/support.h"
#include "tests/support/sanitizer.h"

BOOST_AUTO_TEST_SUITE(info)

using braid::test::has;
using braid::test::run;
using braid::test::Scratch;
using braid::test::write;

BOOST_AUTO_TEST_CASE(a_preset_as_a_table) {
  const auto result = run("info dcformer-405m");
  BOOST_TEST(result.code == 0);
  has(result.output,
      {"n_head                       16", "attention heads N", "13 191 296", "344 064", "+2.68 %", "419 516 416",
       "sequences of 2048", "807.9M", "+3.36 %", "Memory to train", "Memory to generate"});
}

// The thread sanitizer leaves no address space for it.
BOOST_AUTO_TEST_CASE(the_largest_preset_is_not_built, *boost::unit_test::enable_if<!braid::test::kThreadSanitizer>()) {
  const auto result = run("info dcpythia-6.9b --batch 100000");
  BOOST_TEST(result.code == 0);
  has(result.output, {"6 941 859 840", "6.94G", "This machine", "DOES NOT FIT; one process then needs, with ",
                      "train.recompute=true: ", "train.dtype=bf16: ", "train.batch_size=1 train.accumulate=100000: ",
                      "parallel.tensor=8 (8 machines): ", "DOES NOT FIT; --dtype bf16 needs half"});
  const auto small = run("info dcformer-tiny");
  has(small.output, {"training, f32, AdamW", "   fits\n"});
  BOOST_TEST(small.output.find("NOT FIT") == std::string::npos, small.output);
}

BOOST_AUTO_TEST_CASE(overrides_change_the_model) {
  BOOST_TEST(run("info dcformer-tiny --dim 3").output.find("did you mean the setting dim=VALUE, without dashes?") !=
             std::string::npos);
  const auto result = run("info transformer-tiny dim=512 n_layer=2 --seq-len 256 --batch 3");
  BOOST_TEST(result.code == 0);
  has(result.output, {"head_dim                     64", "intermediate_size            1536", "3 x 256 tokens"});
  BOOST_TEST(result.output.find("profile.gelu") == std::string::npos);  // says nothing about a plain model
}

BOOST_AUTO_TEST_CASE(json_for_programs) {
  const auto result = run("info dcformer-405m --json --batch 2");
  BOOST_TEST(result.code == 0);
  has(result.output, {"\"total\": 419516416", "\"per_layer\": 13191296", "\"batch\": 2", "\"seq_len\": 2048",
                      "\"model_type\": \"dcformer\"", "\"forward\": 8", "\"cache_per_token\": 211968,"});
}

BOOST_AUTO_TEST_CASE(switched_off_branches_are_not_counted) {
  auto result = run("info dcformer-405m profile.key_side=false profile.static_proj=true");
  BOOST_TEST(result.code == 0);
  has(result.output, {"profile.branches             pre_q,post_q", "dynamic weights                  172 032",
                      "branch pre_q                    86 016", "branch post_q                   86 016",
                      "static mixing                        512"});
  BOOST_TEST(result.output.find("branch pre_k") == std::string::npos);
  result = run("info dcformer-405m profile.pre_compose=false profile.post_compose=false");
  has(result.output, {"411 258 880", "total"});  // plain attention with QK-norm
  for (const char* words : {"dynamic weights  ", "branch ", "compose:", "profile.rank", "profile.num_groups"})
    BOOST_TEST(result.output.find(words) == std::string::npos, words);
}

BOOST_AUTO_TEST_CASE(a_size_to_match) {
  auto result = run("info transformer-405m --match-params dcformer-405m");
  BOOST_TEST(result.code == 0);
  has(result.output,
      {"Same number of parameters as dcformer-405m", "this model                            411 255 808   -1.969 %",
       "intermediate_size=2928                419 513 344   -0.001 %"});
  result = run("info transformer-405m --match-params 419516416 --json");
  has(result.output, {"\"match\": {\"target\": 419516416, \"now\": 411255808, \"matched\": 419513344}"});
  result = run("info transformer-405m --match-params 0");
  BOOST_TEST(result.code == 2);
  has(result.output, {"bad value for --match-params", "found '0'"});
  result = run("info transformer-405m --match-params 10M");
  has(result.output, {"bad value for --match-params: expected an integer or a model; unknown model preset '10M'"});
}

BOOST_AUTO_TEST_CASE(a_folder_and_a_file) {
  const Scratch scratch;
  const auto config = braid::models::configure("dcformer-tiny", {});
  write(scratch / "config.json", braid::models::write_config(config));
  for (const std::string& model : {scratch.path.string(), (scratch / "config.json").string()}) {
    const auto result = run("info " + model + " vocab_size=300");
    BOOST_TEST(result.code == 0);
    has(result.output, {"vocab_size                   300", "head_dim                     32"});
  }
}

BOOST_AUTO_TEST_CASE(bad_requests) {
  const Scratch scratch;
  const auto rejected = [](const std::string& arguments, int code, const std::vector<std::string>& parts) {
    const auto result = run("info " + arguments);
    BOOST_TEST(result.code == code, arguments);
    has(result.output, parts);
  };
  rejected("dcformer-405", 2, {"unknown model preset 'dcformer-405'", "did you mean 'dcformer-405m'?"});
  rejected("dcformer-tiny n_heads=8", 2, {"unknown model key 'n_heads'", "did you mean 'n_head'?"});
  rejected("dcformer-tiny n_head=7", 2, {"n_head", "a divisor of dim = 256", "found 7"});
  rejected("dcformer-tiny --seq-len 513", 2, {"--seq-len", "block_size = 512", "found 513"});
  rejected("dcformer-tiny --batch 0", 2, {"--batch", "found '0'"});
  rejected((scratch / "missing.json").string(), 3, {"missing.json"});
  rejected(scratch.path.string(), 3, {"config.json"});
  write(scratch / "config.json", "{\"model_type\": \"dcformer\"}");
  rejected(scratch.path.string(), 3, {"missing key", "'vocab_size'"});
}

BOOST_AUTO_TEST_CASE(help_lists_presets_and_keys) {
  const auto result = run("info --help");
  BOOST_TEST(result.code == 0);
  has(result.output, {"pythia-6.9b", "profile.branches", "window_size", "--seq-len T"});
}

BOOST_AUTO_TEST_SUITE_END()
