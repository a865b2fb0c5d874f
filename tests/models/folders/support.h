// Model folders in every form that published ones come in, made from the golden models.
#pragma once
#include <cstring>
#include <functional>
#include <map>

#include "braid/models/families/dcformer/model.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/training/checkpoint/find_model.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/reader.h"
#include "tests/models/support.h"
#include "tests/support/compare.h"
#include "tests/support/places.h"
#include "tests/support/throws.h"

namespace braid::test {

struct FolderData {
  std::string config;  // text of config.json
  std::map<std::string, Tensor> tensors;

  void each(const std::string& last, const std::function<void(const std::string& prefix, Tensor& x)>& change) {
    std::vector<std::string> found;
    for (const auto& [name, x] : tensors)
      if (name.ends_with(last)) found.push_back(name);
    for (const std::string& name : found) change(name.substr(0, name.size() - last.size()), tensors.at(name));
  }
  void to(DType dtype) {
    for (auto& [name, x] : tensors) x = x.to(dtype);
  }
  void separate() {
    for (const std::string kind : {"weight", "bias"}) {
      each("attention.wqkv." + kind, [&](const std::string& prefix, Tensor& fused) {
        const int64_t rows = fused.dim(0) / 3;
        const Tensor whole = fused;
        for (int64_t i : {0, 1, 2})
          tensors[prefix + "attention.w" + "qkv"[i] + "." + kind] = whole.sliced(0, i * rows, (i + 1) * rows).clone();
        tensors.erase(prefix + "attention.wqkv." + kind);
      });
    }
  }
  // dw_m and qkw_m as the published code makes them, in the type of dw1.
  void add_copies() {
    each("dyn_w_proj.dw1", [&](const std::string& prefix, Tensor& dw1) {
      const std::string p = prefix + "dyn_w_proj.";
      const Tensor &dd = tensors.at(p + "dd"), &qkw = tensors.at(p + "qkw");
      const int64_t D = dw1.dim(0), hidden = dw1.numel() / D, gates = dd.numel() / D;
      Tensor dw_m = empty({D, hidden + gates}, dw1.dtype());
      dw_m.sliced(1, 0, hidden).copy_(dw1.reshaped({D, hidden}));
      dw_m.sliced(1, hidden, hidden + gates).copy_(dd.reshaped({D, gates}));
      tensors[p + "dw_m"] = dw_m;
      tensors[p + "qkw_m"] = qkw.clone().reshaped({qkw.dim(1), qkw.dim(2), qkw.dim(3) * qkw.dim(4)});
    });
  }
  void add_identities(DType dtype) {
    each("dyn_w_proj.qkw", [&](const std::string& prefix, Tensor& qkw) {
      const int64_t M = qkw.dim(4);
      std::vector<double> eye(static_cast<size_t>(M * M));
      for (int64_t m = 0; m < M; ++m) eye[static_cast<size_t>(m * M + m)] = 1;
      for (const char* name : {"pre_proj.w", "post_proj.w"})
        tensors[prefix + "dyn_w_proj." + name] = from_vector(eye, {1, M, M}).to(dtype);
    });
  }
  void add_caches() {
    tensors["layers.0.attention.kv_cache.k_cache"] = full({1, 4, 8, 12}, std::nan(""), DType::f16);
    tensors["layers.0.attention.kv_cache.kw_cache"] = zeros({1, 8, 2, 4, 4}, DType::f16);
  }
  void replace(const std::string& text, const std::string& other) {
    const size_t at = config.find(text);
    BOOST_REQUIRE_MESSAGE(at != std::string::npos, text + " is not in the configuration");
    config.replace(at, text.size(), other);
  }

  void write(const std::filesystem::path& folder, int shards = 1) const {
    std::filesystem::create_directories(folder);
    io::write_file((folder / "config.json").string(), config);
    std::map<std::string, std::vector<io::TensorSource>> files;
    int next = 0;
    for (const auto& [name, tensor] : tensors) {
      const Tensor x = tensor;
      files["part-" + std::to_string(next++ % shards) + ".safetensors"].push_back(
          {name, x.dtype(), x.shape(), [x] { return x; }});
    }
    if (shards == 1) {
      io::save_lazily((folder / "model.safetensors").string(), files.begin()->second, {{"format", "pt"}});
    } else {
      io::save_sharded(folder.string(), files, {{"format", "pt"}});
    }
  }
};

inline FolderData read_folder(const std::filesystem::path& folder) {
  FolderData data;
  data.config = io::read_text_file((folder / "config.json").string(), 1 << 20);
  const io::TensorFiles files(folder.string());
  for (const io::TensorInfo& info : files.tensors())
    if (info.loadable) data.tensors[info.name] = files.load(info.name);
  return data;
}
inline FolderData golden_folder(const std::string& name) {
  return read_folder(std::filesystem::path(source_dir() + "/tests/golden") / name);
}

inline bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.numel() * size_of(a.dtype()))) == 0;
}

inline Tensor logits_of(const models::Model& any, int64_t length = 21) {
  const auto& model = dynamic_cast<const models::LanguageModel&>(any);
  NoGrad off;
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 2 * length; ++i) ids.push_back((5 * i * i + 3 * i + 1) % model.vocab_size());
  return model.logits(model.hidden(from_vector(ids, {2, length})));
}

}  // namespace braid::test
