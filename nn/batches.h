// Batches of tensors or of a data set, in an order that is a function of the seed and the epoch alone.
//
//   const nn::Batches batches({images, labels}, {.size = 64, .shuffle = true, .seed = 1, .workers = 2});
//   for (const std::vector<Tensor>& batch : batches.epoch(3)) step(batch[0], batch[1]);
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "braid/tensor/tensor.h"

namespace braid::nn {

struct BatchOptions {
  int64_t size = 32;  // samples of a batch
  bool shuffle = false;
  uint64_t seed = 0;
  int64_t workers = 0;     // threads that make batches ahead; 0: made when they are asked for
  bool drop_last = false;  // a last batch of fewer samples
};

class Batches {
 public:
  using Batch = std::vector<Tensor>;
  // Sample i; its tensors have the same shapes for every i. Called by several workers at a time.
  using Sample = std::function<std::vector<Tensor>(int64_t i)>;
  // Its tensors, for these samples.
  using Collate = std::function<Batch(const std::vector<int64_t>& ids)>;

  // `count` samples, which are stacked along a new first axis.
  Batches(int64_t count, Sample sample, const BatchOptions& options);
  // Rows of tensors on the CPU with one first size: sample i is row i of each.
  Batches(std::vector<Tensor> tensors, const BatchOptions& options);

  int64_t size() const;                             // batches of an epoch
  std::vector<int64_t> order(int64_t epoch) const;  // the samples of an epoch

  // The batches of an epoch. The workers stop when it ends. They hold at most `workers` batches that were not taken
  // yet, and one each that is being made. What one of them throws arrives at the caller in place of that batch.
  class Epoch;
  Epoch epoch(int64_t number) const;

 private:
  int64_t count_ = 0;
  Collate collate_;
  BatchOptions options_;
};

class Batches::Epoch {
 public:
  ~Epoch();
  Epoch(Epoch&&) noexcept;
  Epoch& operator=(Epoch&&) = delete;
  bool next(Batch& batch);  // false after the last one

  class Iterator {
   public:
    explicit Iterator(Epoch* epoch) : epoch_(epoch) { ++*this; }
    const Batch& operator*() const { return batch_; }
    Iterator& operator++() {
      if (!epoch_->next(batch_)) epoch_ = nullptr;
      return *this;
    }
    bool operator!=(std::nullptr_t) const { return epoch_ != nullptr; }

   private:
    Epoch* epoch_;
    Batch batch_;
  };
  Iterator begin() { return Iterator(this); }
  std::nullptr_t end() const { return nullptr; }

 private:
  friend class Batches;
  struct State;
  explicit Epoch(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace braid::nn
