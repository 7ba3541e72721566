#include "executor/train/layers/dropout_mask.h"

#include "kernels/dropout_stream.h"

namespace reckon {

template <class T>
void dropout_factors(const DropoutKey& key, double rate, std::int64_t first, std::span<T> factors) {
  const DropoutStream stream = dropout_stream(key.seed, key.step, key.layer, rate);
  const T kept = static_cast<T>(1 / (1 - rate));
  const auto count = static_cast<std::int64_t>(factors.size());
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t element = first + i;
    const DropoutBlock block = dropout_block(stream, key.sample, element / 4);
    for (auto lane = static_cast<std::size_t>(element % 4); lane < 4 && i < count; ++lane, ++i)
      factors[static_cast<std::size_t>(i)] = block.keeps[lane] ? kept : T{0};
  }
}

template void dropout_factors<float>(const DropoutKey&, double, std::int64_t, std::span<float>);
template void dropout_factors<double>(const DropoutKey&, double, std::int64_t, std::span<double>);

}  // namespace reckon
