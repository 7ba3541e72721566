#include "sim/queue/queue_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace reckon {
namespace {

/// Adds `weight` for the time from `begin` to `end` to means over spans.
class Means {
 public:
  explicit Means(const QueueSeries& series, std::size_t spans)
      : series_(series), sums_(spans, 0.0) {}

  void add(SimTime begin, SimTime end, double weight) {
    const double span = series_.span.count();
    const double from = std::max(0.0, to_seconds(begin - series_.begin).count() / span);
    const double to =
        std::min(double(sums_.size()), to_seconds(end - series_.begin).count() / span);
    for (double at = from; at < to;) {
      const auto k = std::min(static_cast<std::size_t>(at), sums_.size() - 1);
      const double next = std::min(to, double(k + 1));
      sums_[k] += (next - at) * weight;
      if (next <= at) break;
      at = next;
    }
  }
  std::vector<double> take() { return std::move(sums_); }

 private:
  const QueueSeries& series_;
  std::vector<double> sums_;
};

/// Free GPUs, or devices, of nodes with a resource that are of no use, by how many of a node are
/// free: to jobs that ask for more, and to all that ask for something else.
std::vector<double> stranded_by_free(const JobList& list, int largest,
                                     const std::string& resource) {
  std::vector<double> pods(static_cast<std::size_t>(largest) + 1, 0.0);  // by GPUs
  double all = 0;
  for (const JobRequest& job : list.jobs) {
    if (list.names.resources.name(job.owner.resource) != resource) {
      all += 1;
      continue;
    }
    const int whole = job.gpus() / largest, rest = job.gpus() % largest;
    pods.back() += whole;
    if (rest > 0) pods[static_cast<std::size_t>(rest)] += 1;
    all += whole + (rest > 0 ? 1 : 0);
  }
  std::vector<double> stranded(pods.size(), 0.0);
  double larger = all;  // pods that ask for more than f
  for (std::size_t f = 0; f < pods.size() && all > 0; ++f) {
    larger -= pods[f];
    stranded[f] = double(f) * larger / all;
  }
  return stranded;
}

/// Of a node: what a device is of a GPU, and which free ones are of no use.
struct DevicesOfNode {
  double gpus_of_device = 1;
  const std::vector<double>* stranded = nullptr;
};
using StrandedByResource = std::map<std::string, std::vector<double>>;

StrandedByResource stranded_by_resource(const JobList& list, std::span<const NodeGroup> groups) {
  std::map<std::string, int> largest;
  for (const NodeGroup& g : groups)
    if (g.nodes > 0) largest[g.resource] = std::max(largest[g.resource], g.gpus);
  StrandedByResource out;
  for (const auto& [resource, gpus] : largest)
    out[resource] = stranded_by_free(list, gpus, resource);
  return out;
}

std::vector<DevicesOfNode> kinds_by_node(std::span<const NodeGroup> groups,
                                         const StrandedByResource& stranded) {
  std::vector<DevicesOfNode> kinds;
  for (const NodeGroup& g : groups)
    if (g.nodes > 0)
      kinds.insert(kinds.end(), std::size_t(g.nodes),
                   {1.0 / g.devices_of_gpu, &stranded.at(g.resource)});
  return kinds;
}

std::vector<int> gpus_by_node(std::span<const NodeGroup> groups) {
  std::vector<int> gpus;
  for (const NodeGroup& g : groups) gpus.insert(gpus.end(), std::size_t(g.nodes), g.gpus);
  return gpus;
}

}  // namespace

