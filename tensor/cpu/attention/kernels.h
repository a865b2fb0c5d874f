// The vector code of one instruction set as a table.
#pragma once
#include "braid/tensor/cpu/attention/backward.h"
#include "braid/tensor/cpu/attention/decode.h"
#include "braid/tensor/cpu/attention/forward.h"

namespace braid::cpu::attention::BRAID_ATTENTION_ISA {

template <class T>
constexpr Kernels<T> kernels_named(const char* name) {
  return {name,
          kLanes<T>,
          kPairs<T>,
          kTiles<T>,
          pack_key_vector<T>,
          [](const Problem<T>& p) { return Forward<T>(p, nullptr).bytes(); },
          [](const Problem<T>& p, const Task& task, void* workspace) { Forward<T>(p, workspace).run(task); },
          [](const Problem<T>& p) { return Backward<T>(p, nullptr).bytes(); },
          [](const Problem<T>& p, const Task& task, const Ticket& ticket, void* workspace) {
            Backward<T>(p, workspace).run(task, ticket);
          },
          [](const Problem<T>& p) { return Decode<T>::bytes(p); },
          [](const Problem<T>& p, const DecodeTask<T>& task, void* space) { Decode<T>(p, task, space).scores(); },
          [](T* tops, const T* sums, int64_t heads, int64_t stride, int64_t segments) {
            V<T> top, sum;
            for (int64_t m = 0; m < heads; m += kLanes<T>) join_parts(tops + m, sums + m, stride, segments, top, sum);
          },
          [](const Problem<T>& p, const DecodeTask<T>& task, void* space) { Decode<T>(p, task, space).values(); }};
}

}  // namespace braid::cpu::attention::BRAID_ATTENTION_ISA
