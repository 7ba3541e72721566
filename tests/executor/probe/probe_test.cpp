#include <unistd.h>
#include <catch2/catch.hpp>

#include <deque>
#include <filesystem>
#include <thread>

#include "executor/comm/thread_communicator.h"
#include "executor/probe/probe.h"
#include "executor/train/checkpoint/durable_file.h"
#include "sim/measurement/measured_processor.h"
#include "sim/model/zoo/zoo.h"

// What the probe says of the machine cannot be known here; what its records must agree in can.
using namespace reckon;

namespace {

constexpr RepeatRule kShort{.budget = Seconds{0.002}, .at_least = 3, .at_most = 20};

void check_times(const ProbeRecord& r) {
  INFO(r.kind << " " << r.item);
  CHECK(r.min.count() > 0);
  CHECK(r.median >= r.min);
  CHECK(r.p99 >= r.median);
  CHECK(r.variation >= 0);
  CHECK(r.repetitions >= 3);
  CHECK(r.warmup >= 1);
}

/// A folder of the test's own.
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("reckon-probe-test-" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

Repeated repeat_as(const RepeatRule& rule, std::deque<double> seconds) {
  return repeat(rule, [&] {
    const Seconds next{seconds.front()};
    if (seconds.size() > 1) seconds.pop_front();  // the last goes on
    return next;
  });
}

}  // namespace

TEST_CASE("the warm-up lasts until repetitions no longer become faster") {
  // 5 < 0.95 * 10 goes on, 4.9 is not below 0.95 * 5: three are left out.
  const Repeated times =
      repeat_as({.budget = Seconds{100}, .at_least = 2, .at_most = 4}, {10, 5, 4.9, 1, 2, 3, 4, 5});
  CHECK(times.warmup == 3);
  CHECK(times.seconds == std::vector<double>{1, 2, 3, 4});
}

TEST_CASE("a slow thing is repeated as often as the rule asks, a quick one until the budget") {
  const Repeated slow = repeat_as({.budget = Seconds{1}, .at_least = 3, .at_most = 100}, {7});
  CHECK(slow.warmup == 1);  // it has taken all of the budget
  CHECK(slow.seconds.size() == 3);
  const Repeated quick = repeat_as({.budget = Seconds{1}, .at_least = 3, .at_most = 100}, {0.125});
  CHECK(quick.warmup == 2);
  CHECK(quick.seconds.size() == 8);  // 8 * 0.125 = 1
}

TEST_CASE("median, 99th percentile and variation are those of the repetitions") {
  ProbeRecord r;
  summarize({{4, 1, 3, 2}, 2}, r);
  CHECK(r.median.count() == 2.5);  // of 1 2 3 4
  CHECK(r.min.count() == 1);
  CHECK(r.p99.count() == 4);  // nearest rank: the ceil(3.96)-th
  // Mean 2.5; squares 2.25 + 0.25 + 0.25 + 2.25 = 5, over 3; root 1.29099; over 2.5.
  CHECK(r.variation == Approx(0.516398).epsilon(1e-5));
  CHECK(r.repetitions == 4);
  CHECK(r.warmup == 2);
}

TEST_CASE("each microbenchmark of one machine says what it did and how long it took") {
  Workers workers(2);
  const ProbeBench bench{workers, kShort};
  const ProbeRecord product = probe_reference_product(bench);
  check_times(product);
  CHECK(product.flops.v == 2.0 * 256 * 256 * 256);
  const auto memory = probe_memory(bench, Bytes{1 << 20});
  REQUIRE(memory.size() == 1);
  check_times(memory[0]);
  CHECK(memory[0].bytes.v == 3 << 20);
  const auto copies = probe_copies(bench, Bytes{1 << 20});
  REQUIRE(copies.size() == 3);
  for (const ProbeRecord& r : copies) check_times(r);
  const auto dispatch = probe_dispatch(bench);
  REQUIRE(dispatch.size() == 1);
  check_times(dispatch[0]);
  Workers alone(1);
  CHECK(probe_dispatch({alone, kShort}).empty());  // nobody to wake
}

TEST_CASE("layers are measured at the model's own shapes, with the FLOPs that the model counts") {
  Workers workers(2);
  const ModelGraph model = zoo_model("resnet18").value();
  const auto records = probe_model({workers, kShort}, model, 2, 2);
  int convolutions = 0, products = 0;
  for (const ProbeRecord& r : records) {
    check_times(r);
    convolutions += r.kind == "convolution" ? 1 : 0;
    products += r.kind == "matrix_product" ? 1 : 0;
    CHECK(r.samples == 2);
    // A multiply-add is two; a linear layer's bias is an addition besides.
    CHECK(r.flops.v == Approx(2.0 * double(r.m) * double(r.n) * double(r.k)).epsilon(0.002));
  }
  CHECK(convolutions == 2);
  CHECK(products == 1);  // it has one linear layer
}

TEST_CASE("attention is measured at a transformer's shape, once for all its layers") {
  Workers workers(2);
  const ModelGraph model = zoo_model("gpt2_small", 64).value();
  const auto records = probe_model({workers, kShort}, model, 1, 3);
  int attentions = 0;
  for (const ProbeRecord& r : records) {
    check_times(r);
    attentions += r.kind == "attention" ? 1 : 0;
  }
  CHECK(attentions == 1);      // twelve layers, all alike
  CHECK(records.size() == 4);  // and three linear layers of different shapes
}

TEST_CASE("all ranks get the same records of collectives, with bus bandwidths of nccl-tests") {
  constexpr int kRanks = 3;
  auto communicators = make_thread_communicators(kRanks);
  std::vector<std::vector<ProbeRecord>> records(kRanks);
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] {
        Communicator& mine = *communicators[std::size_t(rank)];
        records[std::size_t(rank)] = probe_collectives({mine, mine, kShort, ""}, Bytes{16384});
      });
  }
  REQUIRE(records[0].size() == 12);  // five collectives and messages, of 1 KiB and 16 KiB
  for (std::size_t k = 0; k < records[0].size(); ++k) {
    const ProbeRecord& r = records[0][k];
    check_times(r);
    CHECK(r.processes == kRanks);
    for (const auto& others : records) {
      CHECK(others[k].kind == r.kind);
      CHECK(others[k].median == r.median);
      CHECK(others[k].repetitions == r.repetitions);
    }
    if (r.kind == "all_reduce")  // 2 (3-1) / 3
      CHECK(r.bus_bandwidth.v == Approx(r.bytes.v / r.median.count() * 4 / 3));
    if (r.kind == "point_to_point") CHECK(r.bus_bandwidth.v == 0);
  }
}

