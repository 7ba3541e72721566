#include "sim/queue/backfill/reservations.h"

#include <algorithm>

#include "sim/base/check.h"

namespace reckon {

bool Reservations::bind(CellSet cells) const {
  return std::ranges::any_of(reservations_,
                             [&](const Reservation& r) { return (r.cells & cells) != 0; });
}

bool Reservations::precede(const WaitingJobs::Candidate& job) const {
  return std::ranges::all_of(reservations_, [&](const Reservation& r) { return r.head < job; });
}

std::vector<NodePart> Reservations::kept_from(CellSet cells, SimTime end,
                                              const FreeNodes& nodes) const {
  // It would still run then: of the reserved nodes only what is spare.
  std::vector<NodePart> kept;
  for (const Reservation& r : reservations_) {
    if ((r.cells & cells) == 0 || end <= r.at) continue;
    for (const NodePart& spare : r.spare)
      if (const int more = nodes.free_of(spare.node) - spare.gpus; more > 0)
        kept.push_back({spare.node, more});
  }
  return kept;
}

void Reservations::took(std::span<const NodePart> held, SimTime end) {
  for (Reservation& r : reservations_) {
    if (end <= r.at) continue;
    for (NodePart& spare : r.spare)
      for (const NodePart& part : held)
        if (part.node == spare.node) spare.gpus -= part.gpus;
  }
}

void Reservations::refuse(const WaitingJobs::Lane& lane, SimTime end) {
  Refused refused{lane, SimTime::min()};
  for (const Reservation& r : reservations_)
    if ((r.cells & lane.cells) != 0 && r.at < end) refused.after = std::max(refused.after, r.at);
  RECKON_CHECK(refused.after > SimTime::min());
  refused_.push_back(refused);
}

std::optional<SimTime> Reservations::refused_after(const WaitingJobs::Lane& lane) const {
  std::optional<SimTime> after;
  for (const Refused& r : refused_)
    if (r.lane.cells == lane.cells && r.lane.gpus <= lane.gpus)
      after = after ? std::min(*after, r.after) : r.after;
  return after;
}

}  // namespace reckon
