#include "executor/serve/serving_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace reckon {
namespace {

double seconds(ServingMetrics::Duration d) { return std::chrono::duration<double>(d).count(); }

constexpr unsigned kDone = 200;

}  // namespace

void ServingMetrics::add_request(unsigned status, Duration latency) {
  const std::lock_guard lock(mutex_);
  ++requests_[status];
  if (status != kDone) return;
  const double t = seconds(latency);
  const auto* bound = std::lower_bound(kBounds.begin(), kBounds.end(), t);
  ++latencies_[std::size_t(bound - kBounds.begin())];
  latency_sum_ += t;
}

void ServingMetrics::add_outside(Duration time) {
  const std::lock_guard lock(mutex_);
  outside_sum_ += seconds(time);
  ++outside_count_;
}

void ServingMetrics::add_batch(std::size_t instances, Duration busy) {
  const std::lock_guard lock(mutex_);
  Batches& alike = by_size_[std::bit_ceil(instances)];
  ++alike.batches;
  alike.instances += instances;
  alike.busy += seconds(busy);
}

void ServingMetrics::set_model(std::string model) {
  const std::lock_guard lock(mutex_);
  model_ = std::move(model);
}

void ServingMetrics::set_waiting(std::size_t instances) {
  const std::lock_guard lock(mutex_);
  waiting_ = instances;
}

void ServingMetrics::set_version(std::int64_t version) {
  const std::lock_guard lock(mutex_);
  version_ = version;
}

void ServingMetrics::add_refused_version() {
  const std::lock_guard lock(mutex_);
  ++refused_versions_;
}

void ServingMetrics::set_alone(std::size_t instances, Duration time) {
  const std::lock_guard lock(mutex_);
  alone_[instances] = seconds(time);
}

std::string ServingMetrics::page() const {
  const std::lock_guard lock(mutex_);
  const std::string label = fmt::format("model=\"{}\"", model_);
  std::string out;
  const auto head = [&](const char* name, const char* type, const char* help) {
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  };
  const auto one = [&](const char* name, const char* type, const char* help, double value) {
    head(name, type, help);
    out += fmt::format("{}{{{}}} {}\n", name, label, value);
  };
  head("reckon_serving_requests_total", "counter", "Requests answered, by HTTP status.");
  for (const auto& [status, count] : requests_)
    out +=
        fmt::format("reckon_serving_requests_total{{{},code=\"{}\"}} {}\n", label, status, count);
  head("reckon_serving_latency_seconds", "histogram", "From a request read to its answer.");
  std::uint64_t below = 0;
  for (std::size_t k = 0; k < latencies_.size(); ++k) {
    below += latencies_[k];
    const std::string bound = k < kBounds.size() ? fmt::format("{}", kBounds[k]) : "+Inf";
    out += fmt::format("reckon_serving_latency_seconds_bucket{{{},le=\"{}\"}} {}\n", label, bound,
                       below);
  }
  out += fmt::format("reckon_serving_latency_seconds_sum{{{}}} {}\n", label, latency_sum_);
  out += fmt::format("reckon_serving_latency_seconds_count{{{}}} {}\n", label, below);
  head("reckon_serving_outside_seconds", "summary",
       "Of a request outside the queue: from its first byte to its place there, from its result to "
       "the last byte of its answer.");
  out += fmt::format("reckon_serving_outside_seconds_sum{{{}}} {}\n", label, outside_sum_);
  out += fmt::format("reckon_serving_outside_seconds_count{{{}}} {}\n", label, outside_count_);
  // Of each size apart: what a pass and what an instance costs follows from them
  // (fit_serving_overhead).
  const auto by_size = [&](const char* name, const char* help, auto value) {
    head(name, "counter", help);
    if (by_size_.empty()) out += fmt::format("{}{{{},up_to=\"1\"}} 0\n", name, label);
    for (const auto& [up_to, batches] : by_size_)
      out += fmt::format("{}{{{},up_to=\"{}\"}} {}\n", name, label, up_to, value(batches));
  };
  by_size("reckon_serving_batches_total", "Forward passes, by their instances.",
          [](const Batches& b) { return b.batches; });
  by_size("reckon_serving_instances_total", "Instances in them.",
          [](const Batches& b) { return b.instances; });
  by_size("reckon_serving_busy_seconds_total", "Time in forward passes.",
          [](const Batches& b) { return b.busy; });
  if (!alone_.empty())
    head("reckon_serving_alone_seconds", "gauge",
         "Forward pass over a batch of this size, timed before the first request.");
  for (const auto& [instances, time] : alone_)
    out += fmt::format("reckon_serving_alone_seconds{{{},instances=\"{}\"}} {}\n", label, instances,
                       time);
  one("reckon_serving_waiting_instances", "gauge", "Instances in the queue.", double(waiting_));
  one("reckon_serving_model_version", "gauge", "Version that answers.", double(version_));
  one("reckon_serving_refused_versions_total", "counter", "New versions that could not be loaded.",
      double(refused_versions_));
  return out;
}

}  // namespace reckon
