#include "sim/scenario/split_text.h"

#include <fmt/format.h>

namespace reckon {

std::string split_text(StrategyKind kind, const Layout& l, int servers) {
  std::string text(to_text(kind));
  if (traits_of(kind).any_degrees) {
    text += fmt::format(", data {} x tensor {} x pipeline {}", l.data, l.tensor, l.pipeline);
    if (l.context > 1) text += fmt::format(" x context {}", l.context);
    if (l.expert > 1) text += fmt::format(", expert {}", l.expert);
    if (l.schedule == PipelineSchedule::interleaved)
      text += fmt::format(", {} parts a stage", l.interleave);
  }
  if (l.zero_stage > 0) text += fmt::format(", ZeRO-{}", l.zero_stage);
  if (servers > 0) text += fmt::format(", {} server{}", servers, servers == 1 ? "" : "s");
  return text;
}

std::string split_text(const PlannedWorkload& job) {
  return split_text(job.strategy.kind, layout_of(job), job.strategy.server_count());
}

}  // namespace reckon
