#include "distributed/agree.h"

#include <optional>

namespace braid::dist {

void agree(const Communicator& comm, const std::function<void()>& f) {
  if (comm.size() == 1) return f();
  std::string failure;  // exit code, a space, the sentence
  try {
    f();
  } catch (const Error& e) {
    failure = std::to_string(static_cast<int>(e.kind())) + " " + e.what();
  } catch (const std::exception& e) {
    failure = std::to_string(static_cast<int>(ErrorKind::misuse)) + " " + e.what();
  }
  std::vector<std::string> all = comm.gather_text(failure);
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r].empty()) continue;
    size_t space = all[r].find(' ');
    std::string who = r == 0 ? "" : "rank " + std::to_string(r) + ": ";
    throw AgreedError(static_cast<ErrorKind>(std::stoi(all[r].substr(0, space))), who + all[r].substr(space + 1));
  }
}

void handshake(const Communicator& comm, const std::vector<Feature>& features) {
  for (const Feature& feature : features) {
    std::vector<std::string> all = comm.gather_text(feature.value);
    for (size_t r = 1; r < all.size(); ++r) {
      if (all[r] == all[0]) continue;
      throw AgreedError(ErrorKind::process, "the processes of this job do not fit together: rank " + std::to_string(r) +
                                                " has another " + feature.what + ": expected " + all[0] + ", found " +
                                                all[r] + "; start them all with the same program, settings and data");
    }
  }
}

}  // namespace braid::dist
