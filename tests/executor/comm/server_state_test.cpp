#include "executor/comm/parameter_server/server/state.h"

#include <algorithm>
#include <memory>

#include <xxhash.h>
#include <catch2/catch.hpp>

#include "executor/comm/server_job.h"

// The rules of one parameter server, without processes and sockets.
using namespace reckon;

TEST_CASE("the staleness bound holds in every order of events") {
  // Three workers of one server, in an order that a generator chooses; no sockets.
  ServerJob job = job_for(3, 1, SgdMomentum{});
  job.synchronous = false;
  for (const int bound : {1, 2, 5})
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      job.staleness = bound;
      ServerState server(job, 0);
      std::vector<float> values;
      for (std::size_t g = 0; g < server.groups(); ++g)
        server.initialize(g, std::vector<float>(server.group_size(g)));
      std::vector<std::int64_t> steps(3, 0), finished(3, -1);  // that each is in, has finished
      for (std::uint64_t event = 0; event < 200; ++event) {
        const std::uint64_t key[] = {seed, event};
        const int w = int(XXH3_64bits(key, sizeof key) % 3);
        std::int64_t& step = steps[std::size_t(w)];
        // It has pushed all of `step`; may it begin the next?
        for (std::size_t g = 0; g < server.groups(); ++g) server.pushed(w, step, g);
        const auto behind = server.behind(step);
        if (std::ranges::count(behind, w) > 0) REQUIRE(server.finished(w, step, 0.1));
        std::vector<bool> sent(server.groups());
        finished[std::size_t(w)] = step;
        if (server.wait_values(w, step + 1, sent, values, Deadline::after(Seconds{}))) ++step;
        // Who begins step k does so when all have finished step k - bound - 1.
        CHECK(std::ranges::max(steps) - std::ranges::min(finished) - 1 <= bound);
      }
      CHECK(std::ranges::min(steps) > 5);
    }
}

TEST_CASE("with backup workers a step takes the first pushes, scales them, and drops late ones") {
  ServerJob job = job_for(3, 1, SgdMomentum{.momentum = 0});
  job.backup_workers = 1;
  ServerState server(job, 0);
  const std::size_t groups = server.groups();
  for (std::size_t g = 0; g < groups; ++g)
    server.initialize(g, std::vector<float>(server.group_size(g)));
  const auto push_all = [&](int worker, std::int64_t step, float gradient) {
    for (std::size_t g = 0; g < groups; ++g) {
      std::ranges::fill(server.push_buffer(worker, g), gradient);
      REQUIRE(server.pushed(worker, step, g));
    }
    REQUIRE(server.finished(worker, step, 1));
  };
  const auto value = [&](std::int64_t step) {
    std::vector<bool> sent(groups);
    std::vector<float> values;
    const auto got = server.wait_values(0, step, sent, values, Deadline::after(Seconds{}));
    return got ? std::optional(values.front()) : std::nullopt;
  };
  push_all(2, 0, 4);
  CHECK_FALSE(value(1));
  push_all(0, 0, 2);
  CHECK(value(1) == -9.0F);  // (2 + 4) * 3/2
  push_all(1, 0, 1000);      // late
  CHECK(value(1) == -9.0F);
  CHECK(server.report().dropped == std::int64_t(groups));
  CHECK(server.next_step(0) == 1);
  push_all(2, 1, 2);
  push_all(1, 1, 2);
  CHECK(value(2) == -15.0F);         // -9 - (2 + 2) * 3/2
  CHECK(server.next_step(0) == 2);   // a worker that is still in step 0 goes on with step 2
  for (const int worker : {0, 1}) {  // one group is a step ahead: the others still wait for step 2
    std::ranges::fill(server.push_buffer(worker, 0), 1.0F);
    REQUIRE(server.pushed(worker, 2, 0));
  }
  REQUIRE(server.finished(0, 2, 1));  // the rate is there
  CHECK(server.next_step(0) == 2);
}

TEST_CASE("with backup workers a stop is at a step that no worker has been told to take") {
  ServerJob job = job_for(3, 1, SgdMomentum{.momentum = 0});
  job.backup_workers = 1;
  ServerState server(job, 0);
  CHECK(server.stop_step() == kNoStop);
  CHECK(server.next_step(4) == 5);
  server.request_stop();
  CHECK(server.stop_step() == 6);  // a worker is in step 5
  CHECK(server.next_step(5) == 6);
  server.request_stop();
  CHECK(server.stop_step() == 6);  // chosen once
}

TEST_CASE("a resumed asynchronous job's optimizer goes on at the update it had come to") {
  // AdamW's bias correction, 1 - beta^t, counts updates: each step of each worker is one.
  ServerJob job = job_for(2, 1, AdamW{});
  job.synchronous = false;
  using Values = std::vector<std::vector<float>>;  // by group
  const auto begun = [&](std::int64_t first, std::int64_t second, const Values& values) {
    auto server = std::make_unique<ServerState>(job, 0);
    for (std::size_t g = 0; g < server->groups(); ++g) server->initialize(g, values[g]);
    server->begin(0, first);
    server->begin(1, second);
    return server;
  };
  const auto push_all = [](ServerState& server, int worker, std::int64_t step) {
    for (std::size_t g = 0; g < server.groups(); ++g) {
      std::ranges::fill(server.push_buffer(worker, g), 0.1F * float(step + worker + 1));
      REQUIRE(server.pushed(worker, step, g));
    }
    REQUIRE(server.finished(worker, step, 0.01));
  };
  const auto values_of = [](ServerState& server) {
    std::vector<bool> sent(server.groups());
    Values all(server.groups());
    for (std::size_t g = 0; g < server.groups(); ++g)
      REQUIRE(server.wait_values(0, 0, sent, all[g], Deadline::after(Seconds{})));
    return all;
  };
  const ServerState empty(job, 0);
  Values ones;
  for (std::size_t g = 0; g < empty.groups(); ++g) ones.emplace_back(empty.group_size(g), 1.0F);
  const auto whole = begun(0, 0, ones);
  for (std::int64_t step = 0; step < 5; ++step) push_all(*whole, 0, step);
  for (std::int64_t step = 0; step < 3; ++step) push_all(*whole, 1, step);
  // Another server takes up what this one has, worker 0 after 5 steps, worker 1 after 3.
  const auto resumed = begun(5, 3, values_of(*whole));
  for (std::size_t g = 0; g < whole->groups(); ++g)
    REQUIRE(resumed->set_optimizer_state(g, whole->optimizer_state(g)));
  for (ServerState* server : {whole.get(), resumed.get()}) {
    push_all(*server, 1, 3);
    push_all(*server, 0, 5);
  }
  CHECK(values_of(*whole) == values_of(*resumed));
}
