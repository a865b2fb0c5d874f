// Runs that continue from the weights of a folder: as the same model, as a DCFormer, with frozen parameters, with LoRA.
#include <nlohmann/json.hpp>

#include "braid/models/folders/adapter.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/safetensors.h"
#include "tests/apps/faults.h"
#include "tests/apps/train/finished_run.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(init_from)

namespace fs = std::filesystem;

namespace {

// A run of a plain Transformer.
const fs::path& transformer() {
  static const fs::path out = finished_run([](const fs::path& path) { return train(path, {"model.use_dcmha=false"}); });
  return out;
}

// Settings of a run that continues from it, without those of the model.
std::vector<std::string> further(const fs::path& out, const std::vector<std::string>& more = {}) {
  std::vector<std::string> all;
  for (const std::string& text : settings(out))
    if (!text.starts_with("model.")) all.push_back(text);
  all.push_back("train.init_from=" + transformer().string());
  all.push_back("optimizer.lr=1e-3");
  all.insert(all.end(), more.begin(), more.end());
  return all;
}
Outcome go_on(const fs::path& out, const std::vector<std::string>& more = {}) {
  std::string words;
  for (const std::string& word : further(out, more)) words += " '" + word + "'";
  return run(words);
}

double first_loss(const fs::path& out) { return apps::read_log(out).front()["loss"]; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_run_goes_on_as_a_dcformer_and_resumes_without_the_folder) {
  const fs::path out = world().fresh(), whole = world().fresh(), plain = world().fresh(), copy = world().fresh();
  const std::vector<std::string> upcycle = {"model.use_dcmha=true", "model.compose_init=identity", "train.dtype=f64"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), upcycle.begin(), upcycle.end());
    return more;
  };
  Outcome result = go_on(whole, upcycle);
  BOOST_REQUIRE(result.code == 0);
  BOOST_TEST(has(result, "weights of: " + step(transformer(), kSteps).string() + ", a model of type dcformer"));
  BOOST_TEST(has(result, "new weights: 6 tensors with "));
  BOOST_TEST(has(result, "layers.*.attention.dyn_w_proj.dw1"));
  BOOST_REQUIRE(go_on(plain, {"train.dtype=f64"}).code == 0);
  BOOST_TEST(first_loss(whole) == first_loss(plain));
  BOOST_TEST(apps::read_log(whole).back()["loss"] != apps::read_log(plain).back()["loss"]);

  fs::copy(transformer(), copy, fs::copy_options::recursive);
  const std::string from = "train.init_from=" + copy.string();
  BOOST_REQUIRE(go_on(out, with({from, "train.steps=5", "schedule.name=constant"})).code == 0);
  fs::remove_all(copy);
  result = go_on(out, with({from, "schedule.name=constant"}));
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(has(result, "resuming from " + step(out, 5).string()));
  BOOST_TEST(!has(result, "new weights"));
  const fs::path straight = world().fresh();
  BOOST_REQUIRE(go_on(straight, with({"schedule.name=constant"})).code == 0);
  check_same(out, straight);
  fs::resize_file(step(out, kSteps) / "config.json", 10);
  result = go_on(out, with({from, "schedule.name=constant"}));
  BOOST_TEST(result.code == 0, result.output);
  BOOST_TEST(has(result, "is damaged and was passed over"));
  check_same(out, straight);

  BOOST_TEST(slurp(out / "config.resolved.toml").find("init_from = \"" + copy.string()) != std::string::npos);
  BOOST_TEST(io::read_json_file((out / "status.json").string())["init_from"] == copy.string());
  BOOST_TEST(has(run("status --json " + out.string()), "\"init_from\":\"" + copy.string()));
  const fs::path again = world().fresh();  // the settings alone repeat the run
  BOOST_REQUIRE(run("train " + (whole / "config.resolved.toml").string() + " run.out=" + again.string()).code == 0);
  check_same(again, whole);
}

