// GGUF files: typed metadata and named tensors, some in blocks of 8-bit or 4-bit values (gguf.md).
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "braid/tensor/group_weight.h"
#include "braid/tensor/io/reader.h"

namespace braid::io {

// Integers of all widths are int64_t, floats double: of an f32 the shortest decimal that gives it. Written are u32 and
// i32, f32, bool and strings.
using GgufValue = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>>;
using GgufMetadata = std::map<std::string, GgufValue>;

struct GgufType {
  uint32_t id;
  const char* name;      // "Q4_0"
  int64_t block, bytes;  // elements of a block and their bytes
  void (*decode)(const uint8_t* block, float* values) = nullptr;
};
std::span<const GgufType> gguf_types();                   // all that a file may hold
const GgufType* find_gguf_type(const std::string& name);  // null: none of this name
bool is_read(const GgufType& type);                       // by GgufFile::load()

struct GgufTensor {
  std::string name;
  const GgufType* type;
  Shape shape;         // outer axes first; the file has them in the other order
  int64_t offset = 0;  // of the data in the file
  int64_t bytes = 0;
};

// One file, opened once; everything but the data is read and checked at once. Strict: tensors lie one behind the other,
// aligned, without overlap, and nothing follows them. Error(input) names the file, the byte and what is wrong.
class GgufFile {
 public:
  explicit GgufFile(const std::string& path);
  // The same on bytes in memory, which must outlive it.
  GgufFile(std::span<const std::byte> memory, const std::string& name);

  const std::string& path() const { return file_.path(); }
  const GgufMetadata& metadata() const { return metadata_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }  // in the order of the file
  const GgufTensor* find(const std::string& name) const;               // null when there is none

  // On the CPU: F32, F16 and BF16 as stored, blocks as f32. Error(input) for a type that is not read.
  Tensor load(const GgufTensor& tensor) const;
  // A matrix in Q8_0 or Q4_0 with the values of the file. Error(input) for a scale that is not finite.
  GroupWeight groups(const GgufTensor& tensor) const;
  static bool in_groups(const GgufTensor& tensor);

 private:
  void open();
  GgufValue read_value(const std::string& key);
  void read_tensor(int64_t index);
  std::string read_text(const std::string& what, int64_t max_bytes);
  std::string bytes_of(const GgufTensor& tensor) const;

  Reader file_;
  GgufMetadata metadata_;
  std::vector<GgufTensor> tensors_;
};

// A tensor that is made as it is written. `type` is F32, F16 or BF16, in which `make` must return it, or Q8_0 or Q4_0,
// for which `groups` is called.
struct GgufSource {
  std::string name;
  std::string type;
  Shape shape;
  std::function<Tensor()> make;
  std::function<GroupWeight()> groups = {};
};
// Writes all or nothing. Error(output) when the file cannot be written.
void write_gguf(const std::string& path, const std::vector<std::pair<std::string, GgufValue>>& metadata,
                const std::vector<GgufSource>& tensors);

}  // namespace braid::io
