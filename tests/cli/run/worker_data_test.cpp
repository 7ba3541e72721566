#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>

#include "cli/run/hand_started.h"
#include "executor/data/fake_store.h"
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

TEST_CASE("a worker names what is wrong with both its training and its validation set") {
  const Workspace w;
  write_photos(w);
  std::string plan = photo_plan(
      "{format: image_folder, path: photos, validation: held-out}\n  evaluation: {every_epochs: "
      "1}");
  const std::string size = "samples: 6,";
  plan.replace(plan.find(size), size.size(), "samples: 6, validation_samples: 2,");
  w.write("plan.yaml", plan);
  const Output both = w.run_shell(kWorker + "plan.yaml --data nowhere --out run");
  CHECK(both.code == 2);
  CHECK(contains(both.err, "nowhere: there are no files\n"));
  CHECK(contains(both.err, "held-out: there are no files\n"));
  // The validation set has the numbers of the training set's classes.
  std::filesystem::create_directories(w.path("held-out/cat"));
  std::filesystem::create_directories(w.path("held-out/dog"));
  std::filesystem::copy(w.path("photos/cat"), w.path("held-out/cat"));
  std::filesystem::copy(w.path("photos/cat"), w.path("held-out/dog"));
  const Output other = w.run_shell(kWorker + "plan.yaml --out run");
  CHECK(other.code == 2);
  CHECK(contains(other.err, "held-out: holds classes that the training set does not have: dog\n"));
  std::filesystem::remove_all(w.path("held-out/dog"));
  std::filesystem::remove_all(w.path("photos/cat"));
  std::filesystem::rename(w.path("held-out/cat"), w.path("held-out/bee"));
  const Output fewer = w.run_shell(kWorker + "plan.yaml --out run");
  CHECK(fewer.code == 0);
  CHECK(contains(fewer.err, "warning: photos holds 2 classes, the model has 3 outputs: one will"));
}

TEST_CASE("ranks that find other samples than rank 0 are turned away, those of a copy are not") {
  const Workspace w;
  write_photos(w);
  namespace fs = std::filesystem;
  for (const char* place : {"copy", "fewer", "moved"})
    fs::copy(w.path("photos"), w.path(place), fs::copy_options::recursive);
  fs::remove(w.path("fewer/bee/photo.jpg"));
  fs::rename(w.path("moved/bee/photo.jpg"), w.path("moved/ant/b.jpg"));  // as many, another class
  std::string plan =
      photo_plan("{format: image_folder, path: photos, validation: photos}",
                 "{kind: multi_worker_mirrored, workers: 2}\n  evaluation: {every_epochs: 1}", 2);
  plan.replace(plan.find("1kB}"), 4, "1kB, validation_samples: 6}");
  w.write("plan.yaml", plan);
  const auto with = [&](const std::string& words) {
    const std::string common = kWorker + "plan.yaml --set workload.batch_per_accelerator=2 " +
                               "--workers 2 --threads 1" + meeting_point(w);
    return w.run_shell(common + " --rank 0 2> zero.err & zero=$!; " + common + " --rank 1 " +
                       words +
                       "; code=$?; test $code = 0 || kill -TERM $zero; wait $zero; exit $code");
  };
  const Output copy = with("--data copy --validation copy");
  INFO(copy.err);
  CHECK(copy.code == 0);
  for (const auto& [words, what, samples] :
       {std::tuple{"--data fewer", "training data is 5", "rank 0 has 6"},
        std::tuple{"--data moved", "training data is 6", "rank 0 has 6"},
        std::tuple{"--validation fewer", "validation data is 5", "rank 0 has 6"}}) {
    const Output other = with(words);
    INFO(words << "\n" << other.err);
    CHECK(other.code == 2);
    CHECK(contains(other.err, "rank 1 of job 'reckon' was started otherwise than rank 0: " +
                                  std::string(what) + " samples in files of digest "));
    CHECK(contains(other.err, std::string(samples) + " samples in files of digest "));
    CHECK(contains(read_all(w.path("zero.err")), what));
  }
}

