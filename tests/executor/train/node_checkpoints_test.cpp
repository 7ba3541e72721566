#include "executor/train/checkpoint/node_checkpoints.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <set>
#include <thread>

#include "checkpoint_support.h"
#include "executor/comm/thread_communicator.h"
#include "executor/train/checkpoint/node_directory.h"
#include "sim/base/random.h"
#include "support/plans.h"

namespace reckon {
namespace {

using namespace reckon::test;
namespace fs = std::filesystem;

constexpr Purpose kKillOfNodes{"test_kill_of_nodes"};

/// A job of `ranks` threads, with a directory a node.
struct NodesJob {
  fs::path root;
  int ranks = 2, ranks_per_node = 1, replicas = 1;
  std::int64_t attempt = 0;
  std::string mark = "run 1";
  Recipe recipe{};
  bool accept_changes = false;

  fs::path node(int n) const { return root / std::to_string(n); }
  fs::path part(int n, std::int64_t step, int rank) const {
    return shard_file(set_directory(node(n), step), rank);
  }
  /// In a thread a rank; each has its checkpoints.
  void run(const std::function<void(NodeCheckpoints&, Communicator&)>& body) const {
    auto communicators = make_thread_communicators(ranks, Seconds{30});
    std::vector<std::thread> threads;
    for (auto& communicator : communicators)
      threads.emplace_back([&, own = std::move(communicator)] {
        NodeCheckpoints nodes({.directory = node(own->rank() / ranks_per_node),
                               .identity = {"job", "mlp 1500 sgd", ranks, recipe},
                               .mark = mark,
                               .attempt = attempt,
                               .ranks_per_node = ranks_per_node,
                               .replicas = replicas,
                               .accept_changes = accept_changes},
                              *own);
        body(nodes, *own);
      });
    for (std::thread& thread : threads) thread.join();
  }
  /// All ranks save those steps; the last is announced where `completes`.
  void save(std::initializer_list<std::int64_t> steps, bool completes = true) const {
    run([&](NodeCheckpoints& nodes, Communicator& c) {
      for (const std::int64_t step : steps) {
        nodes.save(step, {{"step", step}}, ToyState::at(step, c.rank()).tensors());
        nodes.finish();
        c.barrier();
        if (completes || step != *(steps.end() - 1)) nodes.complete();
      }
    });
  }
  /// The step that all ranks go on from, each with its own state; -1: none.
  std::int64_t recovered(std::int64_t least = 0) const {
    std::vector<std::int64_t> found(std::size_t(ranks), -1);
    std::vector<char> same(std::size_t(ranks), 1);  // no bits: each is another thread's
    run([&](NodeCheckpoints& nodes, Communicator& c) {
      const auto rank = std::size_t(c.rank());
      const auto step = nodes.recover(least);
      if (step) {
        found[rank] = *step;
        ToyState state;
        const Counters counters = nodes.load(*step, state.targets());
        same[rank] = state == ToyState::at(*step, c.rank()) && counters.at("step") == *step;
      }
      nodes.go_on_from(step);
    });
    CHECK(std::ranges::count(found, found[0]) == ranks);
    CHECK(std::ranges::count(same, 1) == ranks);
    return found[0];
  }
};

TEST_CASE("copies of a part are on other nodes, one a node") {
  for (const int ranks : {2, 3, 5, 8, 9})
    for (const int each : {1, 2, 4})
      for (const int replicas : {1, 2, 3})
        for (int rank = 0; rank < ranks; ++rank) {
          const int nodes = (ranks + each - 1) / each;
          std::set<int> where{rank / each};
          for (const int keeper : keepers_of_copies(rank, ranks, each, replicas)) {
            REQUIRE(keeper < ranks);
            where.insert(keeper / each);
          }
          CHECK(int(where.size()) == std::min(replicas, nodes));
        }
}

TEST_CASE("processes that start anew go on from the newest checkpoint on their nodes") {
  const Scratch scratch(memory_directory());
  const NodesJob job{.root = scratch.path(), .ranks = 3};
  CHECK(job.recovered() == -1);
  job.save({10, 20});
  CHECK_FALSE(fs::exists(job.part(0, 10, 0)));  // one is enough when it is known to be complete
  CHECK(job.recovered() == 20);
  CHECK(job.recovered() == 20);  // reading takes nothing away
  CHECK(NodesJob{.root = scratch.path(), .ranks = 3}.recovered(21) == -1);  // the storage has more
  CHECK(list_sets(job.node(0)).empty());  // and then the nodes' are of no use
}

TEST_CASE("nodes' checkpoints of other settings stay until these are accepted") {
  const Scratch scratch(memory_directory());
  NodesJob job{.root = scratch.path(), .recipe = {{"data_files", "12 samples"}}};
  job.save({10});
  job.recipe[0].value = "9 samples";
  std::atomic<int> refused{0};
  job.run([&](NodeCheckpoints& nodes, Communicator&) {
    try {
      nodes.recover(0);
    } catch (const ChangedRecipe& e) {
      refused += contains(e.what(), "  data_files: recorded 12 samples, now 9 samples\n") ? 1 : 0;
    }
  });
  CHECK(refused == job.ranks);
  CHECK(fs::exists(job.part(0, 10, 0)));
  job.accept_changes = true;
  CHECK(job.recovered() == -1);  // the storage's goes on
  CHECK(list_sets(job.node(0)).empty());
}

TEST_CASE("nodes' checkpoints of other settings are of no matter where the storage is further") {
  const Scratch scratch(memory_directory());
  NodesJob job{.root = scratch.path(), .recipe = {{"data_files", "12 samples"}}};
  job.save({10});
  job.recipe[0].value = "9 samples";  // as accepted while that node was away
  CHECK(job.recovered(11) == -1);
  CHECK(list_sets(job.node(0)).empty());
}

TEST_CASE("a checkpoint of which a part is missing is none, and the one before it is there") {
  const Scratch scratch(memory_directory());
  const NodesJob job{.root = scratch.path()};
  job.save({10, 20}, false);
  fs::remove(job.part(1, 20, 1));  // as where rank 1 was killed before it was written
  CHECK(job.recovered() == 10);
  CHECK(list_sets(job.node(0)).size() == 1);
}

TEST_CASE("parts of two starts of the job are no checkpoint together") {
  const Scratch scratch(memory_directory());
  const NodesJob first{.root = scratch.path()};
  first.save({10});
  const fs::path kept = scratch.path() / "kept";
  fs::copy_file(first.part(1, 10, 1), kept);
  const NodesJob second{.root = scratch.path(), .attempt = 1};
  second.save({10});
  fs::copy_file(kept, second.part(1, 10, 1), fs::copy_options::overwrite_existing);
  CHECK(second.recovered() == -1);
}

TEST_CASE("with a lost node the storage is left, with a copy on another the work is") {
  const Scratch scratch(memory_directory());
  const int replicas = GENERATE(1, 2);
  const int lost = GENERATE(0, 1, 2);
  // Nodes of two ranks; the last has one.
  const NodesJob job{.root = scratch.path(), .ranks = 5, .ranks_per_node = 2, .replicas = replicas};
  job.save({10, 20});
  fs::remove_all(job.node(lost));
  CHECK(job.recovered() == (replicas == 1 ? -1 : 20));
  if (replicas == 1) return;
  // The new node has its ranks' parts again. Two nodes at once have both copies of one.
  CHECK(job.recovered() == 20);
  fs::remove_all(job.node(0));
  fs::remove_all(job.node(1));
  CHECK(job.recovered() == -1);
}

TEST_CASE("a damaged part counts as missing") {
  const Scratch scratch(memory_directory());
  const int replicas = GENERATE(1, 2);
  const NodesJob job{.root = scratch.path(), .ranks = 3, .replicas = replicas};
  job.save({10});
  const fs::path part = job.part(1, 10, 1);
  flip_bit(part, fs::file_size(part) - 100);
  CHECK(job.recovered() == (replicas == 1 ? -1 : 10));
}

TEST_CASE("checkpoints of another run or of a state that is cut otherwise are not read") {
  const Scratch scratch(memory_directory());
  NodesJob job{.root = scratch.path()};
  job.save({10});
  job.mark = "run 2";
  CHECK(job.recovered() == -1);
}

TEST_CASE("a job that is done leaves nothing on its nodes") {
  const Scratch scratch(memory_directory());
  const NodesJob job{.root = scratch.path(), .replicas = 2};
  job.save({10});
  job.run([](NodeCheckpoints& nodes, Communicator&) { nodes.clear(); });
  CHECK(fs::is_empty(scratch.path()));
}

/// Saves for ever as a training does: a checkpoint is complete when all ranks say in a step that
/// they have written it. Tells the pipe each that is.
[[noreturn]] void save_on_nodes_for_ever(const NodesJob& job, std::int64_t first, int tell) {
  job.run([&](NodeCheckpoints& nodes, Communicator& c) {
    std::int64_t saving = 0;
    for (std::int64_t step = first;; ++step) {
      std::int64_t written = nodes.all_written() ? 1 : 0;
      c.all_reduce(std::span(&written, 1));
      if (written == c.size()) {
        nodes.complete();
        if (c.rank() == 0 && ::write(tell, &saving, sizeof saving) != sizeof saving) ::_exit(1);
      }
      if (nodes.is_saving()) continue;
      saving = step;
      nodes.save(step, {{"step", step}}, ToyState::at(step, c.rank()).tensors());
    }
  });
  ::_exit(0);
}

TEST_CASE("kill -9 at 150 random moments never loses an announced checkpoint of the nodes") {
  const Scratch scratch(memory_directory());
  const NodesJob job{.root = scratch.path(), .ranks = 3, .replicas = 2};
  RandomStream random(1, 0, kKillOfNodes, 0);
  std::int64_t announced = 0;
  int told = 0, lost = 0, between = 0;  // kills that hit a save, so that this tests something
  for (int kill = 0; kill < 150; ++kill) {
    INFO("kill " << kill << ", announced " << announced);
    const std::int64_t before = announced;
    int pipe[2];
    REQUIRE(::pipe(pipe) == 0);
    const pid_t writer = ::fork();
    if (writer == 0) save_on_nodes_for_ever(job, announced + 1, pipe[1]);
    ::close(pipe[1]);
    std::int64_t step = 0;
    const auto read_one = [&] { return ::read(pipe[0], &step, sizeof step) == sizeof step; };
    const int waits = int(random.uniform() * 3);
    for (int save = 0; save < waits && read_one(); ++save, ++told) announced = step;
    const timespec wait{0, long(random.uniform() * 2e6)};
    ::nanosleep(&wait, nullptr);
    ::kill(writer, SIGKILL);
    ::waitpid(writer, nullptr, 0);
    while (read_one()) announced = step;
    ::close(pipe[0]);
    for (const CheckpointSet& set : list_sets(job.node(0))) between += set.step > announced ? 1 : 0;
    // The node of one rank goes as well now and then: its part is on another. A checkpoint from
    // before the start has its copies again from the next one on.
    if (announced > before && kill % 5 == 0) {
      fs::remove_all(job.node(kill % 3));
      ++lost;
    }
    const std::int64_t found = std::max<std::int64_t>(0, job.recovered());
    REQUIRE(found >= announced);
    announced = found;
  }
  CHECK(told > 75);
  CHECK(lost > 5);
  CHECK(between > 20);
}

TEST_CASE("the nodes of a run on this machine are directories of the run, or of its memory") {
  const Scratch scratch;
  Plan plan = make_round_plan(small_mlp(), StrategyKind::multi_worker_mirrored, 2);
  plan.only_job().checkpoint.local =
      PlannedLocalCheckpoint{.to = LocalTier::local_disk, .every = Seconds{60}};
  const fs::path disk = node_directory(scratch.path(), LocalTier::local_disk, 1);
  CHECK(disk == scratch.path() / "nodes" / "node-1");
  const fs::path memory = node_directory(scratch.path(), LocalTier::peer_memory, 1);
  CHECK(memory.string().starts_with("/dev/shm/reckon-"));
  CHECK(memory != node_directory(scratch.path() / "other", LocalTier::peer_memory, 1));

  CHECK_FALSE(newest_on_nodes(plan, scratch.path(), 2));
  for (const int node : {0, 1}) {
    const fs::path set =
        set_directory(scratch.path() / "nodes" / ("node-" + std::to_string(node)), 30);
    fs::create_directories(set);
    CHECK_FALSE(newest_on_nodes(plan, scratch.path(), 2));
    std::ofstream(shard_file(set, node));
  }
  CHECK(newest_on_nodes(plan, scratch.path(), 2) == 30);
  CHECK(ranks_of_node(plan) == 1);
  CHECK(ranks_of_node(make_round_plan(small_mlp(), StrategyKind::multi_worker_mirrored, 2, 4)) ==
        4);
}

}  // namespace
}  // namespace reckon
