#include "braid/distributed/job/run_on_all_ranks.h"

#include <sstream>

namespace braid::dist {

void run_on_all_ranks(const Communicator& comm, const std::function<void()>& f) {
  if (comm.size() == 1) return f();
  std::string failure;  // exit code, a space, the message
  try {
    f();
  } catch (const Error& e) {
    failure = str(static_cast<int>(e.kind()), " ", e.what());
  } catch (const std::exception& e) {
    failure = str(static_cast<int>(ErrorKind::misuse), " ", e.what());
  }
  std::vector<std::string> all = comm.gather_text(failure);
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r].empty()) continue;
    size_t space = all[r].find(' ');
    std::string who = r == 0 ? "" : comm.rank_name(comm.world_rank(static_cast<int>(r))) + ": ";
    throw CollectiveError(static_cast<ErrorKind>(std::stoi(all[r].substr(0, space))), who + all[r].substr(space + 1));
  }
}

void check_ranks_agree(const Communicator& comm, const std::vector<RankProperty>& properties) {
  std::string mine;
  for (const RankProperty& p : properties) mine += p.name + "\n" + p.value + "\n";
  std::vector<std::string> all = comm.gather_text(mine);
  for (size_t r = 1; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    std::istringstream expected(all[0]), found(all[r]);
    std::string name, other, want, got;
    do {
      std::getline(expected, name);
      std::getline(found, other);
      std::getline(expected, want);
      std::getline(found, got);
    } while (name == other && want == got && expected);
    throw CollectiveError(ErrorKind::process, "the processes of this job do not fit together: " +
                                                  comm.rank_name(comm.world_rank(static_cast<int>(r))) +
                                                  " has another " + name + ": expected " + want + ", found " + got +
                                                  "; start them all with the same program, settings and data");
  }
}

}  // namespace braid::dist
