#include <algorithm>
#include <cmath>

#include "sim/step/network/network.h"

namespace reckon {
namespace {

/// Of one of the flows of an activity that has the links to itself.
BytesPerSecond rate_alone(const Network& network, const Activity& a) {
  BytesPerSecond rate = a.cap.v > 0 ? a.cap : BytesPerSecond{INFINITY};
  for (const LinkId link : network.path(a.path))
    rate = std::min(rate, network.links()[index(link)] / double(a.multiplicity));
  return rate;
}

class ClosedFormNetwork final : public NetworkModel {
 public:
  std::string_view name() const override { return kClosedForms; }
  ByFormula by_formula() const override { return ByFormula::all; }

  std::vector<Seconds> run(const Network& network, const ActivityGraph& graph) const override {
    const auto activities = graph.activities();
    std::vector<Seconds> finish(activities.size());
    for (std::size_t k = 0; k < activities.size(); ++k) {  // each waits for earlier ones only
      const Activity& a = activities[k];
      Seconds& end = finish[k];
      for (const ActivityId before : graph.waits_for(ActivityId(k)))
        end = std::max(end, finish[index(before)]);
      end += a.delay;
      if (a.size.v >= 1) end += Bytes{std::floor(a.size.v)} / rate_alone(network, a);
    }
    return finish;
  }
};

}  // namespace

std::unique_ptr<NetworkModel> make_closed_form_network() {
  return std::make_unique<ClosedFormNetwork>();
}

}  // namespace reckon
