// Tokenizers, and models as modules: what a training loop in Python needs.
#include "apps/cli/model_flags.h"
#include "apps/python/loaded_model.h"
#include "braid/models/registry.h"

namespace braid::python {

using models::text::Tokenizer;

nb::object module_of(std::shared_ptr<models::Model> model) {
  if (auto language = std::dynamic_pointer_cast<models::LanguageModel>(model)) return nb::cast(language);
  if (auto images = std::dynamic_pointer_cast<models::ImageModel>(model)) return nb::cast(images);
  return nb::cast(model);
}

namespace {

void bind_tokenizer(nb::module_& m) {
  nb::class_<Tokenizer>(m, "Tokenizer", "Text to token ids and back.")
      .def_prop_ro("name", &Tokenizer::name)
      .def("__len__", &Tokenizer::vocab_size)
      .def_prop_ro("eos_id", &Tokenizer::eos_id, "The token that ends a document; -1: none.")
      .def(
          "encode",
          [](const Tokenizer& t, const std::string& text, bool parse_specials) {
            return t.encode(text, parse_specials);
          },
          "text"_a, "parse_specials"_a = false, nb::call_guard<Unlocked>(),
          "Ids of a text. parse_specials: the literal text of a special token becomes its id.")
      .def(
          "decode",
          [](const Tokenizer& t, const std::vector<int32_t>& tokens, bool skip_specials) {
            return text_of(t.decode(tokens, skip_specials));
          },
          "tokens"_a, "skip_specials"_a = false);
  m.def(
      "load_tokenizer",
      [](const std::filesystem::path& path) {
        return std::shared_ptr<Tokenizer>(models::text::load_tokenizer(apps::tokenizer_path(path.string())));
      },
      "path"_a, "The tokenizer of a model, data or run folder, or of a tokenizer.json.");
}

void bind_modules(nb::module_& m) {
  nb::class_<models::Model, nn::Module> base(m, "Model", "A model of any family.");
  base.def_prop_ro("model_type", [](const models::Model& self) { return self.spec()->model_type(); });
  base.def_prop_ro(
      "config", [](const models::Model& self) { return self.spec()->config_json(); }, "The text of its config.json.");
  base.def_prop_ro("dtype", &models::Model::dtype).def_prop_ro("device", &models::Model::device);
  nb::class_<models::LanguageModel, models::Model>(m, "LanguageModel", "ids (B, T) -> logits (B, T, V)")
      .def_prop_ro("vocab_size", &models::LanguageModel::vocab_size)
      .def_prop_ro("max_sequence_length", &models::LanguageModel::max_sequence_length)
      .def(
          "__call__",
          [](const models::LanguageModel& self, const Tensor& ids) { return self.logits(self.hidden(ids)); }, "ids"_a,
          nb::call_guard<Unlocked>())
      .def(
          "hidden", [](const models::LanguageModel& self, const Tensor& ids) { return self.hidden(ids); }, "ids"_a,
          nb::call_guard<Unlocked>(), "ids (B, T) -> the normalised last hidden state (B, T, D)")
      .def(
          "loss",
          [](const models::LanguageModel& self, const Tensor& ids, const Tensor& targets) {
            const models::Batch batch = models::text_batch(ids, targets);
            self.check_batch(batch);
            return self.loss_sum(ids, targets) / static_cast<double>(self.count_targets(batch));
          },
          "ids"_a, "targets"_a, nb::call_guard<Unlocked>(),
          "Mean cross-entropy in nats over the targets >= 0.  ids, targets (B, T)");
  nb::class_<models::ImageModel, models::Model>(m, "ImageModel", "images (B, C, H, W) -> logits (B, K)")
      .def_prop_ro("class_names", &models::ImageModel::class_names)
      .def_prop_ro("image_shape", &models::ImageModel::image_shape)
      .def(
          "__call__", [](const models::ImageModel& self, const Tensor& images) { return self.logits(images); },
          "images"_a, nb::call_guard<Unlocked>());
  m.def(
      "make_model",
      [](const std::string& preset, RandomKey key, const std::map<std::string, std::string>& settings) {
        return module_of(models::configure_model(preset, {settings.begin(), settings.end()})->make(key));
      },
      "preset"_a = "", "key"_a = RandomKey{}, "settings"_a = std::map<std::string, std::string>{},
      "A model with initial weights: a preset, or the defaults, with settings as config.json names them.");
}

}  // namespace

void bind_networks(nb::module_& m, nb::module_& layers) {
  bind_tokenizer(m);
  bind_modules(layers);
}

}  // namespace braid::python
