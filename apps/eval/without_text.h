// Parts of braid eval for models that do not read text: images.h, pairs.h.
#pragma once
#include <string>

#include "apps/cli/command.h"
#include "braid/models/folders/pretrained.h"

namespace braid::apps {

// Whether a task begins with the prefix.
bool names_task(const Arguments& arguments, const std::string& prefix);
// Error(setting) unless all tasks begin with it, and when a flag is given that is for texts. `what`: "images".
void check_only(const Arguments& arguments, const std::string& prefix, const std::string& what);
// The model of the arguments, on their device and threads. Its notes are printed.
models::LoadedModel load_model_of(const Arguments& arguments);

}  // namespace braid::apps
