#include "sim/queue/job_story.h"

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
  for (const OccupancyChange& c : changes_of(occupancy)) {
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
