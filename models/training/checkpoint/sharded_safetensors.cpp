#include "braid/models/training/checkpoint/sharded_safetensors.h"

#include <map>

#include "braid/tensor/io/shared_file.h"

namespace braid::models {

ShardedSafetensorsWriter::ShardedSafetensorsWriter(const std::filesystem::path& path,
                                                   const std::vector<LocalTensor>& tensors,
                                                   const io::Metadata& metadata)
    : path_(path.string()), tensors_(tensors) {
  std::vector<io::TensorSource> sources;
  for (const LocalTensor& t : tensors) sources.push_back({t.name, t.dtype, t.shape, {}});
  plan_ = io::plan_safetensors(sources, metadata);
}

void ShardedSafetensorsWriter::create() {
  io::make_shared_file(path_, plan_.bytes);
  writes_header_ = true;
}

void ShardedSafetensorsWriter::write() {
  std::map<std::string, int64_t> offsets;
  for (const io::TensorInfo& info : plan_.tensors) offsets[info.name] = info.offset;
  io::SharedFile file(path_);
  if (writes_header_) file.write(0, plan_.head.data(), static_cast<int64_t>(plan_.head.size()));
  Tensor source, values;  // stored tensors of one parameter share its values: those are brought to the CPU once
  for (const LocalTensor& t : tensors_) {
    if (t.spans.empty()) continue;
    if (!source || source.raw() != t.values.raw()) values = t.values.to(kCpu).contiguous();
    source = t.values;
    const auto* bytes = static_cast<const char*>(values.raw());
    const int64_t size = size_of(t.dtype);
    for (const dist::Span& span : t.spans)
      file.write(offsets.at(t.name) + span.full * size, bytes + span.local * size, span.count * size);
  }
  file.commit();
  checksum_share_ = file.share();
}

}  // namespace braid::models
