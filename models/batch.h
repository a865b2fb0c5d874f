// A mini-batch: named tensors whose first axis is the sample. Each family of models defines which names it reads.
//
//   text     input_ids (B, T), targets (B, T)     i32 or i64; a negative target is not counted (text_batch)
//            positions (B, T), optional           the position of each token in its document, for document masking.
//                                                 Always on the CPU, which plans attention by it
//   pairs    source_lengths (B), optional         symbols that each source has, the others are padding; i32 or i64.
//                                                 Always on the CPU
//   any      sample_keys (B) i64, optional        in training: keys of the dropout of each sample; without them there
//                                                 is none. Always on the CPU
//            sources (B) i64, optional            in training: the source of each sample, from 0; the trainer then
//                                                 gives the loss of each. Always on the CPU
//   preferences reference_losses (B) f64         text whose samples are pairs of sequences, the chosen and the rejected
//                                                 one in turn: the loss of the reference (training/preferences.h)
#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "braid/nn/module.h"
#include "braid/nn/sample_random.h"

namespace braid::models {

inline constexpr const char* kPositions = "positions";
inline constexpr const char* kSourceLengths = "source_lengths";
inline constexpr const char* kSampleKeys = "sample_keys";
inline constexpr const char* kSources = "sources";
inline constexpr const char* kReferenceLosses = "reference_losses";

class Batch {
 public:
  Batch() = default;
  Batch(std::initializer_list<nn::NamedTensor> tensors) : tensors_(tensors) {}

  // The tensor of this name, a handle. Error(input) names the missing tensor and those that exist.
  Tensor at(const std::string& name) const;
  bool has(const std::string& name) const;
  void add(nn::NamedTensor tensor) { tensors_.push_back(std::move(tensor)); }
  const std::vector<nn::NamedTensor>& tensors() const { return tensors_; }
  // B, the size of the first axis, which all tensors share; 0 for a batch without tensors.
  int64_t samples() const;
  // The samples [begin, end), as copies.
  Batch slice(int64_t begin, int64_t end) const;
  Batch to(Device device) const;  // but for what is always on the CPU

 private:
  std::vector<nn::NamedTensor> tensors_;
};

// input_ids, targets and, unless empty, positions, all (B, T).
Batch text_batch(const Tensor& input_ids, const Tensor& targets, const Tensor& positions = {});

// The random numbers of a training pass, by the sample_keys of the batch; none without them.
nn::SampleRandom sample_random(const Batch& batch);
void check_keys_and_sources(const Batch& batch);  // of samples: Error(input) unless they are i64 (B), or not there

}  // namespace braid::models
