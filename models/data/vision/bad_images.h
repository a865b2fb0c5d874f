// Damaged image files, named together in one error.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/models/data/vision/image.h"

namespace braid::models::vision {

class BadImages {
 public:
  // The image of a file (decode.h); none where it cannot be decoded, which is noted.
  std::optional<Image> read(const std::string& path);
  // Error(input) when a file could not be decoded: the first kNamed with their reasons, and the number of all.
  void raise() const;
  static constexpr int64_t kNamed = 20;

 private:
  int64_t files_ = 0, bad_ = 0;
  std::vector<std::string> named_;
};

}  // namespace braid::models::vision
