#include <numeric>
#include <thread>

#include <fmt/format.h>
#include <xxhash.h>
#include <catch2/catch.hpp>

#include "executor/comm/job.h"
#include "executor/comm/rank_parts.h"
#include "executor/comm/thread_communicator.h"
#include "sim/base/parallel.h"

namespace {
using namespace reckon;

// Whole numbers: sums of 8 of them are exact in every type.
int value_of(int rank, std::size_t i) { return int(i % 1009) * (rank + 1) - 3 * rank; }
int sum_of(int ranks, std::size_t i) {
  int sum = 0;
  for (int r = 0; r < ranks; ++r) sum += value_of(r, i);
  return sum;
}
template <class T>
std::vector<T> values_of(int rank, std::size_t count, std::size_t first = 0) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = T(value_of(rank, first + i));
  return values;
}

/// The first mistake, or "".
template <class T>
std::string check_all_reduce(Communicator& c, std::size_t count) {
  std::vector<T> values = values_of<T>(c.rank(), count);
  c.all_reduce(std::span<T>(values));
  for (std::size_t i = 0; i < count; ++i)
    if (values[i] != T(sum_of(c.size(), i)))
      return fmt::format("all_reduce of {}: element {} is {}; ", count, i, values[i]);
  return {};
}

std::string check_parts(Communicator& c, std::size_t count) {
  const std::size_t n = std::size_t(c.size()), me = std::size_t(c.rank());
  std::string wrong;
  std::vector<float> all(count * n);
  c.all_gather(values_of<float>(c.rank(), count), all);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] != float(value_of(int(i / count), i % count))) wrong += "all_gather; ";
  std::vector<float> mine(count);
  c.reduce_scatter(values_of<float>(c.rank(), count * n), mine);
  for (std::size_t i = 0; i < count; ++i)
    if (mine[i] != float(sum_of(c.size(), me * count + i))) wrong += "reduce_scatter; ";
  std::vector<float> received(count * n);
  c.all_to_all(values_of<float>(c.rank(), count * n), received);
  for (std::size_t i = 0; i < received.size(); ++i)
    if (received[i] != float(value_of(int(i / count), me * count + i % count)))
      wrong += "all_to_all; ";
  return wrong.substr(0, 200);
}

std::string check_messages(Communicator& c, std::size_t count) {
  std::string wrong;
  for (int root = 0; root < c.size(); ++root) {
    std::vector<std::int32_t> values(count, -1);
    if (c.rank() == root) values = values_of<std::int32_t>(root, count);
    c.broadcast(std::as_writable_bytes(std::span(values)), root);
    if (values != values_of<std::int32_t>(root, count)) wrong += "broadcast; ";
  }
  if (c.size() == 1) return wrong;
  // Once around: even ranks send first, so that no two wait for each other.
  const int next = (c.rank() + 1) % c.size(), before = (c.rank() + c.size() - 1) % c.size();
  const std::vector<float> out = values_of<float>(c.rank(), count);
  std::vector<float> in(count);
  const auto send = [&] { c.send(std::as_bytes(std::span(out)), next); };
  if (c.rank() % 2 == 0) send();
  c.receive(std::as_writable_bytes(std::span(in)), before);
  if (c.rank() % 2 != 0) send();
  if (in != values_of<float>(before, count)) wrong += "send and receive; ";
  return wrong;
}

std::string check_collectives(Communicator& c) {
  std::string wrong;
  for (const std::size_t count : {0u, 1u, 2u, 31u, 33u, 1'000'007u}) {
    const bool large = count > 1000;
    if (large && c.size() % 3 != 2) continue;  // 2, 5 and 8 ranks
    wrong += check_all_reduce<float>(c, count);
    if (large) continue;
    wrong += check_all_reduce<double>(c, count) + check_all_reduce<std::int64_t>(c, count);
    wrong += check_parts(c, count) + check_messages(c, count);
  }
  for (int repeat = 0; repeat < 20; ++repeat)
    wrong += check_all_reduce<double>(c, std::size_t(repeat) * 7);
  wrong += check_parts(c, 20'011);
  c.barrier();
  return wrong;
}

/// Values whose sum depends on the order of additions.
std::vector<float> rough_values(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = XXH3_64bits_withSeed(&i, sizeof i, std::uint64_t(rank));
    values[i] = float(std::int64_t(bits)) * std::ldexp(1.0F, -int(bits % 61));
  }
  return values;
}
std::string digest(std::span<const float> values) {
  return fmt::format("{:016x}", XXH3_64bits(values.data(), values.size_bytes()));
}
/// ((x0 + x1) + x2) + ..., by the definition.
std::string digest_by_rank(int ranks, std::size_t count) {
  std::vector<float> sum = rough_values(0, count);
  for (int r = 1; r < ranks; ++r) add_to<float>(sum, rough_values(r, count));
  return digest(sum);
}

