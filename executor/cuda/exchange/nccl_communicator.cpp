#include "executor/cuda/exchange/nccl_communicator.h"

#include <fmt/format.h>

#include "executor/cuda/memory/buffers.h"

#ifdef RECKON_WITH_NCCL
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

#include "executor/cuda/libraries/nccl.h"
#include "sim/base/check.h"

namespace reckon::cuda {
namespace {

void check_nccl(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  throw DeviceError(fmt::format("NCCL {}: {}", what, nccl_library().get_error_string(result)));
}

struct Stream {
  cudaStream_t get = nullptr;
  Stream() { cuda::check(cudaStreamCreate(&get), "NCCL's stream"); }
  ~Stream() { cudaStreamDestroy(get); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};
struct Event {
  cudaEvent_t get = nullptr;
  Event() { cuda::check(cudaEventCreateWithFlags(&get, cudaEventDisableTiming), "NCCL's event"); }
  ~Event() { cudaEventDestroy(get); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
};

/// Which host and which device a rank has, as all ranks tell all.
struct Seat {
  std::array<char, 64> host{};
  std::array<char, 16> bus{};  // PCI address: CUDA's numbers depend on CUDA_VISIBLE_DEVICES
};

void refuse_shared_devices(Communicator& control, int device) {
  std::vector<Seat> seats(static_cast<std::size_t>(control.size()));
  Seat& mine = seats[static_cast<std::size_t>(control.rank())];
  gethostname(mine.host.data(), mine.host.size() - 1);
  cuda::check(cudaDeviceGetPCIBusId(mine.bus.data(), static_cast<int>(mine.bus.size()), device),
              "the device's address");
  for (int r = 0; r < control.size(); ++r)
    control.broadcast(std::as_writable_bytes(std::span(&seats[static_cast<std::size_t>(r)], 1)), r);
  for (std::size_t a = 0; a < seats.size(); ++a)
    for (std::size_t b = a + 1; b < seats.size(); ++b)
      if (seats[a].host == seats[b].host && seats[a].bus == seats[b].bus)
        throw DeviceError(fmt::format(
            "ranks {} and {} are both on device {} of {}: NCCL wants a device for each rank; start "
            "fewer processes, or give them --device cpu",
            a, b, seats[a].bus.data(), seats[a].host.data()));
}

class Nccl final : public NcclCommunicator {
 public:
  Nccl(Communicator& control, int device) : rank_(control.rank()), size_(control.size()) {
    refuse_shared_devices(control, device);
    ncclUniqueId id{};
    if (rank_ == 0) check_nccl(nccl_.get_unique_id(&id), "id");
    control.introduce(std::as_writable_bytes(std::span(&id, 1)), 0);
    check_nccl(nccl_.comm_init_rank(&comm_, size_, id, rank_), "rendezvous");
  }
  ~Nccl() override { nccl_.comm_destroy(comm_); }
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_reduce(std::span<float> values) override { sum(values, ncclFloat32); }
  void all_reduce(std::span<double> values) override { sum(values, ncclFloat64); }
  void all_reduce(std::span<std::int64_t> values) override { sum(values, ncclInt64); }
  void all_gather(std::span<const float> mine, std::span<float> all) override {
    RECKON_CHECK(all.size() == mine.size() * static_cast<std::size_t>(size_));
    check_nccl(
        nccl_.all_gather(mine.data(), all.data(), mine.size(), ncclFloat32, comm_, stream_.get),
        "all-gather");
    wait("all-gather");
  }
  void reduce_scatter(std::span<const float> all, std::span<float> mine) override {
    RECKON_CHECK(all.size() == mine.size() * static_cast<std::size_t>(size_));
    check_nccl(nccl_.reduce_scatter(all.data(), mine.data(), mine.size(), ncclFloat32, ncclSum,
                                    comm_, stream_.get),
               "reduce-scatter");
    wait("reduce-scatter");
  }
  void all_to_all(std::span<const float> send, std::span<float> receive) override {
    RECKON_CHECK(send.size() == receive.size());
    const std::size_t part = send.size() / static_cast<std::size_t>(size_);
    check_nccl(nccl_.group_start(), "all-to-all");
    for (int r = 0; r < size_; ++r) {
      const std::size_t at = static_cast<std::size_t>(r) * part;
      check_nccl(nccl_.send(send.data() + at, part, ncclFloat32, r, comm_, stream_.get),
                 "all-to-all");
      check_nccl(nccl_.receive(receive.data() + at, part, ncclFloat32, r, comm_, stream_.get),
                 "all-to-all");
    }
    check_nccl(nccl_.group_end(), "all-to-all");
    wait("all-to-all");
  }
  void broadcast(std::span<std::byte> bytes, int root) override {
    check_nccl(nccl_.broadcast(bytes.data(), bytes.data(), bytes.size(), ncclUint8, root, comm_,
                               stream_.get),
               "broadcast");
    wait("broadcast");
  }
  void send(std::span<const std::byte> bytes, int to) override {
    check_nccl(nccl_.send(bytes.data(), bytes.size(), ncclUint8, to, comm_, stream_.get), "send");
    wait("send");
  }
  void receive(std::span<std::byte> bytes, int from) override {
    check_nccl(nccl_.receive(bytes.data(), bytes.size(), ncclUint8, from, comm_, stream_.get),
               "receive");
    wait("receive");
  }
  void barrier() override { all_reduce(one_.span()); }

