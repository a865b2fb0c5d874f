// Published folders through the real program: info, dump, generate and convert read them by one loader.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "braid/tensor/io/safetensors.h"
#include "tests/apps/faults.h"
#include "tests/apps/support.h"
#include "tests/models/folders/support.h"
#include "tests/support/places.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(convert)

namespace fs = std::filesystem;

namespace {

const std::string kGolden = source_dir() + "/tests/golden/";

std::string dump(const fs::path& folder, const fs::path& out, const std::string& more = "") {
  return "dump " + folder.string() + " --ids " + kGolden + "model_dcformer_lg/golden.safetensors --dtype f64 --out " +
         out.string() + " " + more;
}
Tensor logits(const fs::path& dumped) { return io::SafetensorsFile(dumped.string()).load("logits"); }

}  // namespace

BOOST_AUTO_TEST_CASE(a_folder_in_every_form_at_once) {
  const Scratch scratch;
  FolderData data = golden_folder("model_dcformer_lg");
  const Tensor want = io::SafetensorsFile(kGolden + "model_dcformer_lg/golden.safetensors").load("logits");
  data.separate();
  data.add_copies();
  data.add_identities(DType::f16);
  data.add_caches();
  data.write(scratch / "in", 3);
  Outcome result = run("info " + (scratch / "in").string());
  BOOST_TEST(result.code == 0);
  has(result.output, {"Weights in the folder", "q, k, v separate", "copies of the dynamic weights", "f16, f32"});
  result = run(dump(scratch / "in", scratch / "a.safetensors"));
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(result.output.find("note:") == std::string::npos);
  BOOST_TEST(is_close(logits(scratch / "a.safetensors"), want, 1e-10));

  result = run("convert " + (scratch / "in").string() + " --out " + (scratch / "out").string());
  BOOST_TEST(result.code == 0, result.output);
  has(result.output, {"tensors in", "q, k, v separate"});
  const FolderData back = read_folder(scratch / "out");
  BOOST_TEST(back.tensors.size() == data.tensors.size() - 2);  // without the caches
  for (const auto& [name, x] : back.tensors) BOOST_TEST(test::same_bytes(x, data.tensors.at(name)), name);
  result = run("convert " + (scratch / "in").string() + " --out " + (scratch / "out").string());
  BOOST_TEST(result.code == 0, result.output);
  has(result.output, {"(it was there already)"});
  result = run("convert " + (scratch / "in").string() + " --out " + (scratch / "out").string() + " --dtype f64");
  BOOST_TEST(result.code == 4);
  has(result.output, {"already holds model.safetensors.index.json, which would be replaced"});
  // Somebody else's tokenizer, as in a folder of data, stays.
  fs::create_directories(scratch / "data");
  std::ofstream(scratch / "in" / "tokenizer.json") << "{}";
  std::ofstream(scratch / "data" / "tokenizer.json") << "theirs";
  result = run("convert " + (scratch / "in").string() + " -o " + (scratch / "data").string());
  BOOST_TEST(result.code == 4, result.output);
  has(result.output, {"already holds tokenizer.json, which would be replaced"});
  BOOST_TEST(std::distance(fs::directory_iterator(scratch / "data"), {}) == 1);
  fs::remove(scratch / "in" / "tokenizer.json");

  // Fused and separate again: the same bytes.
  result = run("convert " + (scratch / "in").string() + " -o " + (scratch / "fused").string() + " --qkv fused");
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(read_folder(scratch / "fused").tensors.contains("layers.0.attention.wqkv.weight"));
  result = run("convert " + (scratch / "fused").string() + " -o " + (scratch / "apart").string() + " --qkv separate");
  BOOST_TEST(result.code == 0, result.output);
  const FolderData apart = read_folder(scratch / "apart");
  BOOST_TEST(apart.tensors.size() == back.tensors.size());
  for (const auto& [name, x] : apart.tensors) BOOST_TEST(test::same_bytes(x, back.tensors.at(name)), name);

  result = run("convert " + (scratch / "in").string() + " -o " + (scratch / "half").string() + " --dtype f16");
  BOOST_TEST(result.code == 0, result.output);
  for (const auto& [name, x] : read_folder(scratch / "half").tensors)
    BOOST_TEST(test::same_bytes(x, data.tensors.at(name).to(DType::f16)), name);
}

namespace {

// The files below a folder, hidden ones too, with their bytes.
std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files[entry.path().lexically_relative(folder).string()] = slurp(entry.path());
  return files;
}

