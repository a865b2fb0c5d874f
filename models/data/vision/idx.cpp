#include "braid/models/data/vision/idx.h"

#include <filesystem>

#include "braid/models/data/prepare/byte_stream.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"

namespace braid::models::vision {

namespace fs = std::filesystem;

namespace {

// An IDX file of bytes: 0 0 8 axes, the sizes of the axes (big-endian), the values.
class IdxStream {
 public:
  IdxStream(const std::string& path, int axes) : path_(path), stream_(text::open_stream(path)) {
    unsigned char head[4];
    exactly(head, 4);
    if (head[0] != 0 || head[1] != 0 || head[2] != 8 || head[3] != axes)
      fail("bad IDX header", 0, str("0 0 8 ", axes, " (bytes, ", axes, " axes)"),
           str(head[0], " ", head[1], " ", head[2], " ", head[3]));
    for (int a = 0; a < axes; ++a) {
      unsigned char b[4];
      exactly(b, 4);
      sizes.push_back(int64_t{b[0]} << 24 | b[1] << 16 | b[2] << 8 | b[3]);
    }
  }
  std::vector<int64_t> sizes;

  void exactly(unsigned char* into, int64_t n) {
    for (int64_t got = 0; got < n;) {
      const int64_t some = stream_->read(reinterpret_cast<char*>(into) + got, n - got);
      if (some == 0) fail("the file ends too early", at_ + got, str(n, " bytes"), std::to_string(got));
      got += some;
    }
    at_ += n;
  }
  void at_end() {
    char more;
    if (stream_->read(&more, 1) != 0) fail("the file continues behind its values", at_, "its end", "more bytes");
  }
  [[noreturn]] void fail(const std::string& what, int64_t byte, const std::string& expected, const std::string& found) {
    io::fail_input(what, path_, byte, expected, found, "");
  }

 private:
  std::string path_;
  std::unique_ptr<text::ByteStream> stream_;
  int64_t at_ = 0;  // of the decompressed bytes
};

std::string with(std::string name, const std::string& from, const std::string& to) {
  const size_t at = name.rfind(from);
  return at == std::string::npos ? name : name.replace(at, from.size(), to);
}

}  // namespace

bool is_idx_images(const std::string& path) {
  const std::string name = fs::path(text::without_compression(path)).filename().string();
  return name.find("images") != std::string::npos && name.ends_with("idx3-ubyte");
}

std::string idx_labels_of(const std::string& images) {
  const fs::path path = images;
  return (path.parent_path() / with(with(path.filename().string(), "images", "labels"), "idx3", "idx1")).string();
}

void read_idx(const std::string& path, const TakeImage& take) {
  const std::string label_path = idx_labels_of(path);
  check(io::exists(label_path), ErrorKind::input, [&] {
    return "the labels of " + path + " are missing: expected " + label_path + " beside it, found no such file";
  });
  IdxStream images(path, 3), labels(label_path, 1);
  const int64_t n = images.sizes[0], H = images.sizes[1], W = images.sizes[2];
  if (H < 1 || W < 1 || H > kMaxSide || W > kMaxSide || H * W > kMaxPixels)
    images.fail("bad size of images", 8, str("sides from 1 to ", kMaxSide, " and at most ", kMaxPixels, " pixels"),
                str(H, " x ", W));
  if (labels.sizes[0] != n)
    labels.fail("another number of labels than of images in " + path, 4, std::to_string(n),
                std::to_string(labels.sizes[0]));
  for (int64_t i = 0; i < n; ++i) {
    Image image{1, H, W, std::vector<uint8_t>(static_cast<size_t>(H * W))};
    images.exactly(image.pixels.data(), H * W);
    unsigned char label;
    labels.exactly(&label, 1);
    take(std::move(image), label, str(path, ", image ", i));
  }
  images.at_end();
  labels.at_end();
}

}  // namespace braid::models::vision
