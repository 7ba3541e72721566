#include "kernels/attention/ring.h"

#include "gpu/device.h"
#include "kernels/attention/attention.h"
#include "kernels/reference/backward.h"

// A sequence by pieces of rows against pieces of columns, merged, is the whole attention, and so
// are its gradients.
using namespace reckon;

namespace {

struct RingCase {
  std::int64_t heads, kv_heads, width;
  bool causal;
  std::int64_t window;
  double rate;
};

constexpr std::int64_t kPieces[] = {70, 30, 100};  // tiles of 64, whole and not
constexpr std::int64_t kAll = 200;

template <class E>
void check_ring(const RingCase& c) {
  INFO(c.heads << "/" << c.kv_heads << " heads of " << c.width << (c.causal ? ", causal" : "")
               << ", window " << c.window << ", dropout " << c.rate);
  const std::int64_t q_width = c.heads * c.width, kv_width = c.kv_heads * c.width;
  const auto count = [](std::int64_t width) { return static_cast<std::size_t>(kAll * width); };
  const Draw<E> q(count(q_width), 1), k(count(kv_width), 2), v(count(kv_width), 3),
      dy(count(q_width), 4);
  const DeviceArray d_q(q.elements), d_k(k.elements), d_v(v.elements), d_dy(dy.elements);
  const reference::AttentionShape plain{.tokens = kAll,
                                        .seen = kAll,
                                        .heads = c.heads,
                                        .kv_heads = c.kv_heads,
                                        .head_width = c.width,
                                        .causal = c.causal,
                                        .window = c.window};
  gpu::AttentionDropout drop;
  std::vector<double> factors;
  if (c.rate > 0) {
    drop = {.mask = dropout_stream(7, 3, 11, c.rate), .first_sample = 5, .all = kAll};
    for (std::int64_t i = 0; i < c.heads * kAll * kAll; ++i)
      factors.push_back(dropout_block(drop.mask, 5, i / 4).keeps[i % 4] ? double{drop.mask.kept}
                                                                        : 0.0);
  }
  std::vector<double> y(count(q_width)), dq(y.size()), dk(count(kv_width)), dv(dk.size());
  reference::attention_with_factors(plain, q.values, k.values, v.values, factors, y);
  reference::attention_backward(plain, q.values, k.values, v.values, dy.values, factors, dq, dk,
                                dv);

  const DeviceArray<E> part(count(q_width));
  const DeviceArray<float> part_logs(std::size_t(kAll * c.heads)), logs(part_logs.count),
      sum(count(q_width));
  // body(shape, dropout, first row, first column, whether it is the rows' first)
  const auto for_pieces = [&](auto body) {
    std::int64_t top = 0;
    for (const std::int64_t rows : kPieces) {
      std::int64_t left = 0;
      for (const std::int64_t columns : kPieces) {
        gpu::AttentionDropout here = drop;
        here.first_row = top;
        here.first_column = left;
        const gpu::AttentionShape s{.tokens = rows,
                                    .seen = columns,
                                    .heads = c.heads,
                                    .kv_heads = c.kv_heads,
                                    .head_width = c.width,
                                    .q_stride = q_width,
                                    .kv_stride = kv_width,
                                    .causal = c.causal,
                                    .window = c.window,
                                    .ahead = top - left};
        body(s, here, top, left);
        left += columns;
      }
      top += rows;
    }
  };
  for_pieces([&](const gpu::AttentionShape& s, const gpu::AttentionDropout& here, std::int64_t top,
                 std::int64_t left) {
    finish(gpu::attention_forward(s, here, d_q.data + top * q_width, d_k.data + left * kv_width,
                                  d_v.data + left * kv_width, part.data, part_logs.data, nullptr));
    finish(gpu::merge_attention(s.tokens, c.heads, c.width, part.data, part_logs.data,
                                sum.data + top * q_width, logs.data + top * c.heads, left == 0,
                                nullptr));
  });
  // A part has the error that attention_gpu_test.cpp derives, 4 u max |v|, and counts by its share.
  const double u = kRoundoff<E>;
  const double kept = c.rate > 0 ? double{drop.mask.kept} : 1;
  check_near(sum.values(), y, [&](double) { return 4 * (u + 0x1p-21) * kept; });

  std::vector<E> rounded;
  for (const double x : sum.values()) rounded.push_back(from_float<E>(static_cast<float>(x)));
  const DeviceArray d_y(rounded);
  const DeviceArray zeros_q(std::vector<float>(count(q_width))),
      zeros_k(std::vector<float>(count(kv_width))), zeros_v(std::vector<float>(count(kv_width)));
  const DeviceArray<E> g_q(count(q_width)), g_k(count(kv_width)), g_v(count(kv_width));
  const DeviceArray<float> dots(part_logs.count);
  for_pieces([&](const gpu::AttentionShape& s, const gpu::AttentionDropout& here, std::int64_t top,
                 std::int64_t left) {
    const std::int64_t at = top * q_width;
    finish(gpu::attention_backward<E>(s, here, d_q.data + at, d_k.data + left * kv_width,
                                      d_v.data + left * kv_width, d_y.data + at, d_dy.data + at,
                                      logs.data + top * c.heads, dots.data,
                                      {.dq = g_q.data, .dk = g_k.data, .dv = g_v.data}, nullptr));
    finish(gpu::add_widened(s.tokens * q_width, g_q.data, zeros_q.data + at, nullptr));
    const std::int64_t columns = s.seen * kv_width;
    finish(gpu::add_widened(columns, g_k.data, zeros_k.data + left * kv_width, nullptr));
    finish(gpu::add_widened(columns, g_v.data, zeros_v.data + left * kv_width, nullptr));
  });
  // Independent roundings of the output, of the probabilities and of each part's sums.
  const double share = 8 * (u + 0x1p-21);
  check_share(zeros_q.values(), dq, share);
  check_share(zeros_k.values(), dk, share);
  check_share(zeros_v.values(), dv, share);
}

}  // namespace

