#pragma once
#include <optional>
#include <string>
#include <vector>

#include "report/html/page.h"
#include "report/table.h"
#include "sim/queue/job_story.h"
#include "sim/queue/queue_history.h"

// The pictures of a queue: one replication.
namespace reckon::html {

/// What the charts are drawn of.
struct QueuePicture {
  const JobList& list;
  const QueueRun& run;
  Occupancy occupancy;
  std::vector<std::string> nodes;  // names
  QueueSeries series;
  TimeUnit unit;  // of the axis of time

  /// In `unit`, from the series' begin.
  double at(SimTime t) const { return to_seconds(t - series.begin).count() / unit.seconds; }
};

Chart queue_length(const QueuePicture& picture);
/// GPUs in use, free and stranded.
Chart gpus_over_time(const QueuePicture& picture);
/// The share of jobs that waited at most so long, by team where there are several, else by size.
std::optional<Chart> waits_by_class(const QueuePicture& picture);
/// Nodes and time, the darker the more GPUs in use.
Chart node_heat(const QueuePicture& picture);
/// Who held the nodes of the story's job while it waited.
std::optional<Chart> story_chart(const QueuePicture& picture, const JobStory& story);
/// "Job 12 of team vision asks for 16 GPUs. ...": what happened to it, sentence by sentence.
std::string story_text(const QueuePicture& picture, const JobStory& story);

}  // namespace reckon::html
