#include "cli/run/replan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/history/history_store.h"
#include "cli/load/measurements.h"
#include "cli/machine_store.h"
#include "cli/output.h"
#include "cli/run/run_resume.h"
#include "executor/train/records/measurement_log.h"
#include "executor/train/trainable.h"
#include "report/run/decision.h"
#include "sim/base/text/shell_word.h"
#include "sim/measurement/start_times.h"
#include "sim/scenario/resolve/here.h"
#include "sim/step/step.h"

namespace reckon::cli {
namespace {

/// So many steps of a part say what a step takes.
constexpr std::int64_t kStepsMeasured = 10;

std::vector<std::string> joined(std::vector<std::string> words, std::span<const std::string> more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Is there anything to look for?
bool watches(const RunOptions& options, const planner::RunLimits& limits) {
  return options.replan_mode() != ReplanMode::off && (limits.deadline || limits.budget);
}

void add_kept(DecisionRecord& d, const planner::RunOutlook& kept) {
  d.kept_miss = kept.miss;
  d.kept_p5 = Seconds{kept.time_seconds.p5};
  d.kept_p50 = Seconds{kept.time_seconds.p50};
  d.kept_p95 = Seconds{kept.time_seconds.p95};
  if (kept.cost_usd) d.kept_cost = kept.cost_usd->mean;
}

void add_then(DecisionRecord& d, const planner::RunOutlook& then) {
  d.miss = then.miss;
  d.p5 = Seconds{then.time_seconds.p5};
  d.p50 = Seconds{then.time_seconds.p50};
  d.p95 = Seconds{then.time_seconds.p95};
  if (then.cost_usd) d.cost = then.cost_usd->mean;
}

/// All in one place: what was measured counts for what is to come here.
OwnRun this_run(const Plan& plan) { return own_question(plan, "here"); }

/// Of the plan that the options make by the files as they are now; "": they make none.
std::string digest_made_of(const RunOptions& options, const LoadedCatalog& catalog) {
  auto loaded = load_run(options, catalog);
  return loaded ? artifact_digest(artifact_of(std::move(*loaded), options.files.front(), options))
                : "";
}

/// The plan is another now than the one that the decision changed.
void tell_forgotten(const DecisionRecord& decision, const RunOptions& options) {
  const auto given = [&](const std::string& change) {
    return std::ranges::find(options.overrides, change) != options.overrides.end();
  };
  if (std::ranges::all_of(decision.changes, given)) return;
  std::string words;
  for (const std::string& change : decision.changes)
    words += fmt::format(" --set {}", shell_word(change));
  print_error(fmt::format(
      "reckon: warning: the run went on with {}, of a plan with other settings than these; as it "
      "was:{}\n",
      decision.what, words));
}

}  // namespace

RunOptions as_decided(RunOptions options, const LoadedCatalog& catalog) {
  if (!options.resume) return options;
  const auto loaded = load_run(options, catalog);
  if (!loaded) return options;  // told when it is loaded again
  const auto records = directory_of(options, loaded->plan).measurements();
  std::error_code none;
  if (!std::filesystem::exists(records, none)) return options;
  const auto measured = load_measurements(records);
  if (!measured) return options;
  std::string now;
  for (const DecisionRecord& decision : measured->decisions) {
    if (!decision.applied) continue;
    if (now.empty()) now = digest_made_of(options, catalog);
    if (decision.planned_digest != now) {
      tell_forgotten(decision, options);
      continue;
    }
    RunOptions changed = options;
    changed.overrides = joined(std::move(changed.overrides), decision.changes);
    const auto made = load_run(changed, catalog);
    if (!made || !not_trained_here({.plan = made->plan}, "").empty()) {
      print_error(
          fmt::format("reckon: warning: the run cannot go on with {} here: it goes on as "
                      "it was before that\n",
                      decision.what));
      continue;
    }
    options = std::move(changed);
    now.clear();
  }
  return options;
}

/// What a search needs, its own: the run goes on meanwhile.
struct Replanner::Search {
  RunOptions options;
  const RunsAt& at;
  const LoadedCatalog& catalog;
  std::string made_digest;  // Replanner::made_digest_
  std::optional<ProcessorRates> rates;
  std::filesystem::path records;     // of the run
  std::optional<StartTimes> starts;  // by them; read once
  std::vector<OwnRun> seen;  // the last: of the plan in force, whose modelled step run() finds
  planner::RemedyQuestion question;
  bool files_changed = false;

  Plan there(Plan plan) const {
    if (at.this_machine) run_here(plan, catalog.operations, true, rates ? &*rates : nullptr);
    return plan;
  }

