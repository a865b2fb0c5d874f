// Folders and runs of LLaMA and GPT-NeoX through the real program: everything that works for DCFormer works for them.
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "braid/tensor/io/safetensors.h"
#include "tests/apps/train/runs.h"
#include "tests/support/compare.h"
#include "tests/support/places.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(huggingface)

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

const fs::path kFolders = source_dir() + "/tests/golden/hf";

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  const io::TensorFiles files(folder.string());
  for (const io::TensorInfo& info : files.tensors()) names.insert(info.name);
  return names;
}

const std::vector<std::string> kLlama = {"model.model_type=llama", "model.n_kv_head=1"};
const std::vector<std::string> kNeox = {"model.model_type=gpt_neox"};

}  // namespace

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
  result = run("info llama-3.2-1b --json");
  has(result.output, {"\"total\": 1235814400"});
  result = run("convert " + (kFolders / "llama_sharded").string() + " -o " + (scratch / "one").string() +
               " --max-shard-size 0 --dtype f16");
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(fs::exists(scratch / "one/model.safetensors"));
  BOOST_TEST(!fs::exists(scratch / "one/model.safetensors.index.json"));
  result =
      run("convert " + (scratch / "one").string() + " -o " + (scratch / "many").string() + " --max-shard-size 1e-5");
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(fs::exists(scratch / "many/model-00001-of-00003.safetensors"));
  for (const char* size : {"10KB", "0.01MB", "0.00001GB"}) {
    const fs::path same = scratch / size;
    result = run("convert " + (scratch / "one").string() + " -o " + same.string() + " --max-shard-size " + size);
    BOOST_TEST(result.code == 0, result.output);
    BOOST_TEST(slurp(same / "model.safetensors.index.json") == slurp(scratch / "many/model.safetensors.index.json"));
  }
  for (const char* size : {"10kb", "KB", "-1", "5TB", "1e7", "1e10MB", "nanGB"}) {
    result =
        run("convert " + (scratch / "one").string() + " -o " + (scratch / "no").string() + " --max-shard-size=" + size);
    BOOST_TEST(result.code == 2, result.output);
    has(result.output, {"bad value for --max-shard-size", "as 5GB, 500MB, 100KB or 5"});
  }
  BOOST_TEST(names_in(scratch / "many") == names_in(kFolders / "llama_sharded"));
  result = run("bench decode --model " + (kFolders / "gptneox_parallel").string() + " --context 4 --tokens 4");
  BOOST_TEST(result.code == 0, result.output);
  std::string too_long = "1";
  for (int i = 0; i < 64; ++i) too_long += ",1";
  result = run("dump " + (kFolders / "llama_mha_old").string() + " --ids " + too_long + " -o x");
  BOOST_TEST(result.code == 2);
  has(result.output, {"longest sequence of 64 tokens, found 65"});
  json config = json::parse(slurp(kFolders / "llama_mha_old/config.json"));
  config["auto_map"] = {{"AutoModel", "model.Own"}};
  config["own_key"] = 1;
  write(scratch / "code.json", config.dump());
  has(run("info " + (scratch / "code.json").string()).output,
      {"\nNotes\n  ", "names code of its own (auto_map): it is not run", "without effect here: own_key"});

  config["model_type"] = "qwen9";
  write(scratch / "code.json", config.dump());
  has(run("info " + (scratch / "code.json").string()).output,
      {"the model_type in ",
       "is not supported: expected one of dcformer, dcpythia, muddformer, muddpythia, llama, mistral, qwen2, qwen3, "
       "olmo2, gemma2, gemma3_text, gpt_neox, vit, seq2seq, found \"qwen9\""});
  for (const char* command : {"info ", "generate -p x ", "dump --ids 1 ", "convert -o x ", "bench decode --model "}) {
    result = run(command + std::string("Owner/Name-0.5B"));
    BOOST_TEST(result.code == 3, result.output);
    has(result.output, {"no model in Owner/Name-0.5B",
                        "; Braid downloads no models: hf download Owner/Name-0.5B "
                        "--local-dir Name-0.5B does, then name that folder"});
  }
  for (const char* path : {"./Owner/Name", "Owner/deep/Name", "/Owner/Name", "Name"}) {
    result = run(std::string("info ") + path);
    BOOST_TEST(result.output.find("hf download") == std::string::npos, result.output);
  }

  fs::create_directories(scratch / "bad");
  for (const char* file : {"model.safetensors", "config.json"})
    fs::copy_file(kFolders / "llama_mha_old" / file, scratch / "bad" / file);
  config = json::parse(slurp(scratch / "bad/config.json"));
  config["rope_scaling"] = {{"type", "longrope"}, {"factor", 2}};
  write(scratch / "bad/config.json", config.dump());
  for (const char* command : {"info ", "generate -p x ", "dump --ids 1 "}) {
    result = run(command + (scratch / "bad").string());
    BOOST_TEST(result.code == 3, result.output);
    has(result.output, {"error: ", "rope_scaling", "longrope"});
  }
}

