// The golden cases through `braid dump`: every expected tensor is there and within its tolerance.
#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "braid/tensor/io/safetensors.h"
#include "tests/apps/support.h"
#include "tests/support/compare.h"
#include "tests/support/places.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(dump)

namespace fs = std::filesystem;

namespace {
void check_case(const fs::path& folder, const std::string& dtype, double tolerance) {
  const Scratch scratch;
  const fs::path out = scratch / "dump.safetensors";
  io::SafetensorsFile golden((folder / "golden.safetensors").string());
  std::string command = "dump " + folder.string() + " --grad --dtype " + dtype + " --out " + out.string();
  if (golden.find("input_ids") || golden.find("pixel_values"))
    command += " --ids " + (folder / "golden.safetensors").string();
  if (const io::TensorInfo* prompt = golden.find("decode.prompt_ids"))
    command += " --decode " + std::to_string(prompt->shape[1]) + " 12";
  const Outcome made = run(command);
  BOOST_REQUIRE_MESSAGE(made.code == 0, made.output);
  io::SafetensorsFile got(out.string());
  for (const io::TensorInfo& info : golden.tensors()) {
    if (info.name == "logits_f32") continue;  // of other arithmetic
    BOOST_TEST_CONTEXT(folder.filename().string() << " " << dtype << " " << info.name) {
      BOOST_REQUIRE(got.find(info.name) != nullptr);
      BOOST_TEST(is_close(got.load(info.name), golden.load(info.name), is_index(info.dtype) ? 0 : tolerance));
    }
  }
}
}  // namespace

BOOST_AUTO_TEST_CASE(golden_cases) {
  int cases = 0;
  for (const auto& entry : fs::directory_iterator(source_dir() + "/tests/golden")) {
    if (!fs::exists(entry.path() / "config.json")) continue;
    ++cases;
    check_case(entry.path(), "f64", 1e-10);
    check_case(entry.path(), "f32", 2e-5);
  }
  BOOST_TEST(cases == 9);
}

// Images in the place of tokens.
BOOST_AUTO_TEST_CASE(golden_images) {
  const fs::path hf = source_dir() + "/tests/golden/hf";
  for (const char* name : {"vit_gap", "vit_tok", "vit_tok_old"}) check_case(hf / name, "f64", 1e-10);
  check_case(hf / "vit_gap_rep", "f32", 1e-4);
  const Scratch scratch;
  const std::string dump = "dump " + (hf / "vit_tok").string() + " --out " + (scratch / "d.safetensors").string();
  const auto rejects = [&](const std::string& flags, int code, const std::string& words) {
    const Outcome made = run(dump + flags);
    BOOST_TEST(made.code == code);
    BOOST_TEST(made.output.find(words) != std::string::npos, made.output);
  };
  rejects(" --prompt hello", 2, "this one reads images");
  rejects(" --ids 1,2,3", 3, "1,2,3");
  const Tensor pixels = io::SafetensorsFile((hf / "vit_tok/golden.safetensors").string()).load("pixel_values");
  io::save_safetensors((scratch / "p").string(), {{"pixel_values", pixels}});
  rejects(" --grad --ids " + (scratch / "p").string(), 3, "expected labels (B) beside pixel_values");
  const Outcome maps = run(dump + " --attention 1 --ids " + (scratch / "p").string());
  BOOST_REQUIRE_MESSAGE(maps.code == 0, maps.output);
  const io::SafetensorsFile got((scratch / "d.safetensors").string());
  BOOST_TEST((got.load("layers.1.attn_probs_composed").shape() == Shape{pixels.dim(0), 3, 17, 17}));
  BOOST_TEST(!got.find("loss"));
}

