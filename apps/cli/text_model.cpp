#include "apps/cli/text_model.h"

#include "apps/cli/model_flags.h"
#include "apps/cli/text.h"
#include "braid/models/folders/gguf/gguf_folder.h"
#include "braid/nn/inference/gather_weights.h"

namespace braid::apps {

std::vector<Flag> text_model_flags() {
  return {
      {.name = "tokenizer", .value = "FOLDER", .help = "tokenizer of another folder than MODEL"},
      profile_flag(),
      base_flag(),
      dtype_or_bits_flag("arithmetic, to which weights are converted (default: f32, or f64 for weights of f64); int8, "
                         "int4: f32, with the weights of linear layers in 8 or 4 bits, on the CPU",
                         ""),
      device_flag(),
      integer_flag("threads", "N", "CPU threads, 0 = all that the process may use", "0", 0, 4096),
      {.name = "strict",
       .help = "log-probabilities with the bits that training with run.strict gives; on the CPU, of one process"}};
}

TextModel load_text_model(const Arguments& arguments) { return load_text_model(arguments, arguments.get("MODEL")); }

TextModel load_text_model(const Arguments& arguments, const std::string& model, int64_t longest) {
  const Device device = device_of(arguments);
  TextModel result{.folder = model_folder(model), .model = {}, .tokenizer = {}, .ends = {}};
  models::LoadedModel loaded = models::load_model(result.folder, {.dtype = dtype_of(arguments),
                                                                  .settings = model_keys(arguments),
                                                                  .base = base_of(arguments),
                                                                  .longest = longest,
                                                                  .weight_bits = weight_bits(arguments),
                                                                  .keep_quantized = keeps_quantized(arguments)});
  result.model = models::as_language_model(std::move(loaded.model));
  result.model->to(device);
  nn::gather_weights(*result.model);
  print_notes(loaded.notes);
  result.configured_length = loaded.configured_length;
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
  const std::filesystem::path& folder = loaded.format.folder;
  std::vector<int32_t> ends = models::is_gguf(folder) ? models::gguf_end_ids(folder, vocabulary)
                                                      : models::text::folder_end_ids(folder.string(), vocabulary);
  if (!tokenizer) return ends;
  for (const int32_t id : tokenizer->end_ids()) ends.push_back(id);
  return ends;
}

Flag chat_flag(const std::string& text) {
  return {.name = "chat",
          .value = "TEMPLATE",
          .help = "text around " + text + ": " + join(models::text::chat_template_names(), ", ") +
                  ", the text of a turn with {role} and {content}, or folder: the chat template of the tokenizer's "
                  "folder (default: folder where it has one, else the one whose special tokens the tokenizer has, else "
                  "simple)"};
}

void check_chat_flag(const Arguments& arguments) {
  if (arguments.has("chat") && arguments.get("chat") != "folder")
    models::text::ChatTemplate::parse(arguments.get("chat"));
}

ChosenChat chosen_chat(const Arguments& arguments, const models::text::Tokenizer& tokenizer) {
  using models::text::ChatTemplate;
  const std::string given = arguments.has("chat") ? arguments.get("chat") : "";
  const std::string file = models::text::chat_template_file(tokenizer);
  if (given == "folder" || (given.empty() && !file.empty())) {
    try {
      return {ChatTemplate::of_folder(tokenizer), "of " + file};
    } catch (const Error& error) {
      fail(error.kind(), str(error.what(), "; give --chat NAME, one of ",
                             join(models::text::chat_template_names(), ", "), ", or the text of a turn"));
    }
  }
  const std::string name = given.empty() ? models::text::chat_template_for(tokenizer) : given;
  return {ChatTemplate::parse(name), preview(name)};
}

}  // namespace braid::apps
