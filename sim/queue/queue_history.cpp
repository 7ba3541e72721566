#include "sim/queue/queue_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace reckon {
namespace {

/// The nodes that have what a job asks for: "" whole GPUs.
struct NodesOf {
  int largest = 0;              // GPUs of one node
  std::vector<bool> are_there;  // by node
};
NodesOf nodes_of(std::span<const NodeGroup> groups, const std::string& resource) {
  NodesOf out;
  for (const NodeGroup& g : groups) {
    const bool own = g.resource == resource;
    out.are_there.insert(out.are_there.end(), std::size_t(g.nodes), own);
    if (!own || g.nodes == 0) continue;
    out.largest = std::max(out.largest, g.gpus);
  }
  return out;
}

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

struct Change {
  SimTime at{};
  int node = 0, gpus = 0;  // more in use
  int nodes = 0;           // 1: it comes; -1: it goes
};

std::vector<Change> changes_of(const Occupancy& o) {
  std::vector<Change> changes;
  for (const Holding& h : o.holdings) {
    changes.push_back({h.begin, h.part.node, h.part.gpus});
    changes.push_back({h.end, h.part.node, -h.part.gpus});
  }
  for (const NodeStay& stay : o.stays) {
    changes.push_back({stay.begin, stay.node, 0, 1});
    changes.push_back({stay.end, stay.node, 0, -1});
  }
  std::ranges::stable_sort(changes, {}, &Change::at);
  return changes;
}

/// GPUs that are free: of nodes that are there. Where one node follows another at its place, both
/// may be there for a moment of no length.
class FreeGpus {
 public:
  explicit FreeGpus(const Occupancy& o) {
    for (const NodeGroup& g : o.groups)
      for (int k = 0; k < g.nodes; ++k) nodes_.push_back({g.gpus, 0, o.stays.empty() ? 1 : 0});
  }
  void apply(const Change& c) {
    Node& node = nodes_[std::size_t(c.node)];
    node.in_use += c.gpus;
    node.there += c.nodes;
  }
  int of(std::size_t node) const {
    const Node& n = nodes_[node];
    return n.there > 0 ? std::max(0, n.gpus - n.in_use) : 0;
  }
  std::size_t nodes() const { return nodes_.size(); }
  /// Pods of so many GPUs each, wherever there is room.
  bool fits_pods(int pods, int gpus) const {
    for (std::size_t n = 0; n < nodes_.size() && gpus > 0; ++n) pods -= of(n) / gpus;
    return gpus == 0 || pods <= 0;
  }
  /// As FreeNodes::fits, on the nodes of `where`: whole ones of `largest` GPUs and a rest.
  bool fits(int gpus, int largest, const std::vector<bool>& where) const {
    int whole = 0, most = 0;  // free nodes; GPUs of another
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (!where[n]) continue;
      if (of(n) == largest)
        ++whole;
      else
        most = std::max(most, of(n));
    }
    const int missing = whole - gpus / largest, rest = gpus % largest;
    return missing > 0 || (missing == 0 && most >= rest);
  }

 private:
  struct Node {
    int gpus = 0, in_use = 0, there = 0;
  };
  std::vector<Node> nodes_;
};

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

/// Of each job, from when to when it ran, in order of time.
std::vector<HeldSpan> spans_of(std::size_t job, const Occupancy& o) {
  std::map<SimTime, HeldSpan> spans;
  for (const RunSpan& run : o.runs) {
    if (run.job != job) continue;
    HeldSpan& span = spans[run.begin];
    span = {run.begin, run.end, {}};
    for (const Holding& h : o.holdings)
      if (h.job == job && h.begin <= run.begin && h.end >= run.end) span.parts.push_back(h.part);
  }
  for (const Holding& h : o.holdings) {
    if (h.job != job || !o.runs.empty()) continue;
    HeldSpan& span = spans[h.begin];
    span.begin = h.begin;
    span.end = h.end;
    span.parts.push_back(h.part);
  }
  std::vector<HeldSpan> out;
  for (auto& [begin, span] : spans) out.push_back(std::move(span));
  return out;
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
  for (const Change& c : changes_of(occupancy)) {
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

std::size_t typical_wait(const QueueRun& run) {
  const double wanted = run.waiting.p95;
  std::size_t best = kNoJob;
  double nearest = 0;
  bool best_moved = false;
  for (std::size_t k = run.first_measured; k < run.first_measured + run.measured; ++k) {
    const JobTimes& job = run.jobs[k];
    if (!job.start || !job.end) continue;
    const double off = std::abs(to_seconds(*job.start - job.submit).count() - wanted);
    const bool moved = job.preemptions > 0 && off <= 0.1 * wanted;
    if (best != kNoJob && (moved != best_moved ? best_moved : off >= nearest)) continue;
    best = k;
    nearest = off;
    best_moved = moved;
  }
  return best;
}

namespace {

/// The node whose GPUs completed the job's first start, if it came for the job.
void tell_of_last_node(JobStory& story, const JobTimes& own, const Occupancy& o) {
  const SimTime start = story.held.front().begin;
  for (const Holding& h : o.holdings) {
    if (h.job != story.job || h.begin != start) continue;
    for (const NodeStay& stay : o.stays) {
      if (stay.node != h.part.node || stay.begin > start || stay.end <= start) continue;
      if (stay.begin < own.submit) return;
      story.until_asked = stay.begin - own.submit;
      story.until_ready = start - stay.begin;
      return;
    }
  }
}

}  // namespace

JobStory story_of(std::size_t job, const JobList& list, const QueueRun& run,
                  const Occupancy& occupancy) {
  JobStory story;
  story.job = job;
  story.held = spans_of(job, occupancy);
  const NodesOf nodes =
      nodes_of(occupancy.groups, list.names.resources.name(list.jobs[job].owner.resource));
  story.largest = nodes.largest;
  const JobTimes& own = run.jobs[job];
  const SimTime start = own.start.value_or(own.submit);
  for (std::size_t k = 0; k < run.jobs.size(); ++k) {
    const JobTimes& other = run.jobs[k];
    if (k == job || !other.start) continue;
    if (other.submit <= own.submit && *other.start > own.submit) ++story.waiting_before;
    if (other.submit > own.submit && *other.start < start) ++story.overtook;
  }
  FreeGpus each(occupancy);
  int free = 0;
  for (std::size_t node = 0; node < each.nodes(); ++node)
    if (nodes.are_there[node]) free += each.of(node);
  SimTime since = own.submit;
  const JobRequest& request = list.jobs[job];
  const int gpus = request.gpus();
  const auto fits = [&] {
    return occupancy.stays.empty() ? each.fits(gpus, nodes.largest, nodes.are_there)
                                   : each.fits_pods(request.workers, request.worker.gpus);
  };
  double scattered = 0, kept = 0;
  bool came = false;
  for (const Change& c : changes_of(occupancy)) {
    if (!came && c.at > own.submit) story.free_at_submit = free, came = true;
    if (c.at > since && since < start) {
      if (free >= gpus)
        (fits() ? kept : scattered) += to_seconds(std::min(c.at, start) - since).count();
      since = c.at;
    }
    const auto node = std::size_t(c.node);
    free -= nodes.are_there[node] ? each.of(node) : 0;
    each.apply(c);
    free += nodes.are_there[node] ? each.of(node) : 0;
  }
  const double waited = to_seconds(start - own.submit).count();
  if (waited > 0) story.too_scattered = scattered / waited, story.kept_for_others = kept / waited;
  if (!occupancy.stays.empty() && waited > 0 && !story.held.empty())
    tell_of_last_node(story, own, occupancy);
  return story;
}

}  // namespace reckon
