#include "braid/models/data/prepare/read_ahead.h"

#include <algorithm>
#include <system_error>

#include "braid/tensor/parallel.h"

namespace braid::models::text {

ReadAhead::ReadAhead(TextSource& source, int64_t batch_bytes)
    : source_(source),
      batch_bytes_(batch_bytes > 0 ? batch_bytes : std::max<int64_t>(2, threads()) * 2 * piece_bytes) {}

ReadAhead::Batch ReadAhead::read() {
  Batch batch;
  try {
    Piece piece;
    for (int64_t bytes = 0; bytes < batch_bytes_;) {
      if (!source_.next(piece)) {
        batch.last = true;
        break;
      }
      bytes += static_cast<int64_t>(piece.bytes.size() + sizeof piece);
      batch.pieces.push_back(std::move(piece));
    }
  } catch (...) {
    batch.error = std::current_exception();
  }
  return batch;
}

void ReadAhead::run(const Start& start, const Work& work, const Take& take) {
  std::vector<std::exception_ptr> errors;
  for (Batch batch = read(); !batch.pieces.empty() || batch.error;) {
    const bool more = !batch.last && !batch.error;
    if (more) {
      try {
        next_ = std::async(std::launch::async, [this] { return read(); });
      } catch (const std::system_error&) {  // no more threads
        next_ = std::async(std::launch::deferred, [this] { return read(); });
      }
    }
    start(batch.pieces.size());
    errors.assign(batch.pieces.size(), nullptr);
    parallel_for(std::ssize(batch.pieces), 1, [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
        try {
          work(batch.pieces[i], i);
        } catch (...) {
          errors[i] = std::current_exception();
        }
      }
    });
    for (size_t i = 0; i < batch.pieces.size(); ++i) {
      if (errors[i]) std::rethrow_exception(errors[i]);
      take(batch.pieces[i], i);
    }
    if (batch.error) std::rethrow_exception(batch.error);
    if (!more) break;
    batch = next_.get();
  }
}

}  // namespace braid::models::text
