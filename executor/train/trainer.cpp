#include "executor/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "executor/train/checkpoint/tensor_slice.h"
#include "executor/train/data/loader.h"
#include "executor/train/initialise.h"
#include "executor/train/lap.h"
#include "executor/train/recipe.h"
#include "sim/base/check.h"
#include "sim/model/lookup_tables.h"
#include "sim/scenario/restart.h"

namespace reckon {
namespace {

void report(const TrainerHooks& hooks, std::int64_t step, ProgressPhase phase) {
  if (hooks.progress) hooks.progress(step, phase);
}

/// The tables whose rows a batch names, in the flat buffer. An exchange knows which it pulls.
std::vector<Trainer::PulledTable> tables_of(const ModelGraph& model,
                                            const ParameterLayout& layout) {
  std::vector<Trainer::PulledTable> pulled;
  for (const LookupTable& table : lookup_tables(model)) {
    const auto slot = std::ranges::find(layout.slots, table.layer, &ParameterSlot::layer);
    RECKON_CHECK(slot != layout.slots.end());
    std::size_t input = 0;
    for (const Layer& layer : model.layers()) {
      if (layer.id == table.input) break;
      input += std::holds_alternative<InputLayer>(layer.op) ? 1 : 0;
    }
    pulled.push_back({.first_weight = slot->first,
                      .input = input,
                      .first = static_cast<std::size_t>(table.first),
                      .ids = static_cast<std::size_t>(table.ids)});
  }
  return pulled;
}

}  // namespace

namespace {

RankShare uneven_share(const PlannedWorkload& job, int rank, int workers, std::int64_t pass) {
  const Layout& l = job.strategy.layout;
  RECKON_CHECK(job.restart && job.restart->kind == RestartKind::elastic);
  if (l.schedule == PipelineSchedule::interleaved) pass *= l.pipeline;  // as many at least
  const int together = std::max(1, l.expert), groups = workers / together;
  const std::int64_t all = job.global_batch / (pass * together);
  RECKON_CHECK(all * pass * together == job.global_batch && groups * together == workers);
  const int group = rank / together;
  const std::int64_t passes = passes_of_copy(all, groups, group);
  std::int64_t before = 0;
  for (int g = 0; g < group; ++g) before += passes_of_copy(all, groups, g);
  RankShare share{.global_batch = job.global_batch,
                  .first_of_step = (before * together + (rank % together) * passes) * pass,
                  .own = passes * pass};
  if (l.zero_stage >= 2) share.idle_passes = passes_of_copy(all, groups, 0) - passes;
  share.weight = double(share.own) * workers / double(job.global_batch);
  return share;
}

}  // namespace

RankShare share_of(const PlannedWorkload& job, int rank, int workers, std::int64_t pass) {
  const int useful = workers - job.strategy.backup_workers();
  const std::int64_t own = job.global_batch / useful;
  if (own * useful != job.global_batch || own % pass != 0)
    return uneven_share(job, rank, workers, pass);
  return {.global_batch = own * workers, .first_of_step = rank * own, .own = own};
}

Trainer::Trainer(const ModelGraph& model, TrainerOptions options, const DataSource& data,
                 GradientExchange& exchange, Workers& workers)
    : Trainer(
          model, options, data, exchange, workers,
          make_cpu_runtime(
              model,
              {.batch = options.micro_batch, .recompute = options.recompute, .seed = options.seed},
              workers)) {}

Trainer::Trainer(const ModelGraph& model, TrainerOptions options, const DataSource& data,
                 GradientExchange& exchange, Workers& workers, std::unique_ptr<StepRuntime> runtime)
    : model_(model),
      options_(options),
      workers_(workers),
      data_(data),
      exchange_(exchange),
      format_(sample_format(model)),
      runtime_(std::move(runtime)) {
  RECKON_CHECK(options_.share.own > 0 && options_.share.own % options_.micro_batch == 0);
  if (exchange_.pulls_rows()) pulled_tables_ = tables_of(model, runtime_->layout());
  if (exchange_.blocks_to_take().empty())
    initialise(model, runtime_->layout(), options_.seed, workers, runtime_->values());
}

/// (slice of the tensor, buffer of FlatOptimizer::state()) of each.
/// What is frozen has none.
template <class Take>
void Trainer::for_optimizer_tensors(std::size_t buffers, Take take) const {
  for (const ParameterSlot& slot : runtime_->layout().slots)
    for (std::size_t k = 0; slot.trained && k < buffers; ++k)
      for (const SlotSlice& slice : slices_of(slot, optimizer_tensor(slot.name, k, buffers)))
        take(slice, k);
}

/// The parts by tensor: (slice, its numbers), of parameters and of the optimizer.
template <class Take>
void Trainer::for_kept_slices(const std::vector<KeptPart>& kept, Take take) const {
  for (const KeptPart& part : kept)
    for (const ParameterSlot& slot : runtime_->layout().slots)
      for (const SlotSlice& held : slices_of(slot, slot.name)) {
        const std::size_t begin = std::max(part.range.first, held.first);
        const std::size_t end =
            std::min(part.range.first + part.range.count, held.first + held.count);
        if (begin >= end) continue;
        std::size_t at = begin - part.range.first;
        for (Box& box : boxes_of_run(held.tensor.box.length, std::int64_t(begin - held.first),
                                     std::int64_t(end - begin))) {
          const auto count = static_cast<std::size_t>(elements(box.length));
          for (std::size_t d = 0; d < box.first.size(); ++d)
            box.first[d] += held.tensor.box.first[d];
          TensorSlice slice{.name = slot.name, .global = held.tensor.global, .box = std::move(box)};
          take(slot, slice, part.values.subspan(at, count));
          for (std::size_t k = 0; k < part.optimizer.size(); ++k) {
            slice.name = optimizer_tensor(slot.name, k, part.optimizer.size());
            take(slot, slice, part.optimizer[k].subspan(at, count));
          }
          at += count;
        }
      }
}

std::vector<RestoreTensor> Trainer::restore(std::int64_t steps_done) {
  steps_done_ = updates_done_ = steps_done;
  std::vector<RestoreTensor> state;
  const auto add_statistics = [&] {
    for (const RunningStatistics<float>& s : runtime_->running_statistics())
      state.push_back({whole_tensor(s.name, {std::int64_t(s.values.size())}),
                       std::as_writable_bytes(s.values)});
  };
  if (exchange_.keeps_parts()) {
    restored_parts_ = true;
    start_exchange();
    for_kept_slices(exchange_.kept_parts(),
                    [&](const ParameterSlot&, const TensorSlice& slice, std::span<float> values) {
                      state.push_back({slice, std::as_writable_bytes(values)});
                    });
    add_statistics();
    return state;
  }
  const std::span<float> values = runtime_->values();
  for (const ParameterSlot& slot : runtime_->layout().slots)
    for (const SlotSlice& slice : slices_of(slot, slot.name))
      state.push_back(
          {slice.tensor, std::as_writable_bytes(values.subspan(slice.first, slice.count))});
  add_statistics();
  for (std::size_t k = 0; k < options_.optimizer_buffers; ++k)
    restored_optimizer_.emplace_back(runtime_->layout().count);
  for_optimizer_tensors(options_.optimizer_buffers, [&](const SlotSlice& slice, std::size_t k) {
    const auto part = restored_optimizer_[k].span().subspan(slice.first, slice.count);
    state.push_back({slice.tensor, std::as_writable_bytes(part)});
  });
  return state;
}

/// With its first values, a block after the other where no rank holds all of them.
void Trainer::start_exchange() {
  runtime_->to_device();
  exchange_.start(runtime_->exchanged());
  const std::vector<ParameterRange> blocks = exchange_.blocks_to_take();
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    ParameterLayout block{.count = blocks[k].count};
    for (ParameterSlot slot : runtime_->layout().slots) {
      if (slot.first < blocks[k].first || slot.first >= blocks[k].first + block.count) continue;
      const std::size_t first = slot.first - blocks[k].first;
      block.slots.push_back(moved_to(std::move(slot), first));
    }
    initialise(model_, block, options_.seed, workers_,
               runtime_->values().subspan(blocks[k].first, block.count));
    exchange_.take_block(k);
  }
}

