#include "executor/kubernetes/pods/gang_member.h"

#include <fmt/format.h>

#include <utility>

#include "executor/comm/errors.h"
#include "executor/train/stop_signal.h"

namespace reckon::kubernetes {
namespace {

/// What this pod met was the loss of the one that it replaces.
bool met_the_loss_before(const GangMember& m) {
  return m.replaces && (!m.loss || m.by_us || m.loss->code == kExitLostPeer);
}

/// The lower, the more it is to blame: it failed or was taken away; it stopped behind a
/// checkpoint, as all do when one is asked to; it lost another, or was ended by us. Who was
/// deleted before we ended anybody, or before anybody watched, is to blame, and not a node that
/// fell silent behind that.
int innocence(const GangMember& m, bool foreign) {
  if (met_the_loss_before(m)) return 0;
  const PodLoss& loss = *m.loss;
  if (foreign && loss.end == PodEnd::failed) return 1;  // it may have lost another
  if (loss.code == kExitLostPeer || (m.by_us && loss.end == PodEnd::deleted)) return 2;
  return loss.end == PodEnd::failed && loss.code == kExitStoppedOnRequest ? 1 : 0;
}

}  // namespace

std::optional<int> culprit_of(std::span<const GangMember> members, bool foreign) {
  std::optional<int> found;
  std::pair<int, int> least;
  for (std::size_t k = 0; k < members.size(); ++k) {
    const GangMember& m = members[k];
    if (m.loss ? m.loss->end == PodEnd::finished : !m.replaces) continue;
    const std::pair rank(innocence(m, foreign), m.order);
    if (found && least <= rank) continue;
    found = int(k);
    least = rank;
  }
  return found;
}

void blame(GangEnd& end, const GangMember& culprit, const std::string& name, bool foreign) {
  constexpr int kNotExecutable = 126, kNotFound = 127, kKilled = 137;
  if (met_the_loss_before(culprit)) {
    end.code = kKilled;
    end.cause = Interruption::failure;
    end.reason = fmt::format("{} was deleted while nobody watched", name);
    return;
  }
  const PodLoss& loss = *culprit.loss;
  end.code = loss.code;
  end.unexplained =
      foreign && loss.end == PodEnd::failed && end.code != kNotExecutable && end.code != kNotFound;
  end.cause = interruption_of(loss, foreign);
  end.reason = fmt::format("{} {}", name, loss.words);
  end.last_words = culprit.last_words;
}

}  // namespace reckon::kubernetes
