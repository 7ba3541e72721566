#pragma once
#include "sim/step/network/collectives.h"

// Collectives of groups of chips on a TPU slice, in closed form, and where a layout's groups lie on
// its axes (docs/MODELS.md, "Collectives"). B: a link, one direction; a: a hop. A group has k chips
// along an axis, `apart` links from each other, so that `apart` groups alike share each link: it
// has B / apart, and a hop takes `apart` a. An axis that is closed is a ring that runs both ways at
// once, with twice that; on an open one a ring uses each link once (torus.cpp).
namespace reckon {

/// All-gather to `size` bytes, or a reduce-scatter of them, in as many chunks as axes, chunk j
/// along axes j, j + 1, ...: what the busiest axis carries over its bandwidth, and k - 1 hops an
/// axis [Ying et al. 2018, Sec. 2.2, half of the sum]. Exact where axes are alike; where they
/// differ a lower bound, because links wait for chunks then.
Seconds torus_gather_time(const Fabric& group, Bytes size);

/// All-to-all of `size` bytes of every chip, one axis after the other: of k chips a closed axis
/// carries floor(k^2 / 4) / k hops a byte over 2 B, so k / 8 size / B; the middle link of an open
/// one floor(k^2 / 4) / k size / B. The axes are at work at once, each on other pieces [Austin et
/// al. 2025, "How to scale your model", "AllToAlls": a quarter of an all-gather's time on a ring].
Seconds torus_exchange_time(const Fabric& group, Bytes size);

/// Every chip sends `size` bytes to the next of its group; all one way.
Seconds torus_hop_time(const Fabric& group, Bytes size);

/// Of a group's part of an axis: a ring's bandwidth, hops of a byte from a chip to each other one
/// over its chips, hops to the farthest.
BytesPerSecond axis_bandwidth(const Fabric& group, const TorusAxis& axis);
double hops_of_a_chip(int chips);  // a count
Seconds exchange_latency(const Fabric& group, const TorusAxis& axis);

/// Degrees of a layout whose product is at most the slice's chips.
struct TorusDegrees {
  int tensor = 1, context = 1, expert = 1, data = 1, pipeline = 1;  // data: over expert
};
struct TorusGroups {
  Fabric tensor, context, expert, pipeline;
  Fabric state;         // context x expert x data
  Fabric expert_state;  // context x data
};
/// Tensor first, which communicates most, pipeline last. A degree takes whole axes where a product
/// of free ones is the degree (the most axes, as jax's create_device_mesh does), so that they are
/// closed and nobody else's; else a part of one that it divides; else of several.
TorusGroups torus_groups(const Fabric& slice, const TorusDegrees& degrees);

}  // namespace reckon
