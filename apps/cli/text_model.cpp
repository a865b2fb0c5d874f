#include "apps/cli/text_model.h"

#include "apps/cli/model_flags.h"
#include "braid/nn/inference/gather_weights.h"

namespace braid::apps {

std::vector<Flag> text_model_flags() {
  return {
      {.name = "tokenizer", .value = "FOLDER", .help = "tokenizer of another folder than MODEL"},
      profile_flag(),
      base_flag(),
      dtype_or_int8_flag("arithmetic, to which weights are converted (default: f32, or f64 for weights of f64); int8: "
                         "f32, with the weights of linear layers in 8 bits, on the CPU",
                         ""),
      device_flag(),
      integer_flag("threads", "N", "CPU threads, 0 = all that the process may use", "0", 0, 4096)};
}

TextModel load_text_model(const Arguments& arguments) { return load_text_model(arguments, arguments.get("MODEL")); }

TextModel load_text_model(const Arguments& arguments, const std::string& model) {
  const Device device = device_of(arguments);
  TextModel result{.folder = model_folder(model), .model = {}, .tokenizer = {}, .ends = {}};
  models::LoadedModel loaded = models::load_model(result.folder, {.dtype = dtype_of(arguments),
                                                                  .settings = model_keys(arguments),
                                                                  .base = base_of(arguments),
                                                                  .int8_weights = int8_weights(arguments)});
  result.model = models::as_language_model(std::move(loaded.model));
  result.model->to(device);
  nn::gather_weights(*result.model);
  print_notes(loaded.notes);
  result.tokenizer = chosen_tokenizer(arguments, loaded);
  check_tokenizer(result.tokenizer.get(), result.folder);
  result.ends = ends_of_text(loaded, result.model->vocab_size(), result.tokenizer.get());
  return result;
}

std::unique_ptr<models::text::Tokenizer> chosen_tokenizer(const Arguments& arguments, models::LoadedModel& loaded) {
  return arguments.has("tokenizer") ? models::text::load_tokenizer(tokenizer_path(arguments.get("tokenizer")))
                                    : std::move(loaded.tokenizer);
}

void check_tokenizer(const models::text::Tokenizer* tokenizer, const std::filesystem::path& folder,
                     const std::string& instead) {
  check(tokenizer != nullptr, ErrorKind::input, [&] {
    return "no tokenizer.json in " + folder.string() + ": text cannot be converted to tokens; " + instead +
           models::text::conversion_advice(folder.string());
  });
}

std::vector<int32_t> ends_of_text(const models::LoadedModel& loaded, int64_t vocabulary,
                                  const models::text::Tokenizer* tokenizer) {
  std::vector<int32_t> ends = models::text::folder_end_ids(loaded.format.folder.string(), vocabulary);
  if (!tokenizer) return ends;
  for (const int32_t id : tokenizer->end_ids()) ends.push_back(id);
  return ends;
}

}  // namespace braid::apps
