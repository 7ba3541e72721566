#include "executor/cuda/memory/weights.h"

#include <algorithm>

#include "kernels/half.h"
#include "sim/base/check.h"

namespace reckon::cuda {
namespace {

template <class E>
void round_all(std::span<const float> from, std::byte* to) {
  E* const out = reinterpret_cast<E*>(to);
  for (std::size_t i = 0; i < from.size(); ++i) out[i] = from_float<E>(from[i]);
}

template <class E>
void widen_all(const std::byte* from, std::span<float> to) {
  const E* const in = reinterpret_cast<const E*>(from);
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = to_float(in[i]);
}

}  // namespace

void round_weights(DevicePrecision precision, std::span<const float> from,
                   std::span<std::byte> to) {
  RECKON_CHECK(to.size() == from.size() * weight_bytes(precision));
  if (precision == DevicePrecision::bf16) return round_all<Bf16>(from, to.data());
  if (precision == DevicePrecision::fp16) return round_all<Half>(from, to.data());
  std::ranges::copy(std::as_bytes(from), to.begin());
}

void widen_weights(DevicePrecision precision, std::span<const std::byte> from,
                   std::span<float> to) {
  RECKON_CHECK(from.size() == to.size() * weight_bytes(precision));
  if (precision == DevicePrecision::bf16) return widen_all<Bf16>(from.data(), to);
  if (precision == DevicePrecision::fp16) return widen_all<Half>(from.data(), to);
  std::ranges::copy(from, std::as_writable_bytes(to).begin());
}

void WeightUpload::queue(std::span<const float> from, std::byte* to, cudaStream_t stream) {
  while (!from.empty()) {
    const auto now = from.first(std::min(from.size(), kAtOnce));
    const std::size_t bytes = now.size() * weight_bytes(precision_);
    Part& part = parts_[next_];
    next_ = 1 - next_;
    check(cudaEventSynchronize(part.sent.get()), "new weights");
    if (part.memory.span().size() < bytes) part.memory = PinnedBuffer<std::byte>(bytes);
    const auto rounded = part.memory.span().first(bytes);
    workers_.run_pieces(count_of(now.size()), kHostPiece,
                        [&](std::int64_t begin, std::int64_t end) {
                          const auto first = static_cast<std::size_t>(begin);
                          const auto count = static_cast<std::size_t>(end - begin);
                          const std::size_t each = weight_bytes(precision_);
                          round_weights(precision_, now.subspan(first, count),
                                        rounded.subspan(first * each, count * each));
                        });
    queue_to_device(to, rounded, stream, "new weights");
    check(cudaEventRecord(part.sent.get(), stream), "new weights");
    from = from.subspan(now.size());
    to += bytes;
  }
}

}  // namespace reckon::cuda
