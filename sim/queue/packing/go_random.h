#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

// The generator of Go's math/rand, so that a seed draws the same pods as it does in a published
// experiment that was written in Go. For nothing else: our own draws are of sim/base/random.h.
namespace reckon {

/// Additive lagged Fibonacci, x(n) = x(n-607) + x(n-273) mod 2^64 [Mitchell and Moore, in Knuth,
/// The Art of Computer Programming, vol. 2, Sec. 3.2.2]. A seed fills it by Lehmer's generator
/// 48271 x mod 2^31 - 1, each word xored with a state that is 7.8e12 steps on from that of seed 1
/// (Go's src/math/rand/rng.go and gen_cooked.go); we reach it by a power of x modulo the
/// recurrence's polynomial, in some 10 ms once a process.
class GoRandom {
 public:
  explicit GoRandom(std::uint64_t seed);

  std::uint64_t uint64();
  std::int64_t int63() { return static_cast<std::int64_t>(uint64() & ~(std::uint64_t{1} << 63U)); }
  /// rand.Intn for n in 1 .. 2^31 - 1.
  std::int32_t below(std::int32_t n);
  /// The draw of rand.Shuffle, which is another.
  std::int32_t below_for_shuffle(std::int32_t n);

 private:
  static constexpr std::size_t kLength = 607, kTap = 273;
  std::array<std::uint64_t, kLength> words_{};
  std::size_t tap_ = 0, feed_ = kLength - kTap;
};

}  // namespace reckon
