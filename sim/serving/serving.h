#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/resolve/serving.h"
#include "sim/serving/service.h"
#include "sim/step/step.h"

// From a ServingPlan to what it will do: the step model's forward pass under a queue, replicas and
// a bill (docs/MODELS.md, "Serving").
namespace reckon {

/// How long a replica is at work on a batch of `batch` requests: the forward pass of the step model
/// (forward_time), the copy of the inputs to the accelerator, and what was measured beside them:
///   S(b) = forward(b) + copy(b) + overhead.batch + b overhead.request
/// of which the first two are left out where the whole was measured (kMeasuredStack), and are
/// batch_times where those are given.
Seconds batch_time(const ServingPlan& plan, int batch);

/// Requests a second that one replica can answer with full batches, for ever.
double replica_capacity(const ServingPlan& plan);

/// nullopt: a batch fits into the memory of a replica.
std::optional<Diagnostic> check_serving_memory(const ServingPlan& plan, const Places& places);

/// The queue of a plan. Without `initial`, replicas are those that the first rate needs with full
/// batches at the target, and ten minutes before the period settle them.
ServiceSetting service_of(const ServingPlan& plan);

/// What a service does where a batch takes so long.
struct ServingEnd {
  Seconds batch_full{}, p50{}, p95{}, p99{};
  double replicas = 0, refused_share = 0;  // a count, mean; 0..1
  std::optional<double> cost_usd;
};
/// At the 5th and the 95th percentile of what a batch takes (serving_range.h).
struct ServingRange {
  ServingEnd fast, slow;
};

struct ServingForecast {
  std::string scenario, model, pool, accelerator, precision;
  std::uint64_t seed = 1;
  Seconds period{};
  int batch_max = 1;
  Seconds batch_one{}, batch_full{};  // of a replica
  double capacity = 0;                // requests a second of a replica with full batches
  MemoryEstimate memory;
  ServiceResult service;
  Seconds mean{}, p50{}, p95{}, p99{};
  double requests_per_second = 0;  // answered, mean over the period
  double refused_share = 0;        // 0..1
  double replicas = 0;             // a count: that take requests, mean
  double node_hours = 0;
  std::optional<double> cost_usd;         // of the period; nullopt: a price is unknown
  std::optional<double> usd_per_million;  // requests answered
  std::string prices_as_of, catalog_digest;
  std::vector<std::string> calibrations;
  std::vector<std::string> warnings;
  std::optional<ServingRange> range;  // where it was asked for
};

/// `seed`: the plan's otherwise. `trained_for`: how long a training beside it pays the cluster's
/// fee; what the period is longer the service does. Not given: all of it.
ServingForecast forecast_serving(const ServingPlan& plan, std::optional<std::uint64_t> seed = {},
                                 std::optional<Seconds> trained_for = {});

}  // namespace reckon
