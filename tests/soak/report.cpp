#include "tests/soak/report.h"

#include <chrono>
#include <exception>
#include <thread>

namespace braid::soak {

void in_threads(int threads, const Work& work, Report& report, const std::function<int64_t(Random&, int64_t)>& step) {
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<int64_t> next = 0, done = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < threads; ++i) {
    clients.emplace_back([&, i] {
      Random random(work.seed * 1000 + static_cast<uint64_t>(i));
      try {
        while (done < work.count) {
          if (work.rate > 0)
            std::this_thread::sleep_until(begin +
                                          std::chrono::nanoseconds(static_cast<int64_t>(1e9 / work.rate) * done));
          const int64_t number = next++;
          done += step(random, number);
        }
      } catch (const std::exception& error) {
        report.fault(std::string("a client ended by: ") + error.what());
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

}  // namespace braid::soak
