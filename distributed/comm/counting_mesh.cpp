#include "braid/distributed/comm/counting_mesh.h"

#include <cstring>
#include <string>

namespace braid::dist {

namespace {

class Done final : public TransferHandle {
 public:
  bool done() override { return true; }
  void yield() override {}
  std::vector<int> pending_peers() const override { return {}; }
};

class CountingTransport final : public Transport {
 public:
  CountingTransport(int64_t rank, int64_t size)
      : rank_(static_cast<int>(rank)), size_(static_cast<int>(size)), last_(static_cast<size_t>(size)) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int world_rank(int rank) const override { return rank; }
  std::unique_ptr<TransferHandle> start(const std::vector<Buffer>& send, const std::vector<Buffer>& receive) override {
    for (size_t r = 0; r < send.size(); ++r) {
      std::string& last = last_[r];
      if (send[r].bytes > 0 && send[r].bytes <= kValues) last.assign(send[r].data, static_cast<size_t>(send[r].bytes));
      if (receive[r].bytes == 0) continue;  // there may be no memory
      if (receive[r].bytes == std::ssize(last))
        std::memcpy(receive[r].data, last.data(), last.size());
      else if (receive[r].bytes <= kValues)  // nothing was sent to this rank yet; its memory may hold anything
        std::memset(receive[r].data, 0, static_cast<size_t>(receive[r].bytes));
    }
    return std::make_unique<Done>();
  }
  std::shared_ptr<Transport> split(const std::vector<int>&, int) override {
    fail("counting_mesh", "cannot be split further");
  }
  int next_group() const override { return 0; }
  std::vector<int> unresponsive_ranks(double) override { return {}; }
  void answer_heartbeat() override {}

 private:
  static constexpr int64_t kValues = 64;  // bytes: counts and sums that a step decides by
  int rank_, size_;
  std::vector<std::string> last_;  // values sent to each rank
};

}  // namespace

ProcessMesh counting_mesh(const MeshShape& s, const MeshCoord& r) {
  const auto group = [](int64_t rank, int64_t size, const char* label) {
    return Communicator(std::make_shared<CountingTransport>(rank, size), label);
  };
  const int64_t replica = r.data * s.context + r.context;
  return {.world = group(replica * s.tensor + r.tensor, s.ranks(), "world"),
          .data = group(r.data, s.data, "data"),
          .context = group(r.context, s.context, "context"),
          .tensor = group(r.tensor, s.tensor, "tensor"),
          .replica_group = group(replica, s.data * s.context, "replicas")};
}

}  // namespace braid::dist
