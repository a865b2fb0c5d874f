#include "apps/cli/text_model.h"

#include "apps/cli/model_flags.h"
#include "braid/models/pretrained/pretrained.h"

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
      integer_flag("threads", "N", "CPU threads, 0 = all cores", "0", 0, 4096)};
}

TextModel load_text_model(const Arguments& arguments) {
  const Device device = device_of(arguments);
  TextModel result{.folder = model_folder(arguments.get("MODEL")), .model = {}, .tokenizer = {}, .ends = {}};
  models::LoadedModel loaded = models::load_model(result.folder, {.dtype = dtype_of(arguments),
                                                                  .settings = model_keys(arguments),
                                                                  .base = base_of(arguments),
                                                                  .int8_weights = int8_weights(arguments)});
  result.model = models::as_language_model(std::move(loaded.model));
  result.model->to(device);
  print_notes(loaded.notes);
  result.tokenizer = std::move(loaded.tokenizer);
  if (arguments.has("tokenizer"))
    result.tokenizer = models::text::load_tokenizer(tokenizer_path(arguments.get("tokenizer")));
  check(result.tokenizer != nullptr, ErrorKind::input, [&] {
    return "no tokenizer.json in " + result.folder.string() +
           ": text cannot be converted to tokens; give --tokenizer FOLDER";
  });
  result.ends = models::text::folder_end_ids(loaded.format.folder.string(), result.model->vocab_size());
  for (const int32_t id : result.tokenizer->end_ids()) result.ends.push_back(id);
  return result;
}

}  // namespace braid::apps
