#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "executor/kubernetes/pods/gang/watched_gang.h"

// Which pod has which rank in a start. The record of that is the pods' own annotation, which a
// launcher before this one may have written.
namespace reckon::kubernetes {

/// The start has all the pods that it needs: they are told to meet.
void ClusterGang::seat() {
  if (seated_ || !pods_.listed() || broken_ || asked_ || hopeless_ || first_ended_) return;
  if (!given_ && !take_up_start() && !choose_ranks()) return;
  if (!broken_ && !seated_) seated_ = give_orders();
}

bool ClusterGang::is_told(const Member& m) const {
  if (!m.pod || m.pod->start() != start_) return false;
  const bool own = m.pod->order.own_part;
  return m.pod->ordered_rank() < rules_.wanted &&
         (own || m.pod->order.order->workers <= rules_.wanted);
}

/// A number alone, as an older launcher wrote it, is of a start of all.
int ClusterGang::ranks_of_order(const PodView& pod) const {
  return pod.order.own_part ? rules_.wanted : pod.order.order->workers;
}

ClusterGang::Member* ClusterGang::with_rank(int rank) {
  const auto found = std::ranges::find(members_, rank, &Member::rank);
  return found != members_.end() ? &*found : nullptr;
}

/// A launcher before this one gave the orders of the start. Where one who had them is another pod
/// by now, the start is broken. False: nobody has any.
bool ClusterGang::take_up_start() {
  int ranks = 0;
  for (Member& m : members_) {
    if (!is_told(m) || with_rank(m.pod->ordered_rank()) != nullptr) continue;
    m.rank = m.pod->ordered_rank();
    ranks = ranks_of_order(*m.pod);
  }
  if (ranks == 0) return false;
  std::vector<int> missing;
  for (int rank = 0; rank < ranks; ++rank)
    if (with_rank(rank) == nullptr) missing.push_back(rank);
  given_ = true;
  ranks_ = ranks;
  seated_ = missing.empty();
  if (seated_ || completes(missing)) return true;
  for (const int rank : missing) {
    Member* place = &members_[std::size_t(rank)];
    if (place->rank >= 0 || place->ended()) place = with_rank(-1);
    if (place == nullptr) break;
    place->rank = rank;
    place->replaces = true;
  }
  broken_ = Clock::now();
  return true;
}

/// That launcher was lost before all were told: there are some that are not, with a rank that is
/// missing in the start before. Ranks that are new in this one are theirs who were in none.
bool ClusterGang::completes(const std::vector<int>& missing) {
  std::vector<int> fresh;
  const auto give = [&](int rank, const auto& is_to_have_it) {
    const auto found = std::ranges::find_if(members_, [&](const Member& m) {
      return m.rank < 0 && m.is_there() && is_to_have_it(*m.pod);
    });
    if (found == members_.end()) return false;
    found->rank = rank;
    return true;
  };
  for (const int rank : missing)
    if (!give(rank, [&](const PodView& p) { return p.ordered_rank() == rank; }))
      fresh.push_back(rank);
  const bool was_cut_short = fresh.size() < missing.size();
  const bool all = was_cut_short && std::ranges::all_of(fresh, [&](int rank) {
                     return give(rank, [](const PodView& p) { return p.start() < 0; });
                   });
  if (!all)  // as before
    for (const int rank : missing)
      if (Member* const m = with_rank(rank)) m->rank = -1;
  return all;
}

/// False: some are not there yet.
bool ClusterGang::choose_ranks() {
  std::int64_t last = -1;  // start that those who are there were in
  for (const Member& m : members_)
    if (m.is_there() && m.pod->start() < start_) last = std::max(last, m.pod->start());
  const bool first = last < 0, keeps_places = first || rules_.kind == RestartKind::in_place;
  std::vector<StandingMember> there;
  std::vector<Member*> whose;
  for (std::size_t k = 0; k < members_.size(); ++k) {
    Member& m = members_[k];
    if (!m.is_there()) continue;
    const bool was_in = !first && m.pod->start() == last;
    const int place = keeps_places && int(k) < rules_.wanted ? int(k) : -1;
    there.push_back({.rank = was_in ? m.pod->ordered_rank() : place,
                     .of = was_in ? ranks_of_order(*m.pod) : 0,
                     .waits = was_in || m.waits || !is_followed(k)});
    whose.push_back(&m);
  }
  const Seating next = seats_of_start(there, rules_, first);
  if (!next.is_complete()) return false;
  const PodView& meeting = *whose[std::size_t(next.seats.front())]->pod;
  if (meeting.address.empty() || meeting.port == 0) return false;
  ranks_ = int(next.seats.size());
  for (int rank = 0; rank < ranks_; ++rank)
    whose[std::size_t(next.seats[std::size_t(rank)])]->rank = rank;
  given_ = true;
  return true;
}

/// False: not now. First their Jobs, so that no later launcher gives the number again. Ranks that
/// train regroup when the first has its order: the others get theirs when it has left the start
/// before, so that nobody waits for a long step.
bool ClusterGang::give_orders() {
  constexpr Seconds kBetweenTries{1};
  constexpr int kAtOnce = 16;  // kubectls
  if (since(last_order_) < kBetweenTries) return false;
  Member* const first = with_rank(0);
  if (first == nullptr || !first->pod) return false;
  const HostPort master{first->pod->address, std::uint16_t(first->pod->port)};
  const bool has_left = first->left == start_before_ || first->log_start == start_;
  const bool others_wait = grows_ && !has_left;
  if (others_wait && is_told(*first)) return false;
  last_order_ = Clock::now();
  try {
    if (!noted_)
      kubectl_.run({"annotate", "jobs", "--selector", selector_of(options_.run, options_.attempt),
                    fmt::format("{}={}", kStartAnnotation, start_), "--overwrite"},
                   {}, kManyObjects);
    noted_ = true;
    give_order(*first, master);
    if (others_wait) return false;
    for (int begin = 1; begin < ranks_; begin += kAtOnce) {
      std::vector<std::future<void>> given;
      for (int rank = begin; rank < std::min(ranks_, begin + kAtOnce); ++rank)
        given.push_back(
            std::async(std::launch::async, [&, rank] { give_order(*with_rank(rank), master); }));
      for (auto& one : given) one.wait();
      for (auto& one : given) one.get();
    }
  } catch (const KubectlError& error) {
    // One that is gone in the meantime: the watch will tell.
    if (error.failure() != KubectlFailure::missing && !passes(error.failure())) throw;
    return false;
  }
  return true;
}

void ClusterGang::give_order(Member& m, const HostPort& master) {
  if (!m.pod || is_told(m)) return;
  const TrainOrder order{.attempt = start_, .rank = m.rank, .workers = ranks_, .master = master};
  kubectl_.run({"annotate", "pod", m.pod->name,
                fmt::format("{}={}", kStartAnnotation, order_text(order)), "--overwrite"});
  m.pod->order = {.order = order};
}

}  // namespace reckon::kubernetes
