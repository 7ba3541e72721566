#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace reckon {

/// What a server counts, and Prometheus reads. From any thread.
class ServingMetrics {
 public:
  using Duration = std::chrono::steady_clock::duration;

  /// `model`: what it is called; it may be told later.
  explicit ServingMetrics(std::string model) : model_(std::move(model)) {}
  void set_model(std::string model);
  /// A request was answered with that HTTP status, `latency` after it had been read.
  void add_request(unsigned status, Duration latency);
  /// What a request that was answered took outside the queue: its bytes, its text, its answer.
  void add_outside(Duration time);
  void add_batch(std::size_t instances, Duration busy);
  void set_waiting(std::size_t instances);
  void set_version(std::int64_t version);
  /// A pass over so many instances took so long before there were requests (ServedModel::warm_up).
  void set_alone(std::size_t instances, Duration time);
  void add_refused_version();

  /// Prometheus' text format 0.0.4. The rate of reckon_serving_busy_seconds_total is the
  /// utilisation that a HorizontalPodAutoscaler can go by.
  std::string page() const;

 private:
  static constexpr std::array kBounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                      0.1,   0.25,   0.5,   1.0,  2.5,   5.0};  // seconds
  mutable std::mutex mutex_;
  std::string model_;
  std::map<unsigned, std::uint64_t> requests_;  // by status
  std::array<std::uint64_t, kBounds.size() + 1> latencies_{};
  double latency_sum_ = 0, outside_sum_ = 0;  // seconds
  std::uint64_t outside_count_ = 0;
  struct Batches {
    std::uint64_t batches = 0, instances = 0;
    double busy = 0;  // seconds
  };
  std::map<std::size_t, Batches> by_size_;  // by the power of two that holds them
  std::map<std::size_t, double> alone_;     // seconds, by instances
  std::uint64_t refused_versions_ = 0;
  std::size_t waiting_ = 0;
  std::int64_t version_ = 0;
};

}  // namespace reckon
