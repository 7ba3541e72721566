#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/kubernetes/pods/pod_log.h"
#include "executor/kubernetes/pods/pod_loss.h"
#include "executor/kubernetes/pods/pod_view.h"
#include "executor/launch/gang.h"

// The pods of one attempt as its watcher knows them, and which of them is to blame for its end.
namespace reckon::kubernetes {

struct GangMember {
  std::optional<PodView> pod;   // the first of its rank; who comes in its place is not it
  std::optional<PodView> next;  // the newest that came in its place, where pods stay
  std::optional<PodLoss> loss;
  int order = -1;          // among those that were lost
  bool by_us = false;      // lost after we had begun to end the others
  bool forced = false;     // deleted by force, as it did not end
  bool replaces = false;   // a first pod that was deleted while nobody watched
  std::string last_words;  // the last line of its log that is no record
  // Where pods stay:
  int rank = -1;                // in the start under way; -1: it stands by, or has none yet
  int log_rank = -1;            // of the lines of its log, by what it printed
  std::int64_t log_start = -1;  // likewise
  std::int64_t left = -1;       // the start that it left last, by its log
  bool waits = false;           // for an order, by its log
  std::unique_ptr<PodLog> log;

  bool ended() const { return loss.has_value(); }
  bool is_there() const { return pod && pod->started && !pod->deleting && !ended(); }
};

/// Who broke the gang; nullopt: nobody is lost, then or before anybody watched. `foreign`: the
/// programs are not ours, and what one ends with may be the loss of another.
std::optional<int> culprit_of(std::span<const GangMember> members, bool foreign);

/// The end of a gang of which `culprit` is to blame, in the words of its loss.
void blame(GangEnd& end, const GangMember& culprit, const std::string& name, bool foreign);

}  // namespace reckon::kubernetes
