#include "sim/step/network/collectives.h"

#include <algorithm>
#include <bit>

#include "sim/step/network/collective_graphs.h"

namespace reckon {

int ceil_log2(int n) { return n <= 1 ? 0 : int(std::bit_width(unsigned(n - 1))); }

Seconds makespan(const NetworkProblem& problem, const NetworkModel& model) {
  Seconds last{};
  for (const Seconds t : model.run(problem.network, problem.graph)) last = std::max(last, t);
  return last * problem.repeat;
}

Seconds makespan(const Collective& collective, const NetworkModel& model) {
  Seconds total{};
  for (const auto& phase : collective.phases) total += makespan(phase, model);
  return total;
}

double bus_factor(CollectiveKind kind, int ranks) {
  const double others = double(ranks - 1) / ranks;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * others;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return others;
    case CollectiveKind::broadcast:
      return 1;
  }
  return 1;
}

BytesPerSecond bus_bandwidth(CollectiveKind kind, Bytes size, int ranks, Seconds time) {
  return size / time * bus_factor(kind, ranks);
}

}  // namespace reckon
