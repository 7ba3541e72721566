#include "executor/comm/rendezvous/member_addresses.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "executor/comm/job.h"

namespace {
using namespace reckon;

Member member_at(int rank, const std::string& host, Role role = Role::worker) {
  return {.rank = rank, .role = role, .address = {host, 0}, .host = "node", .process = 1};
}

std::string hosts_of(const std::vector<Member>& members) {
  std::string all;
  for (const Member& m : members) all += m.address.host + ' ';
  return all;
}

std::string reachable(std::vector<Member> members, const std::string& nonlocal) {
  make_reachable(members, nonlocal);
  return hosts_of(members);
}
}  // namespace

TEST_CASE("members of one machine get addresses of one family, others rank 0's address") {
  CHECK(reachable({member_at(0, "::1"), member_at(1, "127.0.0.1")}, "") == "127.0.0.1 127.0.0.1 ");
  CHECK(reachable({member_at(0, "::1"), member_at(1, "::1")}, "") == "::1 ::1 ");
  CHECK(reachable({member_at(0, "::1"), member_at(1, "10.0.0.2")}, "") == "127.0.0.1 10.0.0.2 ");
  CHECK(reachable({member_at(0, "::1"), member_at(1, "127.0.0.1"), member_at(2, "10.0.0.3")},
                  "10.0.0.1") == "10.0.0.1 10.0.0.1 10.0.0.3 ");
  // A server is connected to by whatever family it listens at.
  CHECK(reachable({member_at(0, "::1"), member_at(1, "127.0.0.1", Role::parameter_server)}, "") ==
        "::1 127.0.0.1 ");
}

TEST_CASE("ranks that come by two families are named, with what to do") {
  CHECK(why_families_differ({member_at(0, "fd77::1"), member_at(1, "10.0.0.2")}) ==
        "rank 0 comes by IPv6 (fd77::1), rank 1 by IPv4 (10.0.0.2), so they cannot connect to each "
        "other: give --master (MASTER_ADDR) an address in place of a name, the same for all ranks");
  CHECK(why_families_differ({member_at(0, "fd77::1"), member_at(1, "fd77::2")}).empty());
  CHECK(why_families_differ(
            {member_at(0, "fd77::1"), member_at(1, "10.0.0.2", Role::parameter_server)})
            .empty());
}

TEST_CASE("ranks of one machine meet where a name leads some to IPv4 and rank 0 to IPv6") {
  need_gloo();
  Socket listener = listen_on({"", 0});  // as rank 0 listens where the master is a name
  if (listener.local().host != "::") skip_test("no IPv6 here");
  const HostPort master{"127.0.0.1", listener.local().port};
  const JobSecret secret = JobSecret::random();
  const auto outcomes = run_processes(2, [&](int rank) {
    const RendezvousOptions options{
        .secret = secret, .rank = rank, .size = 2, .master = master, .deadline = Seconds{20}};
    std::optional<Socket> own;
    if (rank == 0) own = std::move(listener);
    listener.close();
    const auto membership = Membership::join(options, std::move(own));
    const auto communicator = make_gloo_communicator(*membership, {});
    std::array<double, 1> one{1};
    communicator->all_reduce(std::span<double>(one));
    return fmt::format("{} {}", one[0], hosts_of(membership->members()));
  });
  for (const ProcessOutcome& outcome : outcomes) CHECK(outcome.output == "2 127.0.0.1 127.0.0.1 ");
}

TEST_CASE("a job whose ranks come by two families is refused at the start, on every rank") {
  LocalJob job(3);
  const auto outcomes = run_processes(3, [&](int rank) -> std::string {
    job.options.address = rank == 1 ? "fd77::2" : rank == 2 ? "10.77.0.9" : "";
    job.join(rank);
    return "joined";
  });
  for (const ProcessOutcome& outcome : outcomes)
    CHECK_THAT(outcome.output, Catch::Contains("rank 1 comes by IPv6 (fd77::2), rank ") &&
                                   Catch::Contains("give --master"));
}

TEST_CASE("ranks that cannot connect say between whom, and where, and end within the deadline") {
  need_gloo();
  LocalJob job(2);
  job.options.deadline = Seconds{1};  // connecting has 10 s at least
  std::string warned;
  job.options.warn = [&](const std::string& text) { warned += text + '\n'; };
  const auto begin = Deadline::Clock::now();
  const auto outcomes = run_processes(2, [&](int rank) -> std::string {
    if (rank == 1) job.options.address = "203.0.113.7";  // of no machine here
    const auto membership = job.join(rank);
    try {
      make_gloo_communicator(*membership, {});
    } catch (const CommError& error) {
      return warned + error.what();
    }
    return "connected";
  });
  CHECK(Seconds{Deadline::Clock::now() - begin} < 30s);
  CHECK_THAT(outcomes[0].output, Catch::Contains("no connection from rank 0 at 127.0.0.1 to rank "
                                                 "1 at 203.0.113.7: ") &&
                                     Catch::Contains("not all ranks could connect") &&
                                     Catch::Contains("does a firewall keep them apart"));
  CHECK_THAT(outcomes[0].output, !Catch::Contains("strangers"));
  CHECK_THAT(outcomes[1].output, Catch::Contains("no connection from rank 1 at 203.0.113.7"));
}
