// Models of folders and runs: loading, probabilities of a text, what happens inside.
#include <algorithm>
#include <memory>
#include <utility>

#include "apps/cli/model_flags.h"
#include "apps/cli/prompt.h"
#include "apps/dump/gradients.h"
#include "apps/python/loaded_model.h"
#include "braid/models/inference/batch.h"
#include "braid/models/inspect/ablation.h"
#include "braid/models/inspect/capture.h"
#include "braid/nn/inference/gather_weights.h"
#include "braid/tensor/io/atomic_folder.h"
#include "braid/tensor/io/path_status.h"

namespace braid::python {

namespace {

namespace fs = std::filesystem;

std::unique_ptr<LoadedModel> load(const fs::path& path, std::optional<DType> dtype, Device device,
                                  const std::optional<fs::path>& tokenizer, const fs::path& base, bool int8, bool int4,
                                  bool trainable, const std::map<std::string, std::string>& settings) {
  check(!(int8 && int4), ErrorKind::misuse, "load: int8 and int4 are two types of weights: expected one of them");
  check(!((int8 || int4) && trainable), ErrorKind::misuse,
        "load: a model of int8 or int4 is for inference: expected trainable=False");
  auto result = std::make_unique<LoadedModel>();
  result->folder = models::find_model(path, result->notes).string();
  models::LoadedModel loaded = models::load_model(result->folder, {.dtype = dtype,
                                                                   .settings = {settings.begin(), settings.end()},
                                                                   .base = base,
                                                                   .weight_bits = int8   ? 8
                                                                                  : int4 ? 4
                                                                                         : 0});
  result->model = std::move(loaded.model);
  result->model->to(device);
  if (!trainable) nn::gather_weights(*result->model), nn::freeze(*result->model);
  std::ranges::move(loaded.notes, std::back_inserter(result->notes));
  result->tokenizer =
      tokenizer ? models::text::load_tokenizer(apps::tokenizer_path(tokenizer->string())) : std::move(loaded.tokenizer);
  if (const auto* language = dynamic_cast<const models::LanguageModel*>(result->model.get()))
    result->ends = apps::ends_of_text(loaded, language->vocab_size(), result->tokenizer.get());
  return result;
}

// A text, or token ids (T) or (B, T), as ids (B, T) i64 on the model's device.
Tensor ids_of(const LoadedModel& m, nb::handle source) {
  std::string text;
  if (!nb::try_cast(source, text)) {
    const Tensor given = nb::cast<Tensor>(nb::module_::import_("braid").attr("asarray")(source));
    check(!is_float(given.dtype()) || given.numel() == 0, ErrorKind::misuse,
          [&] { return str("expected a text, or ids that are integers, found a tensor of ", given.dtype()); });
    const Tensor ids = given.to(DType::i64);
    check(ids.rank() == 1 || ids.rank() == 2, ErrorKind::misuse,
          [&] { return str("expected a text, or ids (T) or (B, T), found a tensor ", ids.shape()); });
    return (ids.rank() == 1 ? unsqueeze(ids, 0) : ids).to(m.model->device());
  }
  const std::vector<int32_t> tokens = apps::encode_prompt(m.text(), m.language(), text, false);
  models::check_prompt(m.language(), tokens);
  return from_vector(std::vector<int64_t>(tokens.begin(), tokens.end()), {1, std::ssize(tokens)}).to(m.model->device());
}

std::vector<int32_t> one_text(const LoadedModel& m, nb::handle source) {
  const Tensor ids = ids_of(m, source).to(kCpu);
  check(ids.dim(0) == 1, ErrorKind::misuse, [&] { return str("expected one text, found ids ", ids.shape()); });
  std::vector<int32_t> tokens;
  for (const int64_t id : ids.to_vector<int64_t>()) {
    const int64_t largest = m.language().vocab_size() - 1;
    check(id >= 0 && id <= largest, ErrorKind::input,
          [&] { return str("expected token ids from 0 to ", largest, ", found ", id); });
    tokens.push_back(static_cast<int32_t>(id));
  }
  return tokens;
}

struct Score {
  std::vector<int32_t> tokens;
  std::vector<std::string> pieces;              // the text of each token
  std::vector<std::optional<double>> logprobs;  // none for the first token, before which nothing stands
  double loss() const {                         // nats per token
    double sum = 0;
    for (const auto& logprob : logprobs) sum -= logprob.value_or(0);
    return sum / static_cast<double>(std::max<size_t>(1, logprobs.size() - 1));
  }
};

Score score(const LoadedModel& m, const std::vector<int32_t>& tokens) {
  Score result{.tokens = tokens, .pieces = {}, .logprobs = {std::nullopt}};
  if (m.tokenizer)
    for (const int32_t id : tokens) result.pieces.push_back(m.tokenizer->decode(std::vector{id}));
  std::exception_ptr error;
  const Unlocked unlocked;
  models::GenerationEngine engine(m.language(), {.sequences = 1,
                                                 .positions = models::positions_for(
                                                     std::span(&tokens, 1), 1, 0, m.language().max_sequence_length())});
  engine.submit({.prompt = tokens, .max_tokens = 0, .score_from = 1, .on_update = [&](const models::Update& update) {
                   for (const models::TokenScore& s : update.prompt_scores) result.logprobs.push_back(s.logprob);
                   error = update.error;
                   return true;
                 }});
  while (engine.step()) check_signals();
  if (error) std::rethrow_exception(error);
  return result;
}

// The tensors of `braid dump` (apps/dump/names.md).
io::NamedTensors dump(const LoadedModel& m, const Tensor& input, bool attention, bool gradients) {
  const auto trained = [&] {
    return std::ranges::any_of(nn::parameters(*m.model), [](const NamedTensor& p) { return requires_grad(p.value); });
  };
  check(!gradients || trained(), ErrorKind::misuse,
        "dump: a frozen model has no gradients: expected a model of load(..., trainable=True)");
  const models::CaptureRequest request{.maps =
                                           attention ? [](int64_t) { return true; } : std::function<bool(int64_t)>()};
  std::optional<NoGrad> off;
  if (!gradients) off.emplace();
  if (const auto* images = dynamic_cast<const models::ImageModel*>(m.model.get())) {
    check(!gradients, ErrorKind::misuse,
          "dump: images come without labels here, so there is no loss: expected "
          "gradients=False");
    models::Capture seen = models::capture(*images, input.to(images->device()), request);
    seen.tensors.emplace_back("logits", seen.out.detach());
    return seen.tensors;
  }
  const models::LanguageModel& model = m.language();
  models::Capture seen = models::capture(model, input, request);
  const Tensor logits = model.logits(seen.out);
  seen.tensors.emplace_back("logits", logits.detach());
  if (input.dim(1) < 2) return seen.tensors;
  const Tensor loss = cross_entropy(slice(logits, 1, 0, input.dim(1) - 1), slice(input, 1, 1, input.dim(1)));
  seen.tensors.emplace_back("loss", loss.detach().reshaped({1}));
  if (gradients) apps::add_gradients(*m.model, loss, seen.tensors);
  return seen.tensors;
}

std::vector<Tensor> attention(const LoadedModel& m, const Tensor& ids) {
  std::vector<Tensor> maps;
  const NoGrad off;
  models::capture(m.language(), ids,
                  {.maps = [](int64_t) { return true; },
                   .layer =
                       [&](int64_t, const models::LayerTensors& t) {
                         const auto map = t.find("attn_probs_composed");
                         if (map != t.end())
                           maps.push_back(map->second.sliced(0, 0, 1)
                                              .detach()
                                              .reshaped({map->second.dim(1), map->second.dim(2), map->second.dim(3)})
                                              .clone());
                       }});
  return maps;
}

FileStamp stamp_of(const fs::path& file) {
  const auto found = io::path_status(file, ErrorKind::output);
  if (!found) return {};
  return {static_cast<int64_t>(found->st_dev), static_cast<int64_t>(found->st_ino), found->st_size,
          found->st_mtim.tv_sec, found->st_mtim.tv_nsec};
}

}  // namespace

void bind_models(nb::module_& m, nb::module_& layers) {
  bind_networks(m, layers);
  nb::class_<Score>(m, "Score", "The log-probabilities of a text's tokens, each given those before it.")
      .def_ro("tokens", &Score::tokens)
      .def_prop_ro("pieces",
                   [](const Score& s) {
                     nb::typed<nb::list, nb::str> texts;
                     for (const std::string& piece : s.pieces) texts.append(text_of(piece));
                     return texts;
                   })
      .def_ro("logprobs", &Score::logprobs, "Natural logarithms; None for the first token.")
      .def_prop_ro("loss", &Score::loss, "Nats per token.")
      .def_prop_ro("perplexity", [](const Score& s) { return std::exp(s.loss()); });

  nb::class_<LoadedModel> c(m, "Model", "A model folder, or a checkpoint of a run, in memory.");
  c.def_ro("folder", &LoadedModel::folder).def_ro("notes", &LoadedModel::notes, "Decisions of the loader.");
  c.def_prop_ro(
      "module", [](const LoadedModel& self) { return module_of(self.model); },
      "The braid.nn.LanguageModel or ImageModel.");
  c.def_ro("tokenizer", &LoadedModel::tokenizer);
  c.def(
      "save",
      [](LoadedModel& self, const fs::path& folder) {
        models::check_no_run_folder(folder);
        io::AtomicFolder draft(folder, "config.json");
        const char* name = "model.safetensors";
        const fs::path weights = draft.target() / name;
        const auto known = self.saved.find(weights);
        const bool ours = known != self.saved.end() && known->second == stamp_of(weights);
        FileStamp written = {};
        {
          const Unlocked unlocked;
          models::save_model(*self.model, self.tokenizer.get(), draft.path());
          models::check_replaces_no_model(folder, draft.path());
          written = stamp_of(draft.path() / name);
          draft.commit(ours ? name : "");
        }
        if (stamp_of(weights) == written) self.saved[weights] = written;  // else the same bytes were there already
      },
      "folder"_a,
      "Writes a model folder with config.json, weights and tokenizer, all or nothing. It must hold no other model and "
      "be no run folder; weights there are replaced only while they are those that this object has put there.");
  bind_generation(m, c);
  c.def(
      "score", [](const LoadedModel& self, nb::object text) { return score(self, one_text(self, text)); }, "text"_a,
      "The log-probability of each token of a text or list of ids.");
  c.def(
      "dump",
      [](const LoadedModel& self, nb::object input, bool maps, bool gradients) {
        const bool images = dynamic_cast<const models::ImageModel*>(self.model.get()) != nullptr;
        const Tensor x = images ? nb::cast<Tensor>(input) : ids_of(self, input);
        io::NamedTensors tensors;
        {
          const Unlocked unlocked;
          tensors = dump(self, x, maps, gradients);
        }
        return named(tensors);
      },
      "input"_a, "attention"_a = false, "gradients"_a = false,
      "Every named intermediate result of a text, ids (B, T) or images (B, C, H, W): the names of `braid dump`. "
      "attention: the maps of all layers too.");
  c.def(
      "attention",
      [](const LoadedModel& self, nb::object text) {
        const Tensor ids = ids_of(self, text);
        const Unlocked unlocked;
        return attention(self, ids);
      },
      "text"_a, "By layer: (heads, T, T), the weights of the values, after Compose where heads are composed.");
  c.def(
      "losses_without",
      [](LoadedModel& self, nb::object text, std::optional<int64_t> layer, std::optional<int64_t> head, bool pre,
         bool post) {
        const std::vector<int32_t> tokens = one_text(self, text);
        const Unlocked unlocked;
        models::LanguageModel& model = self.language();
        const models::Ablation part{.layer = layer, .head = head, .pre = pre, .post = post, .term = {}};
        return models::losses_without(model, part, std::ssize(model.make_cache(1).layers), tokens);
      },
      "text"_a, "layer"_a = nb::none(), "head"_a = nb::none(), "pre"_a = true, "post"_a = true,
      "The loss of each token but the first, in nats, without a head of a layer, or without Compose of the scores "
      "(pre) and of the probabilities (post) in one layer or all.");
  m.def("load", load, "path"_a, "dtype"_a = nb::none(), "device"_a = Device(kCpu), "tokenizer"_a = nb::none(),
        "base"_a = "", "int8"_a = false, "int4"_a = false, "trainable"_a = false,
        "settings"_a = std::map<std::string, std::string>{}, nb::call_guard<Unlocked>(),
        "The model of a folder, of a run (its newest checkpoint) or of RUN/best. trainable: its parameters collect "
        "gradients. base: of LoRA alone, the model that it changes. settings: keys of config.json.");
}

}  // namespace braid::python
