#include "executor/comm/gloo/gloo_communicator.h"

#ifndef RECKON_WITH_GLOO
#include <stdexcept>

namespace reckon {
bool has_gloo() { return false; }
std::unique_ptr<Communicator> make_gloo_communicator(Membership& /*membership*/,
                                                     const GlooOptions& /*options*/) {
  throw std::runtime_error(
      "this reckon was built without Gloo, which joins processes on CPUs: install libgloo-dev "
      "and build again, or train with one process");
}
}  // namespace reckon

#else
#include <csignal>

#include <algorithm>
#include <deque>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>

#include "executor/comm/gloo/gloo_contexts.h"
#include "executor/comm/gloo/gloo_mesh.h"
#include "executor/comm/rank_parts.h"
#include "sim/step/network/collectives_cpu.h"

namespace reckon {

namespace {
class GlooCommunicator final : public Communicator {
 public:
  /// `ranks`: members of it, ascending. `name`: no other communicator of these members has it.
  GlooCommunicator(Membership& membership, const GlooOptions& options, std::vector<int> ranks,
                   std::string name, std::shared_ptr<GlooContexts> contexts);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void all_reduce(std::span<float> values) override { sum_over_ranks(values); }
  void all_reduce(std::span<double> values) override { sum_over_ranks(values); }
  void all_reduce(std::span<std::int64_t> values) override { sum_over_ranks(values); }
  void all_gather(std::span<const float> mine, std::span<float> all) override;
  void reduce_scatter(std::span<const float> all, std::span<float> mine) override;
  void all_to_all(std::span<const float> send, std::span<float> receive) override;
  void broadcast(std::span<std::byte> bytes, int root) override;
  void introduce(std::span<std::byte> bytes, int root) override;
  void send(std::span<const std::byte> bytes, int to) override;
  void receive(std::span<std::byte> bytes, int from) override;
  void start_send(std::span<const std::byte> bytes, int to) override;
  void finish_sends(std::size_t left) override;
  void barrier() override;
  std::unique_ptr<Communicator> subgroup(std::span<const int> ranks) override;

 private:
  template <class T>
  void sum_over_ranks(std::span<T> values);
  template <class T>
  void sum_directly(std::span<T> values);
  template <class T>
  void add_parts(std::span<T> mine);
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer(std::span<const std::byte> bytes) {
    return context_->createUnboundBuffer(const_cast<std::byte*>(bytes.data()), bytes.size());
  }
  template <class Body>
  void guarded(const char* what, std::size_t bytes, const Body& body);

  /// Tags of what goes around Gloo's own collectives; theirs have a small number in the top byte.
  enum Slot : std::uint64_t {
    point_to_point = 0xF0ull << 56,
    scatter = 0xF1ull << 56,
    gather = 0xF2ull << 56
  };

  Membership& membership_;
  const GlooOptions options_;
  const std::vector<int> members_;  // by rank
  const std::string name_;
  const int size_, rank_;
  int named_ = 0;  // what the ranks have made together, in the same order
  std::shared_ptr<GlooContexts> contexts_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::vector<std::byte> scratch_;  // all ranks' versions of my part
  struct StartedSend {
    std::vector<std::byte> bytes;
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
  };
  std::deque<StartedSend> started_;
  bool broken_ = false;
};

GlooCommunicator::GlooCommunicator(Membership& membership, const GlooOptions& options,
                                   std::vector<int> ranks, std::string name,
                                   std::shared_ptr<GlooContexts> contexts)
    : membership_(membership),
      options_(options),
      members_(std::move(ranks)),
      name_(std::move(name)),
      size_(int(members_.size())),
      rank_(rank_in(members_, membership.rank())),
      contexts_(std::move(contexts)) {
  if (size_ == 1) return;
  // Gloo writes without MSG_NOSIGNAL: a lost peer would end this process by a signal.
  struct sigaction pipe {};
  if (sigaction(SIGPIPE, nullptr, &pipe) == 0 && pipe.sa_handler == SIG_DFL)
    (void)signal(SIGPIPE, SIG_IGN);
  guarded("connecting to all ranks", 0, [&] {
    context_ = connect_gloo_mesh(membership, members_, name_, options.timeout, contexts_->sends());
    contexts_->add(context_);
  });
}

std::unique_ptr<Communicator> GlooCommunicator::subgroup(std::span<const int> ranks) {
  std::vector<int> members;
  for (const int r : ranks) members.push_back(members_.at(std::size_t(r)));
  // Groups of one call have no rank in common, so the first one names each.
  std::string name = fmt::format("{}/{}:{}", name_, named_++, members.front());
  return std::make_unique<GlooCommunicator>(membership_, options_, std::move(members),
                                            std::move(name), contexts_);
}

/// Gloo's exceptions become CommErrors that name who is lost.
template <class Body>
void GlooCommunicator::guarded(const char* what, std::size_t bytes, const Body& body) {
  if (broken_) throw CommError(fmt::format("{}: the communicator failed before", what));
  try {
    body();
  } catch (const CommError&) {
    broken_ = true;
    throw;
  } catch (const std::exception& error) {
    broken_ = true;
    constexpr Seconds kLongestGrace{30};
    contexts_->fail();  // no rank waits for this one until its own deadline
    started_.clear();
    context_.reset();
    throw membership_.lost_peer(fmt::format("{} of {} bytes: {}", what, bytes, error.what()),
                                std::min(options_.timeout / 2, kLongestGrace));
  }
}

template <class T>
void GlooCommunicator::sum_over_ranks(std::span<T> values) {
  if (size_ == 1 || values.empty()) return;
  guarded("all-reduce", values.size_bytes(), [&] {
    using Kind = GlooOptions::AllReduce;
    const bool small = summed_directly(Bytes{double(values.size_bytes())});
    if (options_.all_reduce == Kind::direct || (options_.all_reduce == Kind::automatic && small)) {
      sum_directly(values);
      return;
    }
    gloo::AllreduceOptions call(context_);
    call.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    call.setOutput(values.data(), values.size());
    call.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<T>));
    gloo::allreduce(call);
  });
}