void Trainer::start(bool restores_optimizer) {
  if (restored_parts_) return exchange_.restore_optimizer_state();
  start_exchange();
  if (!restored_optimizer_.empty() && restores_optimizer) {
    const auto optimizer = exchange_.optimizer_state();
    RECKON_CHECK(optimizer.size() == restored_optimizer_.size());
    for (std::size_t k = 0; k < optimizer.size(); ++k)
      std::ranges::copy(restored_optimizer_[k].span(), optimizer[k].begin());
    exchange_.restore_optimizer_state();
  }
  restored_optimizer_.clear();
}

/// A gradient may leave the range of numbers behind a loss that is one. Saved, it would be what
/// every further start ends with.
void Trainer::check_parameters(std::span<const float> values) const {
  const auto at = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
  if (at != values.end())
    throw TrainingError(
        fmt::format("a parameter is {} after {} steps, nothing of them is saved: training cannot "
                    "go on; a lower "
                    "learning rate, a longer warm-up or clip_norm may help",
                    std::isnan(*at) ? "not a number" : "infinite", steps_done_));
}

std::vector<StateTensor> Trainer::trained() {
  exchange_.fetch_values();
  runtime_->to_host();
  std::vector<StateTensor> tensors;
  const std::span<const float> values = runtime_->values();
  check_parameters(values);
  for (const ParameterSlot& slot : runtime_->layout().slots)
    for (const SlotSlice& slice : slices_of(slot, slot.name))
      if (!slot.copied)
        tensors.push_back({slice.tensor, std::as_bytes(values.subspan(slice.first, slice.count))});
  add_statistics_to(tensors);
  return tensors;
}

