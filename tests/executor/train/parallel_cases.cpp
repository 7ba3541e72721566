#include "executor/train/parallel_cases.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "executor/comm/rank_groups.h"
#include "executor/comm/thread_communicator.h"
#include "executor/train/data/samples.h"
#include "executor/train/graph_runtime.h"
#include "executor/train/initialise.h"
#include "executor/train/recipe/recipe.h"

namespace reckon::test {

namespace {

/// Collects slices; elements that two ranks have must agree.
template <class T>
class Gathering {
 public:
  void add(const ParameterLayout& layout, std::span<const T> values) {
    const std::lock_guard lock(mutex_);
    for (const ParameterSlot& slot : layout.slots)
      for (const SlotSlice& slice : slices_of(slot, slot.name)) {
        std::vector<T>& whole = tensors_[slot.name];
        std::vector<char>& known = known_[slot.name];
        const auto size = static_cast<std::size_t>(elements(slot.global_shape()));
        whole.resize(size);
        known.resize(size);
        std::vector<T> own(size);
        std::vector<char> here(size), ones(slice.count, 1);
        const Box all = whole_box(slot.global_shape()), &box = slice.tensor.box;
        copy_box(box, box, std::as_bytes(values.subspan(slice.first, slice.count)), all,
                 std::as_writable_bytes(std::span(own)), sizeof(T));
        copy_box(box, box, std::as_bytes(std::span(ones)), all,
                 std::as_writable_bytes(std::span(here)), 1);
        for (std::size_t i = 0; i < size; ++i) {
          if (here[i] == 0) continue;
          if (known[i] != 0 && std::memcmp(&whole[i], &own[i], sizeof(T)) != 0)
            throw std::runtime_error("ranks differ in an element of " + slot.name);
          whole[i] = own[i];
          known[i] = 1;
        }
      }
  }
  Tensors<T> take() {
    for (const auto& [name, known] : known_)
      if (std::ranges::count(known, 0) > 0)
        throw std::runtime_error("no rank holds some element of " + name);
    return std::move(tensors_);
  }

 private:
  std::mutex mutex_;
  Tensors<T> tensors_;
  std::map<std::string, std::vector<char>> known_;
};

/// One rank of a job, its runtime and its samples.
template <class T>
class Rank {
 public:
  Rank(const ParallelTask& task, const Layout& layout, Communicator& job)
      : groups_(make_layout_groups(job, layout)),
        copies_(layout.data),
        own_(task.batch / layout.data),
        first_(groups_.place.data * own_),
        workers_(1),
        format_(sample_format(*task.model)),
        batch_(layout.micro_batch > 0 ? std::min<std::int64_t>(own_, layout.micro_batch) : own_),
        runtime_(*task.model,
                 {.batch = batch_,
                  .recompute = task.recompute,
                  .seed = task.seed,
                  .place = place_in_model(layout, groups_.place),
                  .groups = {groups_.tensor.get(), groups_.context.get(), groups_.expert.get()}},
                 workers_),
        data_(format_, batch_),
        values_(runtime_.layout().count),
        gradients_(runtime_.layout().count) {}

  /// Gradients of all copies' samples, summed; the mean loss of all samples.
  double pass(std::int64_t step, Communicator& job) {
    std::ranges::fill(gradients_.span(), T{});
    const std::int64_t passes = own_ / batch_;
    double loss = 0;
    for (std::int64_t k = 0; k < passes; ++k) {
      for (std::int64_t b = 0; b < batch_; ++b)
        fill_synthetic(format_, 5, 1000 * step + first_ + k * batch_ + b, data_, b);
      loss += runtime_.forward(data_.view(), values_.span(), {step, first_ + k * batch_}, true) /
              static_cast<double>(passes);
      const double scale = 1.0 / static_cast<double>(copies_ * passes);
      const bool last = k + 1 == passes;
      GradientTaker taker;
      if (last) taker.ready = [](ParameterRange) {};
      runtime_.backward(values_.span(), gradients_.span(), scale, taker);
    }
    for (const ParameterSlot& slot : layout().slots) {
      if (!slot.trained) continue;
      Communicator& replicas = slot.of_experts ? *groups_.expert_state : *groups_.state;
      if (replicas.size() > 1)
        replicas.all_reduce(gradients_.span().subspan(slot.first, slot.count));
    }
    std::vector<double> sum{loss};
    job.all_reduce(std::span(sum));
    return sum[0] / job.size();
  }

