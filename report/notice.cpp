#include "report/notice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

std::string whose_word(const NoticeForecast& n) {
  if (n.stated) return "set in the scenario";
  return n.own_program
             ? "assumed of a container; if it saves: workload.checkpoint.on_notice: save"
             : "assumed, reckon's worker does; if not: workload.checkpoint.on_notice: none";
}

std::string kind_sentence(const RestartForecast& r) {
  switch (r.kind) {
    case RestartKind::full:
      return "After a loss all processes start again.";
    case RestartKind::in_place:
      return "After a loss healthy processes stay, and a new node takes the place.";
    case RestartKind::warm_spare:
      return fmt::format("{} spare node{} stand{} by, billed, and take{} the place of a lost one.",
                         r.spares, r.spares == 1 ? "" : "s", r.spares == 1 ? "s" : "",
                         r.spares == 1 ? "s" : "");
    case RestartKind::elastic:
      break;
  }
  return fmt::format(
      "After a loss the job goes on with the workers that are left, at least {}: with fewer than "
      "all for {} of its time, and {:.1f} times it grows back.",
      r.min_workers, format_percent(r.smaller), r.growths);
}

std::string sentences(const RestartForecast& r) {
  std::string text = kind_sentence(r);
  if (r.keeps_state)
    text += " Those that stay hold all of the state: of one lost node the step under way is lost.";
  if (r.local)
    text += fmt::format(
        " A checkpoint goes to {} every {} ({} cop{}): {}.",
        r.local->to == LocalTier::peer_memory ? "the nodes' memory" : "the nodes' disks",
        format_duration(r.local->every), r.local->replicas, r.local->replicas == 1 ? "y" : "ies",
        r.local->replicas > 1 ? "one lost node goes back to it, several to the storage"
                              : "a lost process goes back to it, a lost node to the storage");
  return text;
}

std::string sentences(const NoticeForecast& n) {
  if (n.notice.count() <= 0)
    return "Spot nodes are reclaimed without notice: the work since the last checkpoint is lost.";
  if (n.policy == OnNotice::none)
    return fmt::format(
        "On a reclaim notice ({}) the program saves nothing ({}): the work since the last "
        "checkpoint is lost.",
        format_duration(n.notice), whose_word(n));
  const double share = n.notices > 0 ? n.in_time / n.notices : n.probability;
  return fmt::format(
      "On a reclaim notice ({}) the program saves a checkpoint of all nodes ({}). The save takes "
      "{} and finishes in time at {} of the reclaims; otherwise the work since the last checkpoint "
      "is lost.",
      format_duration(n.notice), whose_word(n), format_duration(n.save), format_percent(share));
}

// Jobs under the same rules are described together: their sums and means stand for each of them.

bool is_alike(const NoticeForecast& a, const NoticeForecast& b) {
  return a.policy == b.policy && a.stated == b.stated && a.own_program == b.own_program &&
         a.notice == b.notice && a.save == b.save;
}
void add(NoticeForecast& sum, const NoticeForecast& one, std::size_t) {
  sum.notices += one.notices;
  sum.in_time += one.in_time;
}

bool is_alike(const std::optional<PlannedLocalCheckpoint>& a,
              const std::optional<PlannedLocalCheckpoint>& b) {
  if (!a || !b) return !a && !b;
  return a->to == b->to && a->every == b->every && a->replicas == b->replicas;
}
bool is_alike(const RestartForecast& a, const RestartForecast& b) {
  return a.kind == b.kind && a.spares == b.spares && a.min_workers == b.min_workers &&
         a.keeps_state == b.keeps_state && is_alike(a.local, b.local);
}
/// `before`: jobs that `mean` has already.
void add(RestartForecast& mean, const RestartForecast& one, std::size_t before) {
  const double n = double(before) + 1;
  mean.smaller += (one.smaller - mean.smaller) / n;
  mean.growths += (one.growths - mean.growths) / n;
}

template <class Part>
std::string sentences_of_jobs(const Forecast& f, std::optional<Part> JobForecast::*part) {
  struct Alike {
    Part part;
    std::vector<std::string> jobs;
  };
  std::vector<Alike> groups;
  for (const JobForecast& job : f.jobs) {
    if (!(job.*part)) continue;
    const auto group = std::find_if(groups.begin(), groups.end(),
                                    [&](const Alike& g) { return is_alike(g.part, *(job.*part)); });
    if (group == groups.end()) {
      groups.push_back({*(job.*part), {job.name}});
    } else {
      add(group->part, *(job.*part), group->jobs.size());
      group->jobs.push_back(job.name);
    }
  }
  std::string text;
  for (const Alike& group : groups) {
    if (!text.empty()) text += ' ';
    if (group.jobs.size() < f.jobs.size()) text += names_of_jobs(group.jobs) + ": ";
    text += sentences(group.part);
  }
  return text;
}

}  // namespace

std::string names_of_jobs(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 3;
  if (names.size() == 1) return "Job " + names.front();
  const std::size_t shown = std::min(kShown, names.size());
  std::string text =
      fmt::format("Jobs {}", fmt::join(names.begin(), names.begin() + std::ptrdiff_t(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

std::string restart_sentences(const Forecast& f) {
  return sentences_of_jobs(f, &JobForecast::restart);
}

std::string notice_sentences(const Forecast& f) {
  return sentences_of_jobs(f, &JobForecast::on_notice);
}

}  // namespace reckon
