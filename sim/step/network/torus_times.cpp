#include "sim/step/network/torus_times.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace reckon {
namespace {

using Axes = std::array<TorusAxis, 3>;

int along(const Axes& axes) {
  int n = 0;
  for (const TorusAxis& axis : axes) n += axis.chips > 1 ? 1 : 0;
  return n;
}

/// What of each axis is taken, and by whom.
class Placement {
 public:
  explicit Placement(const Fabric& slice) : slice_(slice) {
    for (std::size_t a = 0; a < taken_.size(); ++a) taken_[a] = 1;
  }

  Axes take(int degree) {
    Axes group{};
    if (degree > 1 && !take_whole_axes(degree, group) && !take_of_one(degree, group))
      take_of_several(degree, group);
    return group;
  }

  /// What both groups have together: their parts of an axis lie next to each other.
  Axes join(const Axes& inner, const Axes& outer) const {
    Axes both = outer;
    for (std::size_t a = 0; a < both.size(); ++a) {
      if (inner[a].chips == 1) continue;
      both[a].apart =
          outer[a].chips == 1 ? inner[a].apart : std::min(inner[a].apart, outer[a].apart);
      both[a].chips = inner[a].chips * outer[a].chips;
      both[a].closed = closes(a, both[a]);
    }
    return both;
  }

 private:
  int free(std::size_t a) const { return slice_.axes[a].chips / taken_[a]; }
  bool closes(std::size_t a, const TorusAxis& part) const {
    return slice_.axes[a].closed && part.chips * part.apart == slice_.axes[a].chips;
  }

  void take_part(std::size_t a, int chips, Axes& group) {
    group[a] = {chips, taken_[a], false};
    group[a].closed = closes(a, group[a]);
    taken_[a] *= chips;
  }

  bool take_whole_axes(int degree, Axes& group) {
    unsigned best = 0;
    for (unsigned set = 1; set < 8; ++set) {
      int product = 1;
      bool all_free = true;
      for (std::size_t a = 0; a < 3; ++a) {
        if ((set >> a & 1U) == 0) continue;
        product *= free(a);
        all_free = all_free && free(a) > 1;
      }
      if (all_free && product == degree && std::popcount(set) > std::popcount(best)) best = set;
    }
    for (std::size_t a = 0; a < 3; ++a)
      if ((best >> a & 1U) != 0) take_part(a, free(a), group);
    return best != 0;
  }

  bool take_of_one(int degree, Axes& group) {
    for (std::size_t a = 0; a < 3; ++a) {
      if (free(a) % degree != 0) continue;
      take_part(a, degree, group);
      return true;
    }
    return false;
  }

  void take_of_several(int degree, Axes& group) {
    for (std::size_t a = 0; a < 3 && degree > 1; ++a) {
      const int part = std::gcd(degree, free(a));
      if (part > 1) take_part(a, part, group);
      degree /= part;
    }
  }

  const Fabric& slice_;
  std::array<int, 3> taken_{};
};

Fabric group_on(const Fabric& slice, const Axes& axes) {
  Fabric f = slice;
  f.axes = axes;
  f.ranks_per_node = 1;
  for (const TorusAxis& axis : axes) f.ranks_per_node *= axis.chips;
  return f;
}

}  // namespace

BytesPerSecond axis_bandwidth(const Fabric& f, const TorusAxis& axis) {
  return f.peer * ((axis.closed ? 2.0 : 1.0) / axis.apart);
}

double hops_of_a_chip(int chips) {
  const int of_all = chips * chips / 4;  // of all pairs, each way by the shorter one
  return double(of_all) / chips;
}

Seconds exchange_latency(const Fabric& f, const TorusAxis& axis) {
  if (axis.chips <= 1) return {};
  const int farthest = axis.closed ? axis.chips / 2 : axis.chips - 1;
  return double(farthest * axis.apart) * f.peer_latency;
}

Seconds torus_gather_time(const Fabric& f, Bytes size) {
  const int d = along(f.axes);
  if (d == 0) return {};
  Seconds busiest{}, latency{};
  for (std::size_t a = 0; a < f.axes.size(); ++a) {
    const TorusAxis& axis = f.axes[a];
    if (axis.chips <= 1) continue;
    // A chunk that comes here has been scattered over the axes before.
    double chunks = 0, scattered = 1;
    for (std::size_t back = 0; back < f.axes.size(); ++back) {
      const TorusAxis& before = f.axes[(a + f.axes.size() - back) % f.axes.size()];
      if (before.chips <= 1) continue;
      if (back > 0) scattered *= before.chips;
      chunks += 1 / scattered;
    }
    const Bytes carried = chunks / d * (double(axis.chips - 1) / axis.chips) * size;
    busiest = std::max(busiest, carried / axis_bandwidth(f, axis));
    latency += double((axis.chips - 1) * axis.apart) * f.peer_latency;
  }
  return latency + busiest;
}

Seconds torus_exchange_time(const Fabric& f, Bytes size) {
  Seconds busiest{}, latency{};
  for (const TorusAxis& axis : f.axes) {
    if (axis.chips <= 1) continue;
    busiest = std::max(busiest, hops_of_a_chip(axis.chips) * size / axis_bandwidth(f, axis));
    latency += exchange_latency(f, axis);
  }
  return latency + busiest;
}

Seconds torus_hop_time(const Fabric& f, Bytes size) {
  int apart = 0;
  for (const TorusAxis& axis : f.axes)
    if (axis.chips > 1) apart = std::max(apart, axis.apart);
  return double(apart) * (f.peer_latency + size / f.peer);
}

TorusGroups torus_groups(const Fabric& slice, const TorusDegrees& degrees) {
  Placement placement(slice);
  const Axes tensor = placement.take(degrees.tensor);
  const Axes context = placement.take(degrees.context);
  const Axes expert = placement.take(degrees.expert);
  const Axes data = placement.take(degrees.data);
  const Axes pipeline = placement.take(degrees.pipeline);
  const Axes of_experts = placement.join(context, data);
  TorusGroups g;
  g.tensor = group_on(slice, tensor);
  g.context = group_on(slice, context);
  g.expert = group_on(slice, expert);
  g.pipeline = group_on(slice, pipeline);
  g.state = group_on(slice, placement.join(context, placement.join(expert, data)));
  g.expert_state = group_on(slice, of_experts);
  return g;
}

}  // namespace reckon
