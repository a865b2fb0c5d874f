// The resolved configuration of a model of any family, before anything is allocated: its settings, and how it is built.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "braid/distributed/comm/process_mesh.h"
#include "braid/models/model.h"
#include "braid/models/model_info.h"
#include "braid/models/settings.h"
#include "braid/tensor/random.h"

namespace braid::models {

class Folder;

// Names and texts of settings, as config.json and the command line name them.
using SettingTexts = std::vector<std::pair<std::string, std::string>>;

struct ModelSetting {
  std::string name;
  std::string value;        // the text that configure() takes
  std::string help;         // one line
  bool in_use = true;       // false: without effect beside the other settings
  ValueRule rule = {};      // allowed values; by default any text
  bool may_change = false;  // fine-tuning may change it (folders/init_from.h)
  bool of_context =
      false;  // a run may change it when it resumes with another longest sequence: no weight depends on it
};

class ModelSpec {
 public:
  virtual ~ModelSpec() = default;
  virtual std::string model_type() const = 0;
  // Text of config.json; read_model_spec() of it gives this spec.
  virtual std::string config_json() const = 0;
  // In order of importance: sizes first, settings that often follow from them later.
  virtual std::vector<ModelSetting> settings() const = 0;
  // This spec with other settings, resolved again. Error(setting) names the setting.
  virtual std::unique_ptr<const ModelSpec> with(const SettingTexts& settings) const = 0;
  // The same model for sequences of up to `longest` tokens, more than max_sequence_length(). By default Error(setting):
  // only positions that are computed, as rotary ones are, go on beyond those of the weights.
  virtual std::unique_ptr<const ModelSpec> extrapolated(int64_t longest) const;

  // The model with initial weights, each a function of the key and of the parameter's name alone, whatever the mesh.
  // Over a mesh a rank gets its shards. Error(setting) when the model cannot be sharded so.
  virtual std::unique_ptr<Model> make(RandomKey key, const dist::ProcessMesh& mesh = {}) const = 0;
  // The same model on kMeta: names, shapes, types and shards of its parameters, no memory. All that is reported about a
  // model that is not built derives from this one.
  std::unique_ptr<Model> make_shape_only(const dist::ProcessMesh& mesh = {}) const;
  // The parameters of make_shape_only(), in the model's order.
  std::vector<nn::NamedTensor> parameters() const;

  // The same model at the width that the learning rate was found for (training/mup.h); null where muP is off.
  virtual std::unique_ptr<const ModelSpec> mup_base() const { return nullptr; }

  // Why training on text would teach such a model nothing; "" when it does.
  virtual std::string training_warning() const { return ""; }

  // Whether its texts have strict bits, on the CPU (inference/strict.md).
  virtual bool generates_strictly() const { return false; }

  // T of the longest sequence; 0 when samples are no sequences.
  virtual int64_t max_sequence_length() const { return 0; }
  // V of a language model; 0 for others.
  virtual int64_t vocab_size() const { return 0; }

  // The sections of `braid info`. By default parameters, FLOPs and memory by cost/size.h and cost/trace.h.
  virtual std::vector<InfoSection> info(const InfoRequest& request) const;

  // Notes for the user on the config.json that this spec was read from: keys without effect, code of its own.
  virtual std::vector<std::string> config_notes(const std::string& config_json, const std::string& file_name) const;
  // The text of another config.json (read from `file_name`) with the fewest keys changed that make it describe this
  // model and weights of type `stored`, where that is given. By default config_json().
  virtual std::string config_json_like(const std::string& config_json, const std::string& file_name,
                                       std::optional<DType> stored) const;
  // The source of the Python file with which the package transformers computes such a model from config_json() and the
  // parameters under their own names, and the names of its classes for auto_map. Error(setting) where there is none.
  struct PythonCode {
    std::string file, text;             // "modeling_dcformer.py"
    std::string configuration, causal;  // classes
  };
  virtual PythonCode python_code() const;
  // How folders store the weights of this spec (folders/folder.h); by default one tensor per parameter.
  virtual Folder folder() const;
};

// The settings in which two specs differ; not those that neither of them uses.
struct SettingDifference {
  std::string name, expected, found;
  bool of_context = false;
  std::string text() const { return "model." + name + " = " + expected + ", found " + found; }
};
std::vector<SettingDifference> setting_differences(const ModelSpec& expected, const ModelSpec& found);
// The same as "model.dim = 64, found 128".
std::vector<std::string> differing_settings(const ModelSpec& expected, const ModelSpec& found);

}  // namespace braid::models
