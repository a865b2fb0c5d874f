// The NCCL transport; the only file of this folder that includes NCCL and CUDA headers.
//
// A transfer is one NCCL group of sends and receives on a stream of its own, followed by an event that is polled. It
// starts after all work that was enqueued on the GPU before: other streams may still write the buffers.
#include "braid/distributed/comm/nccl_transport.h"

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <sched.h>

#include <algorithm>
#include <array>

#include "braid/tensor/kernels/backend.h"

namespace braid::dist {

namespace {

void cuda_ok(cudaError_t result, const char* call) {
  if (result != cudaSuccess) fail(ErrorKind::process, str(call, " failed: ", cudaGetErrorString(result)));
}

void nccl_ok(ncclResult_t result, const char* call, ncclComm_t comm = nullptr) {
  if (result != ncclSuccess)
    fail(ErrorKind::process, str(call, " failed: ", ncclGetErrorString(result), "; ", ncclGetLastError(comm),
                                 " (NCCL_DEBUG=INFO gives details)"));
}

// Makes the GPU the current one of this thread. It stays that: setting GPU 0 again, where a thread begins, would make
// every rank take memory there.
void make_current(Device device) { backend(device); }

// A communicator of NCCL and its stream; a transfer keeps them alive.
struct Lane {
  Device device;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  int rank = 0, size = 1;
  bool broken = false;  // a transfer was abandoned: the other ranks may never take part

  Lane() = default;
  Lane(const Lane&) = delete;
  ~Lane() {
    if (!comm && !stream) return;
    try {
      make_current(device);
    } catch (const Error&) {  // the GPU failed: its error is on its way to the user
    }
    if (comm) broken ? ncclCommAbort(comm) : ncclCommDestroy(comm);
    if (stream) cudaStreamDestroy(stream);
  }
};

class NcclTransfer final : public TransferHandle {
 public:
  explicit NcclTransfer(std::shared_ptr<Lane> lane) : lane_(std::move(lane)) {
    cuda_ok(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  }
  ~NcclTransfer() override {
    if (!done_) lane_->broken = true;
    cudaEventDestroy(event_);
  }
  void mark_end() { cuda_ok(cudaEventRecord(event_, lane_->stream), "cudaEventRecord"); }

  bool done() override {
    if (done_) return true;
    ncclResult_t error = ncclSuccess;
    nccl_ok(ncclCommGetAsyncError(lane_->comm, &error), "ncclCommGetAsyncError", lane_->comm);
    nccl_ok(error, "an NCCL transfer", lane_->comm);
    cudaError_t state = cudaEventQuery(event_);
    if (state == cudaErrorNotReady) return false;
    cuda_ok(state, "cudaEventQuery");
    return done_ = true;
  }
  void yield() override { sched_yield(); }
  // NCCL does not report which rank is late.
  std::vector<int> pending_peers() const override {
    std::vector<int> others;
    for (int r = 0; r < lane_->size && !done_; ++r) {
      if (r != lane_->rank) others.push_back(r);
    }
    return others;
  }

 private:
  std::shared_ptr<Lane> lane_;
  cudaEvent_t event_ = nullptr;
  bool done_ = false;
};

class NcclTransport final : public DeviceTransport {
 public:
  NcclTransport(const Communicator& host, Device device) : lane_(std::make_shared<Lane>()) {
    lane_->device = device;
    lane_->rank = host.rank();
    lane_->size = host.size();
    make_current(device);
    ncclUniqueId id{};
    if (host.rank() == 0) nccl_ok(ncclGetUniqueId(&id), "ncclGetUniqueId");
    const std::vector<uint8_t> mine(id.internal, id.internal + sizeof id.internal);
    std::vector<uint8_t> first = host.broadcast(from_vector(mine, {NCCL_UNIQUE_ID_BYTES}), 0).to_vector<uint8_t>();
    std::copy(first.begin(), first.end(), id.internal);
    nccl_ok(ncclCommInitRank(&lane_->comm, host.size(), id, host.rank()), "ncclCommInitRank");
    cuda_ok(cudaStreamCreateWithFlags(&lane_->stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }

  Device device() const override { return lane_->device; }

  std::unique_ptr<TransferHandle> start(const std::vector<Buffer>& send, const std::vector<Buffer>& receive) override {
    make_current(lane_->device);
    synchronize(lane_->device);
    auto transfer = std::make_unique<NcclTransfer>(lane_);
    nccl_ok(ncclGroupStart(), "ncclGroupStart");
    for (int r = 0; r < lane_->size; ++r) {
      const Buffer &out = send[static_cast<size_t>(r)], &in = receive[static_cast<size_t>(r)];
      if (r == lane_->rank) continue;
      if (out.bytes > 0)
        nccl_ok(ncclSend(out.data, static_cast<size_t>(out.bytes), ncclUint8, r, lane_->comm, lane_->stream),
                "ncclSend", lane_->comm);
      if (in.bytes > 0)
        nccl_ok(ncclRecv(in.data, static_cast<size_t>(in.bytes), ncclUint8, r, lane_->comm, lane_->stream), "ncclRecv",
                lane_->comm);
    }
    nccl_ok(ncclGroupEnd(), "ncclGroupEnd", lane_->comm);
    transfer->mark_end();
    return transfer;
  }

  std::shared_ptr<DeviceTransport> split(const Communicator& group) override {
    return std::make_shared<NcclTransport>(group, lane_->device);
  }

 private:
  std::shared_ptr<Lane> lane_;
};

}  // namespace

bool built_with_nccl() { return true; }

std::string device_bus_id(Device device) {
  std::array<char, 64> bus{};
  cudaError_t result = cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device.index);
  check(result == cudaSuccess, ErrorKind::setting,
        [&] { return str("there is no GPU ", device, ": ", cudaGetErrorString(result)); });
  return bus.data();
}

std::shared_ptr<DeviceTransport> make_nccl_transport(const Communicator& host, Device device) {
  return std::make_shared<NcclTransport>(host, device);
}

}  // namespace braid::dist
