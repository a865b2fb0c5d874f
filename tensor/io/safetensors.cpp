#include "braid/tensor/io/safetensors.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/checksum.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/weight_index.h"

namespace braid::io {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int64_t max_header_bytes = 100'000'000;  // the published limit
constexpr const char* damaged = "the file is damaged or of another kind";

struct FileType {
  const char* name;
  int64_t bytes;
  bool loadable;
  DType dtype;
};
constexpr FileType file_types[] = {
    {"F64", 8, true, DType::f64}, {"F32", 4, true, DType::f32},     {"BF16", 2, true, DType::bf16},
    {"F16", 2, true, DType::f16}, {"I64", 8, true, DType::i64},     {"I32", 4, true, DType::i32},
    {"U8", 1, true, DType::u8},   {"BOOL", 1, false, DType::u8},    {"I8", 1, false, DType::u8},
    {"I16", 2, false, DType::u8}, {"U16", 2, false, DType::u8},     {"U32", 4, false, DType::u8},
    {"U64", 8, false, DType::u8}, {"F8_E4M3", 1, false, DType::u8}, {"F8_E5M2", 1, false, DType::u8},
};

std::string shown(const json& value) {
  const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

// Reads one entry of the header. `data` is where the data begins in the file, `limit` how many bytes of it there are.
struct HeaderReader {
  const Reader& file;
  int64_t data, limit;

  [[noreturn]] void bad(const std::string& tensor, const std::string& expected, const std::string& found,
                        int64_t byte = 8) const {
    file.fail("bad tensor \"" + tensor + "\"", byte, expected, found, damaged);
  }

  TensorInfo entry(const std::string& name, const json& j) const {
    if (!j.is_object() || j.size() != 3 || !j.contains("dtype") || !j.contains("shape") || !j.contains("data_offsets"))
      bad(name, "an object with dtype, shape and data_offsets", shown(j));
    TensorInfo info{.name = name};
    const json &dtype = j.at("dtype"), &shape = j.at("shape"), &offsets = j.at("data_offsets");
    const FileType* type = nullptr;
    for (const FileType& t : file_types)
      if (dtype == t.name) type = &t;
    if (!type) bad(name, "a known dtype", shown(dtype));
    info.dtype_name = type->name;
    info.dtype = type->dtype;
    info.loadable = type->loadable;
    if (!shape.is_array() || shape.size() > static_cast<size_t>(Shape::max_rank))
      bad(name, str("a shape of at most ", Shape::max_rank, " sizes"), shown(shape));
    int64_t bytes = type->bytes;
    bool has_zero = false, fits = true;
    for (const json& size : shape) {
      if (!size.is_number_unsigned() || size.get<uint64_t>() > INT64_MAX)
        bad(name, "sizes that are integers", shown(shape));
      const auto n = size.get<int64_t>();
      info.shape.push_back(n);
      has_zero = has_zero || n == 0;
      if (n > 0) fits = fits && !__builtin_mul_overflow(bytes, n, &bytes);
    }
    if (!has_zero && !fits) bad(name, "a size that fits 64 bits", shown(shape));
    if (has_zero) bytes = 0;
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned())
      bad(name, "data_offsets as two integers", shown(offsets));
    // The JSON library compares mixed signs as signed: compare numbers, not JSON values.
    const auto first = offsets[0].get<uint64_t>(), last = offsets[1].get<uint64_t>();
    if (first > last || last > static_cast<uint64_t>(limit))
      bad(name, str("data_offsets in order and within the ", limit, " bytes of data"), shown(offsets));
    const auto begin = static_cast<int64_t>(first), end = static_cast<int64_t>(last);
    if (end - begin != bytes)
      bad(name, str(bytes, " bytes for ", info.dtype_name, " ", info.shape), std::to_string(end - begin), data + begin);
    info.offset = data + begin;
    info.bytes = bytes;
    return info;
  }
};

const TensorInfo* find_in(const std::vector<TensorInfo>& sorted, const std::string& name) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), name,
                                   [](const TensorInfo& info, const std::string& n) { return info.name < n; });
  return at != sorted.end() && at->name == name ? &*at : nullptr;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) { open(); }
