// Attention by its definition, one pair (query i, key j) at a time, in f64.
#pragma once
#include "braid/autograd.h"
#include "tests/support/op_table.h"

namespace braid::test {

double element(const Array& x, std::initializer_list<int64_t> index);

// in: q, k, v, then for dcmha base, q_down, q_up, k_down, k_up, q_gate, k_gate of pre and of post, and then a bias,
// where options.bias is any tensor. Reads every option that changes a value; options.attend on the CPU.
Array attention_by_loops(const std::vector<Array>& in, const DcmhaOptions& options);

}  // namespace braid::test
