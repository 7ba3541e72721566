#include "sim/queue/packing/go_random.h"

#include <vector>

#include "sim/base/check.h"

namespace reckon {
namespace {

constexpr std::size_t kWords = 607, kLag = 273;
constexpr std::uint64_t kStepsOfFirstState = 7'800'000'000'000;
constexpr std::uint64_t kLehmerModulus = 2'147'483'647;
using Words = std::array<std::uint64_t, kWords>;

/// Three draws of Lehmer's generator a word, the first two shifted up; 20 draws are passed over.
Words filled(std::uint64_t seed, unsigned high_shift, unsigned middle_shift) {
  std::uint64_t x = seed;
  const auto next = [&] { return x = 48'271 * x % kLehmerModulus; };
  for (int k = 0; k < 20; ++k) next();
  Words words{};
  for (std::uint64_t& word : words) {
    word = next() << high_shift;
    word ^= next() << middle_shift;
    word ^= next();
  }
  return words;
}

/// a(x) b(x) modulo x^607 - x^334 - 1, coefficients modulo 2^64.
Words product(const Words& a, const Words& b) {
  std::vector<std::uint64_t> sum(2 * kWords - 1, 0);
  for (std::size_t i = 0; i < kWords; ++i)
    for (std::size_t j = 0; j < kWords; ++j) sum[i + j] += a[i] * b[j];
  for (std::size_t d = sum.size(); d-- > kWords;) {
    sum[d - kWords] += sum[d];
    sum[d - kLag] += sum[d];
  }
  Words out{};
  for (std::size_t k = 0; k < kWords; ++k) out[k] = sum[k];
  return out;
}

/// Of the word x(n) in the ring: the first that is replaced is 333, and they go down.
std::size_t place_of_word(std::uint64_t n) {
  return (kWords - kLag - 1 + kWords - n % kWords) % kWords;
}

/// The ring of seed 1 after so many steps.
Words state_after(std::uint64_t steps) {
  const Words start = filled(1, 20, 10);
  std::vector<std::uint64_t> x(2 * kWords);
  for (std::size_t n = 0; n < kWords; ++n) x[n] = start[place_of_word(n)];
  for (std::size_t n = kWords; n < x.size(); ++n) x[n] = x[n - kWords] + x[n - kLag];
  Words power{}, base{};
  power[0] = base[1] = 1;
  for (std::uint64_t e = steps; e > 0; e /= 2) {
    if (e % 2 == 1) power = product(power, base);
    base = product(base, base);
  }
  Words out{};
  for (std::size_t k = 0; k < kWords; ++k) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kWords; ++i) sum += power[i] * x[i + k];
    out[place_of_word(steps + k)] = sum;
  }
  return out;
}

}  // namespace

GoRandom::GoRandom(std::uint64_t seed) {
  static const Words first = state_after(kStepsOfFirstState);
  constexpr std::uint64_t kForZero = 89'482'311;
  const std::uint64_t reduced = seed % kLehmerModulus;
  words_ = filled(reduced == 0 ? kForZero : reduced, 40, 20);
  for (std::size_t k = 0; k < kLength; ++k) words_[k] ^= first[k];
}

std::uint64_t GoRandom::uint64() {
  tap_ = tap_ == 0 ? kLength - 1 : tap_ - 1;
  feed_ = feed_ == 0 ? kLength - 1 : feed_ - 1;
  return words_[feed_] += words_[tap_];
}

std::int32_t GoRandom::below(std::int32_t n) {
  RECKON_CHECK(n > 0);
  constexpr std::int64_t kAll = std::int64_t{1} << 31U;
  const auto draw = [&] { return int63() >> 32U; };
  if ((n & (n - 1)) == 0) return static_cast<std::int32_t>(draw() & (n - 1));
  const std::int64_t most = kAll - 1 - kAll % n;
  std::int64_t v = draw();
  while (v > most) v = draw();
  return static_cast<std::int32_t>(v % n);
}

std::int32_t GoRandom::below_for_shuffle(std::int32_t n) {
  RECKON_CHECK(n > 0);
  const auto m = static_cast<std::uint32_t>(n);
  const auto draw = [&] { return std::uint64_t(std::uint32_t(int63() >> 31U)) * m; };
  std::uint64_t scaled = draw();
  const std::uint32_t unfair = (0U - m) % m;
  while (std::uint32_t(scaled) < unfair) scaled = draw();
  return static_cast<std::int32_t>(scaled >> 32U);
}

}  // namespace reckon