SafetensorsFile::SafetensorsFile(std::span<const std::byte> memory, const std::string& name) : file_(memory, name) {
  open();
}

void SafetensorsFile::open() {
  if (file_.size() < 8)
    file_.fail("not a safetensors file", 0, "8 bytes of header length", str("a file of ", file_.size()), damaged);
  const auto length = file_.read<uint64_t>();
  const auto max_length = static_cast<uint64_t>(std::min(max_header_bytes, file_.remaining()));
  if (length < 2 || length > max_length)
    file_.fail("not a safetensors file", 0, str("a header of 2 to ", max_length, " bytes"), std::to_string(length),
               damaged);
  const std::string text = file_.read_string(static_cast<int64_t>(length));
  const json header = parse_json(text, file_.path(), 8);
  if (text.front() != '{')  // JSON may begin with blanks or a byte order mark, this format may not
    file_.fail("bad safetensors header", 8, "a JSON object, from its first byte on", shown(text.substr(0, 8)), damaged);
  const HeaderReader reader{file_, file_.position(), file_.remaining()};
  for (const auto& [name, value] : header.items()) {  // in order of the names
    if (name != "__metadata__") {
      tensors_.push_back(reader.entry(name, value));
      continue;
    }
    if (!value.is_object()) file_.fail("bad __metadata__", 8, "an object of strings", shown(value), damaged);
    for (const auto& [key, entry] : value.items()) {
      if (!entry.is_string()) file_.fail("bad __metadata__", 8, "an object of strings", shown(entry), damaged);
      metadata_[key] = entry.get<std::string>();
    }
  }
  // Sorted by place, the tensors must tile the data: no hole, no overlap, nothing behind the last.
  std::vector<const TensorInfo*> by_offset;
  for (const TensorInfo& info : tensors_) by_offset.push_back(&info);
  std::sort(by_offset.begin(), by_offset.end(), [](const TensorInfo* a, const TensorInfo* b) {
    return std::pair(a->offset, a->bytes) < std::pair(b->offset, b->bytes);
  });
  int64_t end = reader.data;
  for (const TensorInfo* info : by_offset) {
    if (info->offset != end)
      reader.bad(info->name, str("its data right behind that of the tensor before, at byte ", end),
                 info->offset < end ? "an overlap" : "a hole", info->offset);
    end += info->bytes;
  }
  if (end != file_.size())
    file_.fail("bytes that belong to no tensor", end, "the end of the file", str(file_.size() - end, " more bytes"),
               damaged);
}

const TensorInfo* SafetensorsFile::find(const std::string& name) const { return find_in(tensors_, name); }

Tensor SafetensorsFile::load(const std::string& name) const {
  const TensorInfo* info = find(name);
  check(info != nullptr, ErrorKind::input, [&] { return "there is no tensor \"" + name + "\" in " + path(); });
  check(info->loadable, ErrorKind::input, [&] {
    return "cannot load the tensor \"" + name + "\" of " + path() +
           ": expected F64, F32, BF16, F16, I64, I32 or U8, found " + info->dtype_name;
  });
  Tensor tensor = empty(info->shape, info->dtype);
  if (info->bytes > 0) file_.read_at(info->offset, tensor.mutable_raw(), info->bytes);
  return tensor;
}

void SafetensorsFile::read(const TensorInfo& tensor, int64_t first, int64_t count, void* into) const {
  const int64_t size = size_of(tensor.dtype);
  check(tensor.loadable && first >= 0 && count >= 0 && (first + count) * size <= tensor.bytes, "safetensors",
        [&] { return "elements outside of the tensor \"" + tensor.name + "\" of " + path(); });
  if (count > 0) file_.read_at(tensor.offset + first * size, into, count * size);
}

