#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/base/words.h"

// Karpenter's configuration in Karpenter's own words: the fields of karpenter.sh/v1 NodePool and
// the controller's settings [karpenter.sh, "NodePools", "Disruption", "Settings"]. A scenario and
// its plan have the same values.
namespace reckon {

enum class RequirementOperator { In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte };
constexpr auto words_of(RequirementOperator) {
  using R = RequirementOperator;
  return std::array{Word<R>{"In", R::In},         Word<R>{"NotIn", R::NotIn},
                    Word<R>{"Exists", R::Exists}, Word<R>{"DoesNotExist", R::DoesNotExist},
                    Word<R>{"Gt", R::Gt},         Word<R>{"Lt", R::Lt},
                    Word<R>{"Gte", R::Gte},       Word<R>{"Lte", R::Lte}};
}

/// Of a label that a node would have.
struct NodeRequirement {
  std::string key;
  RequirementOperator op = RequirementOperator::In;
  std::vector<std::string> values;
  std::optional<int> min_values{};  // different values that the machines of a launch have at least
};

enum class ConsolidationPolicy { WhenEmpty, WhenEmptyOrUnderutilized };
constexpr auto words_of(ConsolidationPolicy) {
  using C = ConsolidationPolicy;
  return std::array{Word<C>{"WhenEmpty", C::WhenEmpty},
                    Word<C>{"WhenEmptyOrUnderutilized", C::WhenEmptyOrUnderutilized}};
}

enum class DisruptionReason { Empty, Underutilized, Drifted };
constexpr auto words_of(DisruptionReason) {
  using D = DisruptionReason;
  return std::array{Word<D>{"Empty", D::Empty}, Word<D>{"Underutilized", D::Underutilized},
                    Word<D>{"Drifted", D::Drifted}};
}

/// So many nodes of the NodePool may be disrupted at once, voluntarily.
struct DisruptionBudget {
  std::optional<double> share;  // of the NodePool's nodes, 0..1; nullopt: `nodes` of them
  int nodes = 0;
  /// cron, UTC; "": always. It counts for `duration` from each of the schedule's times.
  std::string schedule;
  Seconds duration{};
  std::vector<DisruptionReason> reasons;  // empty: all
};

/// Of all nodes of the NodePool together; nothing: no limit.
struct NodePoolLimits {
  std::optional<int> cpu, nodes, gpus;
  std::optional<Bytes> memory;
};

struct NodePoolSpec {
  std::string name;
  int weight = 0;
  std::vector<NodeRequirement> requirements;
  NodePoolLimits limits;
  ConsolidationPolicy consolidation_policy = ConsolidationPolicy::WhenEmptyOrUnderutilized;
  std::optional<Seconds> consolidate_after = Seconds{0};          // nullopt: Never
  std::vector<DisruptionBudget> budgets;                          // none given: one of 10 %
  std::optional<Seconds> expire_after = std::chrono::hours(720);  // nullopt: Never
  std::optional<Seconds> termination_grace_period;
};

struct KarpenterSpec {
  Seconds batch_idle{1}, batch_max{10};
  bool spot_to_spot_consolidation = false;  // feature gate
  bool interruption_queue = false;
  /// The annotation karpenter.sh/do-not-disrupt: "true" of the jobs' pods.
  bool do_not_disrupt = true;
  std::vector<NodePoolSpec> node_pools;
};

}  // namespace reckon