void Trainer::add_statistics_to(std::vector<StateTensor>& tensors) {
  for (const RunningStatistics<float>& s : runtime_->running_statistics())
    tensors.push_back(
        {whole_tensor(s.name, {std::int64_t(s.values.size())}), std::as_bytes(s.values)});
}

std::vector<StateTensor> Trainer::statistics() {
  std::vector<StateTensor> tensors;
  add_statistics_to(tensors);
  return tensors;
}

std::vector<StateTensor> Trainer::statistics_before_step() {
  std::vector<StateTensor> tensors = statistics();
  if (under_way_)
    for (std::size_t k = 0; k < tensors.size(); ++k)
      tensors[k].bytes = std::as_bytes(std::span(statistics_before_[k]));
  return tensors;
}

void Trainer::set_statistic(const std::string& name, std::span<const std::byte> bytes) {
  for (const RunningStatistics<float>& s : runtime_->running_statistics())
    if (s.name == name) std::ranges::copy(bytes, std::as_writable_bytes(s.values).begin());
}

std::vector<StateTensor> Trainer::state() {
  if (exchange_.keeps_parts()) {
    std::vector<StateTensor> slices;
    const std::vector<KeptPart> kept = exchange_.kept_parts();
    for (const KeptPart& part : kept) check_parameters(part.values);
    for_kept_slices(
        kept, [&](const ParameterSlot& slot, const TensorSlice& slice, std::span<float> values) {
          if (!slot.copied) slices.push_back({slice, std::as_bytes(values)});
        });
    add_statistics_to(slices);
    return slices;
  }
  std::vector<StateTensor> tensors = trained();
  const auto optimizer = exchange_.optimizer_state();
  for_optimizer_tensors(optimizer.size(), [&](const SlotSlice& slice, std::size_t k) {
    const auto part = optimizer[k].subspan(slice.first, slice.count);
    tensors.push_back({slice.tensor, std::as_bytes(part)});
  });
  return tensors;
}

/// Those of all micro-batches of a step: each row travels once.
void Trainer::pull_rows_of(const BatchView& batch) {
  std::vector<std::int64_t> ids;
  for (const PulledTable& table : pulled_tables_) {
    const std::span<const float> all = batch.inputs[table.input];
    const std::size_t samples = static_cast<std::size_t>(options_.micro_batch);
    const std::size_t each = all.size() / samples;
    ids.clear();
    for (std::size_t b = 0; b < samples; ++b)
      for (std::size_t k = 0; k < table.ids; ++k)
        ids.push_back(static_cast<std::int64_t>(all[b * each + table.first + k]));
    exchange_.need_rows(table.first_weight, ids);
  }
}

