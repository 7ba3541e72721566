#include "executor/train/rounding.h"

#include "kernels/half.h"

namespace reckon {
namespace {

constexpr std::int64_t kRoundedAtOnce = 1 << 15;

template <class E>
void round_all(Workers& workers, const float* from, float* to, std::int64_t count) {
  workers.run_pieces(count, kRoundedAtOnce, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = to_float(from_float<E>(from[i]));
  });
}

}  // namespace

Rounding rounding_of(Precision precision) {
  if (precision == Precision::bf16) return Rounding::bf16;
  return precision == Precision::fp16 ? Rounding::fp16 : Rounding::none;
}

Precision held_in(Rounding rounding) {
  return rounding == Rounding::bf16   ? Precision::bf16
         : rounding == Rounding::fp16 ? Precision::fp16
                                      : Precision::fp32;
}

void round_elements(Workers& workers, Rounding rounding, const float* from, float* to,
                    std::int64_t count) {
  if (rounding == Rounding::bf16) round_all<Bf16>(workers, from, to, count);
  if (rounding == Rounding::fp16) round_all<Half>(workers, from, to, count);
}

}  // namespace reckon
