#include "kernels/experts.h"

#include <algorithm>
#include <numeric>

#include "gpu/device.h"
#include "kernels/reference/experts.h"

using namespace reckon;

namespace {

/// Every token's experts, ascending, and its rows in the order of experts, then of tokens; the last
/// expert gets none.
struct ChosenExperts {
  std::vector<std::int32_t> expert_of, slot_of, row_of;
  ChosenExperts(std::int64_t tokens, std::int64_t experts, std::int64_t top_k) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::vector<std::int32_t> own;
      for (std::int64_t k = 0; k < top_k; ++k)
        own.push_back(static_cast<std::int32_t>((3 * t + k) % (experts - 1)));
      std::ranges::sort(own);
      expert_of.insert(expert_of.end(), own.begin(), own.end());
    }
    slot_of.resize(expert_of.size());
    std::iota(slot_of.begin(), slot_of.end(), 0);
    std::ranges::stable_sort(slot_of, {},
                             [&](std::int32_t s) { return expert_of[std::size_t(s)]; });
    row_of.resize(slot_of.size());
    for (std::size_t row = 0; row < slot_of.size(); ++row)
      row_of[std::size_t(slot_of[row])] = static_cast<std::int32_t>(row);
  }
};

/// (rows, width) in the order of slots -> in that of rows; or back.
std::vector<double> moved_rows(const std::vector<double>& from, std::size_t width,
                               const std::vector<std::int32_t>& of) {
  std::vector<double> to;
  for (const std::int32_t at : of) {
    const auto first = from.begin() + std::ptrdiff_t(std::size_t(at) * width);
    to.insert(to.end(), first, first + std::ptrdiff_t(width));
  }
  return to;
}

}  // namespace

TEMPLATE_TEST_CASE("rows go to experts and back, weighed as the reference does, with gradients", "",
                   float, Bf16, Half) {
  require_device();
  using E = TestType;
  const bool normalize = GENERATE(true, false), accumulate = GENERATE(true, false);
  gpu::ExpertRows r{.tokens = 7, .experts = 5, .top_k = 2, .width = 33};
  if (!accumulate) r = {.tokens = 3, .experts = 70, .top_k = 40, .width = 300};
  const ChosenExperts chosen(r.tokens, r.experts, r.top_k);
  const DeviceArray row_of(chosen.row_of), slot_of(chosen.slot_of), expert_of(chosen.expert_of);
  r.row_of = row_of.data;
  r.slot_of = slot_of.data;
  r.expert_of = expert_of.data;
  const auto slots = chosen.slot_of.size(), width = static_cast<std::size_t>(r.width);
  const auto tokens = static_cast<std::size_t>(r.tokens) * width;
  const auto scored = static_cast<std::size_t>(r.tokens * r.experts);
  const Draw<E> scores(scored, 1), x(tokens, 2), rows(slots * width, 3), dy(tokens, 4);
  const DeviceArray d_scores(scores.elements), d_x(x.elements), d_rows(rows.elements),
      d_dy(dy.elements);
  // Sums of at most so many numbers, each of at most `size`, rounded to E at the end, twice where
  // it is added.
  const auto near = [&](const DeviceArray<E>& got, std::vector<double> expected,
                        const std::vector<double>& before, double size) {
    for (std::size_t i = 0; accumulate && i < expected.size(); ++i) expected[i] += before[i];
    const double terms = static_cast<double>(r.experts + r.width) + 16;
    check_near(got.values(), expected, [&](double e) {
      return 2 * kRoundoff<E> * std::abs(e) + 4 * terms * kSumRoundoff * size;
    });
  };

  const DeviceArray<E> y(slots * width);
  finish(gpu::dispatch_rows(r, d_x.data, y.data, nullptr));
  std::vector<double> of_tokens;  // by slot
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const auto first = x.values.begin() + std::ptrdiff_t(slot / std::size_t(r.top_k) * width);
    of_tokens.insert(of_tokens.end(), first, first + std::ptrdiff_t(width));
  }
  CHECK(y.values() == moved_rows(of_tokens, width, chosen.slot_of));

  const DeviceArray d_sums(x.elements);
  finish(gpu::dispatch_rows_gradient(r, d_rows.data, d_sums.data, accumulate, nullptr));
  const std::vector<double> by_slot = moved_rows(rows.values, width, chosen.row_of);
  std::vector<double> sums(tokens);
  for (std::size_t i = 0; i < by_slot.size(); ++i)
    sums[i / width / std::size_t(r.top_k) * width + i % width] += by_slot[i];
  near(d_sums, sums, x.values, double(r.top_k));

  const reference::Mixture mixture{.tokens = r.tokens,
                                   .experts = r.experts,
                                   .top_k = r.top_k,
                                   .width = r.width,
                                   .normalize = normalize,
                                   .chosen = chosen.expert_of};
  std::vector<double> combined(tokens), dscores(scored), dx(slots * width);
  reference::combine(mixture, scores.values, by_slot, combined);
  reference::combine_backward(mixture, scores.values, by_slot, dy.values, dscores, dx);
  const DeviceArray<float> weights(slots), slopes(slots);
  const DeviceArray<E> d_combined(tokens);
  finish(gpu::expert_weights(r, normalize, d_scores.data, weights.data, nullptr));
  finish(gpu::combine_rows(r, weights.data, d_rows.data, d_combined.data, nullptr));
  check_near(d_combined.values(), combined, [&](double e) {
    return kRoundoff<E> * std::abs(e) + 4 * double(r.experts + 16) * kSumRoundoff;
  });
  const DeviceArray d_dx(rows.elements), d_dscores(scores.elements);
  finish(gpu::combine_rows_gradient(r, weights.data, d_rows.data, d_dy.data, d_dx.data, accumulate,
                                    slopes.data, nullptr));
  finish(gpu::expert_weights_gradient(r, normalize, d_scores.data, slopes.data, d_dscores.data,
                                      accumulate, nullptr));
  near(d_dx, moved_rows(dx, width, chosen.slot_of), rows.values, 1);
  near(d_dscores, dscores, scores.values, double(r.width));
  // Slopes alone, where nothing before is trained.
  const DeviceArray<float> alone(slots);
  finish(gpu::combine_rows_gradient<E>(r, weights.data, d_rows.data, d_dy.data, nullptr, false,
                                       alone.data, nullptr));
  CHECK(alone.values() == slopes.values());
}