template <class T>
void GlooCommunicator::sum_directly(std::span<T> values) {
  const auto part = [&](int r) { return part_of_rank(values.size(), size_, r); };
  const Part mine = part(rank());
  scratch_.resize(mine.count * sizeof(T) * std::size_t(size_));
  const auto all = buffer(std::as_bytes(values));
  const auto theirs = buffer(scratch_);
  int sends = 0, receives = 0, results = 0;
  for (int shift = 1; shift < size_; ++shift) {  // everybody begins with another peer
    const int from = (rank() + shift) % size_, to = (rank() + size_ - shift) % size_;
    if (mine.count > 0) {
      theirs->recv(from, Slot::scatter, std::size_t(from) * mine.count * sizeof(T),
                   mine.count * sizeof(T));
      ++receives;
    }
    if (part(to).count > 0) {
      all->send(to, Slot::scatter, part(to).first * sizeof(T), part(to).count * sizeof(T));
      ++sends;
    }
    // Into what was sent: who sends the sum has received that.
    if (part(from).count > 0) {
      all->recv(from, Slot::gather, part(from).first * sizeof(T), part(from).count * sizeof(T));
      ++results;
    }
  }
  for (; receives > 0; --receives) theirs->waitRecv(context_->getTimeout());
  add_parts(values.subspan(mine.first, mine.count));
  for (int shift = 1; shift < size_ && mine.count > 0; ++shift) {
    const int to = (rank() + size_ - shift) % size_;
    all->send(to, Slot::gather, mine.first * sizeof(T), mine.count * sizeof(T));
    ++sends;
  }
  for (; results > 0; --results) all->waitRecv(context_->getTimeout());
  for (; sends > 0; --sends) all->waitSend(context_->getTimeout());
}

/// `mine` is this rank's version of its part; the others' lie in scratch_ by rank.
template <class T>
void GlooCommunicator::add_parts(std::span<T> mine) {
  std::span<T> theirs{reinterpret_cast<T*>(scratch_.data()), mine.size() * std::size_t(size_)};
  const auto of = [&](int r) { return theirs.subspan(std::size_t(r) * mine.size(), mine.size()); };
  std::ranges::copy(mine, of(rank()).begin());
  std::ranges::copy(of(0), mine.begin());
  for (int r = 1; r < size_; ++r) add_to<T>(mine, of(r));
}

void GlooCommunicator::all_gather(std::span<const float> mine, std::span<float> all) {
  RECKON_CHECK(all.size() == mine.size() * std::size_t(size_));
  if (size_ == 1) std::ranges::copy(mine, all.begin());
  if (size_ == 1 || mine.empty()) return;
  guarded("all-gather", all.size_bytes(), [&] {
    gloo::AllgatherOptions call(context_);
    call.setInput(const_cast<float*>(mine.data()), mine.size());
    call.setOutput(all.data(), all.size());
    gloo::allgather(call);
  });
}

