#include <fmt/format.h>

#include <algorithm>

#include "sim/queue/gavel/linear_program.h"
#include "sim/queue/lists/openb_csv.h"
#include "sim/queue/lists/trace_source.h"
#include "sim/queue/queue_files.h"
#include "sim/queue/trace.h"

namespace reckon {
namespace {

class TraceLoader {
 public:
  TraceLoader(const ScenarioFile& file, const QueueSources& sources)
      : file_(file),
        sources_(sources),
        scheduler_(*file.scenario.cluster.scheduler),
        source_(file,
                file.scenario.trace      ? "trace"
                : file.scenario.arrivals ? "arrivals"
                                         : "jobs",
                file.scenario.trace ? file.scenario.trace->directory : "") {}

  Expected<TraceQuestion> load() {
    question_.scenario = file_.scenario.name;
    question_.policy = scheduler_.policy;
    question_.seed = file_.scenario.forecast.seed;
    if (const auto& prices = file_.scenario.prices; prices && prices->usd_rate) {
      question_.usd_rate = *prices->usd_rate;
      question_.currency = prices->currency;
    }
    if (file_.scenario.trace) question_.window = file_.scenario.trace->window;
    if (file_.scenario.trace && file_.scenario.trace->load)
      load_pods(*file_.scenario.trace);
    else if (is_of_gavel(scheduler_.policy))
      load_gavel(*file_.scenario.trace);
    else
      load_jobs();
    if (!source_.problems.empty()) return tl::unexpected(std::move(source_.problems));
    return std::move(question_);
  }

 private:
  void load_pods(const TraceSpec& spec) {
    LoadQuestion work;
    work.load = *spec.load;
    if (spec.format != TraceFormat::openb)
      return source_.error("trace.format", "a load is of pods in the format openb",
                           "without trace.load: policy fifo");
    if (spec.nodes.empty())
      return source_.error("trace", "a load needs a list of nodes",
                           "example: nodes: openb_node_list_gpu_node.csv");
    if (spec.running != 0 || spec.window)
      return source_.error("trace", "running and window are of jobs that end",
                           "with a load pods stay: leave them out");
    auto nodes = source_.read("nodes", spec.nodes, read_openb_nodes);
    auto pods = source_.read("file", spec.file, read_openb_pods);
    if (!nodes || !pods) return;
    work.nodes = std::move(*nodes);
    work.pods = std::move(*pods);
    question_.work = std::move(work);
  }

  void load_gavel(const TraceSpec& spec) {
    GavelQuestion work;
    for (const PoolSpec& pool : file_.scenario.cluster.pools)
      work.kinds.push_back({pool.name, pool.nodes.initial * gpus_of(pool)});
    std::sort(work.kinds.begin(), work.kinds.end(),
              [](const GavelKind& a, const GavelKind& b) { return a.name < b.name; });
    if (work.kinds.empty())
      return source_.error("cluster", "jobs of Gavel's lists run on cluster.pools",
                           "the name of a pool is its kind in the table of throughputs");
    work.rules.policy = scheduler_.policy;
    if (const std::string missing = why_no_linear_solver();
        !missing.empty() && scheduler_.policy != SchedulingPolicy::fifo_perf)
      return source_.error("cluster.scheduler.policy", missing, "policy: fifo_perf needs none");
    work.rules.round = scheduler_.time_per_iteration.value_or(work.rules.round);
    work.rules.between_decisions =
        scheduler_.minimum_time_between_allocation_resets.value_or(work.rules.between_decisions);
    const auto table = source_.read("throughputs", spec.throughputs, read_throughputs);
    if (!table) return;
    auto list =
        source_.read("file", spec.file, [&](const std::string& name, std::string_view bytes) {
          return read_gavel_jobs(name, bytes, *table, work.kinds,
                                 static_cast<std::size_t>(spec.running));
        });
    if (!list) return;
    work.list = std::move(*list);
    if (work.list.repeated_line > 0)
      question_.warnings.push_back(
          fmt::format("line {} of the list repeats the job that opens the window, and was left out",
                      work.list.repeated_line));
    check_window(work.list.jobs.size() - work.list.running);
    question_.work = std::move(work);
  }

  void load_jobs() {
    auto work = load_queue(file_, sources_, source_, question_.warnings);
    if (!work) return;
    if (file_.scenario.trace) check_window(work->list.jobs.size() - work->running);
    question_.work = std::move(*work);
  }

  void check_window(std::size_t behind) {
    if (question_.window && static_cast<std::size_t>(*question_.window) > behind)
      source_.error("trace.window",
                    fmt::format("the window has {} jobs, and only {} follow those that "
                                "ran already",
                                *question_.window, behind));
  }

  static int gpus_of(const PoolSpec& pool) {
    return pool.accelerator ? pool.accelerator->count : 0;
  }

  const ScenarioFile& file_;
  const QueueSources& sources_;
  const SchedulerSpec& scheduler_;
  TraceQuestion question_;
  TraceSource source_;
};

}  // namespace

Expected<TraceQuestion> load_trace(const ScenarioFile& file, const QueueSources& sources) {
  return TraceLoader(file, sources).load();
}

}  // namespace reckon
