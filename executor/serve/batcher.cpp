#include "executor/serve/batcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "sim/base/check.h"

namespace reckon {
namespace {

/// What is not finite in the answers of a request, and of which version; nullopt: they are numbers.
std::optional<std::string> not_finite(const Predictions& predictions) {
  for (std::size_t k = 0; k < predictions.answers.size(); ++k) {
    const std::vector<float>& answer = predictions.answers[k];
    const auto at = std::ranges::find_if_not(answer, [](float x) { return std::isfinite(x); });
    if (at == answer.end()) continue;
    return fmt::format("version {}: output {} of instance {} is {}: the model has no answer to it",
                       predictions.version, at - answer.begin(), k,
                       std::isnan(*at) ? "not a number" : "infinite");
  }
  return std::nullopt;
}

}  // namespace

Batcher::Batcher(BatchRules rules, std::shared_ptr<ServedModel> model, ServingMetrics& metrics)
    : rules_(rules), metrics_(metrics), model_(std::move(model)) {
  RECKON_CHECK(rules.max >= 1);
  thread_ = std::thread([this] { answer(); });
}

Batcher::~Batcher() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::shared_ptr<ServedModel> Batcher::model() const {
  const std::lock_guard lock(mutex_);
  return model_;
}

void Batcher::use(std::shared_ptr<ServedModel> model) {
  std::shared_ptr<ServedModel> old;  // its memory is freed behind the lock
  const std::lock_guard lock(mutex_);
  old = std::exchange(model_, std::move(model));
}

bool Batcher::submit(std::vector<std::vector<float>> instances, Done done) {
  RECKON_CHECK(!instances.empty() && instances.size() <= std::size_t(rules_.max));
  {
    const std::lock_guard lock(mutex_);
    RECKON_CHECK(model_ != nullptr);
    if (ending_ || waiting_ + instances.size() > std::size_t(rules_.queue_limit)) return false;
    waiting_ += instances.size();
    queue_.push_back({std::move(instances), std::move(done), Clock::now()});
    metrics_.set_waiting(waiting_);
  }
  wake_.notify_one();
  return true;
}

/// Waits until a batch is due; empty: it ends.
std::vector<Batcher::Waiting> Batcher::next_batch() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return ending_ || !queue_.empty(); });
  if (queue_.empty()) return {};
  const auto due = queue_.front().came + rules_.wait;
  wake_.wait_until(lock, due, [this] { return ending_ || waiting_ >= std::size_t(rules_.max); });
  std::vector<Waiting> batch;
  std::size_t size = 0;
  while (!queue_.empty() && size + queue_.front().instances.size() <= std::size_t(rules_.max)) {
    size += queue_.front().instances.size();
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  waiting_ -= size;
  metrics_.set_waiting(waiting_);
  return batch;
}

void Batcher::answer() {
  for (;;) {
    std::vector<Waiting> batch = next_batch();
    if (batch.empty()) return;
    const std::shared_ptr<ServedModel> current = model();
    run(std::move(batch), *current);
  }
}

void Batcher::run(std::vector<Waiting> batch, ServedModel& model) {
  const auto begin = Clock::now();
  // A version that came in between may take other instances than the one that they were checked
  // for.
  std::vector<const std::vector<float>*> instances;
  std::vector<std::optional<std::string>> refused(batch.size());
  for (std::size_t k = 0; k < batch.size(); ++k) {
    for (const auto& instance : batch[k].instances)
      if (!refused[k]) refused[k] = model.refuse(instance);
    if (refused[k]) continue;
    for (const auto& instance : batch[k].instances) instances.push_back(&instance);
  }
  std::vector<std::vector<float>> answers;
  std::string failed;
  try {
    if (!instances.empty()) answers = model.predict(instances);
  } catch (const std::exception& e) {
    failed = e.what();
  }
  metrics_.add_batch(instances.size(), Clock::now() - begin);
  std::size_t next = 0;
  for (std::size_t k = 0; k < batch.size(); ++k) {
    Waiting& request = batch[k];
    if (refused[k]) {
      request.done(PredictError{true, *refused[k]});
    } else if (!failed.empty()) {
      request.done(PredictError{false, failed});
    } else {
      Predictions predictions{model.version(), {}};
      for (std::size_t i = 0; i < request.instances.size(); ++i)
        predictions.answers.push_back(std::move(answers[next++]));
      if (auto what = not_finite(predictions))
        request.done(PredictError{false, std::move(*what)});
      else
        request.done(std::move(predictions));
    }
  }
}

}  // namespace reckon
