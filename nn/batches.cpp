#include "braid/nn/batches.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "braid/autograd/ops.h"
#include "braid/tensor/random.h"

namespace braid::nn {

namespace {

// Below n, from 64 random bits: their product's high half, biased by less than n / 2^64.
int64_t index_below(int64_t n, uint64_t counter, RandomKey key) {
  const Philox4 bits = philox(counter, key);
  const uint64_t wide = (uint64_t{bits.v[0]} << 32) | bits.v[1];
  const auto size = static_cast<uint64_t>(n);
  const uint64_t high = wide >> 32, low = wide & 0xffffffffu;  // wide * size >> 64, for size below 2^32
  return static_cast<int64_t>((high * size + (low * size >> 32)) >> 32);
}

void check_batch_options(int64_t count, const BatchOptions& o) {
  check(count >= 0 && count < (int64_t{1} << 32), "batches",
        [&] { return str("needs from 0 to 2^32 - 1 samples, got ", count); });
  check(o.size >= 1 && o.workers >= 0, "batches", [&] {
    return str("needs a size of at least 1 and no negative number of workers, got ", o.size, " and ", o.workers);
  });
}

}  // namespace

Batches::Batches(int64_t count, Sample sample, const BatchOptions& options) : count_(count), options_(options) {
  check_batch_options(count, options);
  check(bool(sample), "batches", "needs a function that makes a sample");
  collate_ = [sample = std::move(sample)](const std::vector<int64_t>& ids) {
    std::vector<std::vector<Tensor>> members;
    for (const int64_t i : ids) {
      const std::vector<Tensor> one = sample(i);
      members.resize(std::max(members.size(), one.size()));
      for (size_t m = 0; m < one.size(); ++m) members[m].push_back(one[m]);
    }
    Batch batch;
    for (const std::vector<Tensor>& values : members) {
      check(values.size() == ids.size(), "batches", "every sample needs the same number of tensors");
      for (const Tensor& x : values)
        check(x.shape() == values[0].shape(), "batches", [&] {
          return str("samples of one batch have the shapes ", values[0].shape(), " and ", x.shape(),
                     "; pad() them to one shape, or make batches of size 1");
        });
      batch.push_back(stack(values));
    }
    return batch;
  };
}

Batches::Batches(std::vector<Tensor> tensors, const BatchOptions& options) : options_(options) {
  check(!tensors.empty(), "batches", "needs at least one tensor");
  for (const Tensor& x : tensors) {
    check(x.rank() >= 1 && x.dim(0) == tensors[0].dim(0) && x.device() == kCpu, "batches", [&] {
      return str("needs tensors on the CPU with one first size, got ", tensors[0].shape(), " and ", x.shape(), " on ",
                 x.device());
    });
  }
  count_ = tensors[0].dim(0);
  check_batch_options(count_, options);
  collate_ = [tensors = std::move(tensors)](const std::vector<int64_t>& ids) {
    const Tensor list = from_vector(ids, {static_cast<int64_t>(ids.size())});
    Batch batch;
    for (const Tensor& x : tensors) batch.push_back(index_select(x, list));
    return batch;
  };
}

int64_t Batches::size() const {
  return count_ / options_.size + (!options_.drop_last && count_ % options_.size != 0 ? 1 : 0);
}

// Fisher and Yates.
std::vector<int64_t> Batches::order(int64_t epoch) const {
  std::vector<int64_t> ids(static_cast<size_t>(count_));
  std::iota(ids.begin(), ids.end(), int64_t{0});
  if (!options_.shuffle) return ids;
  const RandomKey key = child(RandomKey{options_.seed, 0}, epoch);
  for (int64_t i = count_ - 1; i > 0; --i)
    std::swap(ids[static_cast<size_t>(i)], ids[static_cast<size_t>(index_below(i + 1, static_cast<uint64_t>(i), key))]);
  return ids;
}

// A batch is made by whoever takes its number; slots hold those that were made and not taken by the caller.
struct Batches::Epoch::State {
  struct Made {
    Batch batch;
    std::exception_ptr error;
  };
  Collate collate;
  std::vector<int64_t> order;
  int64_t size = 1, batches = 0, ahead = 0;
  int64_t asked = 0, begun = 0;  // batches that the caller took, that workers began
  bool stop = false;
  std::map<int64_t, Made> slots;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::thread> workers;

  Batch make(int64_t number) const {
    const auto begin = order.begin() + number * size;
    const NoGrad off;
    return collate(std::vector<int64_t>(begin, begin + std::min<int64_t>(size, order.end() - begin)));
  }

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return stop || begun >= batches || begun < asked + ahead; });
      if (stop || begun >= batches) return;
      const int64_t number = begun++;
      lock.unlock();
      Made made;
      try {
        made.batch = make(number);
      } catch (...) {
        made.error = std::current_exception();
      }
      lock.lock();
      slots.emplace(number, std::move(made));
      changed.notify_all();
    }
  }

  ~State() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    changed.notify_all();
    for (std::thread& worker : workers) worker.join();
  }
};

Batches::Epoch::Epoch(std::unique_ptr<State> state) : state_(std::move(state)) {}
Batches::Epoch::Epoch(Epoch&&) noexcept = default;
Batches::Epoch::~Epoch() = default;

bool Batches::Epoch::next(Batch& batch) {
  State& s = *state_;
  batch.clear();
  if (s.asked >= s.batches) return false;
  if (s.workers.empty()) {
    batch = s.make(s.asked++);
    return true;
  }
  State::Made made;
  {
    std::unique_lock lock(s.mutex);
    s.changed.wait(lock, [&] { return s.slots.count(s.asked) != 0; });
    made = std::move(s.slots.extract(s.asked).mapped());
    ++s.asked;
  }
  s.changed.notify_all();
  if (made.error) std::rethrow_exception(made.error);
  batch = std::move(made.batch);
  return true;
}

Batches::Epoch Batches::epoch(int64_t number) const {
  auto state = std::make_unique<Epoch::State>();
  state->collate = collate_;
  state->order = order(number);
  state->size = options_.size;
  state->batches = size();
  state->ahead = options_.workers;
  Epoch::State* s = state.get();
  for (int64_t i = 0; i < options_.workers; ++i) s->workers.emplace_back([s] { s->work(); });
  return Epoch(std::move(state));
}

}  // namespace braid::nn