TEMPLATE_TEST_CASE("attention piece by piece, merged, is that of the sequence, with gradients", "",
                   float, Bf16, Half) {
  require_device();
  check_ring<TestType>({2, 1, 32, true, 0, 0});
  check_ring<TestType>({2, 2, 24, true, 45, 0.2});  // key by key; a piece of which rows see nothing
  check_ring<TestType>({4, 2, 32, true, 90, 0});
  check_ring<TestType>({1, 1, 64, false, 0, 0.1});
}

TEMPLATE_TEST_CASE("columns are taken out of wider rows, and put back", "", float, Bf16, Half) {
  require_device();
  using E = TestType;
  const bool accumulate = GENERATE(true, false);
  constexpr std::int64_t kRows = 9, kWidth = 35, kStride = 60;
  const Draw<E> wide(kRows * kStride, 1), narrow(kRows * kWidth, 2);
  const DeviceArray from(wide.elements), to(wide.elements);
  const DeviceArray<E> taken(kRows * kWidth);
  finish(gpu::take_columns(kRows, kWidth, from.data, kStride, taken.data, nullptr));
  const std::vector<float> floats(narrow.values.begin(), narrow.values.end());
  const DeviceArray put(floats);
  finish(gpu::put_columns(kRows, kWidth, put.data, to.data, kStride, accumulate, nullptr));
  std::vector<double> e_taken, e_put = wide.values;
  for (std::size_t i = 0; i < floats.size(); ++i) {
    const std::size_t at = i / kWidth * kStride + i % kWidth;
    e_taken.push_back(wide.values[at]);
    e_put[at] = accumulate ? e_put[at] + narrow.values[i] : narrow.values[i];
  }
  CHECK(taken.values() == e_taken);
  check_near(to.values(), e_put, [](double x) { return kRoundoff<E> * std::abs(x) + 1e-30; });
}
