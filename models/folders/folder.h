// How the folders of a family store the weights of a model. By default every parameter is one tensor under its own
// name; a published format is a table of its names. Reading, writing and their checks are the same for all.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braid/distributed/comm/process_mesh.h"
#include "braid/distributed/sharding/partition.h"
#include "braid/models/folders/stored_parameter.h"
#include "braid/models/folders/weight_format.h"
#include "braid/models/model.h"

namespace braid::models {

class ModelSpec;

// The tensors that store the parameters below one module.
struct TensorRow {
  enum class How : uint8_t {
    same,     // one tensor
    parts,    // queries, keys and values: a tensor each, of which the parameter has all rows
    by_head,  // one tensor, its rows grouped by head: q, k, v of head 0, of head 1, ...
    copy,     // columns of a further tensor of the shape `copy`, from column `first` on
  };
  std::string module;  // or a parameter that lies in none
  std::vector<std::string> theirs;
  How how = How::same;
  Shape copy = {};
  int64_t first = 0;
};

// The text (second) of a message about tensors with a part (first) in their names.
using TensorNotes = std::vector<std::pair<std::string, std::string>>;

struct FolderTable {
  std::string architecture = {};              // "LlamaForCausalLM"
  std::string base = {}, prefix = {};         // "LlamaModel": the model without its last layer, names without `prefix`
  std::string last = {}, last_kind = "head";  // the last layer "lm_head", and what it is
  std::string tied_to = {};                   // the parameter that is the last layer too
  std::string layers = {};                    // stands for "layers." before the rows of `layer`
  std::vector<TensorRow> model = {}, layer = {};  // the first match counts; both empty: the model's own names
  std::vector<TensorRow> other = {};              // below "layers.<i>.": alternative forms, which are read as well
  bool writes_other = false;                      // and are what is written
  int64_t heads = 0, kv_heads = 0, head_size = 0;
  std::vector<std::string> ignored = {};  // parts of the names of tensors that are skipped

  bool copies_count = false;                 // read where they differ from the parameter
  std::string copies = {}, difference = {};  // of the note: "copies dw_m of layers 0 DIFFERENCE"
  std::vector<std::string> identities = {};  // modules below "layers.<i>." whose tensors must be identity matrices
  Shape identity = {};                       // (G, M, M)
  std::string no_identity = {};              // the text about others

  TensorNotes remarks = {};    // on the format
  TensorNotes surplus = {};    // of tensors that no parameter has
  TensorNotes misshapen = {};  // of all problems, where such a tensor is among them
};

// The spec must outlive it.
class Folder {
 public:
  explicit Folder(const ModelSpec& spec, FolderTable table = {}) : spec_(spec), table_(std::move(table)) {}

  // The tensors that store a parameter of this complete shape in the folders that Braid writes, checkpoints among them.
  StoredParameter stored(const std::string& parameter, const Shape& shape) const;
  // The layers on disk whose outputs together are those of a layer with so many of them: queries, keys and values; none
  // where no folder stores these apart. A parameter of LoRA of a part is called "layers.0.attention.wqkv.q.lora_A".
  struct Part {
    std::string name, stored;  // "q", "model.layers.0.self_attn.q_proj"
    dist::Range rows;          // of the weight
  };
  std::vector<Part> parts(const std::string& layer, int64_t outputs) const;
  // Whether the parameter is the last layer too.
  bool is_tied(const std::string& parameter) const { return !table_.tied_to.empty() && parameter == table_.tied_to; }
  // Checks names, shapes and types without reading data. Error(input) reports everything wrong together.
  WeightFormat weight_format(const io::TensorFiles& files) const;
  // Reads the model with parameters of `dtype` from the files, one tensor at a time, without initialising it first;
  // adds what was decided to `notes`. Over a mesh a rank keeps its shards. bits, 8 or 4: the weights of linear
  // layers are quantised as they are read (nn/inference/quantize.h), so that no complete model of `dtype` is in memory;
  // f32 only. Matrices that the files hold in groups of 8 or 4 bits stay as they are in linear layers: those of `bits`,
  // with keep all of them.
  // Error(input) names every tensor with NaN or Inf or with values too large for dtype, an identity that is not one,
  // and a stored last layer that differs from what it is tied to.
  std::unique_ptr<Model> read_weights(const io::TensorFiles& files, DType dtype, const dist::ProcessMesh& mesh,
                                      std::vector<std::string>& notes, int bits = 0, bool keep = false) const;
  // The format with queries, keys and values fused or separate. Error(setting) where the family has one form only.
  WeightFormat with_qkv(const WeightFormat& format, bool separate) const;
  // Writes the weights of a model of the spec into an existing folder in the form `format`; copies are made from the
  // parameters. Unchanged parameters give the bytes that were read, provided that the model's type holds the stored one
  // and that copies agreed. Error(numerical) when a value does not fit the stored type.
  void write_weights(const Model& model, const WeightFormat& format, const std::filesystem::path& folder) const;

 private:
  struct Form : StoredParameter {
    bool copy = false;  // may stand beside another form
  };
  class Reader;
  // The forms in which files store a parameter; the first one is written where nothing else was read.
  std::vector<Form> forms(const std::string& parameter, const Shape& shape) const;
  Form form_of(const TensorRow& row, const std::vector<std::string>& names, bool lora_a, const Shape& shape) const;
  // Whether no name has the prefix.
  bool is_base(const io::TensorFiles& files) const;
  std::vector<StoredParameter::Stored> identities(const std::vector<nn::NamedTensor>& parameters) const;

  const ModelSpec& spec_;
  FolderTable table_;
};

}  // namespace braid::models
