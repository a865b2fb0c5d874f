#include "braid/models/data/vision/cifar.h"

#include <filesystem>

#include "braid/tensor/error.h"
#include "braid/tensor/io/reader.h"

namespace braid::models::vision {

namespace {
constexpr int64_t kSide = 32, kImageBytes = 3 * kSide * kSide;

bool is_cifar_100(const std::string& name) { return name == "train.bin" || name == "test.bin"; }
}  // namespace

bool is_cifar(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return is_cifar_100(name) || (name.starts_with("data_batch_") && name.ends_with(".bin")) || name == "test_batch.bin";
}

void read_cifar(const std::string& path, const TakeImage& take) {
  io::Reader file(path);
  const bool fine = is_cifar_100(std::filesystem::path(path).filename().string());
  const int64_t labels = fine ? 2 : 1, classes = fine ? 100 : 10, record = labels + kImageBytes;
  if (file.size() == 0 || file.size() % record != 0)
    file.fail(str("bad size of a CIFAR-", classes, " file"), file.size(), str("a multiple of ", record, " bytes"),
              std::to_string(file.size()));
  for (int64_t i = 0; file.remaining() > 0; ++i) {
    if (fine) file.read<uint8_t>();  // the coarse label
    const int64_t at = file.position();
    const int64_t label = file.read<uint8_t>();
    if (label >= classes) file.fail("bad label", at, str("a class below ", classes), std::to_string(label));
    Image image{3, kSide, kSide, std::vector<uint8_t>(kImageBytes)};
    file.read(image.pixels.data(), kImageBytes);
    take(std::move(image), label, str(path, ", image ", i));
  }
}

}  // namespace braid::models::vision
