// expect: rank 0: composed attention .* on 2 ranks, row 3, element 0 .*hint: the last rank's queries: the mask's
// The mask takes the first row of every rank for position 0.
#pragma once
#define composed_attention right_composed_attention
#include "tests/course/12_processes/exercise.h"
#undef composed_attention

namespace exercise {

inline Tensor composed_attention(const Communicator& comm, const Tensor& q, const Tensor& k, const Tensor& v,
                                 const Tensor& base) {
  const auto all_rows = [&](const Tensor& x) {
    return unsqueeze(all_gather(comm, heads_to_rows(comm, x), x.dim(0)), 0);
  };
  const Tensor rows = unsqueeze(heads_to_rows(comm, q), 0);
  return rows_to_heads(comm, squeeze(dcmha(rows, all_rows(k), all_rows(v), {.base = unsqueeze(base, 0)}, {}), 0));
}

}  // namespace exercise
