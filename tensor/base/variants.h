// Which of the compiled instruction sets is in use: each kernel folder holds a table of its kernels per instruction
// set.
#pragma once
#include <atomic>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "braid/tensor/error.h"

namespace braid::detail {

// Tables that this processor can run, the best first. Kernels has a member `name`.
template <class Kernels>
class Variants {
 public:
  explicit Variants(std::vector<const Kernels*> found) : all_(std::move(found)) {
    check(!all_.empty(), ErrorKind::setting,
          "this build holds kernels for the processor on which it was configured (BRAID_KERNELS=host), and this "
          "processor, "
          "or BRAID_INSTRUCTIONS, does not allow them; build with -DBRAID_KERNELS=all");
  }

  std::span<const Kernels* const> all() const { return all_; }
  const Kernels& in_use() const { return *all_[chosen_.load(std::memory_order_relaxed)]; }

  // From now on use the table of this name, the best for "". False when this processor cannot run it.
  bool use(std::string_view name) {
    for (size_t i = 0; i < all_.size(); ++i) {
      if (!name.empty() && all_[i]->name != name) continue;
      chosen_ = i;
      return true;
    }
    return false;
  }

 private:
  std::vector<const Kernels*> all_;
  std::atomic<size_t> chosen_{0};
};

}  // namespace braid::detail
