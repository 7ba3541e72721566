#include "executor/comm/parameter_server.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <numeric>
#include <thread>

#include <catch2/catch.hpp>

#include "executor/comm/all_reduce_exchange.h"
#include "executor/comm/job.h"
#include "executor/comm/linear_model.h"
#include "executor/comm/ps_exchange.h"
#include "executor/comm/server_protocol.h"
#include "executor/comm/thread_communicator.h"

namespace {
using namespace reckon;

const std::vector<std::size_t> kLayers{3, 1, 40, 17, 64};

ServerJob job_for(int workers, int servers, OptimizerRule rule) {
  std::vector<ParameterRange> layers;
  std::size_t count = 0;
  for (const std::size_t n : kLayers) {
    layers.push_back({count, n});
    count += n;
  }
  return {.keys = server_keys(layers, std::vector<double>(std::size_t(servers), 1)),
          .workers = workers,
          .optimizer = rule,
          .trained = {{0, count, true}}};
}

using WorkerBody = std::function<std::string(int rank, Membership&, const ServerJob&)>;

/// Workers run `body`, servers serve; a server returns "updates dropped lead".
std::vector<ProcessOutcome> run_ps_job(const ServerJob& job, const WorkerBody& body,
                                       Seconds timeout = Seconds{20}) {
  const int servers = job.keys.servers();
  LocalJob local(job.workers + servers);
  return run_processes(
      job.workers + servers,
      [&](int rank) -> std::string {
        if (rank < job.workers) return body(rank, *local.join(rank), job);
        Socket listener = listen_on({"127.0.0.1", 0});
        local.options.port = listener.local().port;
        local.options.role = Role::parameter_server;
        const auto membership = local.join(rank);
        const ServerReport report = run_parameter_server(*membership, "reckon", rank - job.workers,
                                                         job, std::move(listener), timeout);
        return fmt::format("{} {} {}", report.updates, report.dropped, report.lead_max);
      },
      Seconds{60}, [&](const std::vector<pid_t>&) { local.listener.close(); });
}

std::string train_worker(int rank, Membership& membership, const ServerJob& job, int steps) {
  LinearModel model(kLayers);
  if (rank != 0) model.values.assign(model.count, 77);  // start() replaces them
  const auto exchange = make_ps_exchange(membership, "reckon", job, Seconds{20});
  train(model, *exchange, rank, job.workers, 2, steps, 0.01);
  return model.digest();
}

std::string all_reduce_digest(int workers, OptimizerRule rule, int steps) {
  std::string digest;
  auto communicators = make_thread_communicators(workers, Seconds{20});
  std::vector<std::jthread> threads;
  for (auto& c : communicators)
    threads.emplace_back([&, mine = std::move(c)] {
      LinearModel model(kLayers);
      const auto exchange =
          make_all_reduce_exchange(*mine, {.optimizer = rule, .trained = model.all_trained()});
      train(model, *exchange, mine->rank(), workers, 2, steps, 0.01);
      if (mine->rank() == 0) digest = model.digest();
    });
  threads.clear();
  return digest;
}

Deadline soon() { return Deadline::after(Seconds{5}); }
}  // namespace

