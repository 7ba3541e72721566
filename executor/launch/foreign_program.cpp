#include "executor/launch/foreign_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/scenario/resolve/draft.h"

namespace reckon {
namespace {

RunRecord run_record(const Plan& plan, const RunClock& clock, const PlanDigests& digests) {
  const PlannedWorkload& job = plan.only_job();
  const PlannedPool* pool = plan.pool_with(Role::worker);
  const bool accelerated = pool != nullptr && pool->accelerator.has_value();
  return {.scenario = plan.name,
          .started = clock.text(),
          .steps = job.steps,
          .model = job.model.name(),
          .precision = std::string(to_text(job.precision)),
          .optimizer = std::string(to_text(job.optimizer)),
          .strategy = std::string(to_text(job.strategy.kind)),
          .stack = "",
          .workers = job.strategy.workers,
          .parameter_servers = job.strategy.server_count(),
          .accelerators = accelerated ? job.strategy.accelerators() : 0,
          .accelerator = accelerated ? pool->accelerator->name : "",
          .machine = pool != nullptr ? pool->machine.name : "",
          .batch_per_accelerator = job.strategy.layout.micro_batch,
          .global_batch = job.global_batch,
          .seed = plan.seed,
          .catalog_digest = plan.catalog_digest,
          .plan_digest = digests.run,
          .planned_digest = digests.planned};
}

}  // namespace

void ForeignProgram::begin(std::int64_t attempt, Seconds at) {
  attempt_ = attempt;
  began_ = at;
  voices_.clear();
  bars_.clear();
  sure_ = false;
  speaker_.reset();
  last_.reset();
  far_.reset();
  lower_.reset();
  if (saved_ >= 0) saved_before_ = std::exchange(saved_, -1);
  held_.clear();
  opened_ = false;
}

void ForeignProgram::started(Seconds at) {
  if (!last_) began_ = std::max(began_, at);
}

ForeignProgram::Records ForeignProgram::line(int rank, Seconds at, std::string_view text) {
  const auto found = reader_.line(text);
  return found ? see(rank, at, *found) : Records{};
}

ForeignProgram::Records ForeignProgram::page(int rank, Seconds at, std::string_view text) {
  const auto found = reader_.page(text);
  return found ? see(rank, at, *found) : Records{};
}

void ForeignProgram::save(Records& records, Seconds at, std::int64_t step) {
  if (step <= saved_) return;
  saved_ = step;
  const CheckpointRecord save{
      .attempt = attempt_, .action = CheckpointAction::save, .step = step, .at = at};
  (opened_ ? records : held_).emplace_back(save);
}

/// A bar of another length is that of an epoch, or of something else altogether.
bool ForeignProgram::is_of_job(int rank, const Told& told, const LogProgress& progress) {
  if (!progress.bar || *progress.bar == plan_.only_job().steps) {
    if (!std::exchange(sure_, true) && !opened_) {  // what was taken for steps until now
      voices_.clear();
      speaker_.reset();
      last_.reset();
      lower_.reset();
    }
    return true;
  }
  if (sure_) return false;
  const auto [at, is_new] = bars_.emplace(std::pair(rank, *progress.bar), told);
  const Told& first = at->second;
  constexpr std::int64_t kSmallPart = 10;
  if (is_new || first.step > std::max<std::int64_t>(1, *progress.bar / kSmallPart)) return false;
  if (told.step <= first.step) return false;
  if (!voices_.contains(rank)) speaks(rank, first);
  return true;
}

/// Does this rank speak for the job? Who begins to puts right what another began that told less.
bool ForeignProgram::speaks(int rank, const Told& told) {
  Voice& voice = voices_[rank];
  if (voice.told == 0 || told.step > voice.last.step) {
    if (voice.told == 0) voice.first = told;
    voice.last = told;
    ++voice.told;
  }
  if (speaker_ == rank) return true;
  const bool fits =
      !speaker_ || (voice.told > 1 && (rank < *speaker_ || voices_[*speaker_].told < 2));
  if (!fits) return false;
  speaker_ = rank;
  if (opened_) return true;
  last_ = voice.first;
  far_.reset();
  lower_.reset();
  return true;
}

/// Lines that count up below the first one: that was no step of the job.
bool ForeignProgram::puts_right(const Told& told) {
  constexpr int kEnough = 3;
  if (opened_) return false;
  if (!lower_ || told.step < lower_->first.step) lower_ = Voice{told, told, 0};
  if (lower_->told > 0 && told.step <= lower_->last.step) return false;
  lower_->last = told;
  if (++lower_->told < kEnough) return false;
  last_ = std::exchange(lower_, std::nullopt)->first;
  far_.reset();
  return true;
}

ForeignProgram::Records ForeignProgram::see(int rank, Seconds at, const LogProgress& progress) {
  Records records;
  if (progress.checkpoint) save(records, at, *progress.checkpoint);
  Told told{0, at, progress.seconds, progress.loss};
  const bool first_of_rank = !voices_.contains(rank);
  const bool reads = progress.resumed && first_of_rank;
  if (!progress.step && !reads) return records;
  told.step = progress.step.value_or(progress.resumed.value_or(0));
  told.start = reads || (first_of_rank && told.step == saved_before_);
  if (!is_step(told.step) || !is_of_job(rank, told, progress) || !speaks(rank, told))
    return records;
  // The same again, another process of the same rank a little behind, a bar of something else.
  const bool further = told.step > last_->step;
  if (!further && (told.step == last_->step || !puts_right(told))) return records;
  advance(records, told);
  return records;
}

void ForeignProgram::advance(Records& records, const Told& told) {
  // No optimizer of today takes more steps in a second, the interpreter alone does not.
  constexpr Seconds kShortestStep{20e-6};
  const auto steps = told.step - last_->step;
  const Seconds each = told.seconds.value_or((told.at - last_->at) / double(steps));
  if (steps > 1 && each < kShortestStep) {
    far_ = told;
    return;
  }
  if (!opened_)
    open(records, last_->start ? last_->step : std::max<std::int64_t>(0, last_->step - steps),
         each);
  add_steps(records, last_->step, told, each);
  last_ = told;
  far_.reset();
  lower_.reset();
}

/// The records of what came before the attempt's second line.
void ForeignProgram::open(Records& records, std::int64_t from, Seconds each) {
  opened_ = true;
  RunRecord run = run_record(plan_, clock_, digests_);
  run.attempt = attempt_;
  run.at = began_;
  run.first_step = from;
  records.emplace_back(std::move(run));
  // Not longer than the program was there.
  const auto steps = std::max<std::int64_t>(1, last_->step - from);
  const Seconds room = std::max(Seconds{0}, last_->at - began_) / double(steps);
  add_steps(records, from, *last_, std::min(last_->seconds.value_or(each), room));
  for (MeasurementRecord& save : held_) records.push_back(std::move(save));
  held_.clear();
}

void ForeignProgram::add_steps(Records& records, std::int64_t from, const Told& to,
                               Seconds each) const {
  for (std::int64_t step = from; step < to.step; ++step) {
    const bool is_last = step + 1 == to.step;
    records.emplace_back(StepRecord{.attempt = attempt_,
                                    .step = step,
                                    .at = to.at - double(to.step - 1 - step) * each,
                                    .seconds = each,
                                    .samples = plan_.only_job().global_batch,
                                    .loss = is_last ? to.loss : std::nullopt});
  }
}

/// A moment in seconds since 1970, a number of samples: none of this job's steps.
bool ForeignProgram::is_step(std::int64_t number) const {
  constexpr std::int64_t kLongerThanPlanned = 10, kSome = 1000;
  return number <= kLongerThanPlanned * plan_.only_job().steps + kSome;
}

ForeignProgram::Records ForeignProgram::end() {
  Records records;
  if (!last_) return records;
  // One line alone: of how many steps, only the program can say how long they took.
  const bool timed = last_->seconds.has_value() && !last_->start;
  if (!opened_)
    open(records, timed ? std::max<std::int64_t>(0, last_->step - 1) : last_->step, Seconds{0});
  if (far_) last_ = std::exchange(far_, std::nullopt);  // done, nobody knows when
  return records;
}

std::optional<InterruptionRecord> OpenInterruption::open(InterruptionRecord record,
                                                         std::int64_t done, Seconds step) {
  if (record_) return record;
  record_ = std::move(record);
  done_ = done;
  step_ = step;
  return std::nullopt;
}

std::optional<InterruptionRecord> OpenInterruption::settle(std::int64_t first_step) {
  if (!record_) return std::nullopt;
  record_->lost_steps = std::max<std::int64_t>(0, done_ - first_step);
  record_->lost_work = double(record_->lost_steps) * step_;
  return std::exchange(record_, std::nullopt);
}

std::optional<InterruptionRecord> OpenInterruption::give_up() {
  return std::exchange(record_, std::nullopt);
}

void FruitlessStarts::judge(GangEnd& end, bool spoke) {
  constexpr int kMost = 3, kRunFailed = 1;
  count(end.unexplained && !spoke);
  if (count_ < kMost) return;
  end.unexplained = false;
  end.code = kRunFailed;
  end.reason += fmt::format(", and reported no step in {} starts", count_);
}

}  // namespace reckon
