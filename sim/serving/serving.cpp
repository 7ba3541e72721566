#include "sim/serving/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/unit_text.h"
#include "sim/cluster/billing.h"
#include "sim/step/compute.h"
#include "sim/step/input.h"

namespace reckon {
namespace {

constexpr double kMicro = 1e-6;  // millions

/// Of each batch up to the largest. Beyond a thousand neighbours are alike: every 16th is computed.
std::vector<Seconds> batch_times(const ServingPlan& plan) {
  constexpr int kEach = 1024, kStride = 16;
  std::vector<Seconds> times(std::size_t(plan.batch_max));
  for (int b = 1; b <= plan.batch_max; ++b) {
    const bool computed = b <= kEach || b % kStride == 0 || b == plan.batch_max;
    times[std::size_t(b - 1)] = computed ? batch_time(plan, b) : Seconds{};
  }
  for (int b = plan.batch_max - 1; b > kEach; --b)
    if (times[std::size_t(b - 1)].count() == 0) times[std::size_t(b - 1)] = times[std::size_t(b)];
  return times;
}

/// Straight lines between what was measured; below the smallest its time; beyond the largest the
/// last line goes on where it rises, and of one size alone each request takes its part.
Seconds measured_time(const std::vector<std::pair<double, Seconds>>& times, double batch) {
  const auto& [least, first] = times.front();
  if (batch <= least) return first;
  if (times.size() == 1) return first * (batch / least);
  std::size_t k = 1;
  while (k + 1 < times.size() && times[k].first < batch) ++k;
  const auto& [a, at_a] = times[k - 1];
  const auto& [b, at_b] = times[k];
  const Seconds line = at_a + (at_b - at_a) * ((batch - a) / (b - a));
  return batch > b ? std::max(line, at_b) : line;
}

MemoryEstimate memory_of(const ServingPlan& plan) {
  return estimate_forward_memory(plan.pool(), plan.cluster.framework, plan.model, plan.precision,
                                 plan.batch_max);
}

double first_rate(const ServingPlan& plan) {
  const double first = plan.rate_at(Seconds{});
  return first > 0 ? first : plan.rate_mean();
}

NanoUsd bill_of(const ServingPlan& plan, const ServiceResult& service,
                std::optional<Seconds> trained_for) {
  NanoUsd bill;
  const auto& reservation = plan.pool().reservation;
  for (const ServiceLease& lease : service.leases) {
    const bool in_place = reservation && lease.slot < reservation->nodes;
    SimDuration term = SimDuration::max();
    if (in_place && reservation->until)
      term = std::max(SimDuration{}, SimTime{} + to_clock(*reservation->until) - lease.from);
    bill += charge_lease(plan.pool().price, plan.cluster.billing,
                         {lease.time, SimDuration{}, lease.time, lease.reclaimed},
                         in_place ? &*reservation : nullptr, term)
                .total();
  }
  const Seconds paid = plan.alone ? Seconds{} : trained_for.value_or(plan.period);
  if (paid < plan.period)
    bill += charge(plan.cluster.billing.management, to_clock(plan.period - paid));
  return bill;
}

std::vector<std::string> warnings_of(const ServingPlan& plan, const ServingForecast& f) {
  std::vector<std::string> warnings = plan.origin.warnings;
  const double most = plan.replicas.max * f.capacity;
  const double peak =
      *std::max_element(plan.requests_per_second.begin(), plan.requests_per_second.end());
  if (peak > most)
    warnings.push_back(fmt::format(
        "{} requests/s are more than {} replicas can answer ({} requests/s with full batches): "
        "queues grow to their limit and further requests are refused",
        format_count(peak), plan.replicas.max, format_count(std::round(most))));
  if (f.service.refused > 0)
    warnings.push_back(
        fmt::format("{} of the requests were refused: {} waited already, or no replica was there",
                    format_percent(double(f.service.refused) / double(f.service.arrived)),
                    format_count(plan.queue_limit)));
  if (f.service.lost > 0)
    warnings.push_back(fmt::format(
        "{} requests were lost with spot nodes: the notice of {} was "
        "too short for what their replicas had",
        format_count(double(f.service.lost)), format_duration(plan.cluster.reclaim.notice)));
  // Some always are on their way; more than two batches of each replica wait for others.
  const ServiceResult& r = f.service;
  const double under_way = 2.0 * f.batch_max * std::max(1, r.ready_most);
  if (double(r.waiting_end) > under_way && r.waiting_end > r.waiting_begin)
    warnings.push_back(
        fmt::format("{} requests still waited when the period ended: the replicas fall behind, and "
                    "a longer period has longer latencies",
                    format_count(double(r.waiting_end))));
  if (!plan.pool().price.known)
    warnings.push_back(fmt::format("the price of pool '{}' is unknown, so is the cost", f.pool));
  return warnings;
}

}  // namespace

Seconds batch_time(const ServingPlan& plan, int batch) {
  const Seconds beside = plan.overhead_batch + plan.overhead_request * batch;
  if (!plan.batch_times.empty()) return measured_time(plan.batch_times, batch) + beside;
  if (plan.measured) return beside;
  const Processor processor = processor_of(plan.pool(), plan.precision);
  return forward_time(plan.model, plan.precision, processor, batch) *
             plan.pool().efficiency.step_spread.value +
         copy_time(plan.pool(), plan.model, batch) + beside;
}

double replica_capacity(const ServingPlan& plan) {
  return plan.batch_max / batch_time(plan, plan.batch_max).count();
}

std::optional<Diagnostic> check_serving_memory(const ServingPlan& plan, const Places& places) {
  const MemoryEstimate m = memory_of(plan);
  if (m.fits()) return std::nullopt;
  const PlannedPool& pool = plan.pool();
  Diagnostic d;
  d.at = places.find("serving.batch.max");
  d.what = fmt::format("{} at batch {} needs {} of memory on each {} to be served, which has {}",
                       plan.model.name(), plan.batch_max, format_bytes(m.required()),
                       pool.accelerator ? pool.accelerator->name : pool.machine.name,
                       format_bytes(m.available));
  d.hint = fmt::format("parameters {}, activations {}, framework {}", format_bytes(m.parameters),
                       format_bytes(m.activations), format_bytes(m.reserve));
  if (m.parameters + m.reserve <= m.available)
    d.hint += "\na smaller batch.max fits";
  else
    d.hint += "\nnot even the parameters fit: another accelerator, or a narrower precision";
  return d;
}

ServiceSetting service_of(const ServingPlan& plan) {
  const PlannedPool& pool = plan.pool();
  ServiceSetting s;
  s.requests_per_second = plan.requests_per_second;
  s.starts_at = plan.starts_at;
  s.arrivals = plan.arrivals;
  s.batch_times = batch_times(plan);
  s.batch_wait = plan.batch_wait;
  s.outside = plan.overhead_latency;
  s.routing = plan.routing;
  s.queue_limit = plan.queue_limit;
  s.replicas = plan.replicas;
  s.period = plan.period;
  s.warm_up = plan.warm_up();
  if (!plan.initial_given) {
    const double each = replica_capacity(plan) * plan.replicas.target_utilization;
    s.replicas.initial = static_cast<int>(std::clamp(
        std::ceil(first_rate(plan) / each), double(plan.replicas.min), double(plan.replicas.max)));
  }
  s.replicas_per_node = plan.replicas_per_node();
  s.nodes_initial = pool.nodes_initial;
  s.nodes_min = pool.nodes_min;
  s.nodes_max = pool.nodes_max;
  s.node_provisioning = pool.provisioning.value;
  s.node_scan = plan.cluster.autoscaler.scan_interval;
  s.node_unneeded = plan.cluster.autoscaler.scale_down_unneeded_time;
  if (pool.pricing == CapacityType::spot) s.reclaim = plan.cluster.reclaim;
  const JobStartRules& start = plan.cluster.job_start;
  s.replica_start = plan.start_up.value_or(start.framework_start.value);
  s.image_pull = plan.start_up ? Seconds{} : start.image_pull.value;
  return s;
}

ServingForecast forecast_serving(const ServingPlan& plan, std::optional<std::uint64_t> seed,
                                 std::optional<Seconds> trained_for) {
  ServingForecast f;
  f.scenario = plan.origin.name;
  f.model = plan.model.name();
  f.pool = plan.pool().name;
  f.accelerator = plan.pool().accelerator ? plan.pool().accelerator->name : "";
  f.precision = to_text(plan.precision);
  f.seed = seed.value_or(plan.origin.seed);
  f.period = plan.period;
  f.batch_max = plan.batch_max;
  f.memory = memory_of(plan);
  f.batch_one = batch_time(plan, 1);
  f.batch_full = batch_time(plan, plan.batch_max);
  f.capacity = replica_capacity(plan);
  f.service = simulate_service(service_of(plan), f.seed);
  const ServiceResult& r = f.service;
  f.mean = r.latency.mean();
  f.p50 = r.latency.quantile(0.50);
  f.p95 = r.latency.quantile(0.95);
  f.p99 = r.latency.quantile(0.99);
  const double period = plan.period.count();
  f.requests_per_second = double(r.served) / period;
  f.refused_share = r.arrived > 0 ? double(r.refused + r.lost) / double(r.arrived) : 0;
  f.replicas = r.ready_seconds / period;
  for (const ServiceLease& lease : r.leases) f.node_hours += to_seconds(lease.time).count() / 3600;
  if (plan.pool().price.known) {
    f.cost_usd = to_usd(bill_of(plan, r, trained_for)).v;
    if (r.served > 0) f.usd_per_million = *f.cost_usd / (double(r.served) * kMicro);
  }
  f.prices_as_of = plan.pool().price.as_of;
  f.catalog_digest = plan.origin.catalog_digest;
  f.calibrations = plan.origin.calibrations;
  f.warnings = warnings_of(plan, f);
  return f;
}

}  // namespace reckon