BOOST_AUTO_TEST_CASE(decoding_within_the_ids_and_the_longest_sequence) {
  const Scratch scratch;
  const fs::path golden = source_dir() + "/tests/golden/model_transformer", out = scratch / "dump.safetensors";
  const Tensor ids = io::SafetensorsFile((golden / "golden.safetensors").string()).load("input_ids");
  io::save_safetensors((scratch / "ids").string(), {{"input_ids", ids}});
  const auto decode = [&](const std::string& lengths) {
    return run("dump " + golden.string() + " --ids " + (scratch / "ids").string() + " --out " + out.string() +
               " --decode " + lengths);
  };
  const Outcome fine = decode("2 5");
  BOOST_TEST(fine.code == 0, fine.output);
  io::SafetensorsFile got(out.string());
  BOOST_TEST((got.load("decode.prompt_ids").shape() == Shape{ids.dim(0), 2}));
  BOOST_TEST((got.load("decode.tokens").shape() == Shape{ids.dim(0), 5}));
  fs::remove(out);
  const auto wrong = [&](const std::string& lengths, const std::string& words) {
    const Outcome rejected = decode(lengths);
    BOOST_TEST(rejected.code == 2);
    BOOST_TEST(rejected.output.find(words) != std::string::npos, rejected.output);
    BOOST_TEST(!fs::exists(out));
  };
  wrong(std::to_string(ids.dim(1) + 1) + " 1",
        "expected P from 1 to the " + std::to_string(ids.dim(1)) + " ids of a row");
  wrong("2 9223372036854775807", "longest sequence of 128 tokens in all, found 2 + 9223372036854775807");
  wrong("2,5", "bad value for --decode: expected an integer of at least 1, found '2,5'");
}

// Ids of a file that do not fit the model end with 3, those of a flag with 2; nothing is written.
BOOST_AUTO_TEST_CASE(a_dump_does_not_replace_what_it_is_made_from) {
  const Scratch scratch;
  const fs::path model = scratch / "model", ids = scratch / "ids", text = scratch / "text";
  fs::copy(source_dir() + "/tests/golden/model_transformer", model);
  io::save_safetensors(ids.string(), {{"input_ids", from_vector(std::vector<int64_t>{1, 2}, {1, 2})}});
  write(text, "a text");
  const std::string weights = slurp(model / "model.safetensors"), command = "dump " + model.string();
  for (const Outcome& result : {run(command + " --ids 1,2 -o " + (model / "model.safetensors").string()),
                                run(command + " --ids " + ids.string() + " -o " + ids.string()),
                                run(command + " --text " + text.string() + " -o " + text.string())}) {
    BOOST_TEST(result.code == 2);
    BOOST_TEST(has(result, "--out would replace "), result.output);
  }
  BOOST_TEST(slurp(text) == "a text");
  BOOST_TEST(slurp(model / "model.safetensors") == weights);
}

BOOST_AUTO_TEST_CASE(the_loss_is_printed) {
  const Scratch scratch;
  const std::string command =
      "dump " + source_dir() + "/tests/golden/model_transformer -o " + (scratch / "out").string() + " --ids ";
  const std::string several = run(command + "1,2,3").output, one = run(command + "1").output;
  BOOST_TEST(several.find("out; loss ") != std::string::npos, several);
  BOOST_TEST(several.find(" of 2 tokens\n") != std::string::npos, several);
  BOOST_TEST(one.find("out; no loss, because no token has a next one to predict\n") != std::string::npos, one);
}

