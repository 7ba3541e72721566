#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/json_parts.h"
#include "report/queue/queue.h"
#include "sim/queue/queue_history.h"

namespace reckon {
namespace {

using TraceEvent = nlohmann::json;

constexpr int kQueueProcess = 1, kFirstPoolProcess = 2;

double trace_time(SimTime t) { return double((t - SimTime{}).count()) / 1000; }

TraceEvent named(const char* what, int process, int thread, const std::string& name) {
  return {
      {"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

/// Jobs that hold parts of one node at a time lie on rows of their own.
class Rows {
 public:
  int row_for(SimTime begin, SimTime end) {
    for (std::size_t k = 0; k < free_from_.size(); ++k)
      if (free_from_[k] <= begin) return free_from_[k] = end, int(k);
    free_from_.push_back(end);
    return int(free_from_.size()) - 1;
  }

 private:
  std::vector<SimTime> free_from_;
};

void add_counters(const QueueRecord& record, TraceEvent& events) {
  std::map<SimTime, std::pair<int, int>> changes;  // jobs that wait, GPUs in use
  for (const JobTimes& job : record.run.jobs) {
    if (!job.start) continue;
    ++changes[job.submit].first;
  }
  std::map<std::pair<std::size_t, SimTime>, SimTime> spans;  // of jobs that run
  for (const RunSpan& run : record.spans) spans[{run.job, run.begin}] = run.end;
  for (const Holding& h : record.holdings) {
    if (record.spans.empty()) spans[{h.job, h.begin}] = h.end;
    changes[h.begin].second += h.part.gpus;
    changes[h.end].second -= h.part.gpus;
  }
  for (const auto& [which, end] : spans) {
    --changes[which.second].first;
    const JobTimes& job = record.run.jobs[which.first];
    if (job.end && end < *job.end) ++changes[end].first;  // it was suspended or evicted
  }
  int waiting = 0, in_use = 0;
  for (const auto& [at, change] : changes) {
    waiting += change.first;
    in_use += change.second;
    for (const auto& [name, value] :
         {std::pair{"jobs that wait", waiting}, std::pair{"GPUs in use", in_use}})
      events.push_back({{"ph", "C"},
                        {"name", name},
                        {"pid", kQueueProcess},
                        {"ts", trace_time(at)},
                        {"args", {{name, value}}}});
  }
}

}  // namespace

std::string queue_trace_json(const TraceQuestion& question, const QueueRecord& record) {
  const auto& queue = std::get<QueueQuestion>(question.work);
  TraceEvent events = TraceEvent::array();
  events.push_back(named("process_name", kQueueProcess, 0, "queue"));
  std::vector<int> process;
  const Occupancy occupancy = occupancy_of(queue, record);
  const auto& names_of_groups = record.nodes ? record.nodes->names : queue.group_names;
  for (std::size_t g = 0; g < occupancy.groups.size(); ++g) {
    const int pid = kFirstPoolProcess + int(g);
    process.insert(process.end(), std::size_t(occupancy.groups[g].nodes), pid);
    events.push_back(
        named("process_name", pid, 0, g < names_of_groups.size() ? names_of_groups[g] : "nodes"));
  }
  const std::vector<std::string> names = node_names(queue, record);
  // A node has a thousand rows to itself, in order.
  constexpr int kRowsOfNode = 1000;
  std::vector<Holding> holdings(occupancy.holdings.begin(), occupancy.holdings.end());
  std::ranges::stable_sort(holdings, {}, &Holding::begin);
  std::vector<Rows> rows(names.size());
  std::map<std::pair<int, int>, bool> told;
  for (const Holding& h : holdings) {
    const auto node = std::size_t(h.part.node);
    const int row = rows[node].row_for(h.begin, h.end);
    const int thread = h.part.node * kRowsOfNode + row;
    if (!told[{process[node], thread}])
      events.push_back(
          named("thread_name", process[node], thread,
                row == 0 ? names[node] : fmt::format("{} ({})", names[node], row + 1)));
    told[{process[node], thread}] = true;
    const JobOwner& owner = record.list.jobs[h.job].owner;
    events.push_back({{"ph", "X"},
                      {"name", fmt::format("job {}", h.job + 1)},
                      {"cat", "job"},
                      {"pid", process[node]},
                      {"tid", thread},
                      {"ts", trace_time(h.begin)},
                      {"dur", double((h.end - h.begin).count()) / 1000},
                      {"args",
                       {{"gpus", h.part.gpus},
                        {"of", record.list.jobs[h.job].gpus()},
                        {"team", record.list.names.teams.name(owner.team)},
                        {"user", record.list.names.users.name(owner.user)}}}});
  }
  add_counters(record, events);
  return TraceEvent{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}.dump(
             -1, ' ', false, TraceEvent::error_handler_t::replace) +
         "\n";
}

}  // namespace reckon