TEST_CASE("a resume over other files is refused until it is accepted, over a copy it goes on") {
  const Workspace w;
  namespace fs = std::filesystem;
  write_photos(w);
  w.write("plan.yaml", photo_plan("{format: image_folder, path: photos}"));
  REQUIRE(w.run_shell(kWorker + "plan.yaml --out run --steps 4").code == 0);
  fs::rename(w.path("photos"), w.path("moved"));
  fs::copy(w.path("moved"), w.path("photos"), fs::copy_options::recursive);
  REQUIRE(w.run_shell(kWorker + "plan.yaml --out run --steps 5").code == 0);
  fs::remove(w.path("photos/bee/photo.jpg"));
  const Output refused = w.run_shell(kWorker + "plan.yaml --out run");
  INFO(refused.err);
  CHECK(refused.code == 2);
  CHECK(contains(refused.err,
                 "was trained under other settings:\n  data_files: recorded 6 samples "
                 "in files of digest "));
  CHECK(contains(refused.err, ", now 5 samples in files of digest "));
  const Output accepted = w.run_shell(kWorker + "plan.yaml --out run --accept-changes");
  CHECK(contains(accepted.err, "warning: settings changed behind step 5:\n  data_files: "));
  CHECK(accepted.code == 0);
  CHECK(measured(w, "run").changes.at(0).name == "data_files");
}

TEST_CASE("reckon run says what changed in the data of a resumed run") {
  const Workspace w;
  namespace fs = std::filesystem;
  write_photos(w);
  w.write("plan.yaml", photo_plan("{format: image_folder, path: photos}"));
  const std::string run =
      "run plan.yaml --out run --replications 20 --retry-delay 0s "
      "--set 'workload.optimizer={kind: sgd, learning_rate: 0.01, schedule: constant}' ";
  REQUIRE(w.run(run + "--set workload.train.steps=4").code == 0);
  fs::remove(w.path("photos/bee/photo.jpg"));
  const Output refused = w.run(run + "--resume");
  INFO(refused.out << refused.err);
  CHECK(refused.code != 0);
  CHECK(contains(refused.out + refused.err, "data_files: recorded 6 samples in files of digest "));
  CHECK(w.run(run + "--resume --accept-changes").code == 0);
}

TEST_CASE("a worker that waits for a store while it opens its data ends when it is told to") {
  const Workspace w;
  const FakeStore store(
      [](const FakeStore::Request&) -> FakeStore::Answer { return {.body = "", .never = true}; });
  w.write("plan.yaml", photo_plan("{format: image_folder, path: s3://photos/set, endpoint: \"" +
                                  store.endpoint() + "\"}"));
  for (const std::string signal : {"TERM", "INT"}) {
    const Output out =
        w.run_shell(kWorker + "plan.yaml --out run & sleep 1; kill -" + signal + " $!; wait $!");
    if (contains(out.err, "this build reads no stores")) return;
    INFO(signal << "\n" << out.err);
    CHECK(out.code == 75);
  }
  const Output run = w.run_shell("'" RECKON_BINARY_DIR
                                 "/bin/reckon' run plan.yaml --out by_run "
                                 "--replications 20 & sleep 3; kill -TERM $!; wait $!");
  INFO(run.out << run.err);
  CHECK(run.code == 75);
  CHECK(store.requests() >= 3);
}

TEST_CASE("a worker that opens its data tells its watcher that it gets on") {
  const Workspace w;
  const FakeStore store([](const FakeStore::Request& request) -> FakeStore::Answer {
    if (request.number == 4) return {.status = 403, .body = ""};
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    const std::string page = std::to_string(request.number);
    return {.body = list_of({{"set/ant/" + page + ".png", 1}},
                            "<NextContinuationToken>" + page + "</NextContinuationToken>")};
  });
  w.write("plan.yaml", photo_plan("{format: image_folder, path: s3://photos/set, endpoint: \"" +
                                  store.endpoint() + "\"}"));
  const Output out = w.run_shell("RECKON_PROGRESS_FD=3 " + kWorker + "plan.yaml 3> said");
  if (contains(out.err, "this build reads no stores")) return;
  CHECK(out.code == 2);
  CHECK(contains(read_all(w.path("said")), "0 opening\n0 opening\n0 opening\n"));
}
