#include "braid/models/data/vision/bad_images.h"

#include "braid/models/data/vision/decode.h"
#include "braid/tensor/base/strings.h"

namespace braid::models::vision {

std::optional<Image> BadImages::read(const std::string& path) {
  ++files_;
  try {
    return read_image(path);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::input) throw;
    const auto* bad = dynamic_cast<const BadImage*>(&e);
    if (++bad_ <= kNamed) named_.push_back(bad ? bad->reason() : e.what());
    return std::nullopt;
  }
}

void BadImages::raise() const {
  check(bad_ == 0, ErrorKind::input, [&] {
    return str("cannot decode ", bad_, " of ", files_,
               files_ == 1 ? " image: " : " images: ", detail::join(named_, "; "),
               bad_ > kNamed ? str("; and ", bad_ - kNamed, " more") : "", "; fix or remove ",
               bad_ == 1 ? "the file" : "these files");
  });
}

}  // namespace braid::models::vision
