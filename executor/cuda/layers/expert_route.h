#pragma once
#include <cstdint>
#include <vector>

#include "executor/cuda/memory/buffers.h"
#include "executor/train/layers/expert_traffic.h"
#include "kernels/experts.h"

namespace reckon::cuda {

struct DevicePass;

struct MixtureShape {
  std::int64_t batch = 0, tokens = 0;  // tokens: of a sample
  std::int64_t experts = 0, top_k = 1;
};

/// Which token's row is which expert's, of one mixture of experts in one pass: chosen on the host
/// by the rules of CPUs (expert_routing.h), as all that follows needs the experts' counts there.
/// Rows stand as ExpertTraffic says, those of one rank alone too.
class ExpertRoute {
 public:
  /// From the scores, (batch, tokens, experts) on the device, for which it waits. Collective over
  /// pass.expert_hosts.
  template <class E>
  void plan(const MixtureShape& shape, const E* scores, const DevicePass& pass);

  /// For kernels, of rows of `width`.
  gpu::ExpertRows rows(std::int64_t width) const;
  const ExpertTraffic& traffic() const { return traffic_; }
  /// Do other ranks have some of the experts?
  bool travels() const { return traffic_.ranks() > 1; }

  /// Rows of `width` from where their tokens are to where their experts are; `moved` is memory for
  /// as many as arrive. Collective over pass.expert.
  template <class E>
  void to_experts(std::int64_t width, const E* own, E* moved, E* arrived,
                  const DevicePass& pass) const;
  /// And back.
  template <class E>
  void from_experts(std::int64_t width, const E* arrived, E* moved, E* own,
                    const DevicePass& pass) const;

 private:
  void upload(const DevicePass& pass);
  /// Own rows as they stand, those that arrived in the order of the ranks.
  template <class E>
  void swap(std::int64_t width, const E* own_out, E* own_in, const E* moved_out, E* moved_in,
            const DevicePass& pass) const;

  MixtureShape shape_;
  ExpertTraffic traffic_;
  DeviceBuffer<std::int32_t> tables_;            // row_of, slot_of, expert_of
  DeviceBuffer<std::int32_t> places_, origins_;  // of arrived rows by rank; and the other way round
};

}  // namespace reckon::cuda
