// How a folder stores the weights of a model, and reading and writing of tensors with their checks. The default form is
// one tensor per parameter, under the parameter's name; a family may accept others (folders/folder.h).
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "braid/nn/module.h"
#include "braid/tensor/io/safetensors.h"

namespace braid::models {

struct StoredTensor {
  std::string name;
  DType dtype;
  Shape shape;
  std::string file;  // name within the folder
};
struct WeightFormat {
  std::filesystem::path folder;                   // where it was read
  std::filesystem::path adapter;                  // folder of LoRA that was added to the weights, if it is another one
  std::string config;                             // text of config.json
  std::map<std::string, std::string> files = {};  // to be written beside it: name and text
  std::vector<StoredTensor> tensors;
  io::Metadata metadata;             // of the (first) weight file
  bool sharded = false;              // several files and an index
  io::Metadata index_metadata;       // of the index, values as JSON
  std::vector<std::string> remarks;  // of the family: "q, k, v separate"

  // "F16; q, k, v separate"
  std::string describe() const;
};

// Everything wrong with the weights of a folder, reported in one message.
class WeightProblems {
 public:
  void add(const std::string& text);
  void explain(const std::string& text) { explanation_ = text; }  // of several problems, at the end of the message
  void raise(const std::string& folder) const;                    // Error(input) when there are any

 private:
  static constexpr int kShown = 6;  // of them in the message, the last one among them; the others are counted
  int found_ = 0;
  std::vector<std::string> list_;
  std::string explanation_;
};

// Adds a problem unless the stored tensor has this shape and a floating-point type.
void check_stored(const io::TensorInfo& info, const Shape& shape, WeightProblems& problems);

bool equal_bytes(const Tensor& a, const Tensor& b);  // of one type: one shape and equal bytes

// Reads the tensors of a folder and collects the errors in them.
class WeightReader {
 public:
  WeightReader(const io::TensorFiles& files, DType dtype) : files_(files), dtype_(dtype) {}
  const io::TensorFiles& files() const { return files_; }
  DType dtype() const { return dtype_; }
  Tensor load(const std::string& name);                          // as stored; NaN and Inf are a problem
  Tensor convert(const std::string& name, const Tensor& value);  // to dtype(); overflow is a problem
  WeightProblems& problems() { return problems_; }

 private:
  const io::TensorFiles& files_;
  DType dtype_;
  WeightProblems problems_;
  std::set<std::string> reported_;
};

// The tensors of the folder, without a check, except those for which `ignored` is true.
WeightFormat stored_tensors(const io::TensorFiles& files, const std::function<bool(const std::string&)>& ignored = {});

// Spreads the tensors over files of at most max_bytes, a larger tensor in a file of its own; 0: one file. The files are
// named as transformers names them.
void split_files(WeightFormat& format, int64_t max_bytes);
inline constexpr int64_t kMaxShardBytes = 5'000'000'000;  // where the caller gives no maximum

// Writes the files that `format` lists into an existing folder; value() gives each tensor, converted here to the type
// it is stored in. Error(numerical) when a value does not fit that type.
void write_tensors(const WeightFormat& format, const std::filesystem::path& folder,
                   const std::function<Tensor(const StoredTensor&)>& value);

}  // namespace braid::models
