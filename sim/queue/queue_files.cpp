#include "sim/queue/queue_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/queue/cluster_nodes.h"
#include "sim/queue/kueue/kueue.h"
#include "sim/queue/lists/inline_jobs.h"
#include "sim/queue/lists/job_lists.h"
#include "sim/queue/lists/name_checks.h"
#include "sim/queue/lists/openb_csv.h"
#include "sim/queue/lists/sacct.h"
#include "sim/scenario/resolve/pricing.h"

namespace reckon {
namespace {

class QueueLoader {
 public:
  QueueLoader(const ScenarioFile& file, const QueueSources& sources, TraceSource& source,
              std::vector<std::string>& notes)
      : file_(file), scenario_(file.scenario), sources_(sources), source_(source), notes_(notes) {}

  std::optional<QueueQuestion> load() {
    question_.scheduler = *scenario_.cluster.scheduler;
    const bool karpenter = scenario_.cluster.autoscaler == AutoscalerKind::karpenter;
    if (!(karpenter ? nodes_.read_market(sources_.offers) : nodes_.read_nodes()))
      return std::nullopt;
    set_overflow_rate();
    tell_of_suspension();
    if (!check_pods(scenario_, source_)) return std::nullopt;
    if (!(scenario_.trace ? read_list() : scenario_.arrivals ? read_arrivals() : read_jobs()))
      return std::nullopt;
    check_names(scenario_, question_, source_);
    if (question_.drawn) question_.list = {};
    return std::move(question_);
  }

 private:
  SchedulingPolicy policy() const { return question_.scheduler.policy; }

  void tell_of_suspension() {
    if (policy() != SchedulingPolicy::slurm) return;
    const SlurmSpec& slurm = *question_.scheduler.slurm;
    const auto suspended = [&](const SlurmQosSpec& q) {
      return q.preempt_mode.value_or(slurm.preempt_mode) == SlurmPreemptMode::suspend;
    };
    for (const SlurmQosSpec& q : slurm.qos)
      for (const std::string& name : q.preempt)
        if (const auto of = std::ranges::find(slurm.qos, name, &SlurmQosSpec::name);
            of != slurm.qos.end() && suspended(*of))
          return notes_.push_back(
              "PreemptMode SUSPEND frees no GPU, for suspended jobs do not release GRES "
              "(slurm.conf(5)): nobody starts for it");
  }

  void set_overflow_rate() {
    const auto& overflow = question_.scheduler.overflow;
    if (!overflow || !overflow->price) return;
    const auto usd = planning::to_usd_rate(*overflow->price, scenario_.prices);
    if (usd)
      question_.overflow_rate = usd->v;
    else
      source_.error("cluster.scheduler.overflow.price",
                    fmt::format("no rate of {} is known", overflow->price->currency),
                    "example: prices: {currency: EUR, usd_rate: 0.92}");
  }

  std::optional<JobList> read_format(const std::string& key, const std::string& name,
                                     TraceFormat format) {
    switch (format) {
      case TraceFormat::philly:
        return source_.read(key, name, read_philly);
      case TraceFormat::helios:
        return source_.read(key, name, read_helios_csv);
      case TraceFormat::csv:
        return source_.read(key, name, read_job_csv);
      case TraceFormat::slurm:
        return source_.read(key, name, read_sacct);
      case TraceFormat::kueue:
        return source_.read(key, name, read_kueue_workloads);
      case TraceFormat::sia: {
        static const std::map<std::string, Seconds> kNone;
        const auto& durations = scenario_.trace ? scenario_.trace->durations : kNone;
        return source_.read(key, name, [&](const std::string& file, std::string_view bytes) {
          return read_sia_csv(file, bytes, durations);
        });
      }
      case TraceFormat::openb:
      case TraceFormat::gavel:
        break;
    }
    source_.error(scenario_.trace ? "trace.format" : "arrivals.profile_format",
                  "jobs of this format are not simulated under this policy",
                  "formats with durations: csv, philly, helios, sia, slurm, kueue");
    return std::nullopt;
  }

  bool read_list() {
    const TraceSpec& trace = *scenario_.trace;
    auto list = read_format("file", trace.file, trace.format);
    if (!list) return false;
    question_.list = std::move(*list);
    question_.running = static_cast<std::size_t>(trace.running);
    std::vector<std::string> left_out;
    for (const auto& [rows, what] : question_.list.left_out)
      left_out.push_back(fmt::format("{} {}", rows, what));
    if (!left_out.empty())
      notes_.push_back(fmt::format("rows of the list left out: {}", fmt::join(left_out, ", ")));
    PaceLoader paces(file_, pools_with_gpus(question_), sources_.own_times, source_, notes_);
    if (!paces.set_list(question_.list)) return false;
    const bool apart = !question_.list.names.trainings.names().empty();  // some run on some pools
    if (apart && question_.pools.empty() && !nodes_.set_cells(true)) return false;
    set_devices(question_.list, question_.groups);
    const std::size_t jobs = question_.list.jobs.size();
    if (question_.running < jobs) return true;
    source_.error("trace.running",
                  fmt::format("{} jobs ran already, and the list has {}", question_.running, jobs));
    return false;
  }

