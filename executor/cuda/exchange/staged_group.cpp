#include <algorithm>
#include <vector>

#include "executor/comm/pairwise.h"
#include "executor/cuda/exchange/group.h"
#include "executor/cuda/memory/streams.h"
#include "sim/base/check.h"

namespace reckon::cuda {
namespace {

class StagedGroup final : public ReducingGroup {
 public:
  explicit StagedGroup(Communicator& hosts) : hosts_(hosts) {}

  int rank() const override { return hosts_.rank(); }
  int size() const override { return hosts_.size(); }

  void queue_all_reduce(std::span<float> values, cudaStream_t stream) override {
    const std::span<float> here = fetch(values, part_, stream);
    hosts_.all_reduce(here);
    put(here, values, stream);
  }
  void queue_all_gather(std::span<const float> mine, std::span<float> all,
                        cudaStream_t stream) override {
    const std::span<float> part = fetch(mine, part_, stream);
    const std::span<float> whole = room(all_, all.size());
    hosts_.all_gather(part, whole);
    put(whole, all, stream);
  }
  void queue_reduce_scatter(std::span<const float> all, std::span<float> mine,
                            cudaStream_t stream) override {
    const std::span<float> whole = fetch(all, all_, stream);
    const std::span<float> part = room(part_, mine.size());
    hosts_.reduce_scatter(whole, part);
    put(part, mine, stream);
  }
  void queue_broadcast(std::span<float> values, cudaStream_t stream) override {
    const std::span<float> here = fetch(values, part_, stream);
    hosts_.broadcast(std::as_writable_bytes(here), 0);
    put(here, values, stream);
  }
  void queue_swaps(std::span<const DeviceSwap> with, cudaStream_t stream) override {
    RECKON_CHECK(with.size() == static_cast<std::size_t>(size()));
    std::size_t out_bytes = 0, in_bytes = 0;
    for (const DeviceSwap& swap : with) {
      out_bytes += swap.out.size();
      in_bytes += swap.in.size();
    }
    const std::span<std::byte> out = room(out_, out_bytes), in = room(in_, in_bytes);
    std::vector<DeviceSwap> here;
    std::size_t sent = 0, received = 0;
    for (const DeviceSwap& swap : with) {
      const auto there = out.subspan(sent, swap.out.size());
      queue_to_host(there, swap.out.data(), stream, "copy from the device");
      here.push_back({there, in.subspan(received, swap.in.size())});
      sent += swap.out.size();
      received += swap.in.size();
    }
    check(cudaStreamSynchronize(stream), "copy from the device");
    meet_all(hosts_, [&](int peer, bool sends_first) {
      const DeviceSwap& swap = here[static_cast<std::size_t>(peer)];
      if (peer == rank())
        std::ranges::copy(swap.out, swap.in.begin());
      else
        swap_with(hosts_, peer, sends_first, swap.out, swap.in);
    });
    for (std::size_t r = 0; r < with.size(); ++r)
      queue_to_device(with[r].in.data(), here[r].in, stream, "copy to the device");
    check(cudaStreamSynchronize(stream), "copy to the device");  // the buffer is used again
  }

  void broadcast_values(std::span<float> values) override { queue_broadcast(values, own_.get()); }
  void queue_sums(std::span<const std::span<float>> ranges, cudaStream_t stream) override {
    for (const std::span<float> range : ranges) queue_all_reduce(range, stream);
  }
  void join(cudaStream_t) override {}  // sums are there when they have been asked for

 private:
  template <class T>
  static std::span<T> room(PinnedBuffer<T>& buffer, std::size_t count) {
    if (buffer.span().size() < count) buffer = PinnedBuffer<T>(count);
    return buffer.span().first(count);
  }
  static std::span<float> fetch(std::span<const float> from, PinnedBuffer<float>& buffer,
                                cudaStream_t stream) {
    const std::span<float> here = room(buffer, from.size());
    check(cudaMemcpyAsync(here.data(), from.data(), from.size_bytes(), cudaMemcpyDeviceToHost,
                          stream),
          "copy from the device");
    check(cudaStreamSynchronize(stream), "copy from the device");
    return here;
  }
  static void put(std::span<const float> here, std::span<float> to, cudaStream_t stream) {
    RECKON_CHECK(here.size() == to.size());
    check(cudaMemcpyAsync(to.data(), here.data(), to.size_bytes(), cudaMemcpyHostToDevice, stream),
          "copy to the device");
    check(cudaStreamSynchronize(stream), "copy to the device");  // the buffer is used again
  }

  Communicator& hosts_;
  PinnedBuffer<float> part_, all_;
  PinnedBuffer<std::byte> out_, in_;
  OwnStream own_;
};

}  // namespace

std::unique_ptr<ReducingGroup> make_staged_group(Communicator& hosts) {
  return std::make_unique<StagedGroup>(hosts);
}

}  // namespace reckon::cuda
