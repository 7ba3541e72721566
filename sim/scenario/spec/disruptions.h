#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/scenario/spec/words.h"

// What interrupts it: `disruptions` of a scenario.
namespace reckon {

struct NoReclaim {};
struct ExponentialReclaim {
  Seconds mean{};
};  // age of a node when it is reclaimed
struct WeibullReclaim {
  double shape = 1;  // Weibull's k, no unit
  Seconds scale{};
};
/// Bathtub of [Kadupitiya et al. 2020, "Modeling the temporally constrained preemptions of
/// transient cloud VMs"]: F(t) = A (1 - exp(-t/tau1) + exp((t - b)/tau2)), nodes live at most
/// `limit` (24 h).
struct BathtubReclaim {
  double a = 0;  // factor A
  Seconds tau1{}, tau2{}, b{}, limit{};
};
/// Recorded, or generated from parameters that stand in the file: node k of the pool goes at the
/// k-th list's times.
struct TraceReclaim {
  std::string file;
  std::optional<Seconds> gap;  // overrides the file's own sampling interval
  struct Generate {
    Seconds mean{}, duration{};
    int nodes = 0;
    std::uint64_t seed = 0;
  };
  std::optional<Generate> generate;
};
using ReclaimSpec =
    std::variant<NoReclaim, ExponentialReclaim, WeibullReclaim, BathtubReclaim, TraceReclaim>;

struct MaintenanceSpec {
  Seconds every{};
  Seconds notice{};
  std::optional<bool> grouped;  // all nodes of a pool at once; not given: as the provider does it
};
struct FailuresSpec {
  Seconds mtbf_per_accelerator{};
  std::optional<double> hang_share;  // of failures, 0..1; not given: the catalog's
  std::optional<Seconds> hang_detection;
  std::optional<double> process_share;  // of failures, 0..1: a process ends, its node stays
};
/// Time of a step that is lost to slow nodes, besides what measured rates contain.
struct StragglersSpec {
  std::optional<double> share;  // 0..1; nullopt: typical, the catalog's
};
/// Spot capacity is there and gone in turn, each for an exponential time.
struct ShortageSpec {
  Seconds every{};  // mean time from the end of one shortage to the begin of the next
  Seconds lasts{};  // mean
};
struct DisruptionsSpec {
  std::optional<ReclaimSpec> preemption;
  std::optional<MaintenanceSpec> maintenance;
  std::optional<FailuresSpec> failures;
  std::optional<ShortageSpec> shortage;
  std::optional<StragglersSpec> stragglers;
  /// When all nodes that Karpenter made until then are drifted, as by a new image.
  std::vector<Seconds> drift{};
  bool maintenance_off = false, failures_off = false, shortage_off = false;  // `maintenance: none`
};

}  // namespace reckon
