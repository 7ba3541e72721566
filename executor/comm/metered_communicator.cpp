#include "executor/comm/metered_communicator.h"

#include <chrono>

namespace reckon {
namespace {

class MeteredCommunicator final : public Communicator {
 public:
  MeteredCommunicator(Communicator& group, CommunicationTaken& taken)
      : group_(group), taken_(taken) {}

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }

  void all_reduce(std::span<float> values) override {
    timed(2 * others() / group_.size(), values, [&] { group_.all_reduce(values); });
  }
  void all_reduce(std::span<double> values) override {
    timed(2 * others() / group_.size(), values, [&] { group_.all_reduce(values); });
  }
  void all_reduce(std::span<std::int64_t> values) override {
    timed(2 * others() / group_.size(), values, [&] { group_.all_reduce(values); });
  }
  void all_gather(std::span<const float> mine, std::span<float> all) override {
    timed(others(), mine, [&] { group_.all_gather(mine, all); });
  }
  void reduce_scatter(std::span<const float> all, std::span<float> mine) override {
    timed(others(), mine, [&] { group_.reduce_scatter(all, mine); });
  }
  void all_to_all(std::span<const float> send, std::span<float> receive) override {
    timed(others() / group_.size(), send, [&] { group_.all_to_all(send, receive); });
  }
  void broadcast(std::span<std::byte> bytes, int root) override {
    timed(root == rank() ? others() : 0, bytes, [&] { group_.broadcast(bytes, root); });
  }
  void introduce(std::span<std::byte> bytes, int root) override {
    timed(root == rank() ? others() : 0, bytes, [&] { group_.introduce(bytes, root); });
  }
  void send(std::span<const std::byte> bytes, int to) override {
    timed(1, bytes, [&] { group_.send(bytes, to); });
  }
  void receive(std::span<std::byte> bytes, int from) override {
    timed(0, bytes, [&] { group_.receive(bytes, from); });
  }
  void start_send(std::span<const std::byte> bytes, int to) override {
    timed(1, bytes, [&] { group_.start_send(bytes, to); });
  }
  void finish_sends(std::size_t left) override {
    timed(0, std::span<const std::byte>(), [&] { group_.finish_sends(left); });
  }
  void barrier() override {
    timed(0, std::span<const std::byte>(), [&] { group_.barrier(); });
  }
  std::unique_ptr<Communicator> subgroup(std::span<const int> ranks) override {
    return group_.subgroup(ranks);
  }

 private:
  double others() const { return group_.size() - 1; }
  /// `sent`: how often this rank sends `values`.
  template <class T, class Call>
  void timed(double sent, std::span<T> values, Call call) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    taken_.time += std::chrono::steady_clock::now() - begin;
    taken_.sent += Bytes{sent * double(values.size_bytes())};
  }

  Communicator& group_;
  CommunicationTaken& taken_;
};

}  // namespace

std::unique_ptr<Communicator> make_metered_communicator(Communicator& group,
                                                        CommunicationTaken& taken) {
  return std::make_unique<MeteredCommunicator>(group, taken);
}

}  // namespace reckon
