#include "executor/train/dropout_mask.h"

#include <Random123/philox.h>

namespace reckon {

template <class T>
void dropout_factors(const DropoutKey& key, double rate, std::int64_t first, std::span<T> factors) {
  constexpr std::uint32_t kDropout = 0x44524f50;  // keeps these streams apart from all others
  const auto low = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
  const r123::Philox4x32::key_type philox_key{
      {static_cast<std::uint32_t>(key.seed) ^ kDropout,
       static_cast<std::uint32_t>(key.seed >> 32) ^ low(key.step >> 32)}};
  const auto threshold = static_cast<std::uint64_t>(rate * 0x1p32);
  const T kept = static_cast<T>(1 / (1 - rate));
  const auto count = static_cast<std::int64_t>(factors.size());
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t element = first + i;
    const r123::Philox4x32::ctr_type counter{
        {low(element / 4), low(key.sample), key.layer, low(key.step)}};
    const auto block = r123::Philox4x32{}(counter, philox_key);
    for (auto lane = static_cast<std::size_t>(element % 4); lane < 4 && i < count; ++lane, ++i)
      factors[static_cast<std::size_t>(i)] = block[lane] < threshold ? T{0} : kept;
  }
}

template void dropout_factors<float>(const DropoutKey&, double, std::int64_t, std::span<float>);
template void dropout_factors<double>(const DropoutKey&, double, std::int64_t, std::span<double>);

}  // namespace reckon
