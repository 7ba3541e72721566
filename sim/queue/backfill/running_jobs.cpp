#include "sim/queue/backfill/running_jobs.h"

#include <algorithm>
#include <tuple>

namespace reckon {

Victims victims_for(std::size_t j, int gpus, CellSet cells, SimTime now, const RunningJobs& running,
                    const QueueRules& rules, FreeNodes& nodes) {
  Victims out;
  std::vector<std::size_t> may_go;
  for (const auto& [at, other] : running.by_end()) {
    if (!rules.may_preempt(j, other) || (rules.nodes_of(other) & cells) == 0) continue;
    if (running.leaving().contains({at, other})) continue;
    const SimTime until = rules.exempt_until(other, running.since(other));
    if (until > now)
      out.soonest_exempt_until = std::min(out.soonest_exempt_until, until);
    else
      may_go.push_back(other);
  }
  std::sort(may_go.begin(), may_go.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(rules.worth(a), running.since(b), b) <
           std::tuple(rules.worth(b), running.since(a), a);
  });
  for (const auto& [at, leaving] : running.leaving()) nodes.give_back(running.held(leaving));
  std::size_t gone = 0;
  while (gone < may_go.size() && !nodes.fits(gpus, cells))
    nodes.give_back(running.held(may_go[gone++]));
  out.suffice = nodes.fits(gpus, cells);
  for (std::size_t k = gone; k-- > 0;) {
    nodes.take_again(running.held(may_go[k]));
    if (!out.suffice || nodes.fits(gpus, cells)) continue;
    nodes.give_back(running.held(may_go[k]));
    out.jobs.push_back(may_go[k]);
  }
  for (const std::size_t victim : out.jobs) nodes.take_again(running.held(victim));
  for (const auto& [at, leaving] : running.leaving()) nodes.take_again(running.held(leaving));
  return out;
}

}  // namespace reckon
