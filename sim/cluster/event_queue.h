#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/quantity.h"

// Events of a life and the queue that orders them by (time, sequence): first come, first served
// among equals.
namespace reckon {

enum class EventKind : std::uint32_t {
  // of the job
  submit,
  initialized,  // the gang runs
  emergency_saved,
  backoff_over,
  finish,
  // of a node
  ready,
  provision_timeout,
  reclaim_notice,
  taken,  // by the provider: spot reclaim
  maintenance_notice,
  maintenance_begin,
  maintenance_end,
  failed,
  repaired,
  worker_joined,  // asynchronous training: a worker that came later takes part
  unneeded,       // long enough for the autoscaler to delete the node
  // of the cluster
  scan,  // of the autoscaler; only those that find something to do
  horizon,
  // of a node: nothing ended when it failed, and the job stood still until a timeout
  hang_found,
  // of the job
  tried_smaller,  // elastic: it has waited long enough for its whole gang
  grow,           // elastic: workers that are ready join
  // of the cluster, and of a node: what an autoscaler does to nodes with pods
  disrupt,
  expired,     // the node is drained for its age
  drain_over,  // pods that may not be evicted had their time
  block_ends,  // a reservation's machines go soon: the last moment for a save
};

/// Cancelling is lazy: an event counts only while `stamp` is still that of its entity.
struct Event {
  SimTime at{};
  std::uint32_t sequence = 0;
  EventKind kind{};
  std::uint32_t entity = 0;
  std::uint32_t stamp = 0;
};

/// 4-ary heap of plain entries, and a place for each job beside it, in a tournament of the jobs,
/// for what is rescheduled all the time. Taking the first leaves a hole at the root that the next
/// push fills, so the usual "take one, schedule one" costs one walk down the heap and not two.
class EventQueue {
 public:
  explicit EventQueue(std::size_t solos = 1)
      : solos_(solos), pending_(solos, 0), leaves_(std::bit_ceil(solos)), firsts_(leaves_) {
    for (std::size_t node = leaves_ - 1; node > 0; --node) firsts_[node] = first_of(2 * node);
  }

  std::size_t size() const {
    return heap_.size() - (hole_ ? 1 : 0) +
           static_cast<std::size_t>(std::count(pending_.begin(), pending_.end(), 1));
  }

  void push(SimTime at, EventKind kind, std::uint32_t entity, std::uint32_t stamp) {
    const Event event{at, next_sequence_++, kind, entity, stamp};
    RECKON_CHECK(next_sequence_ != 0);
    if (hole_) {
      hole_ = false;
      sink(event);
    } else {
      heap_.push_back(event);
      rise(heap_.size() - 1, event);
    }
  }

  /// The one event of a job that is not in the heap: replaces the one before,
  /// which then never happens. Its entity is the job.
  void push_solo(SimTime at, EventKind kind, std::uint32_t job = 0) {
    solos_[job] = {at, next_sequence_++, kind, job, 0};
    RECKON_CHECK(next_sequence_ != 0);
    pending_[job] = 1;
    play(job);
  }
  void cancel_solo(std::uint32_t job = 0) {
    pending_[job] = 0;
    play(job);
  }

  /// The earliest event; false: there is none.
  bool take(Event& event) {
    if (hole_) close_hole();
    if (const std::uint32_t first = first_of(1);
        is_pending(first) && (heap_.empty() || before(solos_[first], heap_.front()))) {
      event = solos_[first];
      cancel_solo(first);
      return true;
    }
    if (heap_.empty()) return false;
    event = heap_.front();
    hole_ = true;
    return true;
  }

 private:
  static constexpr std::size_t kArity = 4;

  static bool before(const Event& a, const Event& b) {
    return a.at != b.at ? a.at < b.at : a.sequence < b.sequence;
  }

  bool is_pending(std::uint32_t job) const { return job < pending_.size() && pending_[job] != 0; }

  /// The job whose event is the first of those below a node of the tournament: node 1 is the root,
  /// below node k are 2k and 2k + 1, and the leaves are the jobs.
  std::uint32_t first_of(std::size_t node) const {
    return node < leaves_ ? firsts_[node] : static_cast<std::uint32_t>(node - leaves_);
  }

  /// The job's event changed: its matches are played again.
  void play(std::uint32_t job) {
    for (std::size_t node = (leaves_ + job) / 2; node > 0; node /= 2) {
      const std::uint32_t a = first_of(2 * node), b = first_of(2 * node + 1);
      const bool second = is_pending(b) && (!is_pending(a) || before(solos_[b], solos_[a]));
      firsts_[node] = second ? b : a;
    }
  }

  void close_hole() {
    hole_ = false;
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
  }

  void rise(std::size_t i, const Event& event) {
    while (i > 0) {
      const std::size_t parent = (i - 1) / kArity;
      if (!before(event, heap_[parent])) break;
      heap_[i] = heap_[parent];
      i = parent;
    }
    heap_[i] = event;
  }

  /// Puts `event` where the root was.
  void sink(const Event& event) {
    const std::size_t n = heap_.size();
    std::size_t i = 0;
    for (;;) {
      const std::size_t first = kArity * i + 1;
      if (first >= n) break;
      const std::size_t end = first + kArity < n ? first + kArity : n;
      std::size_t least = first;
      for (std::size_t c = first + 1; c < end; ++c) {
        if (before(heap_[c], heap_[least])) least = c;
      }
      if (!before(heap_[least], event)) break;
      heap_[i] = heap_[least];
      i = least;
    }
    heap_[i] = event;
  }

  std::vector<Event> heap_;
  std::vector<Event> solos_;  // by job
  std::vector<char> pending_;
  std::size_t leaves_ = 1;             // of the tournament: at least a leaf a job
  std::vector<std::uint32_t> firsts_;  // by inner node; [0] unused
  bool hole_ = false;                  // heap_[0] was taken and not yet replaced
  std::uint32_t next_sequence_ = 0;
};

}  // namespace reckon
