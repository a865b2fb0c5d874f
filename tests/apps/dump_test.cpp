// The golden cases through `braid dump`: every expected tensor is there and within its tolerance.
#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "braid/tensor/io/safetensors.h"
#include "tests/apps/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;
namespace fs = std::filesystem;

namespace {
void check_case(const fs::path& folder, const std::string& dtype, double tolerance) {
  const Scratch scratch;
  const fs::path out = scratch / "dump.safetensors";
  io::SafetensorsFile golden((folder / "golden.safetensors").string());
  std::string command = "dump " + folder.string() + " --grad --dtype " + dtype + " --out " + out.string();
  if (golden.find("input_ids")) command += " --ids " + (folder / "golden.safetensors").string();
  if (const io::TensorInfo* prompt = golden.find("decode.prompt_ids"))
    command += " --decode " + std::to_string(prompt->shape[1]) + " 12";
  const Outcome made = run(command);
  BOOST_REQUIRE_MESSAGE(made.code == 0, made.output);
  io::SafetensorsFile got(out.string());
  for (const io::TensorInfo& info : golden.tensors()) {
    BOOST_TEST_CONTEXT(folder.filename().string() << " " << dtype << " " << info.name) {
      BOOST_REQUIRE(got.find(info.name) != nullptr);
      BOOST_TEST(is_close(got.load(info.name), golden.load(info.name), is_index(info.dtype) ? 0 : tolerance));
    }
  }
}
}  // namespace

BOOST_AUTO_TEST_SUITE(dump)

BOOST_AUTO_TEST_CASE(golden_cases) {
  int cases = 0;
  for (const auto& entry : fs::directory_iterator(BRAID_SOURCE_DIR "/tests/golden")) {
    if (!entry.is_directory()) continue;
    ++cases;
    check_case(entry.path(), "f64", 1e-10);
    check_case(entry.path(), "f32", 2e-5);
  }
  BOOST_TEST(cases == 9);
}

BOOST_AUTO_TEST_CASE(decoding_within_the_ids_and_the_longest_sequence) {
  const Scratch scratch;
  const fs::path golden = BRAID_SOURCE_DIR "/tests/golden/model_transformer", out = scratch / "dump.safetensors";
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
  wrong("2,5", "bad value for --decode: expected a whole number of at least 1, found '2,5'");
}

BOOST_AUTO_TEST_CASE(sixteen_bits) {
  const std::string folder = BRAID_SOURCE_DIR "/tests/golden/model_dcformer_train";
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