// A folder with a model, a tokenizer and a page.
void write_model(const fs::path& folder) {
  golden_folder("model_dcformer_lg").write(folder);
  write(folder / "tokenizer_config.json", "{}");
  write(folder / "README.md", "a model");
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_killed_call_leaves_no_half_and_the_same_call_completes_it) {
  const Scratch scratch;
  write_model(scratch / "in");
  const std::string command = "convert " + (scratch / "in").string() + " -o ";
  BOOST_REQUIRE(run(command + (scratch / "whole").string()).code == 0);
  const auto whole = files_in(scratch / "whole");
  BOOST_REQUIRE(whole.size() == 4u);
  for (const bool there : {false, true}) {  // a target that is there has a file of its own
    const fs::path parent = scratch / (there ? "there" : "new"), out = parent / "out";
    const auto killed_at = [&](const std::string& call, const std::string& part) {
      fs::remove_all(parent);
      fs::create_directories(there ? out : parent);
      if (there) write(out / "notes", "mine");
      BOOST_TEST(run(command + out.string(), fault(call, part, 0, 1, kKilled)).code != 0);
    };
    std::vector<std::pair<std::string, std::string>> points = {{"open", "README.md.tmp-"},
                                                               {"pwrite", "model.safetensors.tmp-"},
                                                               {"rename", "model.safetensors"},
                                                               {"open", "/out/model.safetensors"}};  // complete
    if (there)
      points.insert(points.end(), {{"link", "/model"}, {"link", "/config.json"}, {"unlinkat", "unfinished"}});
    else
      points.emplace_back("rename", "/out");
    for (const auto& [call, part] : points) {
      BOOST_TEST_CONTEXT(call << " of " << part << (there ? ", folder there" : "")) {
        killed_at(call, part);
        if (!there && !fs::exists(out / "config.json")) BOOST_TEST(!fs::exists(out));
        const Outcome again = run(command + out.string());
        BOOST_TEST(again.code == 0, again.output);
        auto files = files_in(out);
        BOOST_TEST(files.erase("notes") == (there ? 1u : 0u));
        BOOST_TEST((files == whole));
        BOOST_TEST(std::distance(fs::directory_iterator(parent), {}) == 1);  // nothing hidden is left
      }
    }
    killed_at(there ? "link" : "rename", there ? "/model" : "/out");  // what is left is in the way of nothing
    BOOST_TEST(run(command + out.string() + " --dtype f64").code == 0);
  }
}

// The folder's own name, too, must outlast a loss of power.
BOOST_AUTO_TEST_CASE(a_new_folder_ends_with_a_sync_of_the_one_around_it) {
  const Scratch scratch;
  golden_folder("model_dcformer_lg").write(scratch / "in", 3);
  const std::string list = (scratch / "fsyncs").string();
  const Outcome result = run("convert " + (scratch / "in").string() + " --out " + (scratch / "out").string(),
                             preload("BRAID_FSYNCS=" + list));
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(slurp(list).ends_with("\n" + (scratch / "out").parent_path().string() + "\n"), slurp(list));
}

BOOST_AUTO_TEST_CASE(an_error_leaves_nothing_and_is_no_absence) {
  const Scratch scratch;
  write_model(scratch / "in");
  const std::string command = "convert " + (scratch / "in").string() + " -o " + (scratch / "out").string();
  for (const auto& [call, part, cause, code] : {std::tuple{"pwrite", "tokenizer_config", ENOSPC, 4},
                                                {"rename", "/config.json", EIO, 4},
                                                {"rename", "/out", EIO, 4},
                                                {"stat", "in/tokenizer_config.json", EIO, 3},
                                                {"stat", "in/README.md", EIO, 3},
                                                {"stat", "in/adapter_config.json", EIO, 3},
                                                {"readdir", "/in", EIO, 3},
                                                {"open", "in/README.md", EMFILE, 3}}) {
    BOOST_TEST_CONTEXT(call << " of " << part) {
      const Outcome result = run(command, fault(call, part, 0, 1, cause));
      BOOST_TEST(result.code == code, result.output);
      BOOST_TEST(std::distance(fs::directory_iterator(scratch.path), {}) == 1);
    }
  }
  const Outcome result = run(command, fault("open", "in/README.md", 0, 1, EINTR));  // repeated
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(files_in(scratch / "out").size() == 4u);
}

BOOST_AUTO_TEST_CASE(profiles_and_keys_on_the_command_line) {
  const Scratch scratch;
  const fs::path folder = kGolden + "model_dcformer_lg";
  BOOST_TEST(run(dump(folder, scratch / "own")).code == 0);
  BOOST_TEST(run(dump(folder, scratch / "t1", "--profile T1")).code == 0);
  BOOST_TEST(run(dump(folder, scratch / "t1exact", "--profile T1 profile.rope_table=exact")).code == 0);
  BOOST_TEST(!is_close(logits(scratch / "t1"), logits(scratch / "own"), 1e-6));
  BOOST_TEST(is_close(logits(scratch / "t1exact"), logits(scratch / "own"), 0));  // the folder is T1 but for the table
  Outcome result = run(dump(folder, scratch / "x", "--profile T2"));
  BOOST_TEST(result.code == 2);
  has(result.output, {"--profile", "T1"});
  result = run(dump(folder, scratch / "x", "profile.gelo=erf"));
  BOOST_TEST(result.code == 2);
  has(result.output, {"did you mean 'profile.gelu'?"});
}

