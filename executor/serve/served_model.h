#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/serve/model_version.h"
#include "executor/train/data/samples.h"
#include "executor/train/graph_runtime.h"

// One version of a model, in memory, that answers.
namespace reckon {

/// nullopt: the network can be served: one input, and a loss whose first input is the answer. Else
/// why not.
std::optional<std::string> why_not_served(const ModelGraph& network);

/// A forward pass over so many instances took so long.
struct TimedBatch {
  int instances = 0;
  std::chrono::nanoseconds time{};
};

class ServedModel {
 public:
  /// Reads and checks the weights, which are finite, and makes all memory that answers need: of one
  /// forward pass over `batch_max` instances. Throws ModelVersionError or CheckpointError.
  /// `workers` must outlive it; predict() is for one thread at a time.
  ServedModel(ModelGraph network, const ModelVersion& version, int batch_max, Workers& workers);
  ServedModel(const ServedModel&) = delete;
  ServedModel& operator=(const ServedModel&) = delete;

  std::int64_t version() const { return version_; }
  const std::string& name() const { return network_.name(); }
  std::size_t input_size() const { return input_size_; }    // numbers of one instance
  std::size_t output_size() const { return output_size_; }  // numbers of its answer

  /// nullopt: an instance that the network takes. Else what is wrong with it.
  std::optional<std::string> refuse(std::span<const float> instance) const;

  /// Of the pass' tensors, without what layers work in.
  Bytes activation_memory() const;

  /// The answers (what enters the loss: logits) of instances that were not refused, at least one
  /// and at most batch_max.
  std::vector<std::vector<float>> predict(std::span<const std::vector<float>* const> instances);

  /// Passes over made-up instances before the first request, which would pay for touching their
  /// memory for the first time: of 1, 2, 4, ... and batch_max instances, smallest first, as long as
  /// the next may end within `patience`. What one of each size takes: the least of up to kPasses,
  /// with nothing beside it.
  static constexpr int kPasses = 5;
  std::vector<TimedBatch> warm_up(std::chrono::milliseconds patience);

 private:
  void read_weights(const ModelVersion& version);
  void check_finite(std::string_view section, std::span<const float> values) const;
  std::vector<float> made_up() const;

  ModelGraph network_;
  SampleFormat format_;
  int batch_max_;
  std::int64_t version_;
  LayerId answer_{};
  std::size_t input_size_ = 0, output_size_ = 0;
  std::vector<float> parameters_;
  SampleBatch batch_;
  std::unique_ptr<GraphRuntime<float>> runtime_;
};

}  // namespace reckon
