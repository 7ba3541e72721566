#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/comm/rendezvous/coordinator.h"
#include "executor/comm/rendezvous/member_addresses.h"

// Rank 0's side until all are there: who may take part, who is missing, and why.
namespace reckon {

namespace {
using Settings = std::map<std::string, std::string>;

/// "seed is 2, rank 0 has 1; ...": of those that both have. "": none differs.
std::string differences(const Settings& theirs, const Settings& ours) {
  std::vector<std::string> found;
  for (const auto& [name, value] : theirs)
    if (const auto own = ours.find(name); own != ours.end() && own->second != value)
      found.push_back(fmt::format("{} is {}, rank 0 has {}", name, value, own->second));
  return fmt::format("{}", fmt::join(found, "; "));
}
}  // namespace

/// Why a member of the job may not be one of this start.
std::optional<Coordinator::Refusal> Coordinator::why_not(const Hello& hello,
                                                         const std::string& job) const {
  using Kind = RendezvousMessage;
  const auto refusal = [](Kind kind, std::string why, std::string of_rank) {
    return Refusal{kind, std::move(why), std::move(of_rank)};
  };
  if (job != options_.job)
    return refusal(Kind::refused,
                   fmt::format("this is the rendezvous of job '{}', not of '{}': if this process "
                               "belongs to it, start it with --job {}",
                               options_.job, job, options_.job),
                   fmt::format("it is of job '{}', this is '{}'", job, options_.job));
  const std::string attempts =
      fmt::format("it is of attempt {}, this is attempt {}", hello.attempt, options_.attempt);
  if (hello.attempt > options_.attempt)
    return refusal(Kind::not_yet,
                   fmt::format("attempt {} still holds the rendezvous", options_.attempt),
                   attempts);
  if (hello.attempt < options_.attempt)
    return refusal(Kind::refused,
                   fmt::format("attempt {} of the job is over; this is attempt {}", hello.attempt,
                               options_.attempt),
                   attempts);
  if (hello.size != options_.size || hello.member.rank >= options_.size)
    return refusal(Kind::refused,
                   fmt::format("rank {} says that the world size is {}; rank 0 says {}",
                               hello.member.rank, hello.size, options_.size),
                   fmt::format("it says that the world size is {}, rank 0 says {}", hello.size,
                               options_.size));
  return std::nullopt;
}

void Coordinator::handle_hello(Connection& from, const Hello& hello) {
  const Member& m = hello.member;
  if (std::uint32_t(m.rank) != from.peer.rank) throw WireError("a rank that is another's");
  if (const auto refusal = why_not(hello, from.peer.job)) {
    note_turned_away(m, refusal->of_rank, ": " + refusal->of_rank);
    return refuse(from, refusal->kind, refusal->why);
  }
  Connection*& seat = by_rank_[std::size_t(m.rank)];
  const bool again = seat != nullptr && !begun_ && seat->mark == hello.mark;
  if (again) {  // the network cut its connection, whose end has not come here
    seat->member.reset();
    std::exchange(seat, nullptr)->over = true;
  }
  if (seat != nullptr)
    return refuse(from, RendezvousMessage::refused,
                  fmt::format("rank {} is there already: process {} on {}; two processes have the "
                              "same rank",
                              m.rank, seat->member->process, seat->member->host));
  // Its process is gone, and this start will end, or its connection was cut and it comes back.
  if (begun_)
    return refuse(from, RendezvousMessage::not_yet,
                  fmt::format("this start of the job has begun with another process: {}",
                              process_of(seats_[std::size_t(m.rank)].member)));
  if (const std::string found = differences(hello.settings, options_.settings); !found.empty()) {
    note_turned_away(m, "it was started otherwise: " + found, ", as it was started otherwise");
    return refuse(from, RendezvousMessage::differs, found);
  }
  turned_away_[std::size_t(m.rank)].clear();
  seat = &from;
  from.member = m;
  from.mark = hello.mark;
  const std::string reached_at = from.channel.socket().local().host;
  if (!reached_at.empty() && !is_loopback(reached_at)) nonlocal_address_ = reached_at;
  if (std::ranges::find(by_rank_, nullptr) == by_rank_.end()) begin();
}

/// Said once, however often it asks again.
void Coordinator::note_turned_away(const Member& member, const std::string& why,
                                   const std::string& if_missing) {
  if (begun_) return;
  const auto rank = std::size_t(member.rank);
  const bool known = rank < turned_away_.size() && turned_away_[rank] == if_missing;
  if (rank < turned_away_.size()) turned_away_[rank] = if_missing;
  if (!known && options_.warn)
    options_.warn(fmt::format("{} is turned away, {}", process_of(member), why));
}

void Coordinator::begin() {
  std::vector<Member> members;
  for (const Connection* c : by_rank_) members.push_back(*c->member);
  make_reachable(members, nonlocal_address_);
  if (const std::string why = why_families_differ(members); !why.empty()) return give_up(why);
  begun_ = true;
  for (const Member& member : members) {
    by_rank_[std::size_t(member.rank)]->member = member;
    seats_.push_back({.member = member, .token = random_nonce(), .kept_until = {}});
  }
  const auto list = encode(members);
  for (Connection* c : by_rank_) {
    reply(*c, RendezvousMessage::token, seats_[std::size_t(c->member->rank)].token);
    reply(*c, RendezvousMessage::members, list);
  }
}

std::string Coordinator::missing() const {
  std::vector<std::string> names;
  for (std::size_t r = 0; r < by_rank_.size(); ++r) {
    if (by_rank_[r] != nullptr) continue;
    const std::string why = !turned_away_[r].empty()
                                ? fmt::format(" (turned away{})", turned_away_[r])
                            : vanished_[r] ? " (was there, but its process ended)"
                                           : "";
    names.push_back(fmt::format("rank {}{}", r, why));
  }
  const std::string strangers = listener_.turned_away();
  return fmt::format("{} of {} ranks are missing after {:.3g} s: {}{}{}", names.size(),
                     by_rank_.size(), options_.deadline.count(), fmt::join(names, ", "),
                     strangers.empty() ? "" : "; ", strangers);
}

void Coordinator::say_waiting() {
  words_.said();
  constexpr std::size_t kMostNamed = 16;
  std::vector<std::string> names;
  for (std::size_t r = 0; r < by_rank_.size(); ++r)
    if (by_rank_[r] == nullptr) names.push_back(std::to_string(r));
  const std::size_t more = names.size() - std::min(names.size(), kMostNamed);
  names.resize(names.size() - more);
  const HostPort at = options_.master.host.empty() ? listener_.address() : options_.master;
  if (options_.waiting)
    options_.waiting(fmt::format("waiting at {} for rank{} {}{} of {}", text(at),
                                 names.size() == 1 ? "" : "s", fmt::join(names, ", "),
                                 more > 0 ? fmt::format(" and {} more", more) : "",
                                 by_rank_.size()));
}

void Coordinator::give_up(const std::string& why) {
  for (Connection& c : connections_)
    if (c.member) reply(c, RendezvousMessage::failed, why);
  stopped_ = true;
}

}  // namespace reckon