QueueSeries queue_series(const JobList& list, const QueueRun& run, const Occupancy& occupancy,
                         std::size_t spans) {
  QueueSeries out;
  bool any = false;
  for (const JobTimes& job : run.jobs) {
    if (!job.end) continue;
    out.begin = any ? std::min(out.begin, job.submit) : job.submit;
    out.end = any ? std::max(out.end, *job.end) : *job.end;
    any = true;
  }
  out.gpus = occupancy.stays.empty() ? whole_gpus_of(occupancy.groups) : 0;
  if (!any || out.end == out.begin) return out;
  out.span = to_seconds(out.end - out.begin) / double(spans);
  Means waiting(out, spans), there(out, spans), in_use(out, spans), stranded(out, spans);
  for (const JobTimes& job : run.jobs)
    if (job.end) waiting.add(job.submit, *job.end, 1);
  const StrandedByResource by_resource = stranded_by_resource(list, occupancy.groups);
  const std::vector<DevicesOfNode> kinds = kinds_by_node(occupancy.groups, by_resource);
  const std::vector<int> gpus = gpus_by_node(occupancy.groups);
  if (occupancy.stays.empty()) there.add(out.begin, out.end, out.gpus);
  for (const NodeStay& stay : occupancy.stays) {
    const auto node = std::size_t(stay.node);
    there.add(stay.begin, stay.end, gpus[node] * kinds[node].gpus_of_device);
  }
  for (const RunSpan& span : occupancy.runs) waiting.add(span.begin, span.end, -1);
  // A job holds GPUs of several nodes at one time: the first part stands for it.
  std::map<std::size_t, SimTime> counted;
  for (const Holding& h : occupancy.holdings) {
    in_use.add(h.begin, h.end, h.part.gpus * kinds[std::size_t(h.part.node)].gpus_of_device);
    if (!occupancy.runs.empty()) continue;
    const auto [last, fresh] = counted.try_emplace(h.job, h.begin);
    if (!fresh && last->second == h.begin) continue;
    last->second = h.begin;
    waiting.add(h.begin, h.end, -1);
  }
  FreeGpus free(occupancy);
  const auto stranded_of = [&](std::size_t node) {
    const DevicesOfNode& kind = kinds[node];
    return (*kind.stranded)[std::size_t(free.of(node))] * kind.gpus_of_device;
  };
  double now_stranded = 0;
  for (std::size_t node = 0; node < free.nodes(); ++node) now_stranded += stranded_of(node);
  SimTime since = out.begin;
  for (const OccupancyChange& c : changes_of(occupancy)) {
    if (c.at > since) stranded.add(since, c.at, now_stranded);
    since = std::max(since, c.at);
    const auto node = std::size_t(c.node);
    now_stranded -= stranded_of(node);
    free.apply(c);
    now_stranded += stranded_of(node);
  }
  stranded.add(since, out.end, now_stranded);
  out.waiting = waiting.take();
  out.there = there.take();
  out.in_use = in_use.take();
  out.stranded = stranded.take();
  // What rounding leaves of sums of differences.
  for (std::vector<double>* series : {&out.waiting, &out.there, &out.in_use, &out.stranded})
    for (double& value : *series) value = std::abs(value) < 1e-9 ? 0 : value;
  if (!occupancy.stays.empty()) out.gpus = std::ranges::max(out.there);
  return out;
}

std::vector<std::vector<double>> node_use(const Occupancy& occupancy, const QueueSeries& series) {
  const std::vector<int> gpus = gpus_by_node(occupancy.groups);
  std::vector<Means> means(gpus.size(), Means(series, series.in_use.size()));
  for (const Holding& h : occupancy.holdings) {
    const auto node = static_cast<std::size_t>(h.part.node);
    means[node].add(h.begin, h.end, double(h.part.gpus) / gpus[node]);
  }
  std::vector<std::vector<double>> out;
  for (Means& of : means) out.push_back(of.take());
  return out;
}

std::vector<std::vector<double>> node_presence(const Occupancy& occupancy,
                                               const QueueSeries& series) {
  const std::size_t nodes = gpus_by_node(occupancy.groups).size(), spans = series.in_use.size();
  if (occupancy.stays.empty())
    return std::vector<std::vector<double>>(nodes, std::vector<double>(spans, 1.0));
  std::vector<Means> means(nodes, Means(series, spans));
  for (const NodeStay& stay : occupancy.stays)
    means[static_cast<std::size_t>(stay.node)].add(stay.begin, stay.end, 1);
  std::vector<std::vector<double>> out;
  for (Means& of : means) out.push_back(of.take());
  return out;
}

std::vector<std::string> node_names(std::span<const NodeGroup> groups,
                                    std::span<const std::string> names) {
  std::vector<std::string> out;
  std::map<std::string, int> next;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::string name = g < names.size() && !names[g].empty() ? names[g] : "node";
    for (int k = 0; k < groups[g].nodes; ++k)
      out.push_back(fmt::format("{}-{}", name, next[name]++));
  }
  return out;
}

}  // namespace reckon