  bool read_arrivals() {
    DrawnJobs drawn{*scenario_.arrivals, week_profile(scenario_.arrivals->hours), 0, {}};
    constexpr std::int64_t kAMonday = 4 * 86'400;
    drawn.begins = scenario_.start ? scenario_.start->time_since_epoch().count() : kAMonday;
    if (drawn.arrivals.profile_format) {
      const auto recorded =
          read_format("profile", drawn.arrivals.profile, *drawn.arrivals.profile_format);
      if (!recorded) return false;
      if (!recorded->epoch) {
        source_.error("arrivals.profile_format", "a list of this format has no calendar",
                      "formats with dates: philly, helios, slurm, kueue");
        return false;
      }
      drawn.profile = recorded_profile(*recorded);
    }
    PaceLoader paces(file_, pools_with_gpus(question_), sources_.own_times, source_, notes_);
    // Names of queues are checked as those of a list are; their jobs are drawn later.
    for (const ArrivalClassSpec& kind : drawn.arrivals.classes) {
      question_.list.jobs.push_back(recorded_job({}, SimDuration{1}, 1));
      question_.list.jobs.back().owner.queue = question_.list.names.queues.number(kind.queue);
      question_.list.names.resources.number(kind.resource);
      check_topology(kind.required_topology, kind.preferred_topology,
                     "arrivals.classes." + kind.name);
      drawn.paces.push_back(paces.of_class(kind));
    }
    question_.drawn = std::move(drawn);
    return true;
  }

  /// Those of `jobs:`.
  bool read_jobs() {
    JobList& list = question_.list = inline_jobs(file_);
    PaceLoader paces(file_, pools_with_gpus(question_), sources_.own_times, source_, notes_);
    std::map<std::int32_t, std::int32_t> numbers;  // of paces, by entry
    std::map<std::int32_t, SimDuration> lengths;
    for (const JobSpec& job : scenario_.jobs) {
      check_topology(job.required_topology, job.preferred_topology, "jobs." + job.name);
      if (question_.karpenter) continue;
      const std::size_t before = source_.problems.size();
      auto own = paces.of_job(job);
      if (!own || source_.problems.size() > before) continue;
      const auto entry = static_cast<std::int32_t>(&job - scenario_.jobs.data());
      numbers[entry] = static_cast<std::int32_t>(list.paces.size());
      if (own->length) lengths[entry] = to_clock(*own->length);
      list.paces.push_back(std::move(own->pace));
    }
    if (!source_.problems.empty()) return false;
    for (JobRequest& job : list.jobs) {
      if (job.pace < 0) continue;
      if (const auto length = lengths.find(job.pace); length != lengths.end())
        std::get<FixedTime>(job.work).time = length->second;
      job.pace = numbers.at(job.pace);
    }
    set_devices(list, question_.groups);
    return true;
  }

  /// A level that no topology has would hold a job back for ever.
  void check_topology(const std::string& required, const std::string& preferred,
                      const std::string& of) {
    const std::string& level = required.empty() ? preferred : required;
    if (level.empty()) return;
    const std::string at =
        fmt::format("{}.podset-{}-topology", of, required.empty() ? "preferred" : "required");
    if (policy() != SchedulingPolicy::kueue)
      return source_.error(at, "topologies are of policy kueue", "policy: kueue");
    std::vector<std::string> levels;
    for (const KueueTopologySpec& topology : question_.scheduler.kueue->topologies)
      for (const KueueLevelSpec& l : topology.levels) levels.push_back(l.node_label);
    if (std::ranges::find(levels, level) == levels.end())
      source_.error(
          at, fmt::format("no topology has the level '{}'{}", level, did_you_mean(level, levels)),
          "add it to cluster.scheduler.kueue.topologies");
  }

  const ScenarioFile& file_;
  const Scenario& scenario_;
  const QueueSources& sources_;
  TraceSource& source_;
  std::vector<std::string>& notes_;
  QueueQuestion question_;
  ClusterNodes nodes_{file_, source_, notes_, question_};
};

}  // namespace

std::optional<QueueQuestion> load_queue(const ScenarioFile& file, const QueueSources& sources,
                                        TraceSource& source, std::vector<std::string>& notes) {
  return QueueLoader(file, sources, source, notes).load();
}

}  // namespace reckon
