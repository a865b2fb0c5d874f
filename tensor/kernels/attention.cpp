#include "braid/tensor/kernels/attention.h"

#include <algorithm>
#include <mutex>

#include "braid/tensor/base/lock_at_fork.h"

namespace braid {

namespace {
struct Uses {
  Uses() { detail::lock_at_fork(mutex); }
  std::mutex mutex;
  std::vector<AttentionUse> list;
};
Uses& uses() {
  static Uses* instance = new Uses;  // never destroyed, as its mutex must not be
  return *instance;
}
}  // namespace

std::vector<AttentionUse> attention_uses() {
  std::lock_guard lock(uses().mutex);
  return uses().list;
}

void add_attention_use(const char* pass, const char* kernel, const std::string& reason) {
  std::lock_guard lock(uses().mutex);
  std::vector<AttentionUse>& list = uses().list;
  for (AttentionUse& use : list) {
    if (use.pass != pass || use.kernel != kernel || use.reason != reason) continue;
    ++use.calls;
    return;
  }
  constexpr size_t kMaxUses = 64;  // reasons may name sizes
  if (list.size() < kMaxUses) list.push_back({pass, kernel, reason, 1});
}

std::string text_of(const std::vector<AttentionUse>& all) {
  std::string text;
  for (const AttentionUse& use : all) {
    text += (text.empty() ? "" : "; ") + use.pass + " by " + use.kernel;
    if (!use.reason.empty()) text += " (" + use.reason + ")";
  }
  return text;
}

const char* name(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::decode:
      return "decode";
    case AttentionKernel::sdpa_cudnn:
      return "sdpa_cudnn";
    case AttentionKernel::tensor_core:
      return "tensor_core";
    default:
      return "generic";
  }
}

std::vector<QueryBlock> split_queries(int64_t B, int64_t T, int64_t S, const AttentionMask& mask, int64_t samples,
                                      int64_t rows) {
  std::vector<QueryBlock> blocks;
  for (int64_t b0 = 0; b0 < B; b0 += samples) {
    for (int64_t t0 = 0; t0 < T; t0 += rows) {
      const int64_t t1 = std::min(T, t0 + rows), s1 = mask.end(t1 - 1, S), s0 = std::min(mask.first(t0), s1);
      blocks.push_back({b0, std::min(samples, B - b0), t0, t1 - t0, s0, s1 - s0});
    }
  }
  return blocks;
}

}  // namespace braid
