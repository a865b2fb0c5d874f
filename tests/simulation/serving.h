// `braid serve` and its clients, as threads of one session.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tests/simulation/session.h"
#include "tests/simulation/system_calls.h"

namespace braid::simulation {

inline constexpr int kRequests = 6;  // different ones, whose answers alone are files in Folders::answers

class Serving {
 public:
  Serving(const Folders& folders, const History& history, World& world, SessionResult& shared, uint64_t seed)
      : folders_(folders), history_(history), world_(world), shared_(shared), random_(seed) {}
  // The server, its clients, and one that comes last, finds that nothing is left of the others, and ends the server.
  std::vector<std::function<void()>> bodies(int& code);
  void signal();  // SIGTERM, once

 private:
  void serve(int& code);
  void client(Random random);
  void last();
  // The texts of the answer and why they end; "": the connection ended before.
  std::string ask(class Connection& connection, const std::string& request, bool slowly);
  void check_answer(int request, const std::string& found);
  [[noreturn]] void wrong(const std::string& what);

  const Folders& folders_;
  const History& history_;
  World& world_;
  SessionResult& shared_;
  Random random_;
  int open_ = 0;  // clients that have not ended
  bool over_ = false, idle_ = false;
  double stopped_ = kNever;
};

}  // namespace braid::simulation