BOOST_AUTO_TEST_CASE(copies_that_differ_are_said) {
  const Scratch scratch;
  FolderData data = golden_folder("model_dcformer_lg");
  data.add_copies();
  data.tensors.at("layers.1.attention.dyn_w_proj.qkw_m").fill(0.125);
  data.write(scratch / "in");
  Outcome result = run(dump(scratch / "in", scratch / "a"));
  BOOST_TEST(result.code == 0);
  has(result.output, {"note: in ", "dw_m, qkw_m of layers 1 differ from dw1, qkw, dd: took the copies"});
  result = run("convert " + (scratch / "in").string() + " -o " + (scratch / "out").string() +
               " profile.dynamic_weights=dw1");
  BOOST_TEST(result.code == 0);
  has(result.output, {"took dw1, qkw, dd"});
  result = run(dump(scratch / "out", scratch / "b"));
  BOOST_TEST(result.output.find("note:") == std::string::npos);
  BOOST_TEST(run(dump(kGolden + "model_dcformer_lg", scratch / "c")).code == 0);
  BOOST_TEST(is_close(logits(scratch / "b"), logits(scratch / "c"), 0));
  BOOST_TEST(!is_close(logits(scratch / "a"), logits(scratch / "c"), 1e-6));
}

// What transformers needs is written; scripts/check_transformers compares what it computes.
BOOST_AUTO_TEST_CASE(a_folder_with_code_for_transformers) {
  const Scratch scratch;
  FolderData data = golden_folder("model_dcformer_lg");
  data.separate();
  data.write(scratch / "in");
  Outcome result = run("convert " + (scratch / "in").string() + " --hf-code -o " + (scratch / "out").string());
  BOOST_REQUIRE_MESSAGE(result.code == 0, result.output);
  const auto config = nlohmann::json::parse(slurp(scratch / "out/config.json"));
  BOOST_TEST(config["auto_map"]["AutoConfig"] == "modeling_dcformer.DcformerConfig");
  BOOST_TEST(config["auto_map"]["AutoModelForCausalLM"] == "modeling_dcformer.DcformerForCausalLM");
  BOOST_TEST(config["architectures"] == nlohmann::json{"DcformerForCausalLM"});
  const std::string code = slurp(scratch / "out/modeling_dcformer.py");
  BOOST_TEST(code == slurp(source_dir() + "/models/families/dcformer/huggingface/modeling_dcformer.py"));
  for (const std::string keys : {"KEYS", "PROFILE"}) {  // the file asks for no key that config.json lacks
    const size_t at = code.find(keys + " = \"\"\"") + keys.size() + 6;
    std::istringstream names(code.substr(at, code.find("\"\"\"", at) - at));
    int count = 0;
    for (std::string name; names >> name; ++count)
      BOOST_TEST((keys == "KEYS" ? config : config["profile"]).contains(name), name);
    BOOST_TEST(count > 10);
  }
  if (std::system("command -v python3 > /dev/null") == 0)
    BOOST_TEST(std::system(("python3 -m py_compile " + (scratch / "out/modeling_dcformer.py").string()).c_str()) == 0);
  for (const auto& [name, x] : read_folder(scratch / "out").tensors)
    BOOST_TEST(name.find(".wq.") == std::string::npos, name);
  BOOST_TEST(run(dump(scratch / "in", scratch / "a")).code == 0);
  BOOST_TEST(run(dump(scratch / "out", scratch / "b")).code == 0);
  BOOST_TEST(is_close(logits(scratch / "a"), logits(scratch / "b"), 0));
  result = run("convert " + kGolden + "hf/llama_sharded --hf-code -o " + (scratch / "no").string());
  BOOST_TEST(result.code == 2);
  has(result.output, {"transformers computes models of type llama itself"});
  BOOST_TEST(!fs::exists(scratch / "no"));
}

BOOST_AUTO_TEST_CASE(bad_folders_end_with_code_3) {
  const Scratch scratch;
  FolderData data = golden_folder("model_dcformer_lg");
  data.tensors["norm.weight"] = zeros({7});
  data.write(scratch / "bad");
  for (const std::string& command :
       {"info " + (scratch / "bad").string(), dump(scratch / "bad", scratch / "out"),
        "generate " + (scratch / "bad").string() + " --prompt x",
        "convert " + (scratch / "bad").string() + " --out " + (scratch / "out").string()}) {
    const Outcome result = run(command);
    BOOST_TEST(result.code == 3, command);
    has(result.output, {"error: ", "norm.weight has shape (7), expected (32)"});
  }
  BOOST_TEST(!fs::exists(scratch / "out"));
  fs::remove(scratch / "bad" / "model.safetensors");
  write(scratch / "bad" / "pytorch_model.bin", "x");
  const Outcome result = run("info " + (scratch / "bad").string());
  BOOST_TEST(result.code == 3);
  has(result.output, {"PyTorch pickle", "weights_only=True"});
}

BOOST_AUTO_TEST_SUITE_END()