BOOST_AUTO_TEST_CASE(several_processes_and_mixed_precision_start_from_the_same_weights) {
  const fs::path one = world().fresh(), mixed = world().fresh();
  const std::vector<std::string> upcycle = {"model.use_dcmha=true", "model.compose_init=identity"};
  BOOST_REQUIRE(go_on(one, upcycle).code == 0);
  std::vector<std::string> bf16 = upcycle;
  bf16.emplace_back("train.dtype=bf16");
  BOOST_REQUIRE(go_on(mixed, bf16).code == 0);
  BOOST_TEST(std::fabs(first_loss(mixed) - first_loss(one)) < 0.02);
}

BOOST_AUTO_TEST_CASE(a_dry_run_says_what_is_new_and_what_is_trained) {
  const fs::path out = world().fresh();
  const std::vector<std::string> groups = {
      "model.use_dcmha=true", "optimizer.groups=* frozen_until=5, *.dyn_w_proj.* trained lr=10, norm.* frozen",
      "--dry-run"};
  const Outcome result = go_on(out, groups);
  BOOST_TEST(result.code == 0, result.output);
  for (const char* words : {"start\n", "new weights                        6 tensors with ", "FLOPs that they add",
                            "trained parameters\n", "frozen until step 5 ", "trained, lr x 10 ", "  frozen  "})
    BOOST_TEST(has(result, words), words << " in " << result.output);
  BOOST_TEST(!fs::exists(out));
  const Outcome tails = go_on(out, {"schedule.name=wsd", "optimizer.groups=norm.* tail=1-sqrt", "--dry-run"});
  BOOST_TEST(has(tails, "trained, tail 1-sqrt "), tails.output);
  const Outcome printed = go_on(out, {groups[0], groups[1], "--print-config"});
  BOOST_TEST(has(printed, "# trained, lr x 10: "), printed.output);
  BOOST_TEST(has(printed, "groups = [\"* frozen_until=5\", \"*.dyn_w_proj.* trained lr=10\", \"norm.* frozen\"]"));
}

BOOST_AUTO_TEST_CASE(what_cannot_go_on_is_an_error_before_anything_is_written) {
  const fs::path out = world().fresh();
  const auto fails = [&](const std::vector<std::string>& more, int code, const std::string& words) {
    check_failure(go_on(out, more), code, words);
    BOOST_TEST(!fs::exists(out));
  };
  fails({"model.dim=64"}, 2, "expected model.dim = 32, found 64");
  fails({"train.init_from=" + (world().scratch / "nowhere").string()}, 3, "no model in");
  fails({"optimizer.groups=*.dyn_w_pro.* lr=2"}, 2, "optimizer.groups: no name matches '*.dyn_w_pro.*'");
  fails({"optimizer.groups=* frozen"}, 2, "every parameter is frozen in the first step");
  fails({"optimizer.groups=* forzen"}, 2, "has the unexpected 'forzen'");
  fails({"optimizer.groups=norm.* tail=cosine"}, 2,
        "optimizer.groups: 'norm.* tail=cosine' names a tail of wsd: expected schedule.name = wsd, found ");
  fails({"lora.rank=2", "lora.targets=*.q_proj"}, 2,
        "lora.targets: no linear layer that can have LoRA is called '*.q_proj'");
  check_failure(train(out, {"lora.rank=2"}), 2, "lora.rank needs trained weights");

  write(world().scratch / "other.txt", std::string(4000, 'a') + "\n" + std::string(4000, 'b'));
  const std::string other = (world().scratch / "other-data").string();
  const fs::path model = world().scratch / "other-tokenizer";
  fs::copy(step(transformer(), kSteps), model);
  std::string tokenizer = slurp(model / "tokenizer.json");
  const size_t at = tokenizer.find("<|pad|>");
  BOOST_REQUIRE(at != std::string::npos);
  for (size_t i = at; i != std::string::npos; i = tokenizer.find("<|pad|>", i)) tokenizer.replace(i, 7, "<|gap|>");
  write(model / "tokenizer.json", tokenizer);
  check_failure(go_on(out, {"train.init_from=" + model.string()}), 2, "have other tokens than the model in");
}

