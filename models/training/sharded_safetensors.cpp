#include "braid/models/training/sharded_safetensors.h"

#include <map>

#include "braid/tensor/io/shared_file.h"

namespace braid::models {

SharedTensors::SharedTensors(const std::filesystem::path& path, const std::vector<OwnedTensor>& tensors,
                             const io::Metadata& metadata)
    : path_(path.string()), tensors_(tensors) {
  std::vector<io::TensorSource> sources;
  for (const OwnedTensor& t : tensors) sources.push_back({t.name, t.dtype, t.shape, {}});
  plan_ = io::plan_safetensors(sources, metadata);
}

void SharedTensors::make() {
  io::make_shared_file(path_, plan_.bytes);
  made_ = true;
}

void SharedTensors::write() {
  std::map<std::string, int64_t> offsets;
  for (const io::TensorInfo& info : plan_.tensors) offsets[info.name] = info.offset;
  io::SharedFile file(path_);
  if (made_) file.write(0, plan_.head.data(), static_cast<int64_t>(plan_.head.size()));
  for (const OwnedTensor& t : tensors_) {
    if (t.runs.empty()) continue;
    Tensor numbers = t.numbers.to(kCpu).contiguous();
    const auto* bytes = static_cast<const char*>(numbers.raw());
    const int64_t size = size_of(t.dtype);
    for (const dist::Span& run : t.runs)
      file.write(offsets.at(t.name) + run.whole * size, bytes + run.part * size, run.count * size);
  }
  file.commit();
  share_ = file.share();
}

}  // namespace braid::models
