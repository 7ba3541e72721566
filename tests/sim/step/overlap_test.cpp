#include "sim/step/overlap.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <vector>

#include "sim/step/buckets.h"

using namespace reckon;

namespace {

struct Reduced {
  Seconds time{};
  Bytes sent_by_rank{};
};
constexpr double kLatency = 1e-4, kBandwidth = 1e10;
Reduced sum(Bytes size) { return {Seconds{kLatency + size.v / kBandwidth}, 2 * size}; }

/// A block that is one layer, in the order of the backward pass.
struct Block {
  int times;
  double backward, gradients;
};

struct Walked {
  double end = 0, backward = 0, reduced = 0;
  int buckets = 0;
};
/// Layer by layer, as the executor fills its buckets (BucketRule).
Walked walk(const std::vector<Block>& blocks) {
  Walked w;
  BucketRule rule;
  double open = 0;
  const auto reduce = [&] {
    const double time = sum(Bytes{open}).time.count();
    w.end = std::max(w.end, w.backward) + time;
    w.reduced += time;
    ++w.buckets;
    open = 0;
  };
  for (const Block& b : blocks) {
    for (int k = 0; k < b.times; ++k) {
      w.backward += b.backward;
      open += b.gradients;
      if (b.gradients > 0 && rule.add(Bytes{b.gradients})) reduce();
    }
  }
  if (open > 0) reduce();
  return w;
}

}  // namespace

TEST_CASE("reductions behind the backward pass: exposed is what ends after it") {
  // Ready at 1, 2, 3 s, 0.4 s each: ends 1.4, 2.4, 3.4; the backward pass ends at 3 s.
  ReductionChain quick, slow;
  quick.add(3, Seconds{1}, Seconds{0.4});
  CHECK(quick.overrun().count() == Approx(0.4));
  CHECK(quick.sum().count() == Approx(1.2));
  // 2 s each: ends 3, 5, 7.
  slow.add(3, Seconds{1}, Seconds{2});
  CHECK(slow.overrun().count() == Approx(4));
}

TEST_CASE("buckets of folded blocks are those of the layers, one by one") {
  CHECK(rc::check([] {
    std::vector<Block> blocks;
    const int kinds = *rc::gen::inRange(1, 6);
    for (int k = 0; k < kinds; ++k)
      blocks.push_back({*rc::gen::inRange(1, 40), 1e-4 * *rc::gen::inRange(0, 50),
                        // A power of two of bytes, so that sums are exact; 0: no weights.
                        double(*rc::gen::element(0, 1 << 10, 1 << 20, 1 << 22, 1 << 27))});
    const Walked expected = walk(blocks);
    BucketChain chain(sum);
    for (const Block& b : blocks)
      chain.add(b.times, Seconds{b.backward}, Bytes{b.gradients}, Bytes{b.gradients});
    chain.finish();
    RC_ASSERT(std::abs(chain.chain().sum().count() - expected.reduced) <= 1e-9);
    const double overrun = std::max(0.0, expected.end - expected.backward);
    RC_ASSERT(std::abs(chain.chain().overrun().count() - overrun) <= 1e-9);
  }));
}

TEST_CASE("a block of several layers fills buckets behind its own backward pass") {
  // 4 layers of 25 MiB, 1 s each: the last bucket alone ends after the backward pass.
  const Bytes layer = step_assumptions::kBucketSize;
  BucketChain chain(sum);
  chain.add(1, Seconds{4}, 4 * layer, layer);
  chain.finish();
  CHECK(chain.chain().overrun().count() == Approx(sum(layer).time.count()));
  CHECK(chain.sent().v == Approx((8 * layer).v));
  // One layer of as much is one bucket, and begins when the layer is done.
  BucketChain whole(sum);
  whole.add(1, Seconds{4}, 4 * layer, 4 * layer);
  whole.finish();
  CHECK(whole.chain().overrun().count() == Approx(sum(4 * layer).time.count()));
}
