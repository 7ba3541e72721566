#pragma once
#include "sim/step/network/network.h"

namespace reckon {

/// Answers by SimGrid 3.32 [Casanova et al. 2014, J. Parallel Distrib. Comput. 74(10)], set to pure
/// max-min sharing: model CM02 without TCP factors, no cross traffic, link latencies 0. Delays are
/// sleeps; each of the `multiplicity` flows of an activity is a communication of its own. One run
/// at a time in a process (SimGrid is a singleton), and its clock is not reset between runs, so
/// dates after the first run lose what the clock has gained in magnitude.
class SimGridNetwork final : public NetworkModel {
 public:
  std::string_view name() const override { return "simgrid"; }
  std::vector<Seconds> run(const Network& network, const ActivityGraph& graph) const override;
};

/// The options that make SimGrid purely max-min fair, as an argument vector for its Engine.
std::vector<const char*> simgrid_options();

}  // namespace reckon
