// braid dump: results of a model as named tensors, to compare with any other implementation. The names are
// listed in names.md.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <set>

#include "apps/cli/commands.h"
#include "apps/cli/model_flags.h"
#include "apps/cli/output_name.h"
#include "apps/cli/prompt.h"
#include "apps/cli/text.h"
#include "apps/cli/text_model.h"
#include "apps/dump/attention_folder.h"
#include "apps/dump/gradients.h"
#include "apps/dump/ids.h"
#include "apps/dump/images.h"
#include "braid/autograd.h"
#include "braid/models/cost/size.h"
#include "braid/models/folders/gguf/gguf_folder.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/inspect/capture.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps {
namespace {

namespace fs = std::filesystem;
using io::NamedTensors;

constexpr const char* kAllLayers = "all";

// The layers of --attention.
std::set<int64_t> requested_maps(const Arguments& arguments, const models::Model& model) {
  std::set<int64_t> layers;
  if (!arguments.has("attention")) return layers;
  const auto* language = dynamic_cast<const models::LanguageModel*>(&model);
  const int64_t L = language ? std::ssize(language->make_cache(1).layers) : models::model_size(*model.spec()).layers;
  check(L > 0, ErrorKind::setting,
        [&] { return "--attention: a model of type " + model.spec()->model_type() + " has no layers of attention"; });
  if (arguments.get("attention") == kAllLayers) {
    for (int64_t i = 0; i < L; ++i) layers.insert(i);
    return layers;
  }
  for (const std::string& item : split(arguments.get("attention"), ',')) {
    const auto i = parse_int(trim(item));
    check(i && *i < L, ErrorKind::setting,
          [&] { return str("--attention: expected layers from 0 to ", L - 1, ", found '", preview(item), "'"); });
    layers.insert(*i);
  }
  return layers;
}

void dump_full_pass(models::LanguageModel& model, const Tensor& ids, const Tensor& targets, bool with_grad,
                    const std::set<int64_t>& maps, NamedTensors& out) {
  if (!with_grad) nn::freeze(model);  // records nothing, keeps nothing for a backward pass
  models::Capture seen = models::capture(model, ids, {.maps = [&](int64_t i) { return maps.contains(i); }});
  std::ranges::move(seen.tensors, std::back_inserter(out));
  const Tensor logits = model.logits(seen.out);
  const Tensor loss = cross_entropy(logits, targets);
  out.emplace_back("logits", logits.detach());
  out.emplace_back("loss", loss.detach().reshaped({1}));
  if (!with_grad) return;
  add_gradients(model, loss, out);
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
  check_one_source(arguments);
  const bool text = ids_from_text(arguments);
  models::LoadedModel loaded = models::load_model(
      folder, {.dtype = dtype, .settings = model_keys(arguments), .tokenizer = text, .base = base_of(arguments)});
  print_notes(loaded.notes);
  if (auto* images = dynamic_cast<models::ImageModel*>(loaded.model.get())) {
    images->to(device);
    return dump_images(arguments, *images, device, requested_maps(arguments, *images));
  }
  const auto model = models::as_language_model(std::move(loaded.model));
  if (text) check_tokenizer(loaded.tokenizer.get(), folder, "give --ids");
  const DumpIds in = read_ids(arguments, *model, loaded.tokenizer.get());
  const std::set<int64_t> maps = requested_maps(arguments, *model);
  model->to(device);
  NamedTensors out{{"input_ids", in.ids}, {"targets", in.targets}};
  dump_full_pass(*model, in.ids.to(device), in.targets.to(device), arguments.has("grad"), maps, out);
  if (in.decode_steps > 0) dump_decode(*model, in.decode_prompt.to(device), in.decode_steps, out);
  return out;
}

// The dump must not replace what it is made from: a file of the model folder, or the file of --ids or --text.
void check_output_file(const Arguments& arguments, const fs::path& folder) {
  const fs::path out = arguments.get("out");
  check_output_name("--out", out.string(), {arguments.get("ids"), arguments.get("text")});
  const fs::path parent = out.has_parent_path() ? out.parent_path() : fs::path(".");
  const bool of_model = io::exists(out) && (io::is_same(parent, folder) || io::is_same(out, folder));
  check(!of_model, ErrorKind::setting,
        [&] { return "--out would replace " + out.string() + ", which the dump is made from: expected another file"; });
}

// "; loss 3.2141 of 4 tokens" where the dump has one.
std::string loss_text(const NamedTensors& dump) {
  const auto find = [&](const char* name) { return std::ranges::find(dump, name, &NamedTensor::name); };
  const bool images = find("pixel_values") != dump.end();
  const auto loss = find("loss"), targets = find(images ? "labels" : "targets");
  if (loss == dump.end() || targets == dump.end()) return "";
  const std::vector<int64_t> ids = targets->value.to(DType::i64).to_vector<int64_t>();
  const auto counted = std::ranges::count_if(ids, [](int64_t id) { return id >= 0; });
  if (counted == 0) return "; no loss, because no token has a next one to predict";
  char text[64];
  std::snprintf(text, sizeof text, "; loss %.4f of %lld %s", loss->value.to(DType::f64).item(),
                static_cast<long long>(counted), images ? "images" : "tokens");
  return text;
}

int run_dump(const Arguments& arguments) {
  const DType dtype = *dtype_of(arguments);
  const Device device = device_of(arguments);
  const fs::path folder = model_folder(arguments.get("MODEL"));
  check_output_file(arguments, folder);
  std::optional<models::AttentionFolder> attention;
  if (const fs::path base = models::base_folder(folder, base_of(arguments)); !models::is_gguf(base)) {
    const std::string file = (base / "config.json").string();
    attention = models::read_attention_folder(io::read_text_file(file, 1 << 20), file, model_keys(arguments));
  }
  const NamedTensors out = attention ? dump_attention(arguments, folder, *attention, dtype, device)
                                     : dump_model(arguments, folder, dtype, device);
  io::save_safetensors(arguments.get("out"), out);
  std::printf("%zu tensors in %s%s\n", out.size(), arguments.get("out").c_str(), loss_text(out).c_str());
  return 0;
}

std::vector<Flag> dump_flags() {
  std::vector<Flag> flags = {
      value_flag("ids", "IDS",
                 "1,2,3, or a safetensors file with input_ids (B, T) and optional targets (-100: not counted), or "
                 "pixel_values (B, C, H, W) and optional labels")};
  for (Flag& flag : prompt_flags("text instead of --ids; - reads it from standard input"))
    flags.push_back(std::move(flag));
  const Flag rest[] = {
      {.name = "text", .value = "FILE", .help = "the text of a file instead of --ids"},
      {.name = "out",
       .alias = 'o',
       .value = "FILE",
       .help = "safetensors file to write, of any name",
       .fallback = "dump.safetensors"},
      dtype_flag("arithmetic"),
      device_flag(),
      profile_flag(),
      base_flag(),
      {.name = "attention",
       .value = "[LAYERS]",
       .help = "also q, k, v, scores and probabilities before and after Compose, of all layers or of 0,3",
       .rule = {.type = models::ValueType::integers, .min = 0},
       .alone = kAllLayers},
      {.name = "grad", .help = "also the gradient of the loss, for every parameter or input"},
      integer_flag("decode", "P N", "N greedy steps after the first P ids, or after decode.prompt_ids of the file", "",
                   1)};
  flags.insert(flags.end(), std::begin(rest), std::end(rest));
  return flags;
}

}  // namespace

