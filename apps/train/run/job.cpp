#include "apps/train/run/job.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "apps/cli/command.h"
#include "braid/distributed/job/run_on_all_ranks.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/io/checksum.h"
#include "braid/tensor/io/file_system.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps {

Job::Job() {
  if (dist::launched_by_mpi()) {
    session_ = std::make_unique<dist::MpiSession>();
    world_ = session_->world();
    if (world_.size() > 1) world_.set_hosts(world_.gather_text(dist::host_name()));
    if (world_.rank() != 0 && !std::freopen("/dev/null", "w", stdout))
      fail(ErrorKind::output, "cannot open /dev/null: " + io::system_message());
  }
  const std::string lost = dist::lost_launch(world_.size());
  if (!lost.empty()) std::fprintf(stderr, "warning: %s\n", lost.c_str());
}

// Settings and inputs are checked by every rank before the first collective, so mostly all of them end with the same
// message: rank 0 prints each message once, and MPI ends as after work that is done.
std::optional<int> Job::end_together(int code, const std::string& message) {
  constexpr double seconds = 2;
  const auto failures = session_->gather_failures(str(code, " ", message), seconds);
  if (!failures) return {};
  if (world_.rank() != 0) return std::atoi((*failures)[0].c_str());
  std::vector<std::string> printed;
  for (size_t r = 0; r < failures->size(); ++r) {
    const std::string& failure = (*failures)[r];
    if (std::find(printed.begin(), printed.end(), failure) != printed.end()) continue;
    printed.push_back(failure);
    const std::string who = r == 0 ? "" : world_.rank_name(static_cast<int>(r)) + ": ";
    report_error(code, who + failure.substr(failure.find(' ') + 1));
  }
  std::fflush(nullptr);
  return code;
}

int Job::run(const std::function<int()>& body) {
  if (world_.size() == 1) return body();
  std::string message;
  int code = exit_internal;
  try {
    return body();
  } catch (const dist::CollectiveError& e) {
    // Printed before MPI ends: mpirun ends all processes as soon as the first one has left with a code.
    if (world_.rank() == 0) report_error(static_cast<int>(e.kind()), e.what());
    return static_cast<int>(e.kind());
  } catch (const Error& e) {
    code = static_cast<int>(e.kind());
    message = e.what();
    // Not when memory is short: that comes in the middle of the work, while messages are on their way.
    const bool by_itself = (e.kind() == ErrorKind::setting || e.kind() == ErrorKind::input) &&
                           dynamic_cast<const OutOfMemory*>(&e) == nullptr;
    if (const auto shared = by_itself ? end_together(code, message) : std::nullopt) return *shared;
  } catch (const std::bad_alloc&) {
    code = static_cast<int>(ErrorKind::setting);
    message = "out of memory; use more processes, a smaller model, train.batch_size or data.seq_len";
  } catch (const std::exception& e) {
    const Unhandled found = describe_unhandled(e);
    code = found.code;
    message = found.message;
  }
  // Rank 0 prints an error that several ranks run into, such as a rank that does not answer, and ends the others while
  // they wait here.
  if (world_.rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  report_error(code, world_.rank() == 0 ? message : world_.rank_name(world_.rank()) + ": " + message);
  std::fflush(nullptr);
  dist::MpiSession::abort(code);
}

void at_root(const dist::Communicator& world, const std::function<void()>& work) {
  dist::run_on_all_ranks(world, [&] {
    if (world.rank() == 0) work();
  });
}

int64_t processes_here(const dist::Communicator& world) {
  return std::ranges::count(world.gather_text(dist::host_name()), dist::host_name());
}

dist::ProcessMesh mesh_from_config(const TrainConfig::Parallel& p, const dist::Communicator& world,
                                   const std::string& command) {
  if (world.size() == 1) {
    int64_t processes = std::max<int64_t>(p.data, 1) * p.context * p.tensor;
    check(processes == 1, ErrorKind::setting, [&] {
      return str("parallel.* requires ", processes, " processes, but this is one: start them with mpirun -np ",
                 processes, " braid ", command, " ...");
    });
  }
  return dist::make_mesh(world, p.data, p.context, p.tensor);
}

std::string program_fingerprint() {
  static const std::string once = [] {
    io::Reader reader("/proc/self/exe");
    std::vector<char> block(1 << 20);
    uint32_t crc = 0;
    while (int64_t n = reader.read_some(block.data(), static_cast<int64_t>(block.size())))
      crc = io::crc32c(block.data(), n, crc);
    return detail::hex(crc, 8);
  }();
  return once;
}

}  // namespace braid::apps
