// What GGUF files call the settings and tensors of the decoders that Hugging Face's folders hold too (README.md).
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "braid/tensor/io/gguf.h"

namespace braid::models::gguf {

struct Architecture {
  std::string name;           // general.architecture: "qwen2"
  std::string model_type;     // of config.json
  std::string class_name;     // "Qwen2ForCausalLM"
  bool paired_rows = false;   // rows of q and k of a head: 0, d/2, 1, d/2 + 1, ..., not 0, 1, 2, ...
  bool bias_key = false;      // config.json says whether q, k and v have biases
  bool norms_behind = false;  // attention and FFN
  bool norm_offset = false;   // the file has 1 + the weights of norms
  int64_t local_period = 0;   // n: all but every n-th layer are local, where the file does not say
};

// Error(input) names those that there are.
const Architecture& architecture_of(const io::GgufFile& file);
// The one that holds models of this type of config.json; null: none does.
const Architecture* architecture_of(const std::string& model_type);

// "blk.0.attn_q.weight" as "model.layers.0.self_attn.q_proj.weight", and back; none: no tensor of these models.
std::optional<std::string> folder_name(const std::string& name, const Architecture& architecture);
std::optional<std::string> file_name(const std::string& name, const Architecture& architecture);
// Whether rows of the tensor of a file are those of rotated heads, of `kv` or of queries.
bool is_rotated(const std::string& file_name, bool& kv);

// config.json of the model in the file. Error(input) for a missing or contradictory key, and for what these models
// lack.
nlohmann::ordered_json read_config(const io::GgufFile& file, const Architecture& architecture);

// Names the keys of the architecture that are not read, for the user; "": there are none.
std::string note_on_keys(const io::GgufFile& file, const Architecture& architecture);

struct WrittenConfig {
  std::vector<std::pair<std::string, io::GgufValue>> metadata;
  std::vector<double> rotary_factors;  // of the tensor rope_freqs.weight; empty: none
};
// The metadata for a config.json. Error(setting) names a key that no file can say.
WrittenConfig write_config(const nlohmann::json& config, const Architecture& architecture);

// The value of a key, of this type; none: it is missing. Error(input) for another type.
template <class T>
std::optional<T> value_of(const io::GgufFile& file, const std::string& key);

}  // namespace braid::models::gguf