  std::optional<planner::PlanHere> plan_with(std::span<const planner::Change> changes) const {
    RunOptions changed = options;
    changed.overrides = joined(std::move(changed.overrides), planner::texts(changes));
    auto loaded = load_run(changed, catalog);
    if (!loaded || loaded->plan.jobs.size() != 1) return std::nullopt;
    if (!at.trains(loaded->plan)) return std::nullopt;
    planner::PlanHere made{there(std::move(loaded->plan))};
    start_as_seen(made.plan, *starts, at.has_nodes(question.now, made.plan));
    const OwnEvidence e = evidence_of_run(seen, this_run(made.plan));
    constexpr double kNinety = 1.645;  // the interval of nine of ten, in standard deviations
    made.step_factor = e.median;
    made.step_spread = e.half_width / kNinety;
    return made;
  }

  /// Nothing where the plan cannot be made again.
  Found run(const std::stop_token& stop) {
    files_changed = digest_made_of(options, catalog) != made_digest;
    if (files_changed) return std::nullopt;
    auto loaded = load_run(options, catalog);
    if (!loaded) return std::nullopt;
    if (!starts) {  // records that are damaged are told where the run begins
      const auto measured = parse_measurements(records.string(), read_text(records));
      starts = measured ? start_times(*measured) : StartTimes();
    }
    const auto network = make_network({});
    Plan now = there(std::move(loaded->plan));
    seen.back().modelled = estimate_step(now, now.only_job(), *network).step;
    const Scenario& scenario = loaded->file.scenario;
    question.changes = planner::changes_of_run(scenario, now, at.nodes(scenario, now));
    question.seed = now.seed;
    question.now = std::move(now);
    question.here = [this](std::span<const planner::Change> changes) { return plan_with(changes); };
    auto found = planner::remedies(question, *network, stop);
    if (found.empty()) return std::nullopt;
    return std::move(found.front());
  }
};

RunsAt runs_here(std::span<const std::string> arguments) {
  RunsAt at;
  at.has_nodes = [](const Plan&, const Plan&) { return true; };
  at.trains = [](const Plan& plan) { return not_trained_here({.plan = plan}, "").empty(); };
  at.nodes = [](const Scenario& scenario, const Plan&) { return planner::nodes_of_run(scenario); };
  at.command = [arguments](std::span<const std::string> changes) {
    std::vector<std::string> words{"--resume"};
    for (const std::string& change : changes) words.insert(words.end(), {"--set", change});
    return command_with(arguments, words);
  };
  return at;
}

Replanner::Replanner(const RunOptions& options, planner::RunLimits limits, RunsAt at,
                     const LoadedCatalog& catalog, Display& display)
    : asked_(options), limits_(limits), at_(std::move(at)), catalog_(catalog), display_(display) {}

Replanner::~Replanner() {
  cancel_.request_stop();
  if (search_.valid()) search_.wait();
}

void Replanner::begin(const RunOptions& options, const RunArtifact& bound,
                      const RunDirectory& directory) {
  if (const auto ended = std::exchange(latest_, nullptr)) seen_.push_back(ended->seen.back());
  options_ = options;
  bound_ = bound;
  directory_ = directory;
  first_step_.reset();
  told_.reset();
  if (watches(asked_, limits_) && !bound_.container)
    made_digest_ = digest_made_of(options, catalog_);
  if (watches(asked_, limits_) && at_.this_machine && !rates_ && computes_on_processors(bound.plan))
    if (const auto machine = MachineStore::open()) rates_ = machine->rates();
}

std::string Replanner::reason() const {
  return taken_ ? "goes on with " + taken_->what : std::string();
}

bool Replanner::files_are_as_begun() const {
  return digest_made_of(options_, catalog_) == made_digest_;
}

void Replanner::tell_files_changed() {
  if (std::exchange(told_files_, true)) return;
  display_.line(
      fmt::format("{} makes another plan by now than the run has: until it makes that "
                  "again the run stays as it is",
                  options_.files.front()));
}

std::vector<std::string> Replanner::take() {
  return std::exchange(taken_, std::nullopt).value().changes;
}

bool Replanner::has_measured(const RunStatus& status) {
  if (!first_step_) first_step_ = status.steps_done;
  return status.step.count() > 0 && status.steps_done - *first_step_ >= kStepsMeasured;
}

void Replanner::look(const RunStatus& status) {
  if (!watches(asked_, limits_) || bound_.container || taken_ || ended_) return;
  if (search_.valid()) {
    if (search_.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
      decide(status, search_.get());
    return;
  }
  if (!has_measured(status) || status.steps - status.steps_done < 2) return;
  if (Clock::now() < next_search_) return;
  const LiveEstimate& e = status.estimate;
  if (planner::outlook_of(e.times, e.costs, limits_).miss >= planner::kMissedFrom)
    start_search(status);
}

void Replanner::start_search(const RunStatus& status) {
  const PlannedWorkload& job = bound_.plan.only_job();
  OwnRun now = this_run(bound_.plan);
  now.step = status.estimate.step;
  std::optional<StartTimes> starts;
  if (latest_) starts = latest_->starts;
  latest_ = std::make_shared<Search>(Search{options_, at_, catalog_, made_digest_, rates_,
                                            directory_.measurements(), std::move(starts), seen_,
                                            planner::RemedyQuestion{}});
  latest_->seen.push_back(now);
  latest_->question.limits = limits_;
  latest_->question.so_far = {.steps_left = status.steps - status.steps_done,
                              .elapsed = status.elapsed,
                              .spent = status.spent.value_or(Usd{0}),
                              .stop = status.step + checkpoint_save_time(bound_.plan, job)};
  searched_ = Clock::now();
  search_ =
      std::async(std::launch::async, [search = latest_, stop = cancel_.get_token()]() -> Found {
        try {
          return search->run(stop);
        } catch (const std::exception&) {
          return std::nullopt;  // the run does not end because nothing could be searched
        }
      });
}

void Replanner::decide(const RunStatus& status, Found found) {
  // A search costs the job something: not more than a tenth of its time.
  constexpr Clock::duration kShortest = std::chrono::seconds(10);
  next_search_ = Clock::now() + std::max(kShortest, 9 * (Clock::now() - searched_));
  if (latest_->files_changed) return tell_files_changed();
  const LiveEstimate& e = status.estimate;
  const planner::RunOutlook kept = planner::outlook_of(e.times, e.costs, limits_);
  if (kept.miss < planner::kMissedFrom) return;
  if (found && found->outlook.miss > planner::kHelpsBy * kept.miss) found.reset();
  DecisionRecord d;
  d.attempt = status.attempt;
  d.step = status.steps_done;
  d.at = status.elapsed;
  const PlanDigests digests = digests_of(bound_);
  d.planned_digest = digests.planned.empty() ? digests.run : digests.planned;
  add_kept(d, kept);
  if (found) {
    d.what = found->what;
    d.changes = planner::texts(found->changes);
    add_then(d, found->outlook);
    d.applied = asked_.replan_mode() == ReplanMode::automatic;
  }
  if (!d.applied && told_ == d.what) return;  // nothing new
  told_ = d.what;
  record(status, d, found);
  tell(status, d);
  if (d.applied) taken_ = std::move(d);
}

/// In the run's records and in the history, where the run's end scores it. What is only told may be
/// taken or not: both ends are kept, and that of the plan by which the run goes on is scored.
void Replanner::record(const RunStatus& status, const DecisionRecord& d, const Found& found) const {
  MeasurementLog(directory_.measurements()).append(d);
  const LiveEstimate& e = status.estimate;
  if (!d.applied)
    keep_in_history(bound_.plan, planner::outlook_of(e.times, e.costs, limits_), status);
  if (found) keep_in_history(found->plan, found->outlook, status);
}

void Replanner::add_ends(DecisionRecord& d, const RunStatus& status, const RunEnds& then) const {
  const LiveEstimate& e = status.estimate;
  const planner::RunOutlook outlook = planner::outlook_of(then.times, then.costs, limits_);
  add_kept(d, planner::outlook_of(e.times, e.costs, limits_));
  add_then(d, outlook);
  keep_in_history(bound_.plan, outlook, status);
}

void Replanner::keep_in_history(const Plan& plan, const planner::RunOutlook& outlook,
                                const RunStatus& status) const {
  HistoryRecord record;
  record.kind = HistoryRecord::Kind::decision;
  record.at = utc_now();
  record.plan = plan_identity(plan);
  record.time_seconds = outlook.time_seconds;
  record.cost_usd = outlook.cost_usd;
  record.step_seconds = status.estimate.step.count();
  record.directory = directory_.root.string();
  keep(record);
}

void Replanner::tell(const RunStatus& status, const DecisionRecord& d) {
  const auto now = std::chrono::system_clock::now();
  const auto begin =
      now - std::chrono::duration_cast<std::chrono::system_clock::duration>(status.elapsed);
  display_.line(decision_line(d, limits_, begin, now));
  if (d.what.empty() || d.applied) return;
  // What was decided before is no part of the command that started the run.
  std::vector<std::string> changes;
  for (const std::string& change : options_.overrides)
    if (std::ranges::find(asked_.overrides, change) == asked_.overrides.end())
      changes.push_back(change);
  display_.line("  take it: Ctrl-C, then " + at_.command(joined(std::move(changes), d.changes)));
}

}  // namespace reckon::cli