TEST_CASE("checkpoints and data are written where they may be, and nothing is left behind") {
  const Folder folder;
  Workers workers(2);
  const ProbeBench bench{workers, kShort};
  const auto saved = probe_checkpoints(bench, folder.path / "made", Bytes{1 << 20});
  REQUIRE(saved.size() == 2);
  CHECK(saved[0].kind == "checkpoint_save");
  CHECK(saved[1].kind == "checkpoint_restore");
  for (const ProbeRecord& r : saved) check_times(r);
  const auto loaded = probe_data_loading(bench, folder.path);
  REQUIRE(loaded.size() == 2);
  for (const ProbeRecord& r : loaded) check_times(r);
  CHECK(std::filesystem::is_empty(folder.path / "made"));
  std::filesystem::remove(folder.path / "made");
  CHECK(std::filesystem::is_empty(folder.path));
  write_durably(folder.path / "file", "no folder");
  CHECK_THROWS_AS(probe_checkpoints(bench, folder.path / "file", Bytes{1024}), FileError);
}

TEST_CASE("the probe of processors says all that a step on them is made of") {
  constexpr RepeatRule kQuick{.budget = Seconds{0.0005}, .at_least = 3, .at_most = 5};
  constexpr Bytes kSmall{1 << 20};
  Measurements probed;
  probed.machines.push_back({.processor = "test", .threads = 2});
  probed.probes = probe_processor(2, kQuick, kSmall);
  for (const ProbeRecord& r : probed.probes) check_times(r);
  const auto rates = processor_rates(probed);
  REQUIRE(rates);
  CHECK(rates->cores == 2);
  CHECK(rates->together.extents == rates->apart.extents);
  CHECK(rates->streams.passes.size() == rates->streams_apart.passes.size());
  // A grid with a hole is none.
  std::erase_if(probed.probes, [](const ProbeRecord& r) { return r.m == 8 && r.n == 32; });
  CHECK_FALSE(processor_rates(probed));
}

TEST_CASE("links are told by the smallest and the largest message that stays in a cache") {
  Measurements probed;
  probed.machines.push_back({.processor = "test", .threads = 1});
  probed.probes =
      probe_processor(1, {.budget = Seconds{0.0001}, .at_least = 3, .at_most = 3}, Bytes{1 << 20});
  const auto message = [](double bytes, double seconds) {
    ProbeRecord r;
    r.kind = "point_to_point";
    r.processes = 2;
    r.bytes = Bytes{bytes};
    r.median = Seconds{seconds};
    return r;
  };
  for (const ProbeRecord& r : {message(1024, 1e-4), message(1e6 + 1024, 6e-4), message(1e9, 1)})
    probed.probes.push_back(r);
  const auto rates = processor_rates(probed);
  REQUIRE(rates);
  CHECK(rates->message.latency.count() == 1e-4);
  CHECK(rates->message.bandwidth.v == Approx(2e9));
  CHECK(rates->reduce.bandwidth.v == 0);
}

TEST_CASE("passes of a network are measured in one process and in two at once") {
  const auto model = zoo_model("mlp_mnist");
  REQUIRE(model);
  for (const int processes : {1, 2}) {
    const PassesWanted wanted{.model = &*model, .batch = 8, .processes = processes};
    const ProbeRecord r = probe_passes(wanted, kShort);
    check_times(r);
    CHECK(r.kind == "passes");
    CHECK(r.item == wanted.item());
    CHECK(r.processes == processes);
    CHECK(r.samples == 8);
  }
}
