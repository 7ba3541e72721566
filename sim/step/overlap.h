#pragma once
#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/quantity.h"
#include "sim/step/assumptions.h"

// Gradient reduction behind the backward pass (docs/MODELS.md, "Overlap").
namespace reckon {

/// Reductions one after another, each when what it reduces is there and the one before is done:
/// end_i = max(end_{i-1}, ready_i) + d_i. Of n alike in closed form: the last one ends when the
/// latest of its limits lets it.
class ReductionChain {
 public:
  /// n times: a backward pass, then a reduction of what it made.
  void add(double n, Seconds backward, Seconds reduce) {
    const Seconds before = at_;
    sum_ += n * reduce;
    at_ += n * backward;
    end_ = std::max({end_ + n * reduce, before + backward + n * reduce, at_ + reduce});
  }
  /// A backward pass that completes nothing.
  void pass(Seconds backward) { at_ += backward; }
  /// What goes on after the end of the backward pass.
  Seconds overrun() const { return std::max(Seconds{}, end_ - at_); }
  /// What all of them take, one after the other.
  Seconds sum() const { return sum_; }

 private:
  Seconds at_{}, end_{}, sum_{};
};

/// Gradients that fill buckets (BucketRule, sim/step/buckets.h) over the ends of blocks, and the
/// buckets' reductions. `Sum`: Bytes -> {time, sent_by_rank}.
template <class Sum>
class BucketChain {
 public:
  explicit BucketChain(Sum sum) : sum_(std::move(sum)) {}

  /// n blocks alike, in the order of the backward pass. A block's gradients come in pieces of about
  /// its largest layer's (`largest`), evenly over its backward pass; no piece is split.
  void add(double n, Seconds backward, Bytes gradients, Bytes largest) {
    if (gradients.v <= 0) return chain_.pass(n * backward);
    const double pieces = std::max(1.0, std::floor(gradients / largest));
    fill(n * pieces, backward / pieces, gradients / pieces);
  }
  /// What is left after the last block is a bucket too.
  void finish() {
    if (open_.v > 0) close(1, Seconds{}, open_);
    open_ = {};
  }
  /// Other reductions in between use the same links.
  void add_other(double n, Seconds reduce, Bytes sent) {
    chain_.add(n, Seconds{}, reduce);
    sent_ += n * sent;
  }
  const ReductionChain& chain() const { return chain_; }
  Bytes sent() const { return sent_; }

 private:
  static constexpr Bytes kSize = step_assumptions::kBucketSize;

  void fill(double n, Seconds backward, Bytes gradients) {
    const double missing = std::max(1.0, std::ceil((limit_ - open_) / gradients));
    if (n < missing) {
      open_ += n * gradients;
      return chain_.pass(n * backward);
    }
    chain_.pass((missing - 1) * backward);
    close(1, backward, open_ + missing * gradients);
    limit_ = kSize;
    const double each = std::max(1.0, std::ceil(kSize / gradients));
    const double full = std::floor((n - missing) / each);
    if (full > 0) close(full, each * backward, each * gradients);
    const double rest = n - missing - full * each;
    open_ = rest * gradients;
    chain_.pass(rest * backward);
  }
  void close(double n, Seconds backward, Bytes size) {
    if (size != last_size_) last_ = sum_(size);
    last_size_ = size;
    sent_ += n * last_.sent_by_rank;
    chain_.add(n, backward, last_.time);
  }

  Sum sum_;
  ReductionChain chain_;
  Bytes open_{}, limit_ = step_assumptions::kFirstBucketSize, sent_{};
  Bytes last_size_{};
  decltype(std::declval<Sum>()(Bytes{})) last_{};
};

/// A collective that goes on behind arithmetic.
struct HiddenTransfer {
  Seconds time{};           // hidden
  Bytes sent{};             // by one device, hidden or not
  BytesPerSecond inside{};  // the device's fastest link
};
/// Arithmetic takes longer while a collective's kernels have a part of the device's processors and
/// power: `slowdown` (FrameworkRules::overlap_slowdown) for each second of transfer behind it, and
/// no more than if the device moved what it sends at full speed: over a slow network the same bytes
/// take no more of it. Kernels that wait for memory do with fewer processors: `by_processors` is
/// the share of the arithmetic that does not.
Seconds contention(const HiddenTransfer& transfer, double by_processors, double slowdown);

}  // namespace reckon
