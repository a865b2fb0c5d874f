// config.json of folders that transformers reads. Both generations of keys are read, those of transformers 4 are
// written: transformers 5 reads these too, while 4 takes defaults for the rotary keys of 5 without a message.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "braid/models/families/dcformer/config.h"
#include "braid/models/families/dcformer/huggingface/dialect.h"
#include "braid/tensor/dtype.h"

namespace braid::models {

// Resolved. A missing key has the value that transformers gives it. Beside the keys of the dialect a file may hold
// those of Braid (use_dcmha, profile, ...). Keys that would have to be obeyed and cannot are Error(input); others have
// no effect (config_notes).
DcformerConfig read_dialect_config(const Dialect& dialect, const nlohmann::json& object, const std::string& file);
// Keys of Braid only where they differ from the family's defaults.
std::string write_dialect_config(const Dialect& dialect, const DcformerConfig& config);
// The text with the fewest keys changed that make it describe `config` and, where it is given, weights of type
// `stored`; the text itself when it does already. A changed text has the rotary keys and the type under the keys of
// transformers 4.
std::string rewrite_dialect_config(const Dialect& dialect, const std::string& text, const std::string& file,
                                   const DcformerConfig& config, std::optional<DType> stored);
// Notes for the user on what reading passes over: code in the folder, dropout, unknown keys.
std::vector<std::string> dialect_notes(const Dialect& dialect, const nlohmann::json& object, const std::string& file);
// Error(setting) unless the folders of the dialect can hold the model.
void check_dialect(const Dialect& dialect, const DcformerConfig& config);

// rotary.cpp: the keys of the rotary position embedding, in every place where versions of transformers put them.
// The object as transformers 4 has it, where rope_parameters has an object for each kind of layers (Gemma 3 in 5).
nlohmann::json with_one_rotary(const Dialect& dialect, const nlohmann::json& object, const std::string& file);
void read_rotary(const Dialect& dialect, const nlohmann::json& object, DcformerConfig& config, const std::string& file);
void write_rotary(const Dialect& dialect, const DcformerConfig& config, nlohmann::ordered_json& object);

// windows.cpp: which layers are local. Sets window_size, window_type and layer_windows.
void read_windows(const Dialect& dialect, const nlohmann::json& object, DcformerConfig& config,
                  const std::string& file);
void write_windows(const Dialect& dialect, const DcformerConfig& config, nlohmann::ordered_json& object);
// Gives `plain` the windows of `config` as read_windows() sets them.
void set_windows(const Dialect& dialect, const DcformerConfig& config, DcformerConfig& plain);
// Error(setting) unless the folders of the dialect can hold the windows.
void check_windows(const Dialect& dialect, const DcformerConfig& config);

}  // namespace braid::models
