// The pieces of a source in batches: while one batch is worked on by all threads, another one reads the next.
#pragma once
#include <exception>
#include <functional>
#include <future>
#include <vector>

#include "braid/models/data/prepare/source.h"

namespace braid::models::text {

class ReadAhead {
 public:
  // Nothing else may use the source until this object is gone. batch_bytes: of a batch; 0: some MiB a thread.
  explicit ReadAhead(TextSource& source, int64_t batch_bytes = 0);

  // Before a batch `start` learns how many pieces it has. For every piece `work` is called with its place in the batch,
  // on several threads at once, then `take`, in the order of the pieces on the calling thread. An exception of a
  // piece's work, or of reading on behind it, is thrown when all pieces before it were taken. At most two batches are
  // in memory, or two lines of a .jsonl file.
  using Start = std::function<void(size_t pieces)>;
  using Work = std::function<void(const Piece& piece, size_t place)>;
  using Take = std::function<void(const Piece& piece, size_t place)>;
  void run(const Start& start, const Work& work, const Take& take);

 private:
  struct Batch {
    std::vector<Piece> pieces;
    std::exception_ptr error;  // of reading on behind them
    bool last = false;
  };
  Batch read();

  TextSource& source_;
  int64_t batch_bytes_;
  std::future<Batch> next_;
};

}  // namespace braid::models::text
