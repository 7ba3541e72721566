#include <fmt/format.h>

#include <algorithm>

#include "report/html/charts.h"
#include "report/html/queue_charts.h"
#include "sim/base/unit_text.h"

namespace reckon::html {
namespace {

std::string job_name(const QueuePicture& p, std::size_t job) {
  const JobRequest& request = p.list.jobs[job];
  const std::string& team = p.list.names.teams.name(request.owner.team);
  return fmt::format("job {}{}", job + 1, team.empty() ? "" : " of " + team);
}

}  // namespace

std::string story_text(const QueuePicture& p, const JobStory& story) {
  const JobTimes& times = p.run.jobs[story.job];
  const int gpus = p.list.jobs[story.job].gpus();
  const auto nodes_text = [&](const HeldSpan& span) {
    std::vector<std::string> names;
    for (const NodePart& part : span.parts) names.push_back(p.nodes[std::size_t(part.node)]);
    std::sort(names.begin(), names.end());
    if (names.size() > 4) return fmt::format("{} nodes", names.size());
    return fmt::format("{}", fmt::join(names, ", "));
  };
  const std::string& device = p.list.names.resources.name(p.list.jobs[story.job].owner.resource);
  std::string text =
      device.empty()
          ? fmt::format("{} asks for {} GPU{}", job_name(p, story.job), gpus, gpus == 1 ? "" : "s")
          : fmt::format("{} asks for {} {}", job_name(p, story.job), gpus, device);
  text[0] = 'J';
  if (story.largest > 0 && gpus > story.largest && p.occupancy.stays.empty())
    text += fmt::format(", {} whole nodes{}", gpus / story.largest,
                        gpus % story.largest > 0 ? " and a part of one more" : "");
  const JobOwner& owner = p.list.jobs[story.job].owner;
  const std::string level = owner.topology < 0 ? "" : p.list.names.topologies.name(owner.topology);
  if (!level.empty())
    text += fmt::format(", {} of one {}", owner.topology_required ? "all" : "if possible", level);
  text +=
      fmt::format(". It came {} after the first job, when {} jobs waited and {} {} were free",
                  format_duration(to_seconds(times.submit - p.series.begin)), story.waiting_before,
                  story.free_at_submit, device.empty() ? "GPUs" : "of them");
  if (!times.start) return text + ", and never started.";
  const Seconds waited = to_seconds(*times.start - times.submit);
  text += fmt::format(". It waited {}", format_duration(waited));
  const bool come_and_go = !p.occupancy.stays.empty();
  constexpr double kWorthSaying = 0.005;
  if (story.too_scattered > kWorthSaying)
    text += fmt::format("; for {} of that as many GPUs as it asks for were free, but not on {}",
                        format_percent(story.too_scattered),
                        come_and_go            ? "nodes with enough for a pod"
                        : gpus > story.largest ? "whole nodes"
                                               : "one node");
  if (story.kept_for_others > kWorthSaying)
    text +=
        fmt::format("; for {} of that it would have fit, {}", format_percent(story.kept_for_others),
                    come_and_go     ? "but for CPUs and memory, or nodes that were not ready"
                    : level.empty() ? "but GPUs were kept for jobs before it, or from it"
                                    : "but GPUs were kept for jobs before it, or of several "
                                      "domains");
  if (story.until_ready)
    text += fmt::format(
        "; the last of its nodes was asked for {} after its submit and was there "
        "{} later",
        format_duration(to_seconds(*story.until_asked)),
        format_duration(to_seconds(*story.until_ready)));
  if (story.overtook > 0)
    text += fmt::format("; {} jobs that came later started before it", story.overtook);
  for (std::size_t k = 0; k < story.held.size(); ++k) {
    const HeldSpan& span = story.held[k];
    text += fmt::format(". It {} on {}", k == 0 ? "started" : "went on", nodes_text(span));
    if (k + 1 < story.held.size())
      text +=
          fmt::format(", was {} after {} and waited {} more", come_and_go ? "evicted" : "preempted",
                      format_duration(to_seconds(span.end - span.begin)),
                      format_duration(to_seconds(story.held[k + 1].begin - span.end)));
    else
      text +=
          fmt::format(" and ended {} later", format_duration(to_seconds(span.end - span.begin)));
  }
  return text + ".";
}

std::optional<Chart> story_chart(const QueuePicture& p, const JobStory& story) {
  constexpr std::size_t kMostNodes = 16;
  const JobTimes& times = p.run.jobs[story.job];
  if (!times.end || story.held.empty()) return std::nullopt;
  std::vector<int> nodes;
  for (const HeldSpan& span : story.held)
    for (const NodePart& part : span.parts)
      if (std::ranges::find(nodes, part.node) == nodes.end()) nodes.push_back(part.node);
  std::sort(nodes.begin(), nodes.end());
  if (nodes.size() > kMostNodes) nodes.resize(kMostNodes);
  const TimeUnit unit = time_unit(to_seconds(*times.end - times.submit).count());
  const auto hours = [&](SimTime t) { return to_seconds(t - times.submit).count() / unit.seconds; };
  Json values = Json::array(), order = Json::array();
  Chart chart{
      "story", "One job that waited long", "", {}, {}, {{"node", "job", "GPUs", "from", "to"}, {}}};
  for (const int node : nodes) order.push_back(p.nodes[std::size_t(node)]);
  for (const Holding& h : p.occupancy.holdings) {
    const bool shown = std::ranges::find(nodes, h.part.node) != nodes.end();
    if (!shown || h.end <= times.submit || h.begin >= *times.end) continue;
    const bool own = h.job == story.job;
    const SimTime from = std::max(h.begin, times.submit), to = std::min(h.end, *times.end);
    values.push_back({{"node", p.nodes[std::size_t(h.part.node)]},
                      {"from", hours(from)},
                      {"to", hours(to)},
                      {"job", job_name(p, h.job)},
                      {"gpus", h.part.gpus},
                      {"color", own ? "var(--main)" : "var(--mist)"}});
    if (chart.numbers.rows.size() < 60)
      chart.numbers.rows.push_back({p.nodes[std::size_t(h.part.node)], job_name(p, h.job),
                                    std::to_string(h.part.gpus),
                                    format_duration(to_seconds(from - times.submit)),
                                    format_duration(to_seconds(to - times.submit))});
  }
  chart.legend = {{"var(--main)", "this job"}, {"var(--mist)", "other jobs"}};
  chart.note =
      story_text(p, story) +
      " The picture: its nodes from its submit to its end. Where several jobs share a node "
      "their bars lie over one another.";
  chart.spec = chart_head(
      fmt::format("{} nodes from the submit of the job to its end: who held them", nodes.size()),
      std::max(60, int(nodes.size()) * 26));
  chart.spec["data"] = {{"values", std::move(values)}};
  chart.spec["mark"] = {{"type", "bar"},
                        {"height", {{"band", 0.8}}},
                        {"opacity", 0.75},
                        {"stroke", "var(--paper)"},
                        {"strokeWidth", 1}};
  chart.spec["encoding"] = {
      {"x",
       {{"field", "from"},
        {"type", "quantitative"},
        {"scale", {{"domain", {0, hours(*times.end)}}, {"nice", false}}},
        {"axis", {{"title", long_name(unit) + " since its submit"}, {"tickCount", 6}}}}},
      {"x2", {{"field", "to"}}},
      {"y",
       {{"field", "node"},
        {"type", "nominal"},
        {"scale", {{"domain", order}, {"padding", 0}}},
        {"axis", {{"title", nullptr}, {"labelLimit", 110}, {"ticks", false}, {"domain", false}}}}},
      {"color", {{"field", "color"}, {"type", "nominal"}, {"scale", nullptr}}},
      {"tooltip", {{{"field", "job"}, {"title", "job"}}, {{"field", "gpus"}, {"title", "GPUs"}}}}};
  return chart;
}

}  // namespace reckon::html
