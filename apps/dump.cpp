// braid dump: results of a language model as named tensors, to compare with any other implementation.
#include <cstdio>
#include <filesystem>

#include "apps/cli/commands.h"
#include "apps/cli/model_flags.h"
#include "apps/cli/text.h"
#include "braid/autograd/autograd.h"
#include "braid/models/attention_case.h"
#include "braid/models/language_model.h"
#include "braid/models/pretrained/pretrained.h"
#include "braid/tensor/io/reader.h"
#include "braid/tensor/io/safetensors.h"

namespace braid::apps {
namespace {

namespace fs = std::filesystem;
using io::NamedTensors;

// --- a model: logits, loss, hidden states, gradients, greedy decoding ---

// Targets that are the next tokens, none for the last.
Tensor next_tokens(const Tensor& ids) {
  Tensor targets = full(ids.shape(), -100, DType::i64);
  int64_t T = ids.dim(1);
  if (T > 1) targets.sliced(1, 0, T - 1).copy_(ids.sliced(1, 1, T));
  return targets;
}

void dump_full_pass(models::LanguageModel& model, const Tensor& ids, const Tensor& targets, bool with_grad,
                    NamedTensors& out) {
  nn::ActivationObserver observer = [&](const std::string& name, const Tensor& value) {
    out.emplace_back(name, value.detach());
  };
  if (!with_grad) nn::freeze(model);  // records nothing, keeps nothing for a backward pass
  Tensor logits = model.logits(model.hidden(ids, nullptr, &observer));
  Tensor loss = cross_entropy(logits, targets);
  out.emplace_back("logits", logits.detach());
  out.emplace_back("loss", loss.detach().reshaped({1}));
  if (!with_grad) return;
  backward(loss);
  for (const nn::NamedTensor& p : nn::parameters(model)) {
    out.emplace_back("grad." + p.name, grad(p.value) ? grad(p.value) : zeros_like(p.value));
  }
}

// `steps` greedy tokens after the prompt (B, P); row s of decode.logits is what token s is the arg-max of.
void dump_decode(const models::LanguageModel& model, const Tensor& prompt, int64_t steps, NamedTensors& out) {
  NoGrad off;
  models::KvCache cache = model.make_cache(prompt.dim(1) + steps);
  std::vector<Tensor> tokens, logits;
  Tensor ids = prompt;
  for (int64_t s = 0; s < steps; ++s) {
    Tensor h = model.hidden(ids, &cache);
    Tensor last = model.logits(contiguous(h.sliced(1, h.dim(1) - 1, h.dim(1))));  // (B, 1, V)
    ids = argmax(last);                                                           // (B, 1)
    logits.push_back(last);
    tokens.push_back(ids);
  }
  out.emplace_back("decode.prompt_ids", prompt.to(DType::i64));
  out.emplace_back("decode.tokens", concat(tokens, 1));
  out.emplace_back("decode.logits", concat(logits, 1));
}

NamedTensors dump_model(const Arguments& arguments, const fs::path& folder, DType dtype, Device device) {
  check(arguments.has("ids"), ErrorKind::setting,
        [] { return std::string("--ids is missing: expected a safetensors file with input_ids (B, T)"); });
  models::LoadedModel loaded =
      models::load_model(folder, {.dtype = dtype, .settings = model_keys(arguments), .tokenizer = false});
  const auto model = models::as_language_model(std::move(loaded.model));
  model->to(device);
  print_notes(loaded.notes);
  io::SafetensorsFile file(arguments.get("ids"));
  Tensor ids = file.load("input_ids");
  check(ids.rank() == 2 && is_index(ids.dtype()), ErrorKind::input, [&] {
    return "input_ids in " + file.path() + " must be (B, T) integers, found " + str(ids.dtype()) + " " +
           str(ids.shape());
  });
  Tensor targets = file.find("targets") ? file.load("targets") : next_tokens(ids.to(DType::i64));
  check(targets.shape() == ids.shape() && is_index(targets.dtype()), ErrorKind::input, [&] {
    return "targets in " + file.path() + " must be integers of shape " + str(ids.shape()) + ", found " +
           str(targets.dtype()) + " " + str(targets.shape());
  });
  NamedTensors out{{"input_ids", ids}, {"targets", targets}};
  dump_full_pass(*model, ids.to(device), targets.to(device), arguments.has("grad"), out);
  if (arguments.has("decode")) {
    std::vector<std::string> counts = arguments.list("decode");
    int64_t P = *parse_int(counts.at(0)), N = *parse_int(counts.at(1)), T = ids.dim(1);
    Tensor prompt = file.find("decode.prompt_ids") ? file.load("decode.prompt_ids") : Tensor();
    check(prompt || P <= T, ErrorKind::setting, [&] {
      return "--decode P N: expected P from 1 to the " + std::to_string(T) + " ids of a row in " + file.path() +
             ", found " + std::to_string(P);
    });
    if (!prompt) prompt = ids.sliced(1, 0, P).clone();
    const int64_t longest = model->max_sequence_length();
    check(N <= longest - prompt.dim(1), ErrorKind::setting, [&] {
      return "--decode P N: expected at most the model's longest sequence of " + std::to_string(longest) +
             " tokens in all, found " + std::to_string(prompt.dim(1)) + " + " + std::to_string(N);
    });
    dump_decode(*model, prompt.to(device), N, out);
  }
  return out;
}

// --- an attention alone: inputs.safetensors -> output and gradients ---

NamedTensors dump_attention(const fs::path& folder, const DcmhaOptions& options, DType dtype, Device device,
                            bool with_grad) {
  io::SafetensorsFile file((folder / "inputs.safetensors").string());
  std::vector<std::pair<std::string, Tensor>> leaves;
  auto input = [&](const std::string& name) {
    if (!file.find(name)) return Tensor();
    Tensor x = file.load(name).to(dtype).to(device).clone();
    if (with_grad) require_grad(x);
    leaves.emplace_back(name, x);
    return x;
  };
  auto stage = [&](const std::string& s) {
    return HeadMixing{input(s + ".w"),   input(s + ".qw1"), input(s + ".qw2"), input(s + ".kw1"),
                      input(s + ".kw2"), input(s + ".qdd"), input(s + ".kdd")};
  };
  Tensor q = input("q"), k = input("k"), v = input("v");
  check(q && k && v, ErrorKind::input, [&] { return "q, k or v is missing in " + file.path(); });
  HeadMixing pre = stage("pre"), post = stage("post");
  Tensor y = dcmha(q, k, v, pre, post, options);
  NamedTensors out{{"out", y.detach()}};
  if (with_grad) {
    Tensor dout = file.find("dout") ? file.load("dout").to(dtype).to(device) : full(y.shape(), 1, dtype, device);
    backward(y, dout);
    for (const auto& [name, x] : leaves) out.emplace_back("grad." + name, grad(x) ? grad(x) : zeros_like(x));
  }
  return out;
}

int run_dump(const Arguments& arguments) {
  const DType dtype = *dtype_of(arguments);
  const Device device = device_of(arguments);
  fs::path folder = model_folder(arguments);
  const std::string file = (folder / "config.json").string(), config = io::read_text_file(file, 1 << 20);
  const bool grad = arguments.has("grad");
  NamedTensors out;
  if (const auto options = models::read_attention_options(config, file, model_keys(arguments))) {
    out = dump_attention(folder, *options, dtype, device, grad);
  } else {
    out = dump_model(arguments, folder, dtype, device);
  }
  io::save_safetensors(arguments.get("out"), out);
  std::printf("%zu tensors in %s\n", out.size(), arguments.get("out").c_str());
  return 0;
}

}  // namespace

Command dump_command() {
  return {
      .name = "dump",
      .summary = "logits, loss, hidden states and gradients as named tensors",
      .positionals =
          {{.name = "MODEL",
            .help = "model folder, run folder, RUN/best, or a folder of kind attention with inputs.safetensors"}},
      .flags = {{.name = "ids",
                 .value = "FILE",
                 .help = "safetensors with input_ids (B, T) and optional targets (-100: not counted)"},
                {.name = "out",
                 .alias = 'o',
                 .value = "FILE",
                 .help = "safetensors to write",
                 .fallback = "dump.safetensors"},
                dtype_flag("arithmetic"),
                device_flag(),
                profile_flag(),
                {.name = "grad", .help = "also the gradient of the loss, for every parameter or input"},
                integer_flag("decode", "P N",
                             "N greedy steps after the first P ids, or after decode.prompt_ids of the file", "", 1)},
      .overrides = kModelOverrides,
      .examples = {"braid dump out/demo --ids ids.safetensors --out dump.safetensors --dtype f64 --grad --decode 8 12"},
      .run = run_dump,
  };
}

}  // namespace braid::apps
