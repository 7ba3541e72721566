#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>

// One collective interface for all ranks of a job: NCCL between GPUs, Gloo between processes on
// CPUs, threads of one process (mirrored on CPUs, tests). Every rank calls the same functions in
// the same order, from one thread at a time.
namespace reckon {

/// Calls return when this rank's part is done. All throw CommError (executor/comm/errors.h) when a
/// peer is lost or the deadline passes, naming the peer where it is known.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Element-wise sum over all ranks, in place. The order of additions is always the same for the
  /// same number of ranks and of values in the call, so results repeat bit for bit, and all ranks
  /// have the same bits. Between threads, and where Gloo sums directly, it is the order of the
  /// ranks, ((x0 + x1) + x2) + ..., for every element, however values are cut into calls.
  virtual void all_reduce(std::span<float> values) = 0;
  virtual void all_reduce(std::span<double> values) = 0;
  virtual void all_reduce(std::span<std::int64_t> values) = 0;
  /// `mine` of rank r lands at r * mine.size() of `all`; all.size() == size() * mine.size().
  virtual void all_gather(std::span<const float> mine, std::span<float> all) = 0;
  /// Sum over ranks of `all`, of which rank r gets the r-th part; all.size() == size() *
  /// mine.size().
  virtual void reduce_scatter(std::span<const float> all, std::span<float> mine) = 0;
  /// Rank r's r-th part of `send` lands at rank p as its r-th part of `receive`.
  virtual void all_to_all(std::span<const float> send, std::span<float> receive) = 0;
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  /// The same for addresses and ids by which ranks reach each other: on the job's authenticated
  /// channels, where the ranks are processes.
  virtual void introduce(std::span<std::byte> bytes, int root) { broadcast(bytes, root); }
  virtual void send(std::span<const std::byte> bytes, int to) = 0;
  virtual void receive(std::span<std::byte> bytes, int from) = 0;
  /// Like send, but returns at once: a copy of `bytes` is under way. What was sent first is
  /// received first.
  virtual void start_send(std::span<const std::byte> bytes, int to) { send(bytes, to); }
  /// Until at most `left` of those are still under way.
  virtual void finish_sends(std::size_t /*left*/ = 0) {}
  virtual void barrier() = 0;

  /// A communicator of `ranks`, ranks of this one in ascending order, whose k-th is its rank k.
  /// This rank is one of them. Collective over this communicator: every rank calls it, in the same
  /// order, each with a group of its own; groups of one call are the same or have no rank in
  /// common. It may be used by another thread than this one, at the same time. std::logic_error:
  /// this kind has none.
  virtual std::unique_ptr<Communicator> subgroup(std::span<const int> /*ranks*/) {
    throw std::logic_error("this communicator has no subgroups");
  }
};

}  // namespace reckon
