#include "report/notice.h"

#include <fmt/format.h>

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

}  // namespace

std::string notice_sentences(const Forecast& f) {
  if (!f.on_notice) return "";
  const NoticeForecast& n = *f.on_notice;
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

}  // namespace reckon
