// A model that reads and writes text, as the commands that talk load it.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/command.h"
#include "braid/models/data/prepare/chat.h"
#include "braid/models/data/tokenizers/tokenizer.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/language_model.h"

namespace braid::apps {

struct TextModel {
  std::filesystem::path folder;
  std::unique_ptr<models::LanguageModel> model;
  std::unique_ptr<models::text::Tokenizer> tokenizer;
  std::vector<int32_t> ends;      // tokens that end a text: those that the folder names, and the tokenizer's own
  int64_t configured_length = 0;  // longest sequence of the folder's configuration
};

// --tokenizer, --profile, --base, --dtype, --device, --threads, --strict (a StrictBits of the command)
std::vector<Flag> text_model_flags();
// The model of the positional MODEL, on its device, for inference alone: its weights are gathered and frozen
// (nn/inference/gather_weights.h). Notes of the loader go to stderr. Error(input) without a tokenizer.
TextModel load_text_model(const Arguments& arguments);
// Another model than MODEL, for sequences of up to `longest` tokens where that is more than it has.
TextModel load_text_model(const Arguments& arguments, const std::string& model, int64_t longest = 0);

// The tokenizer of --tokenizer, or else the loaded folder's; none: null.
std::unique_ptr<models::text::Tokenizer> chosen_tokenizer(const Arguments& arguments, models::LoadedModel& loaded);
// Error(input) that says what to give instead of a missing tokenizer.
void check_tokenizer(const models::text::Tokenizer* tokenizer, const std::filesystem::path& folder,
                     const std::string& instead = "give --tokenizer FOLDER");
// The tokens that end a text: those that the folder names, and the tokenizer's own if there is one.
std::vector<int32_t> ends_of_text(const models::LoadedModel& loaded, int64_t vocabulary,
                                  const models::text::Tokenizer* tokenizer);

// --chat of the commands that hold conversations; `text`: what the template stands around.
Flag chat_flag(const std::string& text);
// --chat, or else the chat template of the tokenizer's folder, or else the one whose special tokens the tokenizer has.
// Error(input) where the folder's cannot be rendered, with --chat as the way out.
struct ChosenChat {
  models::text::ChatTemplate chat;
  std::string name;  // for the user
};
ChosenChat chosen_chat(const Arguments& arguments, const models::text::Tokenizer& tokenizer);
// Error(setting) where --chat is no template; without the tokenizer, so before anything is loaded.
void check_chat_flag(const Arguments& arguments);

}  // namespace braid::apps