Command dump_command() {
  return {
      .name = "dump",
      .summary = "logits, loss, hidden states, attention maps and gradients as named tensors",
      .positionals =
          {{.name = "MODEL",
            .help = "model folder, run folder, RUN/best, or a folder of kind attention with inputs.safetensors"}},
      .flags = dump_flags(),
      .overrides = kModelOverrides,
      .details =
          "B rows of T tokens, D width, N heads of size d, S = T keys, G groups of M heads, rank R, V vocabulary:\n"
          "  input_ids, targets (B, T); hidden.0 ... hidden.L, final_norm (B, T, D); logits (B, T, V); loss (1)\n"
          "  layers.i.attn_out, ffn_out (B, T, D); layers.i.dyn.*, the weights of Compose\n"
          "  layers.i.q, k, v (B, T, N, d); layers.i.attn_scores, attn_scores_composed, attn_probs,\n"
          "  attn_probs_composed (B, N, T, S): --attention, which holds all four of a layer at a time\n"
          "  grad.NAME, shaped like NAME; decode.prompt_ids (B, P), decode.tokens (B, N), decode.logits (B, N, V)\n"
          "apps/dump/names.md explains every name.",
      .examples = {"braid dump out/demo --prompt 'The fox' --attention -o maps.safetensors",
                   "braid dump out/demo --ids 84,104,101 --attention 0,2 --dtype f64",
                   "braid dump out/demo --ids ids.safetensors --out dump.safetensors --dtype f64 --grad --decode 8 12"},
      .run = run_dump,
  };
}

}  // namespace braid::apps