TEST_CASE("keys are divided in balanced parts, each key once; weights make them unequal") {
  const std::vector<ParameterRange> layers{{0, 1000}, {1000, 1}, {1001, 99'999}};
  for (const std::vector<double>& weights :
       {std::vector<double>{1}, {1, 1, 1}, {3, 1}, {1, 2, 5, 0.5}}) {
    const ServerKeys keys = server_keys(layers, weights);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    CHECK(keys.count() == 101'000);
    std::vector<std::size_t> owned(weights.size());
    for (std::size_t g = 0; g < keys.groups.size(); ++g) {
      std::size_t next = keys.groups[g].first;
      for (int s = 0; s < keys.servers(); ++s) {
        const ParameterRange part = keys.part(g, s);
        CHECK(part.first == next);
        next += part.count;
        owned[std::size_t(s)] += part.count;
      }
      CHECK(next == keys.groups[g].first + keys.groups[g].count);
    }
    for (std::size_t s = 0; s < weights.size(); ++s)
      CHECK(double(owned[s]) ==
            Approx(101'000 * weights[s] / total).margin(double(keys.groups.size())));
  }
  // 16 groups of 101,000 keys hold 6312.5 each: the first layer is too small for one.
  CHECK(server_keys(layers, {1}).groups.size() == 1);
}

TEST_CASE("a synchronous parameter server gives the bits of an all-reduce") {
  for (const OptimizerRule rule : {OptimizerRule{SgdMomentum{}}, OptimizerRule{AdamW{}}})
    for (const auto& [workers, servers] : {std::pair{1, 1}, {3, 1}, {4, 2}}) {
      const std::string expected = all_reduce_digest(workers, rule, 8);
      const auto outcomes = run_ps_job(job_for(workers, servers, rule),
                                       [](int rank, Membership& m, const ServerJob& job) {
                                         return train_worker(rank, m, job, 8);
                                       });
      for (std::size_t i = 0; i < outcomes.size(); ++i) {
        INFO(workers << " workers, " << servers << " servers, process " << i << ": "
                     << outcomes[i].output);
        CHECK(outcomes[i].code == 0);
        if (int(i) < workers) CHECK(outcomes[i].output == expected);
      }
    }
}

TEST_CASE("phases of a step add up, and apart they give the same bits") {
  ServerJob job = job_for(2, 2, SgdMomentum{});
  job.phases_apart = true;
  const std::string expected = all_reduce_digest(2, SgdMomentum{}, 5);
  const auto outcomes = run_ps_job(job, [](int rank, Membership& m, const ServerJob& j) {
    LinearModel model(kLayers);
    const auto exchange = make_ps_exchange(m, "reckon", j, Seconds{20});
    exchange->start(model.view());
    for (int step = 0; step < 5; ++step) {
      model.forward_backward((step * 2 + rank) * 2, 2, 4);
      model.announce(*exchange);
      const ExchangeTimes t = exchange->finish_step(step, 0.01);
      const Seconds parts = t.push + t.wait + t.apply + t.pull;
      if (parts > t.communication * 1.05 + Seconds{1e-3})
        return std::string("parts exceed the whole");
      if (t.push <= Seconds{}) return std::string("a push without time");
      if (t.sent.v != double(model.count * sizeof(float))) return std::string("bytes");
      if (t.next_step != step + 1) return std::string("next step");
    }
    return model.digest();
  });
  CHECK(outcomes[0].output == expected);
  CHECK(outcomes[1].output == expected);
}

TEST_CASE("an asynchronous job ends with what its last worker pushed, too") {
  ServerJob job = job_for(2, 2, SgdMomentum{.momentum = 0});
  job.synchronous = false;
  constexpr int kSteps[] = {2, 5};
  constexpr double kRate = 0.5;
  const auto outcomes = run_ps_job(job, [&](int rank, Membership& m, const ServerJob& j) {
    std::vector<float> values(j.keys.count(), 0), gradients(j.keys.count(), 1);
    const auto exchange = make_ps_exchange(m, "reckon", j, Seconds{20});
    exchange->start({values, gradients});
    for (int step = 0; step < kSteps[rank]; ++step) {
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      exchange->gradient_ready({0, gradients.size()});
      exchange->finish_step(step, kRate);
    }
    exchange->end_steps();
    if (rank == 1) return std::string();
    while (!exchange->progress()[1].finished)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    exchange->take_final_values();
    return fmt::format("{} {}", values.front(), values.back());
  });
  // Each of 7 gradients of 1 stands for both workers: -7 * 2 * 0.5.
  INFO(outcomes[1].output);
  CHECK(outcomes[0].output == "-7 -7");
}

TEST_CASE(
    "optimizer state goes to a checkpoint and back: the resumed job ends with the same bits") {
  for (const OptimizerRule rule : {OptimizerRule{SgdMomentum{}}, OptimizerRule{AdamW{}}}) {
    const auto run = [&](bool resumed) {
      return run_ps_job(job_for(1, 2, rule), [&](int, Membership& m, const ServerJob& job) {
        LinearModel model(kLayers);
        const auto steps = [&](GradientExchange& exchange, int first, int end) {
          for (int step = first; step < end; ++step) {
            model.forward_backward(step, 1, 1);
            model.announce(exchange);
            exchange.finish_step(step, 0.01);
          }
        };
        const auto exchange = make_ps_exchange(m, "reckon", job, Seconds{20});
        if (!resumed) {
          exchange->start(model.view());
          steps(*exchange, 0, 8);
          return model.digest();
        }
        // Steps 0-4 on this process with the same code as the servers': the checkpoint.
        auto alone = make_thread_communicators(1);
        const auto before = make_all_reduce_exchange(
            *alone[0], {.optimizer = rule, .trained = model.all_trained()});
        before->start(model.view());
        steps(*before, 0, 5);
        exchange->start(model.view());
        const auto saved = before->optimizer_state();
        const auto state = exchange->optimizer_state();
        for (std::size_t b = 0; b < state.size(); ++b)
          std::ranges::copy(saved[b], state[b].begin());
        exchange->restore_optimizer_state();
        steps(*exchange, 5, 8);
        return model.digest();
      });
    };
    const auto whole = run(false), resumed = run(true);
    INFO(resumed[0].output);
    CHECK(resumed[0].code == 0);
    CHECK(whole[0].output == resumed[0].output);
  }
}

TEST_CASE("with a staleness bound no worker leads by more, and the bound is used") {
  constexpr int kBound = 2, kSteps = 30;
  ServerJob job = job_for(3, 2, SgdMomentum{.momentum = 0});
  job.synchronous = false;
  job.staleness = kBound;
  const auto outcomes = run_ps_job(job, [](int rank, Membership& m, const ServerJob& j) {
    LinearModel model(kLayers);
    const auto exchange = make_ps_exchange(m, "reckon", j, Seconds{20});
    exchange->start(model.view());
    for (int step = 0; step < kSteps; ++step) {
      if (rank == 2) usleep(3000);  // the slowest
      model.forward_backward((step * 3 + rank) * 2, 2, 6);
      model.announce(*exchange);
      exchange->finish_step(step, 0.001);
    }
    return std::string();
  });
  for (const ProcessOutcome& outcome : outcomes) CHECK(outcome.code == 0);
  for (const std::size_t server : {3u, 4u}) {
    INFO(outcomes[server].output);
    // Every worker's every step is applied: 3 workers, 30 steps, all groups.
    CHECK_THAT(outcomes[server].output,
               Catch::StartsWith(fmt::format("{} 0 ", 3 * kSteps * int(job.keys.groups.size()))));
    CHECK_THAT(outcomes[server].output, Catch::EndsWith(fmt::format(" {}", kBound)));
  }
}

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

TEST_CASE("with backup workers all stop behind the same step when one of them is asked to") {
  ServerJob job = job_for(3, 2, SgdMomentum{.momentum = 0});
  job.backup_workers = 1;
  const auto outcomes = run_ps_job(job, [](int rank, Membership& m, const ServerJob& j) {
    LinearModel model(kLayers);
    const auto exchange = make_ps_exchange(m, "reckon", j, Seconds{20});
    exchange->start(model.view());
    std::int64_t step = 0;
    while (!exchange->stop_step() || step < *exchange->stop_step()) {
      if (rank == 2) usleep(10'000);
      if (rank == 1 && step >= 5) exchange->request_stop();
      model.forward_backward((step * 3 + rank) * 2, 2, 6);
      model.announce(*exchange);
      step = exchange->finish_step(step, 0.001).next_step;
    }
    return std::to_string(*exchange->stop_step());
  });
  for (const ProcessOutcome& outcome : outcomes) {
    INFO(outcome.output);
    CHECK(outcome.code == 0);
  }
  CHECK(outcomes[0].output == outcomes[1].output);
  CHECK(outcomes[2].output == outcomes[1].output);
}

TEST_CASE("backup workers: a slow worker does not hold the others up, and all come to the end") {
  constexpr int kSteps = 20;
  ServerJob job = job_for(3, 2, SgdMomentum{.momentum = 0});
  job.backup_workers = 1;
  const auto outcomes = run_ps_job(job, [](int rank, Membership& m, const ServerJob& j) {
    LinearModel model(kLayers);
    const auto exchange = make_ps_exchange(m, "reckon", j, Seconds{20});
    exchange->start(model.view());
    int taken = 0;
    for (std::int64_t step = 0; step < kSteps; ++taken) {
      if (rank == 2) usleep(10'000);
      model.forward_backward((step * 3 + rank) * 2, 2, 6);
      model.announce(*exchange);
      step = exchange->finish_step(step, 0.001).next_step;
    }
    return std::to_string(taken);
  });
  for (const ProcessOutcome& outcome : outcomes) {
    INFO(outcome.output);
    CHECK(outcome.code == 0);
  }
  CHECK(std::stoi(outcomes[2].output) < kSteps);  // it jumped over steps of the others
}

TEST_CASE("kill -9 of a worker or a server: all others end and name it") {
  for (const int victim : {1, 2, 3}) {
    const auto outcomes = run_ps_job(
        job_for(3, 1, SgdMomentum{}), [&](int rank, Membership& m, const ServerJob& job) {
          LinearModel model(kLayers);
          const auto exchange = make_ps_exchange(m, "reckon", job, Seconds{20});
          exchange->start(model.view());
          for (int step = 0;; ++step) {
            if (rank == victim && step == 5) kill(getpid(), SIGKILL);
            if (rank == 0 && victim == 3 && step == 5) kill(pid_t(m.members()[3].process), SIGKILL);
            model.announce(*exchange);
            exchange->finish_step(step, 0.001);
          }
          return std::string();
        });
    for (int rank = 0; rank < 4; ++rank) {
      INFO("rank " << rank << ": " << outcomes[std::size_t(rank)].output);
      CHECK(outcomes[std::size_t(rank)].code == (rank == victim ? 128 + SIGKILL : kExitLostPeer));
      if (rank != victim)
        CHECK_THAT(outcomes[std::size_t(rank)].output,
                   Catch::StartsWith(fmt::format("rank {} (", victim)));
    }
  }
}

TEST_CASE("a hung worker is named after the timeout, by server and workers") {
  const auto outcomes = run_ps_job(
      job_for(3, 1, SgdMomentum{}),
      [&](int rank, Membership& m, const ServerJob& job) -> std::string {
        LinearModel model(kLayers);
        const auto exchange = make_ps_exchange(m, "reckon", job, Seconds{5});
        exchange->start(model.view());
        for (int step = 0;; ++step) {
          if (rank == 1 && step == 3) {
            // Alive and silent, until the others are gone.
            m.get("never set", Deadline::after(Seconds{10}));
          }
          model.announce(*exchange);
          exchange->finish_step(step, 0.001);
        }
      },
      Seconds{0.4});
  for (const std::size_t rank : {0u, 2u, 3u}) {
    INFO(outcomes[rank].output);
    CHECK(outcomes[rank].code == kExitLostPeer);
    CHECK_THAT(outcomes[rank].output,
               Catch::Contains("no gradients of step 3 for 0.4 s from rank 1 (worker on"));
  }
}

TEST_CASE("a worker that leaves too early is named at once, not after the timeout") {
  const Deadline limit = Deadline::after(Seconds{10});
  const auto outcomes =
      run_ps_job(job_for(2, 1, SgdMomentum{}), [&](int rank, Membership& m, const ServerJob& job) {
        return train_worker(rank, m, job, rank == 1 ? 3 : 5);
      });
  CHECK_FALSE(limit.passed());
  CHECK(outcomes[1].code == 0);
  CHECK(outcomes[0].code == kExitLostPeer);
  CHECK(outcomes[0].output == "rank 1 left before step 3");
}

TEST_CASE("a worker with another plan is refused with the reason") {
  const auto outcomes =
      run_ps_job(job_for(1, 1, SgdMomentum{}), [&](int, Membership& m, const ServerJob& job) {
        ServerJob other = job;
        other.optimizer = AdamW{};
        try {
          make_ps_exchange(m, "reckon", other, Seconds{5});
        } catch (const CommError& error) {
          const std::string first = error.what();
          make_ps_exchange(m, "reckon", job, Seconds{5});  // and the right one is welcome
          return first;
        }
        return std::string("welcome");
      });
  CHECK_THAT(outcomes[0].output,
             Catch::Contains("differ in the model, the strategy or the optimizer"));
  CHECK(outcomes[1].code == 0);
}

TEST_CASE("no message of a stranger or a broken worker crashes a server") {
  // A worker that says hello properly and then sends `bad`; the server ends with an error that
  // names it. A stranger's bytes beforehand have no effect.
  struct Bad {
    ServerMessage kind;
    std::uint64_t tag;
    std::size_t bytes;
    const char* says;
  };
  const std::uint64_t no_group = encode(PushTag{0, 999});
  const std::size_t right = job_for(1, 1, SgdMomentum{}).keys.groups[0].count * sizeof(float);
  for (const Bad& bad :
       {Bad{ServerMessage::push, no_group, 8, "group 999"},
        Bad{ServerMessage::push, encode(PushTag{0, 0}), 3, "3 bytes for a group of"},
        Bad{ServerMessage::push, encode(PushTag{0, 0}), 1 << 20, "1048576 bytes for a group of"},
        Bad{ServerMessage::initialize, 999, 4, "group 999"},
        Bad{ServerMessage::put_state, 0, 4, "4 bytes for a group of"},
        Bad{ServerMessage::get_state, 1ull << 60, 0, "group 1152921504606846976"},
        Bad{ServerMessage::pull, 1, 3, "message ends inside a field"},
        Bad{ServerMessage::values, 0, 0, "message of kind 108"},
        Bad{ServerMessage(7), 0, 0, "message of kind 7"}}) {
    const auto outcomes =
        run_ps_job(job_for(1, 1, SgdMomentum{}), [&](int, Membership& m, const ServerJob& job) {
          const HostPort server = m.members()[1].address;
          for (int stranger = 0; stranger < 3; ++stranger) {
            const Socket socket = connect_to(server, soon());
            const std::string noise(std::size_t(100 * stranger), 'x');
            send_all(socket, std::as_bytes(std::span(noise)), soon());
          }
          const Socket socket = connect_to(server, soon());
          const auto send = [&](ServerMessage kind, std::uint64_t tag,
                                std::span<const std::byte> payload) {
            send_message(socket, std::uint16_t(kind), 0, tag, payload, soon());
          };
          send(ServerMessage::hello, 0,
               encode(Greeting{.job = "reckon", .worker = 0, .digest = job.digest()}));
          receive_message(socket, 1000, soon());  // welcome
          try {
            send(bad.kind, bad.tag, std::vector<std::byte>(bad.bytes));
            while (true) receive_message(socket, right + 1000, soon());
          } catch (const SocketError&) {
          }
          return std::string();
        });
    INFO(outcomes[1].output);
    CHECK(outcomes[1].code == kExitLostPeer);
    CHECK_THAT(outcomes[1].output, Catch::Contains(bad.says));
  }
}

TEST_CASE("gradients that are damaged on their way are an error, never an update") {
  const auto outcomes = run_ps_job(job_for(1, 1, SgdMomentum{}), [&](int, Membership& m,
                                                                     const ServerJob& job) {
    const Socket socket = connect_to(m.members()[1].address, soon());
    send_message(socket, std::uint16_t(ServerMessage::hello), 0, 0,
                 encode(Greeting{.job = "reckon", .worker = 0, .digest = job.digest()}), soon());
    receive_message(socket, 1000, soon());
    // A good message through a socket pair, then with a flipped bit to the server.
    std::array<int, 2> ends{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0);
    const Socket in{ends[0]}, out{ends[1]};
    const std::vector<float> gradients(job.keys.groups[0].count, 1);
    send_message(in, std::uint16_t(ServerMessage::push), 0, encode(PushTag{0, 0}),
                 std::as_bytes(std::span(gradients)), soon());
    std::vector<std::byte> raw(kMessageHeadSize + gradients.size() * sizeof(float));
    receive_all(out, raw, soon());
    raw.back() ^= std::byte{1};
    send_all(socket, raw, soon());
    try {
      while (true) receive_message(socket, 1000, soon());
    } catch (const SocketError&) {
    }
    return std::string();
  });
  CHECK(outcomes[1].code == kExitLostPeer);
  CHECK_THAT(outcomes[1].output, Catch::Contains("is damaged"));
}
