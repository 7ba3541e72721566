#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "executor/train/checkpoint/checkpoint.h"
#include "executor/train/checkpoint/tensor_reader.h"
#include "executor/train/checkpoint_support.h"
#include "executor/train/resumed_layouts.h"

using namespace reckon;
using namespace reckon::test;

namespace {

PlannedWorkload reshard_gpt() { return small_job(small_gpt2(0.1), Optimizer::adamw, 1e-3, 16); }

/// Every tensor of a set, whole.
std::map<std::string, std::vector<std::byte>> tensors_of(const std::filesystem::path& directory,
                                                         std::int64_t step) {
  const auto set = set_directory(directory, step);
  const TensorReader reader(shard_files(set, read_manifest(set).identity.ranks));
  std::map<std::string, std::vector<std::byte>> tensors;
  for (const auto& [name, tensor] : reader.tensors()) {
    tensors[name].resize(bytes_of(tensor));
    reader.read(tensor, tensors[name]);
  }
  return tensors;
}

}  // namespace

TEST_CASE("a run of elements of a tensor is a few boxes, in their order") {
  // All runs of a (3, 4, 5): the boxes' elements, in row-major order, are the run.
  const Shape shape{3, 4, 5};
  for (std::int64_t first = 0; first < 60; ++first)
    for (std::int64_t count = 1; first + count <= 60; ++count) {
      const auto boxes = boxes_of_run(shape, first, count);
      CHECK(boxes.size() <= 5);
      std::int64_t next = first;
      for (const Box& b : boxes)
        for (std::int64_t i = 0; i < b.length[0]; ++i)
          for (std::int64_t j = 0; j < b.length[1]; ++j)
            for (std::int64_t k = 0; k < b.length[2]; ++k)
              if (((b.first[0] + i) * 4 + b.first[1] + j) * 5 + b.first[2] + k != next++)
                FAIL(to_text(b));
      CHECK(next == first + count);
    }
  CHECK(boxes_of_run({7}, 2, 3) == std::vector<Box>{{{2}, {3}}});
}

TEST_CASE("a checkpoint of any layout starts under any other, bit for bit") {
  const auto job = reshard_gpt();
  const std::vector<PlannedWorkload> layouts{
      under(job, {.data = 4, .zero_stage = 3}, 4),
      under(job, {.data = 8, .zero_stage = 1}, 2),
      under(job, {.data = 2}, 8),
      under(job, {.data = 2, .zero_stage = 2}, 8),
      under(job, {.pipeline = 2}, 4),
      under(job, {.data = 2, .pipeline = 2, .zero_stage = 1}, 4),
      under(job, {.data = 2, .tensor = 2, .zero_stage = 1, .sequence_parallel = true}, 4),
      under(job, {.data = 2, .tensor = 2, .zero_stage = 3}, 8),
      under(job, {.tensor = 4, .pipeline = 2}, 4),
      under(job, {.tensor = 2, .context = 2}, 16),
      under(job, {.data = 1}, 16)};
  const Scratch scratch;
  // One after the other, each from what the one before has left.
  std::int64_t step = 0;
  for (const PlannedWorkload& layout : layouts) {
    const auto runs = go_on(layout, scratch.path(), step, step + 1);
    ++step;
    // Read again by all layouts, without a step: the same state, and the same parameters.
    const auto written = tensors_of(scratch.path(), step);
    CHECK(std::ranges::count_if(written, [](const auto& tensor) {
            return tensor.first.ends_with(".exp_avg_sq");
          }) == std::int64_t(parameter_layout(job.model).slots.size()));
    for (const PlannedWorkload& other : layouts) {
      const Scratch copy;
      std::filesystem::copy(scratch.path(), copy.path(), std::filesystem::copy_options::recursive);
      // A save of a step that is there keeps the set, so that set goes to another name.
      const auto again = go_on(other, copy.path(), step, step);
      CHECK((whole_of(again) == whole_of(runs)));
    }
  }
}

TEST_CASE("optimizer state that another layout reads and writes again is the same bits") {
  const auto job = reshard_gpt();
  const Scratch from, to;
  go_on(under(job, {.data = 4, .zero_stage = 3}, 4), from.path(), 0, 3);
  // The reader saves what it has read under another directory.
  const auto other = under(job, {.data = 2, .zero_stage = 1}, 8);
  auto communicators = make_thread_communicators(2, Seconds{60});
  std::vector<std::jthread> threads;
  for (auto& c : communicators)
    threads.emplace_back([&, mine = std::move(c)] {
      Workers workers(1);
      const auto data = open_data({}, {}, other.model, 9, 40);
      const RuntimeOptions passes{.batch = 8, .seed = 4};
      LayoutTraining training = make_layout_training(other, *mine, passes, workers);
      Trainer trainer(other.model,
                      {.share = training.share,
                       .micro_batch = 8,
                       .steps = 8,
                       .seed = 4,
                       .optimizer = other.optimizer_settings,
                       .optimizer_buffers = 2},
                      *data, *training.exchange, workers, std::move(training.runtime));
      const auto targets = trainer.restore(3);
      CheckpointStore(options_of(from.path(), other, mine->rank())).load(3, targets);
      trainer.start();
      CheckpointStore store(options_of(to.path(), other, mine->rank()));
      store.save(3, {{"step", 3}}, trainer.state());
      store.finish();
    });
  threads.clear();
  CHECK(tensors_of(to.path(), 3) == tensors_of(from.path(), 3));
  // A quarter each: no rank wrote whole state.
  const auto bytes = [](const std::filesystem::path& d, int rank) {
    return double(std::filesystem::file_size(shard_file(set_directory(d, 3), rank)));
  };
  double sum = 0;
  for (int rank = 0; rank < 4; ++rank) sum += bytes(from.path(), rank);
  for (int rank = 0; rank < 4; ++rank) CHECK(bytes(from.path(), rank) < 0.4 * sum);
}

TEST_CASE("a run that stopped and went on under its layout is the run that did not stop") {
  const auto job = reshard_gpt();
  for (const Layout& l :
       {Layout{.data = 4, .zero_stage = 1}, Layout{.data = 4, .zero_stage = 2},
        Layout{.data = 4, .zero_stage = 3}, Layout{.data = 2, .pipeline = 2, .zero_stage = 1},
        Layout{.tensor = 2, .pipeline = 2}, Layout{.tensor = 2, .context = 2},
        Layout{.data = 2, .tensor = 2, .zero_stage = 2}}) {
    const auto layout = under(job, l, 2);
    const Scratch once, twice, alone;
    const auto straight = go_on(layout, once.path(), 0, 6);
    go_on(layout, twice.path(), 0, 3);
    // From all parts of the set, and each rank from its own alone, which is what its node has.
    std::filesystem::copy(twice.path(), alone.path(), std::filesystem::copy_options::recursive);
    for (const Scratch* from : {&twice, &alone}) {
      const auto resumed = go_on(layout, from->path(), 3, 6, {}, from == &alone);
      for (std::size_t rank = 0; rank < 4; ++rank)
        CHECK(resumed[rank].parameters == straight[rank].parameters);
      CHECK(tensors_of(once.path(), 6) == tensors_of(from->path(), 6));
    }
  }
}
