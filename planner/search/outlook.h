#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "planner/search/candidates.h"

// A second, closer look at promising candidates of a large space: the quick look's time under the
// draws of the forecast, in closed form. It ranks; it does not answer.
namespace reckon::planner {

/// What a candidate is under the draws.
struct Promise {
  bool misses = false;        // a limit, as far as one can see
  double score = 0;           // score_of() these; infinite: it does not end in some replication
  double time = 0, cost = 0;  // means, seconds and USD; infinite with the score
};

/// In replication k
///   time(k) = start + work x step factor(k) x stretch_of(interruptions, drawn time to a reclaim)
/// so that what ends at the medians but not in the worst replications is seen. A step's factors are
/// those of the first candidate of its site that was asked for.
class Outlook {
 public:
  explicit Outlook(const SearchSetting& setting, int draws) : s_(setting), draws_(draws) {}

  Promise of(const Candidate& candidate);
  /// Puts the first `most` candidates for each way of buying, before all others, into the order of
  /// what they promise: what spot promises at the medians may hide all that is bought on demand.
  void reorder(std::vector<Candidate>& candidates, std::size_t most);

 private:
  struct DrawnSite {
    // Factors by replication, over the medians; empty: unplannable.
    std::vector<double> step, reclaim;
  };
  DrawnSite draw(const Candidate& first) const;
  const DrawnSite& site_of(const Candidate& candidate);

  SearchSetting s_;
  int draws_;
  std::map<std::uint32_t, DrawnSite> sites_;
};

}  // namespace reckon::planner