StepMeasurement Trainer::run_step(DataLoader& loader, const TrainerHooks& hooks) {
  const std::int64_t step = steps_done_;
  const RankShare& share = options_.share;
  StepMeasurement m{.step = step, .samples = share.global_batch};
  m.learning_rate = learning_rate(options_.optimizer, step, options_.steps);

  report(hooks, step, ProgressPhase::computing);
  statistics_before_.clear();
  for (const RunningStatistics<float>& s : runtime_->running_statistics())
    statistics_before_.emplace_back(s.values.begin(), s.values.end());
  under_way_ = true;
  Seconds pulling{};  // of rows, which the exchange measures
  const PassTimes passes = runtime_->run_passes(
      {.count = share.own / options_.micro_batch,
       .scale = static_cast<double>(options_.micro_batch) / static_cast<double>(share.global_batch),
       .idle = share.idle_passes,
       .exchanged_every_pass = exchange_.exchanges_every_pass(),
       .load =
           [&] {
             BatchView batch = loader.next().batch->view();
             Lap lap;
             pull_rows_of(batch);
             pulling += lap.next();
             return batch;
           },
       .position =
           [&](std::int64_t k) {
             return StepPosition{step, share.first_of_step + k * options_.micro_batch};
           },
       .begin_backward = [&] { exchange_.begin_backward(); },
       .ready = [&](ParameterRange range) { exchange_.gradient_ready(range); },
       .take_waited = [&] { return exchange_.take_waited(); },
       .check = [&](double loss) { check_loss(loss, m); }});
  m.loss = passes.loss * share.weight;
  m.data_wait = passes.data_wait - pulling;
  m.forward = passes.forward;
  m.backward = passes.backward;

  report(hooks, step, ProgressPhase::exchanging);
  m.exchange = exchange_.finish_step(step, m.learning_rate);
  updates_done_ = m.exchange.next_step;
  under_way_ = false;
  m.exchange.communication += passes.exchanging;
  m.exchange.exposed_communication += passes.waited + passes.exchanging;
  m.exchange.sent += passes.sent;
  if (!hooks.mean_loss) return m;
  Lap lap;
  m.loss = hooks.mean_loss(m.loss);
  // One more exchange, where there is anybody to exchange with.
  if (m.exchange.communication > Seconds{0}) {
    const Seconds agreed = lap.next();
    m.exchange.communication += agreed;
    m.exchange.exposed_communication += agreed;
  }
  return m;
}

void Trainer::check_loss(double loss, const StepMeasurement& m) const {
  if (std::isfinite(loss)) return;
  throw TrainingError(fmt::format(
      "the loss of step {} is {}: training cannot go on; a lower learning rate (now {:.3g}), a "
      "longer warm-up or clip_norm may help",
      m.step, std::isnan(loss) ? "not a number" : "infinite", m.learning_rate));
}

void Trainer::train_until(std::int64_t steps_done, const TrainerHooks& hooks) {
  const RankShare& share = options_.share;
  std::optional<DataLoader> loader;
  std::int64_t loaded = -1;  // the step whose samples come next
  Lap whole;                 // from one step's end to the next: what writing records takes, too
  while (steps_done_ < steps_done) {
    if (loaded != steps_done_)  // at the start, and where the others went on without this rank
      loader.emplace(data_, format_,
                     LoaderOptions{.seed = options_.seed,
                                   .global_batch = share.global_batch,
                                   .first_of_step = share.first_of_step,
                                   .own = share.own,
                                   .micro_batch = options_.micro_batch,
                                   .first_step = steps_done_,
                                   .threads = options_.data_threads});
    loaded = steps_done_ + 1;
    Lap lap;
    StepMeasurement m = run_step(*loader, hooks);
    steps_done_ = m.exchange.next_step;
    lap.next();
    if (hooks.checkpoint) hooks.checkpoint(steps_done_);
    m.checkpoint = lap.next();
    m.seconds = whole.next();
    if (hooks.measured) hooks.measured(m);
    if (hooks.stop && hooks.stop(steps_done_)) return;
  }
}

double Trainer::evaluate(const BatchView& batch) {
  exchange_.fetch_values();
  return runtime_->forward(batch, {steps_done_, 0}, false);
}

}  // namespace reckon