BOOST_AUTO_TEST_CASE(lora_trains_resumes_and_is_merged_or_kept_apart) {
  const fs::path whole = world().fresh(), out = world().fresh();
  const std::vector<std::string> lora = {"lora.rank=2", "lora.targets=*.wqkv,*.w2", "schedule.name=constant",
                                         "optimizer.lr=1e-2"};
  const auto with = [&](const std::string& more) {
    std::vector<std::string> all = lora;
    all.push_back(more);
    return all;
  };
  const Outcome result = go_on(whole, lora);
  BOOST_REQUIRE(result.code == 0);
  BOOST_TEST(has(result, "LoRA of rank 2: 4 layers, "), result.output);
  BOOST_TEST(has(result, "\nfrozen: "), result.output);
  BOOST_REQUIRE(go_on(out, with("train.steps=5")).code == 0);
  check_failure(go_on(out, with("lora.alpha=3")), 2, "LoRA differs from the run in");
  BOOST_REQUIRE(go_on(out, lora).code == 0);
  check_same(out, whole);
  const fs::path checkpoint = step(out, kSteps);
  BOOST_TEST(slurp(checkpoint / models::kAdapterFile) == slurp(step(whole, kSteps) / models::kAdapterFile));
  BOOST_TEST(slurp(checkpoint / "model.safetensors") == slurp(step(transformer(), kSteps) / "model.safetensors"));
  const io::SafetensorsFile moments((checkpoint / "trainer/optimizer.safetensors").string());
  BOOST_TEST(moments.tensors().size() == 1u + 2 * 8);

  const std::string merged = (world().scratch / "merged").string(), apart = (world().scratch / "apart").string();
  const Outcome convert = run("convert " + out.string() + " -o " + merged);
  BOOST_TEST(convert.code == 0, convert.output);
  BOOST_TEST(has(convert, "note: merged LoRA of rank 2 into 4 weights"), convert.output);
  BOOST_TEST(slurp(merged + "/model.safetensors") != slurp(checkpoint / "model.safetensors"));
  const std::string prompt = " --prompt 12 --tokens 20 --temperature 0";
  const Outcome text = run("generate " + merged + prompt);
  BOOST_TEST(run("generate " + out.string() + prompt).output.ends_with("\n" + text.output), text.output);
  BOOST_TEST(run("convert " + out.string() + " --adapter -o " + apart).code == 0);
  BOOST_TEST(slurp(apart + "/adapter_model.safetensors") == slurp(checkpoint / models::kAdapterFile));
  BOOST_TEST(run("convert " + out.string() + " --adapter -o " + apart).code == 0);  // again
  check_failure(run("convert " + out.string() + " -o " + apart), 4, "already holds LoRA, which would be added");
  check_failure(run("convert " + out.string() + " --adapter -o " + merged), 4, "already holds a model");
  const std::string killed = apart + "3", adapter = "convert " + out.string() + " --adapter -o " + killed;
  for (const char* part : {"adapter_model.safetensors", "adapter_config.json", "/apart3"}) {
    BOOST_TEST(run(adapter, fault("rename", part, 0, 1, kKilled)).code != 0);
    BOOST_TEST(!std::filesystem::exists(killed));
    BOOST_TEST(run(adapter).code == 0);
    BOOST_TEST(slurp(killed + "/adapter_model.safetensors") == slurp(apart + "/adapter_model.safetensors"));
    std::filesystem::remove_all(killed);
  }
  check_failure(run("convert " + merged + " --adapter -o " + apart + "2"), 3, "has no LoRA");
}

BOOST_AUTO_TEST_SUITE_END()
