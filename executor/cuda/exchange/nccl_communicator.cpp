#include "executor/cuda/exchange/nccl_communicator.h"

#include <fmt/format.h>

#include "executor/cuda/memory/buffers.h"

#ifdef RECKON_WITH_NCCL
#include <unistd.h>

#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "executor/cuda/libraries/nccl.h"
#include "executor/cuda/memory/streams.h"
#include "sim/base/check.h"

namespace reckon::cuda {
namespace {

void check_nccl(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  throw DeviceError(fmt::format("NCCL {}: {}", what, nccl_library().get_error_string(result)));
}

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

/// NCCL's communicator, which another thread may abort. Its calls do not block: it says of itself
/// when what was asked for is under way.
struct Handle {
  explicit Handle(const NcclLibrary& library) : nccl(library) {}
  ~Handle() {
    if (get != nullptr) nccl.comm_abort(get);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  void abort() {
    const std::lock_guard lock(mutex);
    lost = true;
    if (get != nullptr) nccl.comm_abort(std::exchange(get, nullptr));
  }

  const NcclLibrary& nccl;
  std::mutex mutex;
  ncclComm_t get = nullptr;
  bool lost = false;  // a rank
};

class Nccl final : public NcclCommunicator {
 public:
  Nccl(Communicator& control, int device, const PeerLoss* loss)
      : rank_(control.rank()), size_(control.size()), loss_(loss) {
    refuse_shared_devices(control, device);
    ncclUniqueId id{};
    if (rank_ == 0) check_nccl(nccl_.get_unique_id(&id), "id");
    control.introduce(std::as_writable_bytes(std::span(&id, 1)), 0);
    if (loss_ != nullptr)
      loss_->on_loss([weak = std::weak_ptr(handle_)] {
        if (const auto handle = weak.lock()) handle->abort();
      });
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ask("rendezvous", [&](ncclComm_t) {
      return nccl_.comm_init_rank_config(&handle_->get, size_, id, rank_, &config);
    });
  }
  ~Nccl() override {
    if (std::uncaught_exceptions() > begun_within_) return;  // aborted with its handle
    try {
      ask("end", [&](ncclComm_t comm) { return nccl_.comm_finalize(comm); });
      const std::lock_guard lock(handle_->mutex);
      if (handle_->get != nullptr) nccl_.comm_destroy(std::exchange(handle_->get, nullptr));
    } catch (const std::runtime_error&) {  // a rank is lost: likewise
    }
  }
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_reduce(std::span<float> values) override { sum(values, ncclFloat32); }
  void all_reduce(std::span<double> values) override { sum(values, ncclFloat64); }
  void all_reduce(std::span<std::int64_t> values) override { sum(values, ncclInt64); }
  void all_gather(std::span<const float> mine, std::span<float> all) override {
    queue_all_gather(mine, all, stream_.get());
    wait("all-gather");
  }
  void reduce_scatter(std::span<const float> all, std::span<float> mine) override {
    queue_reduce_scatter(all, mine, stream_.get());
    wait("reduce-scatter");
  }
  void all_to_all(std::span<const float> send, std::span<float> receive) override {
    RECKON_CHECK(send.size() == receive.size());
    const std::size_t part = send.size() / static_cast<std::size_t>(size_);
    ask_for_all("all-to-all", [&](ncclComm_t comm, const auto& note) {
      for (int r = 0; r < size_; ++r) {
        const std::size_t at = static_cast<std::size_t>(r) * part;
        note(nccl_.send(send.data() + at, part, ncclFloat32, r, comm, stream_.get()));
        note(nccl_.receive(receive.data() + at, part, ncclFloat32, r, comm, stream_.get()));
      }
    });
    wait("all-to-all");
  }
  void broadcast(std::span<std::byte> bytes, int root) override {
    ask("broadcast", [&](ncclComm_t comm) {
      return nccl_.broadcast(bytes.data(), bytes.data(), bytes.size(), ncclUint8, root, comm,
                             stream_.get());
    });
    wait("broadcast");
  }
  void send(std::span<const std::byte> bytes, int to) override {
    ask("send", [&](ncclComm_t comm) {
      return nccl_.send(bytes.data(), bytes.size(), ncclUint8, to, comm, stream_.get());
    });
    wait("send");
  }
  void receive(std::span<std::byte> bytes, int from) override {
    ask("receive", [&](ncclComm_t comm) {
      return nccl_.receive(bytes.data(), bytes.size(), ncclUint8, from, comm, stream_.get());
    });
    wait("receive");
  }
  void barrier() override { all_reduce(one_.span()); }