TensorFiles::TensorFiles(const std::string& path) : path_(path) {
  namespace fs = std::filesystem;
  std::string index, single = path;
  if (io::is_folder(path)) {
    single = (fs::path(path) / "model.safetensors").string();
    index = (fs::path(path) / "model.safetensors.index.json").string();
    const bool has_single = io::exists(single), has_index = io::exists(index);
    check(has_single || has_index, ErrorKind::input, [&] {
      return "there are no weights in " + path +
             ": expected model.safetensors or model.safetensors.index.json, found " + "neither; check the folder";
    });
    check(!(has_single && has_index), ErrorKind::input, [&] {
      return "it is not clear which weights of " + path + " count: expected model.safetensors or " +
             "model.safetensors.index.json, found both; remove one";
    });
    if (has_single) index.clear();
  } else if (path.ends_with(".json")) {
    index = path;
  }
  if (index.empty()) {
    files_.emplace_back(single);
    metadata_ = files_.front().metadata();
    tensors_ = files_.front().tensors();
    for (const TensorInfo& info : tensors_) file_of_[info.name] = 0;
    return;
  }

  sharded_ = true;
  constexpr int64_t max_index_bytes = 1 << 30;
  const WeightIndex listed = parse_weight_index(read_text_file(index, max_index_bytes), index);
  index_metadata_ = listed.metadata;
  std::map<std::string, size_t> opened;
  for (const auto& [name, file] : listed.file_of) {
    const size_t at = opened.try_emplace(file, files_.size()).first->second;
    if (at == files_.size()) files_.emplace_back((fs::path(index).parent_path() / file).string());
    const TensorInfo* info = files_[at].find(name);
    check(info != nullptr, ErrorKind::input, [&, &name = name] {
      return "the tensor \"" + name + "\" is missing: " + index + " places it in " + files_[at].path() +
             ", which does not have it";
    });
    tensors_.push_back(*info);
    file_of_[name] = at;
  }
  if (!files_.empty()) metadata_ = files_.front().metadata();
  int64_t bytes = 0;
  for (size_t i = 0; i < files_.size(); ++i)
    for (const TensorInfo& info : files_[i].tensors()) {
      const auto at = file_of_.find(info.name);
      check(at != file_of_.end() && at->second == i, ErrorKind::input, [&] {
        return "the tensor \"" + info.name + "\" in " + files_[i].path() + " is not the one that " + index + " lists";
      });
      bytes += info.bytes;
    }
  const auto total = listed.metadata.find("total_size");
  if (total != listed.metadata.end() && json::parse(total->second) != bytes)
    fail_input("bad index of weights", index, -1, str("the \"total_size\" of its tensors, ", bytes, " bytes"),
               total->second, damaged);
}

TensorFiles::TensorFiles(Source source)
    : path_(source.path), tensors_(source.tensors), source_(std::make_shared<const Source>(std::move(source))) {}

std::optional<GroupWeight> TensorFiles::groups(const std::string& name) const {
  return source_ ? source_->groups(name) : std::nullopt;
}

const TensorInfo* TensorFiles::find(const std::string& name) const { return find_in(tensors_, name); }

Tensor TensorFiles::load(const std::string& name) const {
  if (source_ && find(name)) return source_->load(name);
  const auto at = file_of_.find(name);
  check(at != file_of_.end(), ErrorKind::input, [&] { return "there is no tensor \"" + name + "\" in " + path_; });
  return files_[at->second].load(name);
}

std::string TensorFiles::file_of(const std::string& name) const {
  if (source_) return "model.safetensors";
  const auto at = file_of_.find(name);
  check(at != file_of_.end(), ErrorKind::input, [&] { return "there is no tensor \"" + name + "\" in " + path_; });
  return std::filesystem::path(files_[at->second].path()).filename().string();
}

uint32_t save_safetensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata) {
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : tensors) {
    check(static_cast<bool>(tensor), "save_safetensors",
          [&name = name] { return "the tensor \"" + name + "\" is empty"; });
    sources.push_back({name, tensor.dtype(), tensor.shape(), [value = tensor] { return value; }});
  }
  return save_lazily(path, sources, metadata);
}

