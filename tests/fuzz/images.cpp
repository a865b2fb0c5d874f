// The first byte chooses the parser: an IDX file (the labels are another part of the input), a CIFAR file, or a PNG or
// JPEG file.
#include <unistd.h>

#include <filesystem>

#include "braid/models/data/vision/cifar.h"
#include "braid/models/data/vision/decode.h"
#include "braid/models/data/vision/idx.h"
#include "braid/tensor/io/atomic_file.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace braid::models::vision;

const std::filesystem::path& scratch() {
  static const std::filesystem::path folder = [] {
    std::filesystem::path path = std::filesystem::temp_directory_path() / ("fuzz-images-" + std::to_string(getpid()));
    std::filesystem::create_directories(path);
    return path;
  }();
  return folder;
}

void ignore(Image, int64_t, const std::string&) {}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  return fuzz([&] {
    switch (data[0] % 4) {
      case 0: {
        const size_t cut = rest.size() * data[1] / 256;
        const std::string images = (scratch() / "f-images-idx3-ubyte").string();
        braid::io::write_file(images, rest.substr(0, cut));
        braid::io::write_file(idx_labels_of(images), rest.substr(cut));
        read_idx(images, ignore);
        break;
      }
      case 1: {
        const std::string path = (scratch() / (data[1] % 2 == 0 ? "train.bin" : "test_batch.bin")).string();
        braid::io::write_file(path, rest);
        read_cifar(path, ignore);
        break;
      }
      default:
        decode_image(std::as_bytes(std::span(rest)), "fuzz");
    }
  });
}
