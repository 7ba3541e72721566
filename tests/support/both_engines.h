#pragma once
#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/step/network/referee.h"

namespace reckon {

/// Answers as fluid does, after SimGrid has agreed with every date to 1e-9 of it. SimGrid runs in
/// the referee's process, a fresh one for each question, so its clock starts at 0.
class BothEngines final : public NetworkModel {
 public:
  std::string_view name() const override { return "both"; }

  std::vector<Seconds> run(const Network& network, const ActivityGraph& graph) const override {
    const auto ours = fluid_->run(network, graph), theirs = simgrid_->run(network, graph);
    REQUIRE(ours.size() == theirs.size());
    double worst = 0;
    Seconds last{};
    for (std::size_t a = 0; a < ours.size(); ++a) {
      const double difference = std::abs(ours[a].count() - theirs[a].count());
      if (difference > 0) worst = std::max(worst, difference / theirs[a].count());
      last = std::max(last, theirs[a]);
    }
    INFO(graph.activities().size() << " activities, largest relative difference " << worst);
    REQUIRE(worst <= 1e-9);
    if (!ours.empty()) REQUIRE(last > Seconds{0});  // agreement on nothing proves nothing
    ++questions_;
    return ours;
  }
  /// Questions with an answer so far.
  int questions() const { return questions_; }

 private:
  std::unique_ptr<NetworkModel> fluid_ = make_fluid_network(),
                                simgrid_ = make_referee_network(find_referee());
  mutable int questions_ = 0;
};

}  // namespace reckon
