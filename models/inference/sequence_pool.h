// The caches of many sequences that are computed together. A pass computes some new tokens of some of the sequences:
// one token of a sequence that is decoding, hundreds of one in prefill.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "braid/tensor/tensor.h"

namespace braid::models {

class LanguageModel;

// Not thread-safe. Over several ranks every rank has a pool, makes the same calls and gets the same answers.
class SequencePool {
 public:
  virtual ~SequencePool() = default;

  // Memory is allocated in blocks of block() positions.
  virtual int64_t block() const = 0;
  virtual int64_t blocks() const = 0;
  virtual int64_t free_blocks() const = 0;
  virtual int64_t bytes() const = 0;  // of the whole pool
  // Blocks that a sequence of `length` positions needs at most (layers with a window need fewer).
  virtual int64_t blocks_for(int64_t length) const = 0;

  virtual int open() = 0;  // a new, empty sequence; its number is reused after close()
  // A new sequence that begins with the first positions of another one, at most `length` of them; whole blocks are
  // shared (copy on write). length() returns how many it got: 0 where nothing can be shared.
  virtual int fork(int of, int64_t length) = 0;
  virtual void close(int sequence) = 0;
  virtual int64_t length(int sequence) const = 0;  // positions that are computed
  // Makes sure that `more` positions can follow; false, and nothing changed, where too few blocks are free.
  virtual bool reserve(int sequence, int64_t more) = 0;

  struct Part {
    int sequence;
    std::span<const int32_t> tokens;  // at least one; they continue the sequence
    // Sampled from the model, not from a prompt: in layers with a window, such tokens attend to one key fewer in one
    // published profile (AttentionOptions::decode_window).
    bool generated = false;
  };
  // Computes the parts (each of a different sequence, with positions reserved) and appends them to the caches.
  // -> the normalised last hidden state (R, D), R the sum of all tokens, in the order of the parts. Without gradients.
  // After an exception the sequences of the parts can only be closed.
  virtual Tensor hidden(std::span<const Part> parts) = 0;

  // Whether the results of a sequence are bit-identical alone and beside any others, and with its tokens in chunks of
  // any size. LanguageModel::logits() of the rows must be called under the same RowInvariantProducts scope.
  virtual bool invariant() const = 0;

 protected:
  SequencePool() = default;
  SequencePool(const SequencePool&) = default;
  SequencePool& operator=(const SequencePool&) = default;
};

// A pool for any language model, which must outlive it: a KvCache for each sequence, computed one after the other.
// Blocks of 16 positions are counted and no memory is shared: fork() copies a sequence if all of its positions are
// requested and enough blocks are free, else the new one is empty. invariant() is false: the chunks in which a prompt
// is computed change the rounding. Error(misuse) for a sequence that is not open, and for tokens without reserved
// positions.
std::unique_ptr<SequencePool> make_separate_pool(const LanguageModel& model, int64_t positions);

}  // namespace braid::models