BOOST_AUTO_TEST_CASE(ids_that_do_not_fit_the_model) {
  const Scratch scratch;
  const std::string model = source_dir() + "/tests/golden/model_transformer";  // 61 ids, sequences of at most 128
  const fs::path out = scratch / "out.safetensors";
  const auto ids = [](std::vector<int64_t> values, Shape shape) { return from_vector(values, shape); };
  const Tensor good = ids({1, 2, 3}, {1, 3});
  const auto dump = [&](const std::string& more) {
    return run("dump " + model + " --out " + out.string() + " " + more);
  };
  const auto fails = [&](const Outcome& result, int code, const std::string& words) {
    BOOST_TEST(result.code == code, result.output);
    BOOST_TEST(result.output.find(words) != std::string::npos, result.output);
    BOOST_TEST(!fs::exists(out));
  };
  const auto file = [&](const io::NamedTensors& tensors, const std::string& words) {
    io::save_safetensors((scratch / "ids").string(), tensors);
    fails(dump("--decode 1 2 --ids " + (scratch / "ids").string()), 3, words);
  };
  file({{"input_ids", ids(std::vector<int64_t>(129, 1), {1, 129})}},
       "input_ids in " + (scratch / "ids").string() +
           " is too long: expected at most the model's longest sequence of 128");
  file({{"input_ids", ids({1, 61}, {1, 2})}}, "at row 0, position 1: expected 0 to 60, found 61");
  file({{"input_ids", ids({}, {1, 0})}}, "is empty: expected at least one row of one token, found (1, 0)");
  file({{"input_ids", ids({1, 2}, {2})}}, "must be (B, T) integers, found i64 (2)");
  file({{"input_ids", good}, {"targets", ids({1, 2, 70}, {1, 3})}}, "targets in ");
  file({{"input_ids", good}, {"targets", ids({1, 2}, {1, 2})}}, "must be integers of shape (1, 3)");
  file({{"input_ids", good}, {"decode.prompt_ids", ids({}, {1, 0})}}, "decode.prompt_ids in ");
  file({{"input_ids", good}, {"decode.prompt_ids", ids({1, 2, 3}, {3})}}, "must be (B, T) integers, found i64 (3)");
  file({{"input_ids", good}, {"decode.prompt_ids", zeros({1, 3})}}, "must be (B, T) integers, found f32 (1, 3)");
  fails(dump("--ids 1,2,61"), 2, "--ids is out of range at row 0, position 2: expected 0 to 60, found 61");
  fails(dump("--ids nothing.safetensors"), 3, "nothing.safetensors");
  fails(dump("--ids 1,2 --prompt hello"), 2, "found several");
  fails(dump(""), 2,
        "expected one of --ids (a safetensors file with input_ids, or 1,2,3), --prompt and --text, found none");
  fails(dump("--ids 1,2 --attention first"), 2, "bad value for --attention: expected a list of integers");
  fails(dump("--ids 1,2 --attention 0,2"), 2, "--attention: expected layers from 0 to 1, found '2'");
  fails(dump("--prompt hello"), 3, "no tokenizer.json in ");
}

BOOST_AUTO_TEST_CASE(inputs_that_do_not_fit_the_attention) {
  const Scratch scratch;
  const fs::path golden = source_dir() + "/tests/golden/attn_full";
  fs::copy_file(golden / "config.json", scratch / "config.json");
  const io::SafetensorsFile file((golden / "inputs.safetensors").string());
  const auto changed = [&](const std::string& name, const Tensor& x, const std::string& words) {
    io::NamedTensors tensors;
    for (const io::TensorInfo& t : file.tensors()) {
      if (t.name != name) tensors.emplace_back(t.name, file.load(t.name));
    }
    if (x) tensors.emplace_back(name, x);
    io::save_safetensors((scratch / "inputs.safetensors").string(), tensors);
    const Outcome result = run("dump --grad " + scratch.path.string() + " -o " + (scratch / "out").string());
    BOOST_TEST(result.code == 3, result.output);
    BOOST_TEST(result.output.find(words) != std::string::npos, result.output);
    BOOST_TEST(!fs::exists(scratch / "out"));
  };
  changed("q", zeros({2, 24, 32}),
          "does not fit config.json: expected floats of shape (2, 24, 4, 8), found f32 (2, 24, 32)");
  changed("k", zeros({2, 24, 8, 4}), "k in ");
  changed("pre.qw1", zeros({2, 24, 1, 4, 2}), "expected floats of shape (2, 24, 1, 2, 4), found f32 (2, 24, 1, 4, 2)");
  changed("pre.qw2", {}, "pre.qw1 and qw2, and kw1 and kw2, come together");
  changed("dout", zeros({2, 24, 32}), "dout in ");
  changed("v", {}, "v is missing in ");
}

BOOST_AUTO_TEST_CASE(sixteen_bits) {
  const std::string folder = source_dir() + "/tests/golden/model_dcformer_train";
  const Scratch scratch;
  const fs::path out = scratch / "out.safetensors";
  BOOST_TEST(
      run("dump " + folder + " --dtype bf16 --ids " + folder + "/golden.safetensors --out " + out.string()).code == 0);
  const Tensor got = io::SafetensorsFile(out.string()).load("logits"),
               want = io::SafetensorsFile(folder + "/golden.safetensors").load("logits");
  BOOST_TEST((got.dtype() == DType::bf16));
  BOOST_TEST(is_close(got, want, 0.05));
  BOOST_TEST(!is_close(got, want, 1e-5));
}

BOOST_AUTO_TEST_SUITE_END()
