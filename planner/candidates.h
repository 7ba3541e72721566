#pragma once
#include <cstdint>
#include <vector>

#include "planner/bounds.h"
#include "planner/site.h"

// Every shape in every undominated place, with its bounds, and what a quick look says of it.
namespace reckon::planner {

struct Candidate {
  std::uint32_t site = 0, shape = 0, offer = 0;
  double time = 0, cost = 0;  // at medians, seconds and USD (infinite: no price): to rank by
  double estimate = 0;        // of the score, from these
  double bound = 0;           // the score is not below
  bool proven_late = false, proven_dear = false;  // a bound lies above the limit
};

struct Space {
  std::vector<Site> sites;
  std::vector<Candidate> candidates;  // most promising first; those proven to miss a limit last
  std::int64_t considered = 0;        // everything that was looked at, with what was left out
  Rejections rejected;

  const Site& site(const Candidate& c) const { return sites[c.site]; }
  const Shape& shape(const Candidate& c) const { return sites[c.site].shapes[c.shape]; }
  const Offer& offer(const Candidate& c) const { return sites[c.site].offers[c.offer]; }
};

struct SpaceOptions {
  std::uint64_t seed = 1;
  int replications = 1000;
  int threads = 0;
};
Space make_space(const Question& question, const Catalog& catalog, const NetworkModel& network,
                 const SpaceOptions& options);

}  // namespace reckon::planner
