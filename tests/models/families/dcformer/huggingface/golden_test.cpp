// Folders of LLaMA, Mistral, Qwen, OLMo2, Gemma and GPT-NeoX written by transformers, against its results: values,
// gradients, decoding. Gradients are compared under the names on disk, so a row of q, k or v in the wrong place fails
// here too.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <set>

#include "braid/autograd.h"
#include "braid/models/folders/folder.h"
#include "braid/models/folders/pretrained.h"
#include "braid/tensor/io/safetensors.h"
#include "tests/models/support.h"
#include "tests/support/compare.h"
#include "tests/support/golden.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(huggingface_golden)

namespace fs = std::filesystem;

namespace {

const std::string kFolders = kGolden + "hf/";
const char* const kCases[] = {"gptneox_parallel",   "gptneox_pythia_old", "gptneox_sequential", "llama_bf16",
                              "llama_bias_headdim", "llama_gqa_tied",     "llama_mha_old",      "llama_rope_linear_old",
                              "llama_rope_llama3",  "llama_sharded",      "mistral_window",     "qwen2_window",
                              "qwen3_tied",         "olmo2_gqa",          "gemma2_softcaps",    "gemma3_windows"};

// Results that are there for other comparisons.
bool is_of_other_arithmetic(const std::string& name) {
  return name == "logits_f32" || name == "logits_bf16" || name == "rope.inv_freq" || name == "logits_rope_f32";
}

models::LanguageModel& language_model(const models::LoadedModel& loaded) {
  return dynamic_cast<models::LanguageModel&>(*loaded.model);
}

Tensor logits_of_folder(const std::string& name, DType dtype, const models::SettingTexts& settings = {}) {
  NoGrad off;
  const models::LoadedModel loaded = models::load_model(kFolders + name, {.dtype = dtype, .settings = settings});
  const io::SafetensorsFile golden(kFolders + name + "/golden.safetensors");
  const models::LanguageModel& model = language_model(loaded);
  return model.logits(model.hidden(golden.load("input_ids")));
}

Tensor expected(const std::string& name, const std::string& tensor) {
  return io::SafetensorsFile(kFolders + name + "/golden.safetensors").load(tensor);
}

}  // namespace

BOOST_AUTO_TEST_CASE(values_gradients_and_decoding) {
  for (const char* name : kCases) {
    const io::SafetensorsFile want(kFolders + name + "/golden.safetensors");
    for (const auto& [dtype, tolerance, of_gradients] :
         {std::tuple{DType::f64, 1e-10, 1e-10}, {DType::f32, 2e-5, 1e-4}}) {
      BOOST_TEST_CONTEXT(name << " " << str(dtype)) {
        models::LoadedModel loaded = models::load_model(kFolders + name, {.dtype = dtype});
        const models::LanguageModel& model = language_model(loaded);
        const auto spec = model.spec();
        nn::require_grad(*loaded.model);
        int seen = 0;
        const nn::ActivationObserver observer{[&, tolerance = tolerance](const std::string& what, const Tensor& x) {
          compare_golden(want, what, x, tolerance, seen);
        }};
        const Tensor logits = model.logits(model.hidden(want.load("input_ids"), nullptr, &observer));
        const Tensor loss = cross_entropy(logits, want.load("targets"));
        compare_golden(want, "logits", logits, tolerance, seen);
        compare_golden(want, "loss", loss.detach().reshaped({1}), tolerance, seen);
        backward(loss);
        for (const nn::NamedTensor& p : nn::parameters(*loaded.model)) {
          BOOST_REQUIRE(bool(grad(p.value)));
          for (const nn::NamedTensor& t :
               models::split_stored(spec->folder().stored(p.name, p.value.shape()), grad(p.value)))
            compare_golden(want, "grad." + t.name, t.value, of_gradients, seen);
        }
        NoGrad off;
        Tensor ids = want.load("decode.prompt_ids");
        models::KvCache cache = model.make_cache(ids.dim(1) + 20);
        std::vector<Tensor> tokens, steps;
        for (int64_t s = 0; s < 20; ++s) {
          const Tensor h = model.hidden(ids, &cache);
          steps.push_back(model.logits(contiguous(h.sliced(1, h.dim(1) - 1, h.dim(1)))));
          tokens.push_back(ids = argmax(steps.back()));
        }
        compare_golden(want, "decode.tokens", concat(tokens, 1), 0, seen);
        compare_golden(want, "decode.logits", concat(steps, 1), tolerance, seen);
        int others = 0;
        for (const io::TensorInfo& info : want.tensors()) others += is_of_other_arithmetic(info.name);
        BOOST_TEST(seen == golden_results(want) - others);  // nothing of the file was left out
      }
    }
  }
}

// Sharp attention over 1100 positions: the type of the rotary table shows. Models of these families have the exact one
// in f64 arithmetic, and that of the software they were trained with, f32, in all other.
BOOST_AUTO_TEST_CASE(the_rotary_table_of_long_sequences) {
  const Tensor exact = expected("llama_long", "logits"), table_f32 = expected("llama_long", "logits_rope_f32");
  BOOST_TEST(is_close(logits_of_folder("llama_long", DType::f64), exact, 1e-10));
  BOOST_TEST(is_close(logits_of_folder("llama_long", DType::f64, {{"profile.rope_table", "f32"}}), table_f32, 2e-5));
  const Tensor f32 = logits_of_folder("llama_long", DType::f32);
  BOOST_TEST(is_close(f32, table_f32, 6e-5));
  BOOST_TEST(!is_close(f32, exact, 6e-5));
  BOOST_TEST(!is_close(logits_of_folder("llama_long", DType::f32, {{"profile.rope_table", "exact"}}), table_f32, 6e-5));
}

BOOST_AUTO_TEST_CASE(logits_of_transformers_itself) {
  for (const char* name : kCases) BOOST_TEST_CONTEXT(name)
  BOOST_TEST(is_close(logits_of_folder(name, DType::f32), expected(name, "logits_f32"), 2e-5));
  BOOST_TEST(is_close(logits_of_folder("llama_bf16", DType::bf16), expected("llama_bf16", "logits_bf16"), 0.05));
}

// A setting without a parameter changes the results: the cases tell it from its default.
BOOST_AUTO_TEST_CASE(settings_of_gemma_count) {
  for (const auto& [name, setting, value] : {std::tuple{"gemma2_softcaps", "attention_softcap", "0"},
                                             {"gemma2_softcaps", "logit_softcap", "0"},
                                             {"gemma2_softcaps", "norm_offset", "false"},
                                             {"gemma2_softcaps", "scale_embeddings", "false"},
                                             {"gemma2_softcaps", "score_dim", "null"},
                                             {"gemma2_softcaps", "hidden_act", "gelu"},
                                             {"gemma3_windows", "rope_local_base", "null"},
                                             {"gemma3_windows", "rope_scaling", "none"},
                                             {"gemma3_windows", "profile.layer_windows", "6,6,6"}})
    BOOST_TEST(!is_close(logits_of_folder(name, DType::f64, {{setting, value}}), expected(name, "logits"), 1e-5),
               name << " " << setting);
}

BOOST_AUTO_TEST_CASE(no_case_is_left_out) {
  std::set<std::string> there, tested(std::begin(kCases), std::end(kCases));
  tested.insert("llama_long");
  for (const auto& entry : fs::directory_iterator(kFolders)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && !name.starts_with("vit")) there.insert(name);
  }
  BOOST_TEST(there == tested, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
