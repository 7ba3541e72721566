#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "executor/serve/served_model.h"
#include "executor/serve/serving_metrics.h"

// Requests that wait, and the thread that answers them in batches: the queue that
// sim/serving/service.h simulates.
namespace reckon {

struct BatchRules {
  int max = 16;                       // instances of one pass
  std::chrono::microseconds wait{0};  // of the first for others
  int queue_limit = 1000;             // instances that wait
};

struct Predictions {
  std::int64_t version = 0;
  std::vector<std::vector<float>> answers;  // by instance, all finite
};
struct PredictError {
  bool of_client = true;  // the request is wrong; else the server is, or the model
  std::string what;
};
using PredictResult = std::variant<Predictions, PredictError>;

class Batcher {
 public:
  /// Called once, from the thread that answers.
  using Done = std::function<void(PredictResult)>;

  /// `model`: nullptr until use() brings one.
  Batcher(BatchRules rules, std::shared_ptr<ServedModel> model, ServingMetrics& metrics);
  /// Answers what waits, then ends.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  const BatchRules& rules() const { return rules_; }
  std::shared_ptr<ServedModel> model() const;
  /// From the next batch on. The old version lives until its batch is answered.
  void use(std::shared_ptr<ServedModel> model);

  /// One request: its instances, at least one and at most rules().max, stay in one batch. False:
  /// the queue is full, and `done` is not called. There is a model.
  bool submit(std::vector<std::vector<float>> instances, Done done);

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    std::vector<std::vector<float>> instances;
    Done done;
    Clock::time_point came;
  };
  void answer();
  std::vector<Waiting> next_batch();
  void run(std::vector<Waiting> batch, ServedModel& model);

  const BatchRules rules_;
  ServingMetrics& metrics_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::shared_ptr<ServedModel> model_;  // these are guarded by mutex_
  std::deque<Waiting> queue_;
  std::size_t waiting_ = 0;  // instances
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace reckon
