#include "executor/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "executor/train/checkpoint/tensor_slice.h"
#include "executor/train/data/loader.h"
#include "executor/train/initialise.h"
#include "executor/train/lap.h"
#include "executor/train/recipe/recipe.h"
#include "sim/base/check.h"
#include "sim/scenario/restart.h"

namespace reckon {
namespace {

void report(const TrainerHooks& hooks, std::int64_t step, ProgressPhase phase) {
  if (hooks.progress) hooks.progress(step, phase);
}

/// Of whole passes, where an elastic job's global batch does not come out even.
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
  const int useful = workers - job.strategy.backup_workers() * ranks_of_worker(job.strategy);
  const std::int64_t own = job.global_batch / useful;
  RankShare share{.global_batch = own * workers, .first_of_step = rank * own, .own = own};
  if (own * useful != job.global_batch || own % pass != 0)
    share = uneven_share(job, rank, workers, pass);
  share.part = rank;
  share.parts = workers;
  return share;
}

Trainer::Trainer(const ModelGraph& model, TrainerOptions options, const DataSource& data,
                 GradientExchange& exchange, Workers& workers)
    : Trainer(model, options, data, exchange, workers,
              make_cpu_runtime(model,
                               {.batch = options.micro_batch,
                                .recompute = options.recompute,
                                .seed = options.seed,
                                .layout = exchange.pulls_rows() ? std::optional(pulled_layout(
                                                                      model, options.share.own))
                                                                : std::nullopt},
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
  if (exchange_.pulls_rows()) {
    pulled_.emplace(model, runtime_->layout());
    exchange_.draw_tables_by(
        [this](std::size_t table, std::span<float> first) { draw_table(table, first); });
  }
  if (exchange_.blocks_to_take().empty())
    initialise(model, runtime_->layout(), options_.seed, workers, runtime_->values());
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
    const auto optimizer = exchange_.optimizer_state_to_restore();
    RECKON_CHECK(optimizer.size() == restored_optimizer_.size());
    for (std::size_t k = 0; k < optimizer.size(); ++k)
      std::ranges::copy(restored_optimizer_[k].span(), optimizer[k].begin());
    exchange_.restore_optimizer_state();
    exchange_.restore_tables(held_tables_);
  }
  restored_optimizer_.clear();
  held_tables_.clear();
}

/// Of all micro-batches of a step each row travels once.
BatchView Trainer::with_rows(const BatchView& batch) {
  return pulled_ ? pulled_->pull(batch, options_.micro_batch, exchange_) : batch;
}

StepMeasurement Trainer::run_step(DataLoader& loader, const TrainerHooks& hooks) {
  const std::int64_t step = steps_done_;
  held_tables_.clear();
  const RankShare& share = options_.share;
  StepMeasurement m{.step = step, .samples = share.global_batch};
  m.learning_rate = learning_rate(options_.optimizer, step, options_.steps);
  if (options_.loss_scale) m.loss_scale = options_.loss_scale->scale();

  report(hooks, step, ProgressPhase::computing);
  statistics_before_.clear();
  for (const RunningStatistics<float>& s : runtime_->running_statistics())
    statistics_before_.emplace_back(s.values.begin(), s.values.end());
  under_way_ = true;
  Seconds pulling{};  // of rows, which the exchange measures
  const PassTimes passes = runtime_->run_passes(
      {.count = share.own / options_.micro_batch,
       .scale = m.loss_scale * static_cast<double>(options_.micro_batch) /
                static_cast<double>(share.global_batch),
       .idle = share.idle_passes,
       .exchanged_every_pass = exchange_.exchanges_every_pass(),
       .load =
           [&] {
             BatchView batch = loader.next().batch->view();
             Lap lap;
             batch = with_rows(batch);
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
  if (options_.loss_scale)
    exchange_.scaled_by(m.loss_scale, optimizer_began_ + options_.loss_scale->skipped_steps());
  else if (optimizer_began_ > 0)
    exchange_.scaled_by(0, optimizer_began_);
  m.exchange = exchange_.finish_step(step, m.learning_rate);
  scale_done(m);
  updates_done_ = m.exchange.next_step;
  under_way_ = false;
  m.exchange.communication += passes.exchanging.all().time + passes.sending;
  m.waits = {.gradients =
                 m.exchange.exposed_communication - m.exchange.gathering + passes.waited.gradients,
             .parameters = m.exchange.gathering + passes.waited.parameters,
             .tensor = passes.exchanging.tensor.time,
             .context = passes.exchanging.context.time,
             .expert = passes.exchanging.expert.time,
             .pipeline = passes.sending,
             .bubble = passes.bubble};
  const Seconds in_passes = passes.waited.total() + passes.exchanging.all().time + passes.sending;
  m.exchange.exposed_communication += in_passes;
  m.exchange.sent += passes.sent;
  if (!hooks.mean_loss) return m;
  Lap lap;
  m.loss = hooks.mean_loss(m.loss);
  // One more exchange, where there is anybody to exchange with.
  if (m.exchange.communication > Seconds{0}) {
    const Seconds agreed = lap.next();
    m.exchange.communication += agreed;
    m.exchange.exposed_communication += agreed;
    m.waits.gradients += agreed;
  }
  return m;
}

bool Trainer::make_up_update() {
  const auto made = exchange_.make_up_update();
  if (!made) return false;
  if (options_.loss_scale) options_.loss_scale->step_done(made->skipped);
  updates_done_ = made->next_step;
  return true;
}

void Trainer::check_loss(double loss, const StepMeasurement& m) const {
  if (std::isfinite(loss)) return;
  throw TrainingError(fmt::format(
      "the loss of step {} is {}: training cannot go on; a lower learning rate (now {:.3g}), a "
      "longer warm-up or clip_norm may help",
      m.step, std::isnan(loss) ? "not a number" : "infinite", m.learning_rate));
}

/// Where even the smallest scale is too large, gradients are not finite at all.
void Trainer::scale_done(const StepMeasurement& m) {
  if (!options_.loss_scale) return;
  options_.loss_scale->step_done(m.exchange.skipped);
  if (options_.loss_scale->scale() < double{LossScale::kLeast})
    throw TrainingError(fmt::format(
        "gradients of step {} are not finite at a loss scale of {:.3g} either: training cannot go "
        "on; precision bf16, a lower learning rate or a longer warm-up may help",
        m.step, m.loss_scale));
}

void Trainer::train_until(std::int64_t steps_done, const TrainerHooks& hooks) {
  const RankShare& share = options_.share;
  std::optional<DataLoader> loader;
  std::shared_ptr<void> in_place;  // the loader's memory, and let go before it
  std::int64_t loaded = -1;        // the step whose samples come next
  Lap whole;        // from one step's end to the next: what writing records takes, too
  Seconds apart{};  // of it, what the save and the evaluation behind the step before took
  while (steps_done_ < steps_done) {
    if (!evaluate_where_due(hooks, apart)) return;
    if (loaded != steps_done_) {  // at the start, and where the others went on without this rank
      in_place.reset();
      loader.emplace(data_, format_,
                     LoaderOptions{.seed = options_.seed,
                                   .global_batch = share.global_batch,
                                   .first_of_step = share.first_of_step,
                                   .own = share.own,
                                   .micro_batch = options_.micro_batch,
                                   .first_step = steps_done_,
                                   .threads = options_.data_threads});
      in_place = runtime_->keep_in_place(loader->memory());
    }
    loaded = steps_done_ + 1;
    Lap lap;
    StepMeasurement m = run_step(*loader, hooks);
    steps_done_ = m.exchange.next_step;
    m.seconds = whole.next() - apart;
    if (auto work = data_.work()) {
      m.input = work_between(input_done_, *work);
      input_done_ = std::move(*work);
    }
    if (hooks.record) hooks.record(m);
    lap.next();
    if (hooks.checkpoint) hooks.checkpoint(steps_done_);
    apart = m.checkpoint = lap.next();
    if (hooks.measured) hooks.measured(m);
    if (hooks.stop && hooks.stop(steps_done_)) return;
  }
  evaluate_where_due(hooks, apart);
}

/// False: training ends here. `taken` grows by what it took.
bool Trainer::evaluate_where_due(const TrainerHooks& hooks, Seconds& taken) {
  if (options_.validation == nullptr || steps_done_ == 0) return true;
  const std::int64_t due = options_.evaluations(steps_done_);
  // Whether the pass behind a step that was restored had been made, nobody knows.
  const std::int64_t made = evaluations_.value_or(options_.evaluations(steps_done_ - 1));
  evaluations_ = due;
  if (due == made) return true;
  Lap lap;
  std::optional<EvaluationMeasurement> m = evaluate_all(hooks);
  const Seconds time = lap.next();
  if (m) m->seconds = time;
  if (m && hooks.evaluated) hooks.evaluated(*m);
  if (!m && hooks.checkpoint) hooks.checkpoint(steps_done_);
  taken += time + lap.next();
  return m || !hooks.stop || !hooks.stop(steps_done_);
}

/// nullopt: it was left.
std::optional<EvaluationMeasurement> Trainer::evaluate_all(const TrainerHooks& hooks) {
  const RankShare& share = options_.share;
  const std::int64_t batch = options_.micro_batch, together = runtime_->passes_together();
  const std::int64_t at_once = batch * share.parts * together;
  const std::int64_t passes = (options_.validation->samples() + at_once - 1) / at_once * together;
  DataLoader loader(*options_.validation, format_,
                    {.seed = options_.seed,
                     .global_batch = passes * batch * share.parts,
                     .first_of_step = share.part * passes * batch,
                     .own = passes * batch,
                     .micro_batch = batch,
                     .threads = options_.data_threads});
  EvaluationMeasurement m{.steps_done = steps_done_,
                          .samples = passes * batch,
                          .samples_of_all = passes * batch * share.parts};
  const auto load = [&] {
    if (exchange_.pulls_rows()) exchange_.forget_passes();  // there is room for a batch's
    return with_rows(loader.next().batch->view());
  };
  const auto position = [&](std::int64_t k) {  // asked by every stage of a pipeline, too
    report(hooks, steps_done_, ProgressPhase::evaluating);
    return StepPosition{steps_done_, k * batch};
  };
  report(hooks, steps_done_, ProgressPhase::evaluating);
  std::int64_t part = together;
  bool goes_on = true;
  for (std::int64_t done = 0; goes_on && done < passes;) {
    Lap lap;
    const std::int64_t count = std::min(part, passes - done);
    m.loss += double(count) / double(passes) *
              runtime_->evaluate({.count = count,
                                  .load = load,
                                  .position = position,
                                  .take_waited = [&] { return exchange_.take_waited(); },
                                  .check = [](double) {}});
    done += count;
    if (done == passes || !hooks.between_parts) continue;
    const EvaluationWord word = hooks.between_parts(lap.next());
    goes_on = word != EvaluationWord::leave;
    if (word == EvaluationWord::longer) part *= 2;
  }
  exchange_.forget_passes();
  m.input = options_.validation->work();
  return goes_on ? std::optional(m) : std::nullopt;
}

double Trainer::evaluate(const BatchView& batch) {
  const double loss = runtime_->forward(with_rows(batch), {steps_done_, 0}, false);
  exchange_.forget_passes();
  return loss;
}

}  // namespace reckon