void run_threads(int ranks, const std::function<void(Communicator&)>& body) {
  auto communicators = make_thread_communicators(ranks, Seconds{20});
  std::vector<std::jthread> threads;
  for (auto& c : communicators) threads.emplace_back([&body, mine = std::move(c)] { body(*mine); });
}
}  // namespace

TEST_CASE("parts of ranks cover everything once, sizes differ by one at most") {
  for (const int ranks : {1, 2, 3, 7, 8})
    for (const std::size_t count : {0u, 1u, 6u, 7u, 8u, 100u}) {
      std::size_t next = 0;
      for (int r = 0; r < ranks; ++r) {
        const Part part = part_of_rank(count, ranks, r);
        CHECK(part.first == next);
        CHECK(part.count <= count / std::size_t(ranks) + 1);
        CHECK(part.count >= count / std::size_t(ranks));
        next += part.count;
      }
      CHECK(next == count);
    }
}

TEST_CASE("collectives of threads are exact, for 1 to 8 ranks and odd sizes") {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    std::vector<std::string> wrong(static_cast<std::size_t>(ranks));
    run_threads(ranks,
                [&](Communicator& c) { wrong[std::size_t(c.rank())] = check_collectives(c); });
    for (const std::string& text : wrong) CHECK(text.empty());
  }
}

TEST_CASE("collectives of processes over Gloo are exact, for 1 to 8 ranks and odd sizes") {
  need_gloo();
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8}) {
    const auto outcomes =
        run_gloo_job(ranks, [](Communicator& c, Membership&) { return check_collectives(c); });
    for (const ProcessOutcome& outcome : outcomes) {
      INFO(ranks << " ranks");
      CHECK(outcome.code == 0);
      CHECK(outcome.output.empty());
    }
  }
}

TEST_CASE("each algorithm over Gloo is exact at every size, whichever is taken by itself") {
  need_gloo();
  for (const int ranks : {2, 3, 8})
    for (const GlooOptions::AllReduce kind :
         {GlooOptions::AllReduce::ring, GlooOptions::AllReduce::direct}) {
      const auto outcomes = run_gloo_job(
          ranks,
          [](Communicator& c, Membership&) {
            std::string wrong;
            for (const std::size_t count : {0u, 1u, 31u, 33u, 3650u, 3651u, 300'007u})
              wrong += check_all_reduce<float>(c, count) + check_all_reduce<std::int64_t>(c, count);
            return wrong;
          },
          {.all_reduce = kind});
      for (const ProcessOutcome& outcome : outcomes) CHECK(outcome.output.empty());
    }
}

TEST_CASE("direct sums have the bits of an addition in the order of the ranks, on every backend") {
  need_gloo();
  constexpr std::size_t kCount = 10'007;
  for (const int ranks : {2, 3, 5}) {
    const std::string expected = digest_by_rank(ranks, kCount);
    const auto body = [&](Communicator& c) {
      std::vector<float> values = rough_values(c.rank(), kCount);
      // Cut unevenly: the result must not depend on it.
      c.all_reduce(std::span(values).first(4321));
      c.all_reduce(std::span(values).subspan(4321));
      return digest(values);
    };
    for (const ProcessOutcome& outcome :
         run_gloo_job(ranks, [&](Communicator&c, Membership&) { return body(c); },
                      {.all_reduce = GlooOptions::AllReduce::direct}))
      CHECK(outcome.output == expected);
    run_threads(ranks, [&](Communicator& c) {
      const std::string mine = body(c);
      if (c.rank() == 0) CHECK(mine == expected);
    });
  }
}

TEST_CASE("sums over Gloo repeat bit for bit, and all ranks have the same bits") {
  need_gloo();
  const auto run = [] {
    return run_gloo_job(4, [](Communicator& c, Membership&) {
      std::string digests;
      for (int repeat = 0; repeat < 5; ++repeat) {  // by a ring
        std::vector<float> values = rough_values(c.rank(), 300'001);
        c.all_reduce(std::span(values));
        digests += digest(values);
      }
      return digests;
    });
  };
  const auto first = run(), second = run();
  for (int rank = 0; rank < 4; ++rank) {
    const std::string& digests = first[std::size_t(rank)].output;
    CHECK(digests.size() == 80);
    CHECK(digests.substr(0, 16) == digests.substr(64));
    CHECK(digests == first[0].output);
    CHECK(digests == second[std::size_t(rank)].output);
  }
}

TEST_CASE("a communicator over some of the members leaves the others alone") {
  need_gloo();
  LocalJob job(3);
  const auto outcomes = run_processes(3, [&](int rank) -> std::string {
    const auto membership = job.join(rank);
    std::string wrong;
    if (rank < 2) {
      const auto workers = make_gloo_communicator(*membership, {.ranks = 2});
      wrong = check_all_reduce<float>(*workers, 1000);
    }
    return wrong;
  });
  for (const ProcessOutcome& outcome : outcomes) {
    CHECK(outcome.code == 0);
    CHECK(outcome.output.empty());
  }
}
