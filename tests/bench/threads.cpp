// How a training step and a token of generation would run on more threads than this machine has. One thread runs them,
// cut as for so many, and each piece is timed. From these times follow the schedules of the pool (each thread begins
// with neighbours, then takes pieces of the others; of tasks, each thread the next), and without taking from others.
// It is what the cut of the work allows: threads here share no memory bus, caches or power, a loop costs no time to
// begin, and a task waits for no other. "measured_ms": with real threads, for as many as there are processors.
// Usage: bench_threads [preset=dcformer-tiny] [threads=1,2,4,8,16,32,64] [dtype=f32|bf16] [batch=8] [seq_len=0]
//   [context=256] [repeat=3] [loops=6] [model key=value ...]      prints one JSON object per line
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "arguments.h"
#include "braid/autograd.h"
#include "braid/models/language_model.h"
#include "braid/models/registry.h"
#include "braid/models/training/trainer.h"
#include "braid/tensor/base/parallel_record.h"
#include "braid/tensor/parallel.h"

using namespace braid;
using detail::ParallelLoop;
using detail::ParallelRecord;

namespace {

std::map<std::string, std::string> settings = {{"preset", "dcformer-tiny"},
                                               {"threads", "1,2,4,8,16,32,64"},
                                               {"dtype", "f32"},
                                               {"batch", "8"},
                                               {"seq_len", "0"},
                                               {"context", "256"},
                                               {"repeat", "3"},
                                               {"loops", "6"}};
int64_t number(const char* key) { return std::stoll(settings.at(key)); }

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// How long `threads` threads take for the pieces of a loop. `helping`: as the pool does; otherwise each does its own.
double schedule(const ParallelLoop& loop, int threads, bool helping) {
  const auto pieces = static_cast<int64_t>(loop.seconds.size());
  const auto count = static_cast<size_t>(threads);
  std::vector<double> at(count, 0);
  std::vector<int64_t> next(count), end(count);
  for (int64_t t = 0; t < threads; ++t) {
    next[static_cast<size_t>(t)] = pieces * t / threads;
    end[static_cast<size_t>(t)] = pieces * (t + 1) / threads;
  }
  if (loop.tasks && helping) {  // one queue
    for (const double seconds : loop.seconds) *std::min_element(at.begin(), at.end()) += seconds;
    return *std::max_element(at.begin(), at.end());
  }
  if (!helping) {
    for (size_t t = 0; t < count; ++t)
      for (int64_t i = next[t]; i < end[t]; ++i) at[t] += loop.seconds[static_cast<size_t>(i)];
    return *std::max_element(at.begin(), at.end());
  }
  for (int64_t done = 0; done < pieces; ++done) {  // who is free first takes a piece
    const auto t = static_cast<size_t>(std::min_element(at.begin(), at.end()) - at.begin());
    for (size_t i = 0; i < count; ++i) {
      const size_t from = (t + i) % count;
      if (next[from] == end[from]) continue;
      at[t] += loop.seconds[static_cast<size_t>(next[from]++)];
      break;
    }
  }
  return *std::max_element(at.begin(), at.end());
}

struct Loops {  // of one line of the source
  int64_t calls = 0, pieces = 0;
  double before = 0, work = 0, taken = 0;
};

void print(const char* part, int threads, const ParallelRecord& record, double measured) {
  double serial = record.after, work = 0, helped = 0, alone = 0;
  std::map<std::string, Loops> places;
  for (const ParallelLoop& loop : record.loops) {
    const double taken = schedule(loop, threads, true);
    serial += loop.before;
    work += sum(loop.seconds);
    helped += taken;
    alone += schedule(loop, threads, false);
    const std::string_view path = loop.where.file;
    const size_t root = path.rfind("/tensor/") == path.npos ? 0 : path.rfind("/tensor/") + 1;
    Loops& of_place = places[std::string(path.substr(root)) + ":" + std::to_string(loop.where.line)];
    ++of_place.calls;
    of_place.pieces += std::ssize(loop.seconds);
    of_place.before += loop.before;
    of_place.work += sum(loop.seconds);
    of_place.taken += taken;
  }
  std::printf(
      "{\"part\": \"%s\", \"threads\": %d, \"work_ms\": %.3f, \"serial_ms\": %.3f, \"ms\": %.3f, \"speedup\": %.2f, "
      "\"own_pieces_only_ms\": %.3f, \"loops\": %zu",
      part, threads, 1e3 * (serial + work), 1e3 * serial, 1e3 * (serial + helped), (serial + work) / (serial + helped),
      1e3 * (serial + alone), record.loops.size());
  if (measured > 0) std::printf(", \"measured_ms\": %.3f", 1e3 * measured);
  std::printf("}\n");
  // Where the time is lost: beyond the work's share of each thread, and on one thread before the loop.
  std::vector<std::pair<double, std::string>> lost;
  for (const auto& [place, loops] : places) lost.emplace_back(loops.before + loops.taken - loops.work / threads, place);
  std::sort(lost.rbegin(), lost.rend());
  for (size_t i = 0; threads > 1 && i < std::min(lost.size(), static_cast<size_t>(number("loops"))); ++i) {
    const Loops& loops = places[lost[i].second];
    std::printf(
        "{\"part\": \"%s\", \"threads\": %d, \"loop\": \"%s\", \"calls\": %lld, \"pieces_a_call\": %.1f, "
        "\"before_ms\": %.3f, \"work_ms\": %.3f, \"ms\": %.3f}\n",
        part, threads, lost[i].second.c_str(), static_cast<long long>(loops.calls),
        static_cast<double>(loops.pieces) / static_cast<double>(loops.calls), 1e3 * loops.before, 1e3 * loops.work,
        1e3 * loops.taken);
  }
  std::fflush(stdout);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Recordings of the same work: of each piece the median time, since other programs may interrupt one.
ParallelRecord median(const std::vector<ParallelRecord>& records) {
  const auto of_all = [&](auto&& time) {
    std::vector<double> times;
    for (const ParallelRecord& record : records) times.push_back(time(record));
    return median(std::move(times));
  };
  ParallelRecord result = records.front();
  result.after = of_all([](const ParallelRecord& r) { return r.after; });
  for (size_t i = 0; i < result.loops.size(); ++i) {
    ParallelLoop& loop = result.loops[i];
    loop.before = of_all([&](const ParallelRecord& r) { return r.loops.at(i).before; });
    for (size_t j = 0; j < loop.seconds.size(); ++j)
      loop.seconds[j] = of_all([&](const ParallelRecord& r) { return r.loops.at(i).seconds.at(j); });
  }
  return result;
}

// work(start, stop) calls start(), does what is measured, and gives what stop() gave.
template <class Work>
void measure(const char* part, int threads, Work&& work) {
  const int64_t repeat = std::max<int64_t>(1, number("repeat"));
  std::vector<ParallelRecord> records;
  {
    detail::RecordParallelLoops recording(threads);
    for (int64_t i = 0; i <= repeat; ++i) {  // the first one warms up
      ParallelRecord record = work([&] { recording.take(); }, [&] { return recording.take(); });
      if (i > 0) records.push_back(std::move(record));
    }
  }
  double measured = 0;
  if (threads <= static_cast<int>(std::thread::hardware_concurrency())) {
    set_threads(threads);
    std::vector<double> times;
    for (int64_t i = 0; i <= repeat; ++i) {
      std::chrono::steady_clock::time_point start;
      work([&] { start = std::chrono::steady_clock::now(); },
           [&] {
             const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
             if (i > 0) times.push_back(taken.count());
             return ParallelRecord{};
           });
    }
    measured = median(std::move(times));
  }
  print(part, threads, median(records), measured);
}

models::Batch random_text(int64_t B, int64_t T, int64_t V) {
  std::vector<int64_t> ids, targets;
  for (int64_t i = 0; i < B * T; ++i) {
    ids.push_back(static_cast<int64_t>(random_bits(static_cast<uint64_t>(i), {1, 1}) % static_cast<uint64_t>(V)));
    targets.push_back(static_cast<int64_t>(random_bits(static_cast<uint64_t>(i), {1, 2}) % static_cast<uint64_t>(V)));
  }
  return models::text_batch(from_vector(ids, {B, T}), from_vector(targets, {B, T}));
}

}  // namespace

int main(int count, char** arguments) {
  const models::SettingTexts keys = bench::read_some_arguments(count, arguments, settings);
  std::vector<int> thread_counts;
  std::istringstream list(settings["threads"]);
  for (std::string one; std::getline(list, one, ',');) thread_counts.push_back(std::stoi(one));

  const auto spec = models::configure_model(settings["preset"], keys);
  const auto model = models::as_language_model(spec->make({1, 0}));
  const bool narrow = settings["dtype"] == "bf16";
  if (!narrow && settings["dtype"] != "f32") {
    std::fprintf(stderr, "error: dtype: expected f32 or bf16, found %s\n", settings["dtype"].c_str());
    return 2;
  }
  const int64_t T = number("seq_len") > 0 ? number("seq_len") : spec->max_sequence_length();
  const models::Batch batch = random_text(number("batch"), T, spec->vocab_size());
  const int64_t context = number("context");
  models::Trainer trainer(*model, {}, 1.0, {}, narrow ? std::optional(DType::bf16) : std::nullopt);
  for (const int threads : thread_counts) {
    measure("forward", threads, [&](auto&& start, auto&& stop) {
      start();
      models::evaluate(*model, {batch});
      return stop();
    });
    measure("gradients", threads, [&](auto&& start, auto&& stop) {
      start();
      trainer.forward_backward({batch});
      auto record = stop();
      trainer.discard();
      return record;
    });
    measure("update", threads, [&](auto&& start, auto&& stop) {
      trainer.forward_backward({batch});
      start();
      trainer.apply(1e-4);
      return stop();
    });
  }
  const NoGrad off;
  const Tensor prompt = full({1, context}, 1, DType::i64), next = full({1, 1}, 2, DType::i64);
  for (const int threads : thread_counts) {
    models::KvCache cache = model->make_cache(context + 4 * (number("repeat") + 1));
    model->hidden(prompt, &cache);
    measure("token", threads, [&](auto&& start, auto&& stop) {
      start();
      model->logits(model->hidden(next, &cache));
      return stop();
    });
  }
  return 0;
}