namespace {
// Wide types first keeps every tensor aligned to its element size; names make the order unique.
std::vector<const TensorSource*> in_order(const std::vector<TensorSource>& tensors) {
  std::vector<const TensorSource*> order;
  for (const TensorSource& entry : tensors) {
    check(!entry.name.empty() && entry.name != "__metadata__", "save_safetensors",
          [&] { return "\"" + entry.name + "\" is no name for a tensor"; });
    order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(), [](const TensorSource* a, const TensorSource* b) {
    return std::pair(-size_of(a->dtype), std::string_view(a->name)) <
           std::pair(-size_of(b->dtype), std::string_view(b->name));
  });
  return order;
}
}  // namespace

SafetensorsPlan plan_safetensors(const std::vector<TensorSource>& tensors, const Metadata& metadata) {
  SafetensorsPlan plan;
  ordered_json header = ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t offset = 0;
  for (const TensorSource* entry : in_order(tensors)) {
    check(!header.contains(entry->name), "save_safetensors",
          [&] { return "the name \"" + entry->name + "\" is given twice"; });
    const char* type = "";
    for (const FileType& f : file_types)
      if (f.loadable && f.dtype == entry->dtype) type = f.name;
    const int64_t bytes = numel(entry->shape) * size_of(entry->dtype);
    header[entry->name] = {{"dtype", type},
                           {"shape", std::vector<int64_t>(entry->shape.begin(), entry->shape.end())},
                           {"data_offsets", {offset, offset + bytes}}};
    plan.tensors.push_back({entry->name, type, entry->dtype, true, entry->shape, offset, bytes});
    offset += bytes;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception&) {
    fail("save_safetensors", "a name or metadata is not UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');  // so that the data begins at a multiple of 8
  check(static_cast<int64_t>(text.size()) <= max_header_bytes, "save_safetensors",
        [&] { return str("the header would have ", text.size(), " bytes, more than readers accept"); });
  const uint64_t length = text.size();
  plan.head.assign(reinterpret_cast<const char*>(&length), sizeof length);
  plan.head += text;
  const auto data = static_cast<int64_t>(plan.head.size());
  for (TensorInfo& info : plan.tensors) info.offset += data;
  plan.bytes = data + offset;
  return plan;
}

uint32_t save_lazily(const std::string& path, const std::vector<TensorSource>& tensors, const Metadata& metadata) {
  const SafetensorsPlan plan = plan_safetensors(tensors, metadata);
  AtomicFile file(path);
  uint32_t crc = 0;
  const auto put = [&](const void* bytes, int64_t n) {
    crc = crc32c(bytes, n, crc);
    file.write(bytes, n);
  };
  put(plan.head.data(), static_cast<int64_t>(plan.head.size()));
  for (const TensorSource* entry : in_order(tensors)) {
    const Tensor t = entry->make().detach().to(kCpu).contiguous();
    check(t.dtype() == entry->dtype && t.shape() == entry->shape, "save_safetensors",
          [&] { return "the tensor \"" + entry->name + "\" is not what was announced"; });
    if (t.numel() > 0) put(t.raw(), t.numel() * size_of(t.dtype()));
  }
  file.commit();
  return crc;
}

void save_sharded(const std::string& folder, const std::map<std::string, std::vector<TensorSource>>& files,
                  const Metadata& metadata, const Metadata& index_metadata) {
  WeightIndex index{{}, index_metadata};
  int64_t bytes = 0, elements = 0;
  for (const auto& [file, tensors] : files) {
    for (const TensorSource& t : tensors) {
      check(index.file_of.try_emplace(t.name, file).second, "save_safetensors",
            [&] { return "the name \"" + t.name + "\" is given twice"; });
      elements += numel(t.shape);
      bytes += numel(t.shape) * size_of(t.dtype);
    }
  }
  const std::filesystem::path where(folder);
  for (const auto& [file, tensors] : files) save_lazily((where / file).string(), tensors, metadata);
  write_file((where / "model.safetensors.index.json").string(), weight_index_text(index, bytes, elements));
}

}  // namespace braid::io