// A run is stopped and continues to the same bytes; its checkpoints have the tensors of transformers, and so has what
// is made of them.
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

// A run with LoRA, its adapter in a folder of its own, and both added to the weights by every command.
BOOST_AUTO_TEST_CASE(lora_has_the_layers_of_the_folders) {
  const fs::path origin = world().fresh(), lora = world().fresh();
  BOOST_REQUIRE(train(origin, kLlama).code == 0);
  const auto go_on = [](const fs::path& out, const std::vector<std::string>& more) {
    std::string words;
    for (const std::string& word : settings(out))
      if (!word.starts_with("model.")) words += " '" + word + "'";
    for (const std::string& word : more) words += " '" + word + "'";
    return run(words);
  };
  Outcome result = go_on(
      lora, {"train.init_from=" + origin.string(), "lora.rank=2", "lora.targets=*.wqkv,*.w2", "optimizer.lr=1e-2"});
  BOOST_REQUIRE_MESSAGE(result.code == 0, result.output);
  const fs::path base = lora / "base", apart = lora / "apart", merged = lora / "merged", sum = lora / "sum";
  for (const std::string& words : {origin.string() + " -o " + base.string(), lora.string() + " -o " + merged.string(),
                                   lora.string() + " --adapter -o " + apart.string(),
                                   apart.string() + " --base " + base.string() + " -o " + sum.string()}) {
    result = run("convert " + words);
    BOOST_REQUIRE_MESSAGE(result.code == 0, result.output);
  }
  BOOST_TEST(slurp(sum / "model.safetensors") == slurp(merged / "model.safetensors"));
  BOOST_TEST(slurp(apart / "adapter_model.safetensors") == slurp(step(lora, kSteps) / "adapter_model.safetensors"));
  const io::SafetensorsFile file((apart / "adapter_model.safetensors").string());
  BOOST_TEST(file.tensors().size() == size_t{2 * (6 + 2)});
  BOOST_TEST((file.find("base_model.model.model.layers.1.self_attn.v_proj.lora_B.weight")->shape == Shape{16, 2}));
  has(run("info " + step(lora, kSteps).string()).output, {"\nNotes\n", "LoRA of rank 2 in "});
  has(run("info " + apart.string() + " --json --base " + base.string()).output, {"\"notes\": [\"LoRA of rank 2 in "});
  const std::string flags = " --no-prompt --prompt 12 --tokens 12 -t 0";
  const std::string text = run("generate " + merged.string() + flags).output;
  result = run("generate " + apart.string() + " --base " + base.string() + flags);
  BOOST_TEST(result.output.ends_with(text), result.output);
  // Quantised weights of a GGUF base become values, to which the adapter is added.
  const std::string gguf = (lora / "base.gguf").string();
  BOOST_TEST(run("convert " + base.string() + " --gguf " + gguf + " --type q4_0").code == 0);
  const std::string before = slurp(gguf);
  for (const char* place : {gguf.c_str(), "-"})
    BOOST_TEST(run("convert " + gguf + " --type f16 --gguf " + place).code == 2, "a model is not replaced by another");
  BOOST_TEST((slurp(gguf) == before));
  for (const std::string& words : {"generate " + apart.string() + " --base " + gguf + flags,
                                   "dump " + apart.string() + " --base " + gguf + " --ids 1,2 -o " + gguf + ".dump"}) {
    result = run(words);
    BOOST_TEST(result.code == 0, result.output);
  }
  json config = json::parse(slurp(apart / "adapter_config.json"));
  config["base_model_name_or_path"] = nullptr;
  fs::create_directories(lora / "unnamed");
  fs::copy_file(apart / "adapter_model.safetensors", lora / "unnamed/adapter_model.safetensors");
  write(lora / "unnamed/adapter_config.json", config.dump());
  for (const std::string command : {"generate ", "info "}) {
    result = run(command + (lora / "unnamed").string() + (command == "info " ? "" : flags));
    BOOST_TEST(result.code == 3);
    has(result.output, {"name the folder of that model, as --base or train.init_base"});
  }
  // The adapter names the folder that the run began from, or what --base-name says.
  const auto base_of = [](const fs::path& adapter) {
    return json::parse(slurp(adapter / "adapter_config.json"))["base_model_name_or_path"];
  };
  BOOST_TEST(base_of(apart) == fs::absolute(step(origin, kSteps)).string());
  BOOST_TEST(run("generate " + apart.string() + flags).output.ends_with(text));
  BOOST_TEST(
      run("convert " + lora.string() + " --adapter --base-name meta/base -o " + (lora / "named").string()).code == 0);
  BOOST_TEST(base_of(lora / "named") == "meta/base");
  result = run("convert " + lora.string() + " --base-name meta/base -o " + (lora / "no").string());
  BOOST_TEST(result.code == 2);
  has(result.output, {"expected --adapter beside it"});

  // q and v alone, by the names of the files.
  const fs::path some = world().fresh();
  result = go_on(
      some, {"train.init_from=" + base.string(), "lora.rank=2", "lora.targets=q_proj,v_proj", "optimizer.lr=1e-2"});
  BOOST_REQUIRE_MESSAGE(result.code == 0, result.output);
  result = run("convert " + some.string() + " --adapter -o " + (some / "apart").string());
  BOOST_REQUIRE_MESSAGE(result.code == 0, result.output);
  BOOST_TEST(run("convert " + some.string() + " -o " + (some / "merged").string()).code == 0);
  BOOST_TEST(run("convert " + (some / "apart").string() + " -o " + (some / "sum").string()).code == 0);
  BOOST_TEST(slurp(some / "sum/model.safetensors") == slurp(some / "merged/model.safetensors"));
  BOOST_TEST(slurp(some / "sum/model.safetensors") != slurp(base / "model.safetensors"));
  const io::SafetensorsFile few((some / "apart/adapter_model.safetensors").string());
  BOOST_TEST(few.tensors().size() == size_t{2 * 2 * 2});
  for (const io::TensorInfo& info : few.tensors())
    BOOST_TEST((info.name.find("q_proj") != std::string::npos || info.name.find("v_proj") != std::string::npos));
  result = go_on(world().fresh(), {"train.init_from=" + base.string(), "lora.rank=2", "lora.targets=q_prj"});
  BOOST_TEST(result.code == 2);
  const Outcome named = go_on(world().fresh(), {"train.init_from=Owner/Name"});
  BOOST_TEST(named.code == 3);
  has(named.output, {"no model in Owner/Name", "hf download Owner/Name --local-dir Name does"});
  has(result.output, {"is called 'q_prj'; did you mean 'q_proj'?", "layers.*.attention.wqkv", "gate_proj"});

  const fs::path from_sum = world().fresh(), from_both = world().fresh();
  BOOST_REQUIRE(go_on(from_sum, {"train.init_from=" + sum.string()}).code == 0);
  result = go_on(from_both, {"train.init_from=" + apart.string(), "train.init_base=" + base.string()});
  BOOST_REQUIRE_MESSAGE(result.code == 0, result.output);
  BOOST_TEST((weights(step(from_both, kSteps)) == weights(step(from_sum, kSteps))));
  BOOST_TEST(run("train run.out=x data.path=y train.init_base=z").code == 2);

  result = run("tokenize " + origin.string() + " '12'");  // by its newest checkpoint
  BOOST_TEST(result.code == 0);
  BOOST_TEST(result.output == run("tokenize " + step(origin, kSteps).string() + " '12'").output);
}

BOOST_AUTO_TEST_SUITE_END()
