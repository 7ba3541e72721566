#pragma once
#include <cstdint>
#include <vector>

#include "planner/search/bounds.h"
#include "planner/space/site.h"

// Every split in every undominated place, with its bounds, and what a quick look says of it.
namespace reckon::planner {

struct Candidate {
  std::uint32_t site = 0, split = 0, offer = 0;
  double time = 0, cost = 0;  // at medians, seconds and USD (infinite: no price): to rank by
  double estimate = 0;        // of the score, from these, in its unit (score_of())
  double bound = 0;           // the score is not below, over the space's replications
  bool proven_late = false, proven_dear = false;  // a bound lies above the limit
};

struct Space {
  std::vector<Site> sites;
  std::vector<Candidate>
      candidates;               // most promising first (Outlook); those proven to miss a limit last
  std::int64_t considered = 0;  // everything that was looked at, with what was left out
  Rejections rejected;
  /// Of every forecast; fewer than asked where the effort would not do for them.
  int replications = 0;

  const Site& site(const Candidate& c) const { return sites[c.site]; }
  const Split& split(const Candidate& c) const { return sites[c.site].splits[c.split]; }
  const Offer& offer(const Candidate& c) const { return sites[c.site].offers[c.offer]; }
};

/// What looks at candidates.
struct SearchSetting {
  const Question& question;
  const Catalog& catalog;
  const NetworkModel& network;
  const Space& space;
  std::uint64_t seed = 1;
  int threads = 0;
};

/// What makes the question's scenario the one that it stands for.
std::vector<Change> changes_of(const Question& question, const Space& space, const Candidate& c);
/// That scenario, planned like any other.
Expected<Plan> plan_of(const Question& question, const Catalog& catalog, const Space& space,
                       const Candidate& candidate);
/// Events of one life, roughly: nodes come and go, and each interruption makes several.
double events_of(const Space& space, const Candidate& candidate);

struct SpaceOptions {
  std::uint64_t seed = 1;
  int replications = 1000;
  int threads = 0;
  /// Events of lives that a search may simulate in all, about; 0: any number. Where the most
  /// promising candidates live through many interruptions, replications give way, down to 40,
  /// or to ten beyond the quantile that a limit or the objective is held against (95 %: 200).
  double effort = 0;  // events
};
Space make_space(const Question& question, const Catalog& catalog, const NetworkModel& network,
                 const SpaceOptions& options);

}  // namespace reckon::planner
