#include "braid/models/folders/weight_format.h"

#include <cstdio>
#include <cstring>

#include "braid/tensor/base/strings.h"

namespace braid::models {

std::string WeightFormat::describe() const {
  std::set<std::string> types;
  for (const StoredTensor& t : tensors) types.insert(str(t.dtype));
  std::string text = detail::join({types.begin(), types.end()}, ", ");
  for (const std::string& remark : remarks) text += "; " + remark;
  return text;
}

void WeightProblems::add(const std::string& text) {
  if (++found_ > kShown) list_.pop_back();  // the first ones and the last one
  list_.push_back(text);
}

void WeightProblems::raise(const std::string& folder) const {
  check(found_ == 0, ErrorKind::input, [&] {
    std::vector<std::string> shown = list_;
    if (found_ > kShown) shown.insert(shown.end() - 1, str(found_ - kShown, " more like these"));
    return "the weights in " + folder + " do not fit the model: " + detail::join(shown, "; ") +
           (explanation_.empty() ? "" : "; " + explanation_);
  });
}

void check_stored(const io::TensorInfo& info, const Shape& shape, WeightProblems& problems) {
  if (!(info.shape == shape)) {
    problems.add(str(info.name, " has shape ", info.shape, ", expected ", shape));
  } else if (!info.loadable || !is_float(info.dtype)) {
    problems.add(str(info.name, " ", shape, " has type ", info.dtype_name, ", expected F64, F32, BF16 or F16"));
  }
}

bool equal_bytes(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() &&
         std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.numel() * size_of(a.dtype()))) == 0;
}

Tensor WeightReader::load(const std::string& name) {
  Tensor x = files_.load(name);
  if (reported_.count(name) == 0 && !nn::all_finite(x)) {
    reported_.insert(name);
    problems_.add(str(name, " ", x.shape(), " contains NaN or Inf"));
  }
  return x;
}

Tensor WeightReader::convert(const std::string& name, const Tensor& x) {
  Tensor y = x.to(dtype_);
  if (size_of(dtype_) < size_of(x.dtype()) || (dtype_ == DType::f16 && x.dtype() == DType::bf16)) {
    if (!nn::all_finite(y) && reported_.insert(name).second)
      problems_.add(str(name, " ", x.shape(), " holds values too large for ", dtype_));
  }
  return y;
}

WeightFormat stored_tensors(const io::TensorFiles& files, const std::function<bool(const std::string&)>& ignored) {
  WeightFormat format;
  for (const io::TensorInfo& info : files.tensors()) {
    if (ignored && ignored(info.name)) continue;
    format.tensors.push_back({info.name, info.dtype, info.shape, files.file_of(info.name)});
  }
  format.metadata = files.metadata();
  format.sharded = files.sharded();
  format.index_metadata = files.index_metadata();
  return format;
}

void split_files(WeightFormat& format, int64_t max_bytes) {
  std::vector<size_t> shard_of;
  size_t shard = 0;
  int64_t filled = 0;
  for (const StoredTensor& t : format.tensors) {
    const int64_t bytes = numel(t.shape) * size_of(t.dtype);
    if (max_bytes > 0 && filled > 0 && filled + bytes > max_bytes) {
      ++shard;
      filled = 0;
    }
    shard_of.push_back(shard);
    filled += bytes;
  }
  format.sharded = shard > 0;
  for (size_t i = 0; i < shard_of.size(); ++i) {
    char name[64] = "model.safetensors";
    if (format.sharded)
      std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", shard_of[i] + 1, shard + 1);
    format.tensors[i].file = name;
  }
}

void write_tensors(const WeightFormat& format, const std::filesystem::path& folder,
                   const std::function<Tensor(const StoredTensor&)>& value) {
  std::map<std::string, std::vector<io::TensorSource>> files;
  for (const StoredTensor& t : format.tensors) {
    files[t.file].push_back({t.name, t.dtype, t.shape, [t, value] {
                               const Tensor x = value(t);
                               Tensor stored = x.to(t.dtype);
                               check(nn::all_finite(stored), ErrorKind::numerical, [&] {
                                 return str(t.name, " cannot be stored as ", t.dtype, ": ",
                                            nn::all_finite(x) ? "it holds larger values; choose a wider type"
                                                              : "it contains NaN or Inf");
                               });
                               return stored;
                             }});
  }
  if (format.sharded) {
    io::save_sharded(folder.string(), files, format.metadata, format.index_metadata);
  } else {
    check(files.size() == 1, "write_tensors", "a format without index has one file");
    io::save_lazily((folder / files.begin()->first).string(), files.begin()->second, format.metadata);
  }
}

}  // namespace braid::models
