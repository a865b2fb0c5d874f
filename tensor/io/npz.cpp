#include "braid/tensor/io/npz.h"

#include <algorithm>
#include <set>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/io/npy_format.h"
#include "braid/tensor/io/zip_file.h"
#include "braid/tensor/io/zip_writer.h"

namespace braid::io {
namespace {

constexpr std::string_view array_ending = ".npy";

std::string str_of_names(const std::vector<std::string>& names) {
  constexpr size_t most = 12;
  std::vector<std::string> shown;
  for (const std::string& name : names)
    if (shown.size() < most) shown.push_back(detail::preview(name));
  if (names.size() > most) shown.push_back("...");
  return names.empty() ? "no arrays" : detail::join(shown, ", ");
}

}  // namespace

NpzFile::NpzFile(const std::string& path) : zip_(std::make_shared<ZipFile>(path)) {}
NpzFile::NpzFile(std::span<const std::byte> memory, const std::string& name)
    : zip_(std::make_shared<ZipFile>(memory, name)) {}

const std::string& NpzFile::path() const { return zip_->path(); }

std::vector<std::string> NpzFile::names() const {
  std::vector<std::string> names;
  for (const ZipEntry& entry : zip_->entries())
    if (entry.name.ends_with(array_ending))
      names.push_back(entry.name.substr(0, entry.name.size() - array_ending.size()));
  return names;
}

bool NpzFile::contains(const std::string& name) const {
  return std::ranges::find(zip_->entries(), name + std::string(array_ending), &ZipEntry::name) != zip_->entries().end();
}

Tensor NpzFile::load(const std::string& name) const {
  const auto entry = std::ranges::find(zip_->entries(), name + std::string(array_ending), &ZipEntry::name);
  check(entry != zip_->entries().end(), ErrorKind::input, [&] {
    return "there is no array \"" + name + "\" in " + path() + ": expected one of its names, which are " +
           str_of_names(names());
  });
  Tensor x;
  zip_->open(*entry, [&](const ZipFile::Read& read) {
    x = read_npy({path() + ": " + detail::preview(entry->name), entry->bytes, read});
  });
  return x;
}

std::vector<NamedTensor> load_npz(const std::string& path) {
  const NpzFile file(path);
  std::vector<NamedTensor> all;
  for (const std::string& name : file.names()) all.emplace_back(name, file.load(name));
  return all;
}

void save_npz(const std::string& path, const std::vector<NamedTensor>& tensors, NpzOptions options) {
  constexpr const char* op = "save_npz";
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    check(static_cast<bool>(tensor), op, [&name = name] { return "the tensor \"" + name + "\" is empty"; });
    check(!name.empty() && name.size() < 65'000 && name.find('\0') == std::string::npos, op,
          [&name = name] { return "\"" + detail::preview(name) + "\" is no name for an array"; });
    check(names.insert(name).second, op, [&name = name] { return "the name \"" + name + "\" is given twice"; });
    npy_head(tensor.dtype(), tensor.shape(), op);  // throws where NumPy lacks the type, before the file is made
  }
  ZipWriter zip(path);
  for (const auto& [name, tensor] : tensors) {
    const Tensor x = tensor.detach().to(kCpu).contiguous();
    const std::string head = npy_head(x.dtype(), x.shape(), op);
    const std::span data(static_cast<const std::byte*>(x.raw()), static_cast<size_t>(x.numel() * size_of(x.dtype())));
    zip.add(name + std::string(array_ending), {std::as_bytes(std::span(head)), data}, options.compressed);
  }
  zip.commit();
}

}  // namespace braid::io