  void queue_all_reduce(std::span<float> values, cudaStream_t stream) override {
    queue_sum(values, ncclFloat32, stream);
  }
  void queue_all_gather(std::span<const float> mine, std::span<float> all,
                        cudaStream_t stream) override {
    RECKON_CHECK(all.size() == mine.size() * static_cast<std::size_t>(size_));
    ask("all-gather", [&](ncclComm_t comm) {
      return nccl_.all_gather(mine.data(), all.data(), mine.size(), ncclFloat32, comm, stream);
    });
  }
  void queue_reduce_scatter(std::span<const float> all, std::span<float> mine,
                            cudaStream_t stream) override {
    RECKON_CHECK(all.size() == mine.size() * static_cast<std::size_t>(size_));
    ask("reduce-scatter", [&](ncclComm_t comm) {
      return nccl_.reduce_scatter(all.data(), mine.data(), mine.size(), ncclFloat32, ncclSum, comm,
                                  stream);
    });
  }
  void queue_broadcast(std::span<float> values, cudaStream_t stream) override {
    ask("broadcast", [&](ncclComm_t comm) {
      return nccl_.broadcast(values.data(), values.data(), values.size_bytes(), ncclUint8, 0, comm,
                             stream);
    });
  }
  void queue_swaps(std::span<const DeviceSwap> with, cudaStream_t stream) override {
    RECKON_CHECK(with.size() == static_cast<std::size_t>(size_));
    const DeviceSwap& own = with[static_cast<std::size_t>(rank_)];
    RECKON_CHECK(own.out.size() == own.in.size());
    if (!own.out.empty())
      cuda::check(cudaMemcpyAsync(own.in.data(), own.out.data(), own.out.size(),
                                  cudaMemcpyDeviceToDevice, stream),
                  "own rows");
    ask_for_all("swaps", [&](ncclComm_t comm, const auto& note) {
      for (int r = 0; r < size_; ++r) {
        const DeviceSwap& swap = with[static_cast<std::size_t>(r)];
        if (r == rank_) continue;
        if (!swap.out.empty())
          note(nccl_.send(swap.out.data(), swap.out.size(), ncclUint8, r, comm, stream));
        if (!swap.in.empty())
          note(nccl_.receive(swap.in.data(), swap.in.size(), ncclUint8, r, comm, stream));
      }
    });
  }

  void broadcast_values(std::span<float> values) override {
    broadcast(std::as_writable_bytes(values), 0);
  }
  void queue_sums(std::span<const std::span<float>> ranges, cudaStream_t stream) override {
    cuda::check(cudaEventRecord(made_.get(), stream), "gradients");
    cuda::check(cudaStreamWaitEvent(stream_.get(), made_.get(), 0), "gradients");
    ask_for_all("all-reduce", [&](ncclComm_t comm, const auto& note) {
      for (const std::span<float> range : ranges)
        note(nccl_.all_reduce(range.data(), range.data(), range.size(), ncclFloat32, ncclSum, comm,
                              stream_.get()));
    });
  }
  void join(cudaStream_t stream) override {
    cuda::check(cudaEventRecord(summed_.get(), stream_.get()), "sums");
    cuda::check(cudaStreamWaitEvent(stream, summed_.get(), 0), "sums");
  }
  void check_peers(const char* what) override {
    if (loss_ != nullptr && loss_->is_lost()) throw_loss(what);
  }

 private:
  /// One call of the library, or a group of them, until it is under way.
  template <class Call>
  void ask(const char* what, const Call& call) {
    check_peers(what);
    ncclResult_t result = ncclSuccess;
    {
      const std::lock_guard lock(handle_->mutex);
      result = handle_->lost ? ncclRemoteError : call(handle_->get);
    }
    while (result == ncclInProgress) {
      std::this_thread::yield();
      check_peers(what);
      const std::lock_guard lock(handle_->mutex);
      if (handle_->lost) break;
      check_nccl(nccl_.get_async_error(handle_->get, &result), what);
    }
    check_peers(what);
    if (result == ncclRemoteError && loss_ != nullptr) throw_loss(what);
    check_nccl(result, what);
  }
  template <class Calls>
  void ask_for_all(const char* what, const Calls& calls) {
    ask(what, [&](ncclComm_t comm) {
      ncclResult_t problem = ncclSuccess;  // the first; a group that is begun is always ended
      const auto note = [&](ncclResult_t result) {
        if (problem == ncclSuccess && result != ncclInProgress) problem = result;
      };
      check_nccl(nccl_.group_start(), what);
      calls(comm, note);
      const ncclResult_t ended = nccl_.group_end();
      return problem != ncclSuccess ? problem : ended;
    });
  }
  [[noreturn]] void throw_loss(const char* what) const {
    throw loss_->error(fmt::format("NCCL {}", what));
  }

  template <class T>
  void queue_sum(std::span<T> values, ncclDataType_t type, cudaStream_t stream) {
    ask("all-reduce", [&](ncclComm_t comm) {
      return nccl_.all_reduce(values.data(), values.data(), values.size(), type, ncclSum, comm,
                              stream);
    });
  }
  template <class T>
  void sum(std::span<T> values, ncclDataType_t type) {
    queue_sum(values, type, stream_.get());
    wait("all-reduce");
  }
  void wait(const char* what) {
    cuda::check(cudaStreamSynchronize(stream_.get()), what);
    check_peers(what);
  }

  const NcclLibrary& nccl_ = nccl_library();
  int rank_, size_;
  int begun_within_ = std::uncaught_exceptions();
  const PeerLoss* loss_;
  std::shared_ptr<Handle> handle_ = std::make_shared<Handle>(nccl_);
  OwnStream stream_;
  Event made_, summed_;
  DeviceBuffer<float> one_{1};
};

}  // namespace

std::unique_ptr<NcclCommunicator> make_nccl_communicator(Communicator& control, int device,
                                                         const PeerLoss* loss) {
  return std::make_unique<Nccl>(control, device, loss);
}

}  // namespace reckon::cuda

#else

#include "executor/cuda/libraries/nccl.h"

namespace reckon::cuda {
std::unique_ptr<NcclCommunicator> make_nccl_communicator(Communicator&, int, const PeerLoss*) {
  throw DeviceError("several devices cannot train together without NCCL: " + why_no_nccl());
}
}  // namespace reckon::cuda

#endif
