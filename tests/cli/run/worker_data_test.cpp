#include <catch2/catch.hpp>

#include "cli/run/hand_started.h"
#include "sim/measurement/measurements.h"

// Data as people have it, read by real workers.
using namespace reckon::test;

namespace {

/// A classifier of 24 x 24 pixels; `data` is workload.data.
std::string photo_plan(const std::string& data, const std::string& strategy = "{kind: single}",
                       int nodes = 1) {
  return small_plan(
      "  model: {layers: [{input: 3x24x24}, {conv2d: 4, kernel: 3, stride: 2}, {activation: relu}, "
      "{flatten: true}, {linear: 3}, {softmax_cross_entropy: true}]}\n"
      "  dataset: {samples: 6, bytes_per_sample: 1kB}\n  batch_per_accelerator: 4\n  data: " +
          data + "\n",
      strategy, nodes);
}

/// Six images of three classes.
void write_photos(const Workspace& w) {
  namespace fs = std::filesystem;
  const fs::path samples = RECKON_SOURCE_DIR "/tests/data/samples";
  for (const char* name : {"ant", "bee", "cat"}) {
    fs::create_directories(w.path(std::string("photos/") + name));
    for (const char* image : {"photo.jpg", "palette.png"})
      fs::copy(samples / image, w.path(std::string("photos/") + name + "/" + image));
  }
}

reckon::Measurements measured(const Workspace& w, const std::string& run) {
  const std::string file = w.path(run + "/measurements.jsonl");
  const auto read = reckon::parse_measurements(file, read_all(file));
  REQUIRE(read);
  return *read;
}

}  // namespace

TEST_CASE("a worker trains on a folder of images, and records what reading and decoding took") {
  const Workspace w;
  write_photos(w);
  w.write("plan.yaml", photo_plan("{format: image_folder, path: photos}"));
  const Output out = w.run_shell(kWorker + "plan.yaml --out run");
  CHECK(out.err == "");
  REQUIRE(out.code == 0);
  const reckon::Measurements m = measured(w, "run");
  CHECK(m.runs.at(0).data == "photos");
  REQUIRE(m.steps.size() == 8);
  std::int64_t samples = 0;
  double bytes = 0, decoding = 0;
  for (const reckon::StepRecord& step : m.steps) {
    REQUIRE(step.read_samples);
    CHECK(step.skipped_samples == 0);
    samples += *step.read_samples;
    bytes += step.read_bytes->v;
    decoding += step.decode_cpu->count();
  }
  CHECK(samples >= 32);  // 8 steps of 4, and what was read ahead
  CHECK(bytes / double(samples) > 506);
  CHECK(bytes / double(samples) < 1314);  // palette.png, photo.jpg
  CHECK(decoding > 0);
  // The order and the crops are the seed's: again, with more threads, the same bits.
  REQUIRE(w.run_shell(kWorker + "plan.yaml --out again --data-threads 3 --threads 2").code == 0);
  const std::string bits = read_all(w.path("run/model.safetensors"));
  CHECK(!bits.empty());
  CHECK(read_all(w.path("again/model.safetensors")) == bits);
  REQUIRE(w.run_shell(kWorker + "plan.yaml --out other --seed 99").code == 0);
  CHECK(read_all(w.path("other/model.safetensors")) != bits);
}

TEST_CASE("a length in epochs over data of another size is warned of, one in steps is not") {
  const Workspace w;
  write_photos(w);
  const std::string steps = photo_plan("{format: image_folder, path: photos}");
  const auto with = [&](const std::string& from, const std::string& to, std::string plan) {
    plan.replace(plan.find(from), from.size(), to);
    return plan;
  };
  const std::string other = with("samples: 6,", "samples: 60,", steps);
  w.write("steps.yaml", other);
  CHECK(w.run_shell(kWorker + "steps.yaml --out steps").err == "");
  w.write("epochs.yaml", with("{steps: 8}", "{epochs: 0.5}", other));
  const Output warned = w.run_shell(kWorker + "epochs.yaml --out epochs");
  CHECK(warned.code == 0);
  CHECK(warned.err ==
        "reckon-worker: warning: photos holds 6 samples, the plan's dataset 60: its 0.5 epochs are "
        "5 passes over them (--set workload.dataset.samples=6)\n");
  const Output mended =
      w.run_shell(kWorker + "epochs.yaml --out mended --set workload.dataset.samples=6");
  CHECK(mended.code == 0);
  CHECK(mended.err == "");
  const std::string size = "{samples: 60, bytes_per_sample: 1kB}";
  w.write("named.yaml", with("{steps: 8}", "{epochs: 1e-4}", with(size, "cifar10", other)));
  const Output named = w.run_shell(kWorker + "named.yaml --out named");
  CHECK(contains(named.err, "photos holds 6 samples, the plan's dataset 50000: its 0.0001 epochs"));
  CHECK(contains(named.err, "(workload: {dataset: {samples: 6, bytes_per_sample: 3073B}})"));
}

TEST_CASE("two ranks share out the images of one") {
  const Workspace w;
  write_photos(w);
  const std::string data = "{format: image_folder, path: photos}";
  w.write("one.yaml", photo_plan(data));
  w.write("two.yaml", photo_plan(data, "{kind: multi_worker_mirrored, workers: 2}", 2));
  REQUIRE(w.run_shell(kWorker + "one.yaml --out one --threads 1").code == 0);
  const std::string two = kWorker +
                          "two.yaml --set workload.batch_per_accelerator=2 --workers 2 "
                          "--threads 1 --out two" +
                          meeting_point(w);
  const Output out =
      w.run_shell(two + " --rank 1 & " + two + " --rank 0; code=$?; wait; exit $code");
  CHECK(out.err == "");
  REQUIRE(out.code == 0);
  const reckon::Measurements whole = measured(w, "one"), shared = measured(w, "two");
  const auto first = whole.useful_steps(), same = shared.useful_steps();
  REQUIRE(first.size() == same.size());
  for (std::size_t k = 0; k < first.size(); ++k)
    CHECK(same[k].loss.value() == Approx(first[k].loss.value()).epsilon(1e-4));
}

TEST_CASE("a damaged image ends a run with its name, or is left out and said") {
  const Workspace w;
  write_photos(w);
  const std::string whole = read_all(w.path("photos/bee/photo.jpg"));
  w.write("photos/bee/photo.jpg", whole.substr(0, 600));
  w.write("plan.yaml", photo_plan("{format: image_folder, path: photos}"));
  const Output fails = w.run_shell(kWorker + "plan.yaml --out run");
  CHECK(fails.code == 2);
  CHECK(contains(fails.err, "photos/bee/photo.jpg: damaged JPEG"));
  const Output skips =
      w.run_shell(kWorker + "plan.yaml --out skips --set workload.data.damaged=skip");
  REQUIRE(skips.code == 0);
  CHECK(contains(skips.err, "photos/bee/photo.jpg: damaged JPEG"));
  CHECK(contains(skips.err, "the next sample is taken in its place"));
  std::int64_t skipped = 0;
  for (const reckon::StepRecord& step : measured(w, "skips").steps)
    skipped += step.skipped_samples.value_or(0);
  CHECK(skipped >= 5);  // 32 samples of 6: each came five times at least
}