  /// Of the whole model's gradient.
  double squared_norm_of_all() {
    double squares = 0;
    for (const TrainedRange& range : counted_ranges(layout()))
      squares += squared_norm(gradients_.span().subspan(range.first, range.count));
    for (Communicator* group : {groups_.tensor.get(), groups_.expert.get()})
      group->all_reduce(std::span(&squares, 1));
    return squares;
  }

  const ParameterLayout& layout() const { return runtime_.layout(); }
  std::span<T> values() { return values_.span(); }
  std::span<T> gradients() { return gradients_.span(); }
  Workers& workers() { return workers_; }

 private:
  LayoutGroups groups_;
  std::int64_t copies_, own_, first_;  // of the model; samples
  Workers workers_;
  SampleFormat format_;
  std::int64_t batch_;
  GraphRuntime<T> runtime_;
  SampleBatch data_;
  AlignedBuffer<T> values_, gradients_;
};

/// body(rank's communicator) on a thread each; the first exception of any is thrown.
template <class Body>
void on_ranks(const Layout& layout, Body body) {
  auto communicators = make_thread_communicators(static_cast<int>(layout.accelerators()));
  std::mutex mutex;
  std::exception_ptr first;
  {
    std::vector<std::jthread> threads;
    for (auto& communicator : communicators)
      threads.emplace_back([&body, &mutex, &first, c = std::move(communicator)]() mutable {
        try {
          body(*c);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
        c.reset();  // the others do not wait for it
      });
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace

namespace {

/// Of the ranks' slices those that have the element.
void move(const MovedParameter& moved, const ParameterLayout& layout, std::span<double> values) {
  for (const ParameterSlot& slot : layout.slots) {
    if (slot.name != moved.tensor) continue;
    std::vector<double> whole(static_cast<std::size_t>(elements(slot.global_shape())));
    whole.at(moved.element) = moved.by;
    for (const SlotSlice& slice : slices_of(slot, slot.name)) {
      std::vector<double> own(slice.count);
      const Box all = whole_box(slot.global_shape()), &box = slice.tensor.box;
      copy_box(box, all, std::as_bytes(std::span(whole)), box,
               std::as_writable_bytes(std::span(own)), sizeof(double));
      for (std::size_t i = 0; i < own.size(); ++i) values[slice.first + i] += own[i];
    }
  }
}

}  // namespace

ParallelPass pass_of(const ParallelTask& task, const Layout& layout, const MovedParameter& moved) {
  Gathering<double> gathering;
  ParallelPass result;
  on_ranks(layout, [&](Communicator& job) {
    Rank<double> rank(task, layout, job);
    // The first weights, larger and moved, so that no gradient is small by accident.
    std::vector<float> drawn(rank.layout().count);
    initialise(*task.model, rank.layout(), 7, rank.workers(), drawn);
    for (std::size_t i = 0; i < drawn.size(); ++i)
      rank.values()[i] = 8 * double{drawn[i]} + 0.02 * std::sin(1e3 * double{drawn[i]});
    move(moved, rank.layout(), rank.values());
    const double loss = rank.pass(2, job);
    gathering.add(rank.layout(), rank.gradients());
    if (job.rank() == 0) result.loss = loss;
  });
  result.gradients = gathering.take();
  return result;
}

ParallelTraining train_under(const ParallelTask& task, const Layout& layout,
                             const StepSettings& settings) {
  Gathering<float> gathering;
  ParallelTraining result;
  Layout accumulating = layout;
  accumulating.micro_batch = static_cast<int>(task.batch / layout.data / settings.micro_batches);
  on_ranks(layout, [&](Communicator& job) {
    Rank<float> rank(task, accumulating, job);
    initialise(*task.model, rank.layout(), task.seed, rank.workers(), rank.values());
    FlatOptimizer optimizer(settings.rule, rank.layout().count, trained_ranges(rank.layout()));
    for (std::int64_t step = 0; step < settings.steps; ++step) {
      const double loss = rank.pass(step, job);
      if (job.rank() == 0) result.losses.push_back(loss);
      const double scale = clip_scale(rank.squared_norm_of_all(), settings.clip_norm);
      optimizer.update(step, settings.learning_rate, scale, rank.values(), rank.gradients());
    }
    gathering.add(rank.layout(), rank.values());
  });
  result.parameters = gathering.take();
  return result;
}

template <class T>
double largest_error(const Tensors<T>& got, const Tensors<T>& exact, double least) {
  if (got.size() != exact.size()) throw std::runtime_error("other tensors");
  double worst = 0;
  for (const auto& [name, values] : exact) {
    const std::vector<T>& other = got.at(name);
    if (other.size() != values.size()) throw std::runtime_error("another size of " + name);
    double largest = least, error = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(double{values[i]}));
      error = std::max(error, std::abs(double{other[i]} - double{values[i]}));
    }
    if (!(error <= largest * 1e30)) return std::numeric_limits<double>::infinity();  // NaN
    worst = std::max(worst, error / largest);
  }
  return worst;
}
template double largest_error<float>(const Tensors<float>&, const Tensors<float>&, double);
template double largest_error<double>(const Tensors<double>&, const Tensors<double>&, double);

std::string text_of(const Layout& layout) {
  std::string text;
  const auto add = [&](const char* name, int degree) {
    if (degree > 1) text += std::string(text.empty() ? "" : ", ") + name + std::to_string(degree);
  };
  add("data ", layout.data);
  add("tensor ", layout.tensor);
  add("context ", layout.context);
  add("expert ", layout.expert);
  return text + (layout.sequence_parallel ? ", tokens shared" : "");
}

void check_pass(const ModelGraph& model, const Layout& layout, Recompute recompute) {
  INFO(text_of(layout));
  const ParallelPass alone = pass_of({.model = &model, .batch = 4}, {});
  const ParallelPass shared =
      pass_of({.model = &model, .batch = 4, .recompute = recompute}, layout);
  CHECK(shared.loss == Approx(alone.loss).epsilon(1e-12));
  CHECK(largest_error(shared.gradients, alone.gradients, 1e-3) < 1e-11);
}

void check_slopes(const ModelGraph& model, const Layout& layout) {
  INFO(text_of(layout));
  constexpr double kStep = 1e-6;  // at 1e-5 the third derivative of these weights is seen
  const ParallelTask task{.model = &model, .batch = 4};
  const ParallelPass pass = pass_of(task, layout);
  for (const auto& [name, gradients] : pass.gradients) {
    double largest = 1e-3;  // of gradients that are all zero
    for (const double g : gradients) largest = std::max(largest, std::abs(g));
    for (const std::size_t at : {std::size_t{0}, gradients.size() / 2, gradients.size() - 1}) {
      const double above = pass_of(task, layout, {name, at, kStep}).loss;
      const double below = pass_of(task, layout, {name, at, -kStep}).loss;
      INFO(name << " at " << at);
      CHECK(std::abs(gradients[at] - (above - below) / (2 * kStep)) < 2e-6 * largest);
    }
  }
}

void check_training(const ModelGraph& model, const Layout& layout, const StepSettings& settings,
                    double parameters) {
  INFO(text_of(layout));
  const ParallelTask task{.model = &model, .batch = 8};
  const ParallelTraining alone = train_under(task, {}, settings);
  const ParallelTraining shared = train_under(task, layout, settings);
  REQUIRE(std::ssize(shared.losses) == settings.steps);
  for (std::size_t step = 0; step < shared.losses.size(); ++step)
    CHECK(shared.losses[step] == Approx(alone.losses[step]).epsilon(1e-5));
  CHECK(largest_error(shared.parameters, alone.parameters, 1e-2) < parameters);
  CHECK(train_under(task, layout, settings) == shared);  // bit by bit
}

}  // namespace reckon::test
