#include "tests/soak/report.h"

#include <exception>
#include <thread>

namespace braid::soak {

void in_threads(int threads, int64_t count, uint64_t seed, Report& report,
                const std::function<int64_t(Random&, int64_t)>& step) {
  std::atomic<int64_t> next = 0, done = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < threads; ++i) {
    clients.emplace_back([&, i] {
      Random random(seed * 1000 + static_cast<uint64_t>(i));
      try {
        while (done < count) {
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
