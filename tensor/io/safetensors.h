// Named tensors in files, in the published safetensors format: 8 bytes of header length, a JSON header, raw data.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "braid/tensor/group_weight.h"
#include "braid/tensor/io/reader.h"
#include "braid/tensor/tensor.h"

namespace braid::io {

struct TensorInfo {
  std::string name;
  std::string dtype_name;  // as in the file, "BF16"
  DType dtype = DType::u8;
  bool loadable = false;  // false for the format's types that Braid lacks, for example BOOL
  Shape shape;
  int64_t offset = 0;  // of the data in the file
  int64_t bytes = 0;
};

using NamedTensors = std::vector<NamedTensor>;
using Metadata = std::map<std::string, std::string>;

// One file, opened once; the header is checked completely, data is read on demand. Strict: every byte of the file
// belongs to the header or to exactly one tensor. Error(input) names the file, the tensor and the byte.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);
  // The same on bytes in memory, which must outlive it.
  SafetensorsFile(std::span<const std::byte> memory, const std::string& name);

  const std::string& path() const { return file_.path(); }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }  // sorted by name
  const Metadata& metadata() const { return metadata_; }               // the header's "__metadata__"
  const TensorInfo* find(const std::string& name) const;               // null when there is none
  // The tensor on the CPU, in the file's type. Error(input) when it is missing or of a type that Braid lacks.
  // Safe to call from several threads at once.
  Tensor load(const std::string& name) const;
  // Reads `count` elements of a tensor of this file from element `first` on; they must be inside it. As thread-safe as
  // load().
  void read(const TensorInfo& tensor, int64_t first, int64_t count, void* into) const;

 private:
  void open();

  Reader file_;
  std::vector<TensorInfo> tensors_;
  Metadata metadata_;
};

// The tensors of a model: a .safetensors file, a folder with model.safetensors, or one whose
// model.safetensors.index.json spreads them over several files. The index and the files must agree exactly.
class TensorFiles {
 public:
  explicit TensorFiles(const std::string& path);  // the file, the index, or the folder
  // The tensors of a file of another format.
  struct Source {
    std::string path;
    std::vector<TensorInfo> tensors;  // sorted by name; of quantised ones dtype is what load() gives
    std::function<Tensor(const std::string& name)> load;
    std::function<std::optional<GroupWeight>(const std::string& name)> groups;  // none: not stored so
  };
  explicit TensorFiles(Source source);
  const std::string& path() const { return path_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }  // of all files, sorted by name
  const TensorInfo* find(const std::string& name) const;
  Tensor load(const std::string& name) const;
  std::optional<GroupWeight> groups(const std::string& name) const;  // of a matrix that is stored in groups
  const Metadata& metadata() const { return metadata_; }             // of the first file
  std::string file_of(const std::string& name) const;  // name, within its folder, of the file with this tensor
  bool sharded() const { return sharded_; }            // there is an index
  const Metadata& index_metadata() const { return index_metadata_; }  // its object "metadata", values as JSON

 private:
  std::string path_;
  std::vector<SafetensorsFile> files_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, size_t> file_of_;
  Metadata metadata_, index_metadata_;
  bool sharded_ = false;
  std::shared_ptr<const Source> source_;
};

// Writes all or nothing, one tensor in memory at a time; strided or device tensors are copied first. The order in the
// file depends on types and names only, so equal tensors give equal bytes. Returns the CRC-32C of the file.
// Error(misuse) for an empty tensor handle, an empty or repeated name; Error(output) when the file cannot be written.
uint32_t save_safetensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata = {});

// The same for tensors that are made as they are written, so that only one is in memory at a time.
struct TensorSource {
  std::string name;
  DType dtype;
  Shape shape;
  std::function<Tensor()> make;  // must return what dtype and shape say
};
uint32_t save_lazily(const std::string& path, const std::vector<TensorSource>& tensors, const Metadata& metadata = {});

// The first bytes of such a file and the offset of each tensor in it, for writers of parts of it; creates no file.
struct SafetensorsPlan {
  std::string head;                 // length and header
  std::vector<TensorInfo> tensors;  // in the order of the file, without gaps
  int64_t bytes = 0;                // of the whole file
};
SafetensorsPlan plan_safetensors(const std::vector<TensorSource>& tensors, const Metadata& metadata = {});

// Writes several files into one folder, which must exist, and last the model.safetensors.index.json that says where
// each tensor is. Every file is complete or absent. Errors are those of save_safetensors; a name may be in one file
// only. index_metadata: the index's own, in which the sizes are set (weight_index.h).
void save_sharded(const std::string& folder, const std::map<std::string, std::vector<TensorSource>>& files,
                  const Metadata& metadata = {}, const Metadata& index_metadata = {});

}  // namespace braid::io
