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

namespace {

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

}  // namespace

std::string restart_sentences(const Forecast& f) {
  if (!f.restart) return "";
  const RestartForecast& r = *f.restart;
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
