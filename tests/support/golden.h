// Comparing with the golden numbers of tests/golden.
#pragma once
#include <string>

#include "braid/autograd/ops.h"
#include "braid/tensor/io/safetensors.h"
#include "tests/support/places.h"

namespace braid::test {

inline const std::string kGolden = source_dir() + "/tests/golden/";
inline constexpr const char* kGoldenAttentions[] = {"attn_full", "attn_query_only", "attn_key_only", "attn_static_g2",
                                                    "attn_noncausal"};

// Compares with the golden tensor of that name where there is one; counts in `seen`.
void compare_golden(const io::SafetensorsFile& want, const std::string& name, const Tensor& got, double tolerance,
                    int& seen);
int golden_results(const io::SafetensorsFile& want);  // tensors of the file that are results, not inputs

// Every value and gradient of a golden attention, computed in `dtype` on `device` on that path.
void check_golden_attention(const std::string& name, DType dtype, double tolerance, AttentionImpl impl,
                            Device device = kCpu);

}  // namespace braid::test
