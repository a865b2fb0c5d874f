#include "braid/cuda/matmul/algorithm_file.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/path_status.h"

namespace braid::cuda {

namespace {

constexpr int64_t kMaxBytes = 16 << 20;

// The place that is read, for messages: "run/matmul.json: products[3].key".
struct Field {
  std::string text;

  Field of(const std::string& name) const { return {text + name}; }
  void require(bool holds, const std::string& expected) const {
    check(holds, ErrorKind::input,
          [&] { return text + ": expected " + expected + "; delete the file to measure anew"; });
  }
};

const nlohmann::json& member(const nlohmann::json& object, const char* name, const Field& at) {
  at.require(object.is_object() && object.contains(name), str("an object with '", name, "'"));
  return object.at(name);
}

int64_t integer(const nlohmann::json& value, const Field& at) {
  // Unsigned values beyond int64_t would wrap.
  at.require(value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX),
             "an integer of 64 bits");
  return value.get<int64_t>();
}

uint64_t word(const nlohmann::json& value, const Field& at) {
  uint64_t bits = 0;
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  bool whole = text.size() > 2 && text.size() <= 18 && text.starts_with("0x");
  if (whole) {
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
    whole = error == std::errc() && end == text.data() + text.size();
  }
  at.require(whole, "a word of 64 bits as \"0x...\"");
  return bits;
}

std::string hexadecimal(uint64_t bits) {
  char digits[16];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, bits, 16);
  return "0x" + std::string(digits, end);
}

// Calls read(element, field) for the elements of an array of exactly `size`.
template <class Read>
void each(const nlohmann::json& array, size_t size, const Field& at, Read&& read) {
  at.require(array.is_array() && array.size() == size, str(size, " elements"));
  for (size_t i = 0; i < size; ++i) read(i, array[i], at.of(str("[", i, "]")));
}

}  // namespace

AlgorithmFile::AlgorithmFile(std::string path, std::string gpu, int64_t library_version, size_t max_products)
    : path_(std::move(path)), gpu_(std::move(gpu)), library_version_(library_version), max_products_(max_products) {
  measures_ = !io::exists(path_);
  if (!measures_) read();
}

void AlgorithmFile::read() {
  const nlohmann::json root = io::read_json_file(path_, kMaxBytes);
  const Field whole{path_}, file{path_ + ": "};
  const nlohmann::json& gpu = member(root, "gpu", whole);
  file.of("gpu").require(gpu.is_string(), "the name of a GPU");
  const int64_t version = integer(member(root, "cublaslt", whole), file.of("cublaslt"));
  check(gpu.get<std::string>() == gpu_ && version == library_version_, ErrorKind::setting, [&] {
    return str(path_, " was measured on ", gpu.get<std::string>(), " with cuBLASLt ", version, ", here is ", gpu_,
               " with cuBLASLt ", library_version_,
               ": set BRAID_MATMUL_ALGORITHMS to a file of this GPU, to one that does not exist yet, or not at all");
  });
  const nlohmann::json& products = member(root, "products", whole);
  const Field list = file.of("products");
  list.require(products.is_array() && products.size() <= max_products_, str("a list of at most ", max_products_));
  each(products, products.size(), list, [&](size_t, const nlohmann::json& product, const Field& at) {
    ProductKey key{};
    Measured measured{};
    each(member(product, "key", at), key.size(), at.of(".key"),
         [&](size_t i, const nlohmann::json& value, const Field& element) { key[i] = integer(value, element); });
    each(member(product, "algorithm", at), measured.algorithm.size(), at.of(".algorithm"),
         [&](size_t i, const nlohmann::json& value, const Field& element) {
           measured.algorithm[i] = word(value, element);
         });
    const nlohmann::json& time = member(product, "microseconds", at);
    at.of(".microseconds").require(time.is_number() && time.get<double>() >= 0, "a time");
    measured.microseconds = time.get<double>();
    at.require(products_.emplace(key, measured).second, "every product once");
  });
}

const Algorithm* AlgorithmFile::find(const ProductKey& key) const {
  std::lock_guard lock(mutex_);
  const auto it = products_.find(key);
  return it == products_.end() ? nullptr : &it->second.algorithm;
}

bool AlgorithmFile::measures() const {
  std::lock_guard lock(mutex_);
  return measures_ && products_.size() < max_products_;
}

bool AlgorithmFile::add(const ProductKey& key, const Algorithm& algorithm, double microseconds) {
  std::lock_guard lock(mutex_);
  if (products_.size() >= max_products_ && !products_.contains(key)) return false;
  products_[key] = {algorithm, microseconds};
  write();
  return true;
}

void AlgorithmFile::write() const {  // a product a line
  std::string text = nlohmann::json{{"gpu", gpu_}, {"cublaslt", library_version_}}.dump();
  text.back() = ',';
  text += "\n\"products\": [";
  const char* separator = "\n";
  for (const auto& [key, measured] : products_) {
    nlohmann::json words = nlohmann::json::array();
    for (uint64_t bits : measured.algorithm) words.push_back(hexadecimal(bits));
    const double rounded = std::round(measured.microseconds * 100) / 100;
    text += separator + nlohmann::json{{"key", key}, {"algorithm", words}, {"microseconds", rounded}}.dump();
    separator = ",\n";
  }
  io::write_file(path_, text + "\n]}\n");
}

AlgorithmFile* algorithm_file(const std::string& gpu, int64_t library_version) {
  static std::mutex mutex;
  static std::unique_ptr<AlgorithmFile> file;
  static std::string opened_for;
  const char* path = std::getenv("BRAID_MATMUL_ALGORITHMS");
  if (!path || !*path) return nullptr;
  std::lock_guard lock(mutex);
  if (!file || file->path() != path) {
    file = std::make_unique<AlgorithmFile>(path, gpu, library_version);
    opened_for = gpu;
  }
  check(opened_for == gpu, ErrorKind::setting, [&] {
    return str("BRAID_MATMUL_ALGORITHMS=", path, " holds the algorithms of one kind of GPU, found ", opened_for,
               " and ", gpu, " in one process");
  });
  return file.get();
}

}  // namespace braid::cuda