void GlooCommunicator::reduce_scatter(std::span<const float> all, std::span<float> mine) {
  RECKON_CHECK(all.size() == mine.size() * std::size_t(size_));
  if (size_ == 1) std::ranges::copy(all, mine.begin());
  if (size_ == 1 || mine.empty()) return;
  // Gloo's own (gloo/reduce_scatter.h) is of its old interface: recursive halving, no deadline of
  // its own, and each element's order of additions depends on the world size's binary digits.
  guarded("reduce-scatter", all.size_bytes(), [&] {
    scratch_.resize(all.size_bytes());
    const auto out = buffer(std::as_bytes(all));
    const auto in = buffer(scratch_);
    const std::size_t bytes = mine.size_bytes();
    for (int shift = 1; shift < size_; ++shift) {
      const int from = (rank() + shift) % size_, to = (rank() + size_ - shift) % size_;
      in->recv(from, Slot::scatter, std::size_t(from) * bytes, bytes);
      out->send(to, Slot::scatter, std::size_t(to) * bytes, bytes);
    }
    for (int peer = 1; peer < size_; ++peer) in->waitRecv(context_->getTimeout());
    for (int peer = 1; peer < size_; ++peer) out->waitSend(context_->getTimeout());
    std::ranges::copy(all.subspan(std::size_t(rank()) * mine.size(), mine.size()), mine.begin());
    add_parts(mine);
  });
}

void GlooCommunicator::all_to_all(std::span<const float> send, std::span<float> receive) {
  RECKON_CHECK(send.size() == receive.size());
  RECKON_CHECK(send.size() % std::size_t(size_) == 0);
  if (size_ == 1) std::ranges::copy(send, receive.begin());
  if (size_ == 1 || send.empty()) return;
  guarded("all-to-all", send.size_bytes(), [&] {
    gloo::AlltoallOptions call(context_);
    call.setInput(const_cast<float*>(send.data()), send.size());
    call.setOutput(receive.data(), receive.size());
    gloo::alltoall(call);
  });
}

void GlooCommunicator::broadcast(std::span<std::byte> bytes, int root) {
  if (size_ == 1 || bytes.empty()) return;
  guarded("broadcast", bytes.size(), [&] {
    gloo::BroadcastOptions call(context_);
    call.setOutput(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size());
    call.setRoot(root);
    gloo::broadcast(call);
  });
}

/// By the rendezvous, whose every message is authenticated: those of Gloo's connections are not.
void GlooCommunicator::introduce(std::span<std::byte> bytes, int root) {
  if (size_ == 1) return;
  guarded("introduction", bytes.size(), [&] {
    const std::string key = fmt::format("{}/introduction/{}", name_, named_++);
    if (rank() == root) return membership_.set(key, bytes);
    const auto told = membership_.get(key, Deadline::after(options_.timeout));
    if (told.size() != bytes.size())
      throw CommError("an introduction of another size", {members_[std::size_t(root)]});
    std::ranges::copy(told, bytes.begin());
  });
}

void GlooCommunicator::send(std::span<const std::byte> bytes, int to) {
  RECKON_CHECK(to != rank() && to >= 0 && to < size_);
  if (bytes.empty()) return;
  guarded("send", bytes.size(), [&] {
    const auto out = buffer(bytes);
    out->send(to, Slot::point_to_point);
    out->waitSend(context_->getTimeout());
  });
}

void GlooCommunicator::start_send(std::span<const std::byte> bytes, int to) {
  RECKON_CHECK(to != rank() && to >= 0 && to < size_);
  if (bytes.empty()) return;
  guarded("send", bytes.size(), [&] {
    StartedSend& sent = started_.emplace_back();
    sent.bytes.assign(bytes.begin(), bytes.end());
    sent.buffer = buffer(sent.bytes);
    sent.buffer->send(to, Slot::point_to_point);
  });
}

void GlooCommunicator::finish_sends(std::size_t left) {
  if (started_.size() <= left) return;
  guarded("sends", 0, [&] {
    for (; started_.size() > left; started_.pop_front())
      started_.front().buffer->waitSend(context_->getTimeout());
  });
}

void GlooCommunicator::receive(std::span<std::byte> bytes, int from) {
  RECKON_CHECK(from != rank() && from >= 0 && from < size_);
  if (bytes.empty()) return;
  guarded("receive", bytes.size(), [&] {
    const auto in = buffer(bytes);
    in->recv(from, Slot::point_to_point);
    in->waitRecv(context_->getTimeout());
  });
}

void GlooCommunicator::barrier() {
  if (size_ == 1) return;
  guarded("barrier", 0, [&] {
    gloo::BarrierOptions call(context_);
    gloo::barrier(call);
  });
}
}  // namespace

bool has_gloo() { return true; }

std::unique_ptr<Communicator> make_gloo_communicator(Membership& membership,
                                                     const GlooOptions& options) {
  std::vector<int> ranks(std::size_t(options.ranks > 0 ? options.ranks : membership.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  auto contexts = std::make_shared<GlooContexts>();
  membership.on_loss([weak = std::weak_ptr(contexts)] {
    if (const auto known = weak.lock()) known->fail();
  });
  return std::make_unique<GlooCommunicator>(membership, options, std::move(ranks),
                                            fmt::format("gloo/{}", membership.next_number()),
                                            std::move(contexts));
}

}  // namespace reckon
#endif
