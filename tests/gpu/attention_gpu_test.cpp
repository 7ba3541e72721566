#include "kernels/attention/attention.h"

#include "gpu/device.h"
#include "kernels/reference/backward.h"

using namespace reckon;

namespace {

struct Case {
  std::int64_t tokens, seen, heads, kv_heads, width;
  bool causal;
  std::int64_t window;
  double rate;
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.tokens << "x" << c.seen << ", heads " << c.heads << "/" << c.kv_heads << "x"
             << c.width << (c.causal ? ", causal" : "") << ", window " << c.window << ", dropout "
             << c.rate;
}

/// q, k and v side by side, as a fused projection writes them; or of their own.
template <class E>
struct Problem {
  static constexpr std::int64_t kBatch = 2;
  static constexpr double kQuery = 8;  // |q| at most; keys and values: 1
  reference::AttentionShape plain;
  gpu::AttentionShape s;
  gpu::AttentionDropout drop;
  std::vector<double> factors;
  Draw<E> q, k, v, dy;

  explicit Problem(const Case& c)
      : plain{.batch = kBatch,
              .tokens = c.tokens,
              .seen = c.seen,
              .heads = c.heads,
              .kv_heads = c.kv_heads,
              .head_width = c.width,
              .causal = c.causal,
              .window = c.window},
        s{.batch = kBatch,
          .tokens = c.tokens,
          .seen = c.seen,
          .heads = c.heads,
          .kv_heads = c.kv_heads,
          .head_width = c.width,
          .q_stride = c.heads * c.width,
          .kv_stride = 2 * c.kv_heads * c.width,
          .causal = c.causal,
          .window = c.window},
        q(count(c.tokens * c.heads), 1),
        k(count(c.seen * c.kv_heads), 2),
        v(count(c.seen * c.kv_heads), 3),
        dy(count(c.tokens * c.heads), 4) {
    for (std::size_t i = 0; i < q.values.size(); ++i) {  // so that some probabilities are large
      q.values[i] *= kQuery;
      q.elements[i] = from_float<E>(static_cast<float>(q.values[i]));
    }
    if (c.rate == 0) return;
    drop = {.mask = dropout_stream(7, 3, 11, c.rate), .first_sample = 5};
    const std::int64_t size = c.heads * c.tokens * c.seen;
    for (std::int64_t i = 0; i < kBatch * size; ++i) {
      const DropoutBlock block = dropout_block(drop.mask, 5 + i / size, i % size / 4);
      factors.push_back(block.keeps[i % size % 4] ? double{drop.mask.kept} : 0.0);
    }
  }
  std::size_t count(std::int64_t rows) const {
    return static_cast<std::size_t>(kBatch * rows * plain.head_width);
  }
  /// Keys and values side by side, by token.
  std::vector<E> keys_and_values() const {
    const auto part = static_cast<std::size_t>(s.kv_heads * s.head_width);
    std::vector<E> both;
    for (std::size_t at = 0; at < k.elements.size(); at += part)
      for (const auto* from : {&k.elements, &v.elements})
        both.insert(both.end(), from->begin() + std::ptrdiff_t(at),
                    from->begin() + std::ptrdiff_t(at + part));
    return both;
  }
  /// What keys_and_values() did, undone: one of the two.
  std::vector<double> part_of(const std::vector<double>& both, std::size_t which) const {
    const auto part = static_cast<std::size_t>(s.kv_heads * s.head_width);
    std::vector<double> out;
    for (std::size_t at = which * part; at < both.size(); at += 2 * part)
      out.insert(out.end(), both.begin() + std::ptrdiff_t(at),
                 both.begin() + std::ptrdiff_t(at + part));
    return out;
  }
};

template <class E>
void compare(const Case& c) {
  INFO(c);
  const Problem<E> p(c);
  const std::size_t n = p.q.values.size(), kv = p.k.values.size();
  const DeviceArray q(p.q.elements), dy(p.dy.elements), both(p.keys_and_values());
  const DeviceArray<E> y(n), dq(n);
  const DeviceArray d_both(p.keys_and_values());  // gradients are added to these
  const auto rows = static_cast<std::size_t>(p.kBatch * c.heads * c.tokens);
  const DeviceArray<float> log_sums(rows), dots(rows);
  const std::int64_t part = c.kv_heads * c.width;
  finish(gpu::attention_forward(p.s, p.drop, q.data, both.data, both.data + part, y.data,
                                log_sums.data, nullptr));
  std::vector<double> e_y(n), e_dq(n), e_dk(kv), e_dv(kv);
  reference::attention_with_factors(p.plain, p.q.values, p.k.values, p.v.values, p.factors, e_y);
  reference::attention_backward(p.plain, p.q.values, p.k.values, p.v.values, p.dy.values, p.factors,
                                e_dq, e_dk, e_dv);
  // A convex combination of |v| <= 1 (times 1 / (1 - rate)): probabilities are rounded to E before
  // the product, the output after it; scores, at most 8 sqrt(width), are good to `score`, which is
  // the relative error of their exponential.
  const double kept = c.rate > 0 ? 1 / (1 - c.rate) : 1;
  const double u = kRoundoff<E>, width = static_cast<double>(c.width);
  const double score = kSumRoundoff * (width + 8) * p.kQuery * std::sqrt(width);
  const double sums = kSumRoundoff * static_cast<double>(c.seen);
  const double relative = 2 * u + 4 * score + sums;
  check_near(y.values(), e_y, [&](double) { return kept * relative; });
  // Roundings of a probability and of the output, and what scores add: twice that is the limit.
  const double share = 8 * u + 16 * score + 4 * sums;
  check_share(y.values(), e_y, share);

  finish(gpu::attention_backward<E>(p.s, p.drop, q.data, both.data, both.data + part, y.data,
                                    dy.data, log_sums.data, dots.data,
                                    {.dq = dq.data,
                                     .dk = d_both.data,
                                     .dv = d_both.data + part,
                                     .accumulate_q = false,
                                     .accumulate_k = true,
                                     .accumulate_v = true},
                                    nullptr));
  // |dp|, |dots| <= kept width. Of dots: y is rounded to E. ds is rounded to E, too, then summed
  // with weights p that add up to 1 over a row, or to `column` over a column.
  const double slope = 2 * kept * width / std::sqrt(width);
  check_near(dq.values(), e_dq,
             [&](double e) { return u * std::abs(e) + slope * (2 * u + 4 * score + sums); });
  if (c.seen > 1) check_share(dq.values(), e_dq, share);
  std::vector<double> e_key(e_dk), e_value(e_dv);
  double column = 0;  // the largest sum of probabilities of a column, over rows and heads
  const auto ones = std::vector<double>(n, 1.0);
  std::vector<double> a(n), b(kv), mass(kv);
  reference::attention_backward(p.plain, p.q.values, p.k.values, p.v.values, ones, {}, a, b, mass);
  for (const double m : mass) column = std::max(column, m);
  for (std::size_t i = 0; i < kv; ++i) {
    e_key[i] += p.k.values[i];
    e_value[i] += p.v.values[i];
  }
  const double rows_of_sum = kSumRoundoff * static_cast<double>(c.tokens * c.heads / c.kv_heads);
  check_near(p.part_of(d_both.values(), 0), e_key, [&](double e) {
    return u * std::abs(e) + column * p.kQuery * slope * (2 * u + 4 * score + sums + rows_of_sum);
  });
  check_near(p.part_of(d_both.values(), 1), e_value, [&](double e) {
    return u * std::abs(e) + column * kept * (2 * u + 4 * score + rows_of_sum);
  });
  // What was there before is rounded as well, and is as large as what is added.
  check_share(p.part_of(d_both.values(), 0), e_key, 2 * share);
  check_share(p.part_of(d_both.values(), 1), e_value, 2 * share);
}

}  // namespace

TEMPLATE_TEST_CASE("attention on tensor cores and its gradients agree with the reference", "", Bf16,
                   Half) {
  require_device();
  compare<TestType>(
      GENERATE(Case{1, 1, 1, 1, 32, true, 0, 0}, Case{63, 63, 2, 2, 64, true, 0, 0},
               Case{65, 65, 4, 2, 32, true, 0, 0}, Case{130, 130, 2, 1, 64, true, 0, 0},
               Case{70, 70, 1, 1, 128, true, 0, 0}, Case{33, 129, 2, 1, 32, false, 0, 0},
               Case{150, 150, 1, 1, 32, true, 17, 0}, Case{67, 67, 2, 2, 64, true, 0, 0.25}));
}

TEMPLATE_TEST_CASE("attention key by key agrees with the reference at every width", "", float, Bf16,
                   Half) {
  require_device();
  compare<TestType>(GENERATE(Case{1, 1, 1, 1, 1, true, 0, 0}, Case{9, 9, 2, 1, 20, true, 0, 0},
                             Case{17, 17, 2, 2, 33, true, 5, 0},
                             Case{5, 11, 2, 1, 80, false, 0, 0.5}));
}
