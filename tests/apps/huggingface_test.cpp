// Folders and runs of LLaMA and GPT-NeoX through the real program: everything that works for DCFormer works for them.
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "braid/tensor/io/safetensors.h"
#include "tests/apps/train/runs.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

const fs::path kFolders = BRAID_SOURCE_DIR "/tests/golden/hf";

void has(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    BOOST_TEST(text.find(part) != std::string::npos, "'" + part + "' is not in:\n" + text);
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  const io::TensorFiles files(folder.string());
  for (const io::TensorInfo& info : files.tensors()) names.insert(info.name);
  return names;
}

const std::vector<std::string> kLlama = {"model.model_type=llama", "model.n_kv_head=1"};
const std::vector<std::string> kNeox = {"model.model_type=gpt_neox"};

}  // namespace

BOOST_AUTO_TEST_SUITE(huggingface)

// `braid dump` writes the names of the golden files, gradients under the names on disk.
BOOST_AUTO_TEST_CASE(golden_folders) {
  for (const char* name : {"llama_bias_headdim", "llama_gqa_tied", "llama_sharded", "gptneox_sequential"}) {
    for (const auto& [dtype, tolerance] : {std::pair{"f64", 1e-10}, {"f32", 1e-4}}) {
      const Scratch scratch;
      const fs::path folder = kFolders / name;
      const io::SafetensorsFile golden((folder / "golden.safetensors").string());
      const Outcome made = run("dump " + folder.string() + " --ids " + golden.path() +
                               " --grad --decode 7 20 --dtype " + dtype + " -o " + (scratch / "out").string());
      BOOST_REQUIRE_MESSAGE(made.code == 0, made.output);
      const io::SafetensorsFile got((scratch / "out").string());
      for (const io::TensorInfo& info : golden.tensors()) {
        if (info.name == "logits_f32" || info.name == "rope.inv_freq") continue;
        BOOST_TEST_CONTEXT(name << " " << dtype << " " << info.name) {
          BOOST_REQUIRE(got.find(info.name) != nullptr);
          BOOST_TEST(is_close(got.load(info.name), golden.load(info.name), is_index(info.dtype) ? 0 : tolerance));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(folders_in_every_command) {
  const Scratch scratch;
  Outcome result = run("info " + (kFolders / "llama_rope_llama3").string());
  BOOST_TEST(result.code == 0);
  has(result.output, {"llama", "rope_scaling", "n_kv_head", "Weights in the folder", "tensors of LlamaForCausalLM"});
  result = run("info llama-3.2-1b");
  has(result.output, {"1235814400"});
  result = run("convert " + (kFolders / "llama_sharded").string() + " -o " + (scratch / "one").string() +
               " --max-shard-size 0 --dtype f16");
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(fs::exists(scratch / "one/model.safetensors"));
  BOOST_TEST(!fs::exists(scratch / "one/model.safetensors.index.json"));
  result =
      run("convert " + (scratch / "one").string() + " -o " + (scratch / "many").string() + " --max-shard-size 1e-5");
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(fs::exists(scratch / "many/model-00001-of-00003.safetensors"));
  BOOST_TEST(names_in(scratch / "many") == names_in(kFolders / "llama_sharded"));
  result = run("bench decode --model " + (kFolders / "gptneox_parallel").string() + " --context 4 --tokens 4");
  BOOST_TEST(result.code == 0, result.output);
  result = run("dump " + (kFolders / "llama_mha_old").string() + " --ids " + std::string(130, '1') + " -o x");
  BOOST_TEST(result.code == 2);

  fs::create_directories(scratch / "bad");
  for (const char* file : {"model.safetensors", "config.json"})
    fs::copy_file(kFolders / "llama_mha_old" / file, scratch / "bad" / file);
  json config = json::parse(slurp(scratch / "bad/config.json"));
  config["rope_scaling"] = {{"type", "yarn"}, {"factor", 2}};
  write(scratch / "bad/config.json", config.dump());
  for (const char* command : {"info ", "generate -p x ", "dump --ids 1 "}) {
    result = run(command + (scratch / "bad").string());
    BOOST_TEST(result.code == 3, result.output);
    has(result.output, {"error: ", "rope_scaling", "yarn"});
  }
}

// A run is stopped and goes on to the same bytes; its checkpoints have the tensors of transformers, and so has what is
// made of them.
BOOST_AUTO_TEST_CASE(runs_resume_and_their_checkpoints_are_folders_of_the_family) {
  struct Case {
    std::vector<std::string> settings, tensors;
  };
  const std::string compose = "model.use_dcmha=true";
  std::vector<Case> cases = {{kLlama, {"model.layers.1.self_attn.k_proj.weight", "lm_head.weight"}},
                             {kNeox, {"gpt_neox.layers.1.attention.query_key_value.bias", "embed_out.weight"}},
                             {kLlama, {"model.layers.0.self_attn.dyn_w_proj.dw1"}}};
  cases.back().settings.push_back(compose);
  for (Case& c : cases) {
    const fs::path out = world().fresh();
    c.settings.emplace_back("checkpoint.interval=5");
    Outcome result = train(out, c.settings);
    BOOST_REQUIRE_MESSAGE(result.code == 0, result.output);
    const std::string whole = weights(step(out, 10));
    for (const std::string& name : c.tensors) BOOST_TEST(names_in(step(out, 10)).contains(name), name);
    fs::remove_all(step(out, 10));
    result = train(out, c.settings);
    BOOST_REQUIRE_MESSAGE(result.code == 0, result.output);
    BOOST_TEST((weights(step(out, 10)) == whole));

    result = run("generate " + out.string() + " --prompt 12 --tokens 4 -t 0");
    BOOST_TEST(result.code == 0, result.output);
    result = run("convert " + out.string() + " -o " + (out / "folder").string() + " --dtype bf16");
    BOOST_TEST(result.code == 0, result.output);
    BOOST_TEST(names_in(out / "folder") == names_in(step(out, 10)));
    const json config = json::parse(slurp(out / "folder/config.json"));
    BOOST_TEST(config["torch_dtype"] == "bfloat16");
    BOOST_TEST(config.contains("use_dcmha") == (c.settings.size() > kLlama.size() + 1));
    result = run("info " + (out / "folder").string());
    BOOST_TEST(result.code == 0, result.output);
  }
}

BOOST_AUTO_TEST_SUITE_END()