  void queue_all_reduce(std::span<float> values, cudaStream_t stream) override {
    check_nccl(nccl_.all_reduce(values.data(), values.data(), values.size(), ncclFloat32, ncclSum,
                                comm_, stream),
               "all-reduce");
  }
  void queue_all_gather(std::span<const float> mine, std::span<float> all,
                        cudaStream_t stream) override {
    RECKON_CHECK(all.size() == mine.size() * static_cast<std::size_t>(size_));
    check_nccl(nccl_.all_gather(mine.data(), all.data(), mine.size(), ncclFloat32, comm_, stream),
               "all-gather");
  }
  void queue_reduce_scatter(std::span<const float> all, std::span<float> mine,
                            cudaStream_t stream) override {
    RECKON_CHECK(all.size() == mine.size() * static_cast<std::size_t>(size_));
    check_nccl(nccl_.reduce_scatter(all.data(), mine.data(), mine.size(), ncclFloat32, ncclSum,
                                    comm_, stream),
               "reduce-scatter");
  }
  void queue_broadcast(std::span<float> values, cudaStream_t stream) override {
    check_nccl(nccl_.broadcast(values.data(), values.data(), values.size_bytes(), ncclUint8, 0,
                               comm_, stream),
               "broadcast");
  }
  void queue_swaps(std::span<const DeviceSwap> with, cudaStream_t stream) override {
    RECKON_CHECK(with.size() == static_cast<std::size_t>(size_));
    const DeviceSwap& own = with[static_cast<std::size_t>(rank_)];
    RECKON_CHECK(own.out.size() == own.in.size());
    if (!own.out.empty())
      cuda::check(cudaMemcpyAsync(own.in.data(), own.out.data(), own.out.size(),
                                  cudaMemcpyDeviceToDevice, stream),
                  "own rows");
    check_nccl(nccl_.group_start(), "swaps");
    for (int r = 0; r < size_; ++r) {
      const DeviceSwap& swap = with[static_cast<std::size_t>(r)];
      if (r == rank_) continue;
      if (!swap.out.empty())
        check_nccl(nccl_.send(swap.out.data(), swap.out.size(), ncclUint8, r, comm_, stream),
                   "swaps");
      if (!swap.in.empty())
        check_nccl(nccl_.receive(swap.in.data(), swap.in.size(), ncclUint8, r, comm_, stream),
                   "swaps");
    }
    check_nccl(nccl_.group_end(), "swaps");
  }

  void broadcast_values(std::span<float> values) override {
    broadcast(std::as_writable_bytes(values), 0);
  }
  void queue_sums(std::span<const std::span<float>> ranges, cudaStream_t stream) override {
    cuda::check(cudaEventRecord(made_.get, stream), "gradients");
    cuda::check(cudaStreamWaitEvent(stream_.get, made_.get), "gradients");
    check_nccl(nccl_.group_start(), "all-reduce");
    for (const std::span<float> range : ranges)
      check_nccl(nccl_.all_reduce(range.data(), range.data(), range.size(), ncclFloat32, ncclSum,
                                  comm_, stream_.get),
                 "all-reduce");
    check_nccl(nccl_.group_end(), "all-reduce");
  }
  void join(cudaStream_t stream) override {
    cuda::check(cudaEventRecord(summed_.get, stream_.get), "sums");
    cuda::check(cudaStreamWaitEvent(stream, summed_.get), "sums");
  }

 private:
  template <class T>
  void sum(std::span<T> values, ncclDataType_t type) {
    check_nccl(nccl_.all_reduce(values.data(), values.data(), values.size(), type, ncclSum, comm_,
                                stream_.get),
               "all-reduce");
    wait("all-reduce");
  }
  void wait(const char* what) { cuda::check(cudaStreamSynchronize(stream_.get), what); }

  const NcclLibrary& nccl_ = nccl_library();
  int rank_, size_;
  ncclComm_t comm_ = nullptr;
  Stream stream_;
  Event made_, summed_;
  DeviceBuffer<float> one_{1};
};

}  // namespace

std::unique_ptr<NcclCommunicator> make_nccl_communicator(Communicator& control, int device) {
  return std::make_unique<Nccl>(control, device);
}

}  // namespace reckon::cuda

#else

#include "executor/cuda/libraries/nccl.h"

namespace reckon::cuda {
std::unique_ptr<NcclCommunicator> make_nccl_communicator(Communicator&, int) {
  throw DeviceError("several devices cannot train together without NCCL: " + why_no_nccl());
}
}  // namespace reckon::cuda

#endif
