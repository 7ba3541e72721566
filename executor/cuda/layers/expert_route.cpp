#include "executor/cuda/layers/expert_route.h"

#include <algorithm>

#include "executor/cuda/layers/runner.h"
#include "executor/train/layers/expert_routing.h"
#include "kernels/select_rows.h"

namespace reckon::cuda {
namespace {

/// At least so many.
void fit(DeviceBuffer<std::int32_t>& buffer, std::size_t count) {
  if (buffer.size() < count_of(count)) buffer = DeviceBuffer<std::int32_t>(count_of(count));
}
void put_table(std::int32_t* to, const std::vector<std::int32_t>& table, const DevicePass& pass) {
  if (!table.empty()) queue_to_device(to, std::as_bytes(std::span(table)), pass.stream, "routes");
}

template <class E>
void gather_rows(std::int64_t rows, std::int64_t width, const std::int32_t* at, const E* from,
                 E* to, const DevicePass& pass) {
  check(gpu::select_rows({.batch = 1, .rows = rows, .count = rows, .width = width, .at = at}, from,
                         to, pass.stream),
        "rows of experts");
}

}  // namespace

template <class E>
void ExpertRoute::plan(const MixtureShape& shape, const E* scores, const DevicePass& pass) {
  shape_ = shape;
  const std::int64_t each = shape.tokens * shape.experts;
  std::vector<E> there(static_cast<std::size_t>(shape.batch * each));
  queue_to_host(std::as_writable_bytes(std::span(there)), scores, pass.stream, "scores of experts");
  check(cudaStreamSynchronize(pass.stream), "scores of experts");
  std::vector<float> here(there.size());
  std::ranges::transform(there, here.begin(), [](E score) { return to_float(score); });
  std::vector<std::vector<ExpertRow>> samples(static_cast<std::size_t>(shape.batch));
  for (std::size_t b = 0; b < samples.size(); ++b)
    route(here.data() + count_of(b) * each, shape.tokens, shape.experts, shape.top_k, samples[b]);
  if (pass.expert_hosts == nullptr) {
    traffic_.plan_alone(std::move(samples), shape.experts);
  } else {
    timed(pass.taken->expert, {},
          [&] { traffic_.plan(*pass.expert_hosts, std::move(samples), shape.experts); });
  }
  upload(pass);
}

void ExpertRoute::upload(const DevicePass& pass) {
  const auto slots = static_cast<std::size_t>(traffic_.own_rows());
  std::vector<std::int32_t> row_of(slots), slot_of(slots), expert_of(slots);
  for (std::int64_t b = 0; b < shape_.batch; ++b) {
    const ExpertTraffic::SampleRows& sample = traffic_.sample(b);
    std::vector<std::int64_t> found(static_cast<std::size_t>(shape_.tokens));
    for (std::size_t r = 0; r < sample.rows.size(); ++r) {  // by ascending expert
      const ExpertRow& row = sample.rows[r];
      const std::int64_t slot = (b * shape_.tokens + row.token) * shape_.top_k +
                                found[static_cast<std::size_t>(row.token)]++;
      row_of[static_cast<std::size_t>(slot)] = static_cast<std::int32_t>(sample.at[r]);
      slot_of[static_cast<std::size_t>(sample.at[r])] = static_cast<std::int32_t>(slot);
      expert_of[static_cast<std::size_t>(slot)] = static_cast<std::int32_t>(row.expert);
    }
  }
  fit(tables_, 3 * slots);
  put_table(tables_.data(), row_of, pass);
  put_table(tables_.data() + slots, slot_of, pass);
  put_table(tables_.data() + 2 * slots, expert_of, pass);
  if (!travels()) return;
  const std::vector<std::int32_t> places = traffic_.places_by_rank();
  std::vector<std::int32_t> origins(places.size());
  for (std::size_t i = 0; i < places.size(); ++i)
    origins[static_cast<std::size_t>(places[i])] = static_cast<std::int32_t>(i);
  fit(places_, places.size());
  fit(origins_, origins.size());
  put_table(places_.data(), places, pass);
  put_table(origins_.data(), origins, pass);
}

gpu::ExpertRows ExpertRoute::rows(std::int64_t width) const {
  const std::int64_t slots = traffic_.own_rows();
  return {.tokens = shape_.batch * shape_.tokens,
          .experts = shape_.experts,
          .top_k = shape_.top_k,
          .width = width,
          .row_of = tables_.data(),
          .slot_of = tables_.data() + slots,
          .expert_of = tables_.data() + 2 * slots};
}

template <class E>
void ExpertRoute::swap(std::int64_t width, const E* own_out, E* own_in, const E* moved_out,
                       E* moved_in, const DevicePass& pass) const {
  std::vector<DeviceSwap> swaps;
  std::int64_t from = 0, sent = 0;
  const auto out_of = [&](const E* rows, std::int64_t first, std::int64_t count) {
    return std::as_bytes(std::span(rows + first * width, static_cast<std::size_t>(count * width)));
  };
  const auto in_of = [&](E* rows, std::int64_t first, std::int64_t count) {
    return std::as_writable_bytes(
        std::span(rows + first * width, static_cast<std::size_t>(count * width)));
  };
  for (int r = 0; r < traffic_.ranks(); ++r) {
    const std::int64_t first = traffic_.first_sent_to(r), own = traffic_.sent_to(r);
    const std::int64_t theirs = traffic_.arrived_from(r);
    const bool goes = own_out != nullptr;  // to the experts
    swaps.push_back(goes ? DeviceSwap{out_of(own_out, first, own), in_of(moved_in, from, theirs)}
                         : DeviceSwap{out_of(moved_out, from, theirs), in_of(own_in, first, own)});
    if (r != pass.expert->rank()) sent += count_of(swaps.back().out.size());
    from += theirs;
  }
  timed(pass.taken->expert, Bytes{double(sent)},
        [&] { pass.expert->queue_swaps(swaps, pass.stream); });
}

template <class E>
void ExpertRoute::to_experts(std::int64_t width, const E* own, E* moved, E* arrived,
                             const DevicePass& pass) const {
  swap<E>(width, own, nullptr, nullptr, moved, pass);
  gather_rows(traffic_.arrived_rows(), width, origins_.data(), moved, arrived, pass);
}

template <class E>
void ExpertRoute::from_experts(std::int64_t width, const E* arrived, E* moved, E* own,
                               const DevicePass& pass) const {
  gather_rows(traffic_.arrived_rows(), width, places_.data(), arrived, moved, pass);
  swap<E>(width, nullptr, own, moved, nullptr, pass);
}

#define RECKON_EXPERT_ROUTE_FOR(E)                                                              \
  template void ExpertRoute::plan<E>(const MixtureShape&, const E*, const DevicePass&);         \
  template void ExpertRoute::to_experts<E>(std::int64_t, const E*, E*, E*, const DevicePass&)   \
      const;                                                                                    \
  template void ExpertRoute::from_experts<E>(std::int64_t, const E*, E*, E*, const DevicePass&) \
      const
RECKON_EXPERT_ROUTE_FOR(float);
RECKON_EXPERT_ROUTE_FOR(Bf16);
RECKON_EXPERT_ROUTE_FOR(Half);

}  // namespace reckon::cuda
