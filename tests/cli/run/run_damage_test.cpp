#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/background_job.h"
#include "cli/run_reckon.h"
#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/records/measurement_log.h"
#include "sim/scenario/artifact/artifact.h"
#include "support/small_job.h"

// What damaged bytes and changed settings do to a run: it goes on, or says what to type.
using namespace reckon;
using namespace reckon::test;

namespace {

namespace fs = std::filesystem;

constexpr const char* kOptions = " --replications 20 --retry-delay 0s --checkpoint-steps 10 ";

std::string damaged_job(const std::string& more = "", int steps = 40) {
  return small_job("small", "{kind: single}", steps, more) + small_pool(1);
}
const std::string kRate = "  optimizer: {kind: sgd, learning_rate: ";

/// A run of 40 steps in `out`, finished.
Workspace& with_run(Workspace& w, const std::string& out) {
  w.write("job.yaml", damaged_job());
  const Output r = w.run("run job.yaml" + std::string(kOptions) + "--out \"" + out + '"');
  INFO(r.err);
  REQUIRE(r.code == 0);
  return w;
}

void flip(const fs::path& file, std::size_t byte) {
  std::string text = read_all(file);
  REQUIRE(byte < text.size());
  text[byte] = char(text[byte] ^ 1);
  std::ofstream(file, std::ios::binary) << text;
}

/// The byte of a digit in the middle of the file.
std::size_t digit_of_step(const fs::path& file, int step) {
  const std::string text = read_all(file);
  const std::string key = "\"step\":" + std::to_string(step) + ",\"at_seconds\":";
  const std::size_t at = text.find(key);
  REQUIRE(at != std::string::npos);
  return at + key.size();
}

/// How readers name the line of that byte.
std::string place_of(const fs::path& file, std::size_t byte) {
  const std::string text = read_all(file).substr(0, byte);
  return std::to_string(1 + std::count(text.begin(), text.end(), '\n'));
}

/// What stands behind `before` on its line of `text`.
std::string behind(const std::string& text, const std::string& before) {
  const std::size_t at = text.find(before);
  REQUIRE(at != std::string::npos);
  const std::size_t begin = at + before.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

/// Types what reckon said, word for word.
Output type(const Workspace& w, const std::string& command) {
  INFO(command);
  REQUIRE(command.starts_with("reckon run "));
  return w.run_shell("PATH='" RECKON_BINARY_DIR "/bin':\"$PATH\"; " + command);
}

/// The newest set's part of rank 0.
fs::path newest_part(const fs::path& run) {
  return shard_file(list_sets(run / "checkpoints").at(0).directory, 0);
}

}  // namespace

TEST_CASE("a damaged line in the middle of the records costs that record, and is said once") {
  Workspace w;
  with_run(w, "run");
  const fs::path records = w.path("run/measurements.jsonl");
  const std::size_t byte = digit_of_step(records, 20);
  const std::string place = place_of(records, byte);
  const std::string warning = "measurements.jsonl:" + place + ": warning: the line is damaged";
  flip(records, byte);
  // Who only looks leaves it out, and says so.
  const Output diff = w.run("diff run/forecast.json run");
  CHECK((diff.code == 0 || diff.code == 1));
  CHECK(contains(diff.err, warning));
  const Output fit = w.run("calibrate run --out fit.yaml");
  CHECK((fit.code == 0 || fit.code == 1));
  CHECK(contains(fit.err, warning));
  CHECK_FALSE(fs::exists(damaged_lines_of(records)));

  const std::string resume = "run job.yaml" + std::string(kOptions) + "--out run --resume";
  const Output first = w.run(resume);
  INFO(first.err);
  CHECK(first.code == 0);
  CHECK(contains(first.err, warning));
  CHECK(contains(first.err, "set aside in "));
  CHECK(contains(read_all(damaged_lines_of(records)), "line " + place + ", "));
  const auto read = read_measurement_log(records);
  REQUIRE(read);
  CHECK(read->damaged.empty());
  CHECK(read->useful_steps().size() == 39);  // of 40
  CHECK_FALSE(contains(w.run(resume).err, "damaged"));
}

TEST_CASE("records that are all garbage keep no run from its good checkpoints") {
  Workspace w;
  with_run(w, "run");
  w.write("run/measurements.jsonl", std::string("\0\xff\n\n{}\n[[[\n", 11));
  const Output r = w.run("run job.yaml" + std::string(kOptions) + "--out run --resume");
  INFO(r.err);
  CHECK(r.code == 0);
  const auto read = read_measurement_log(w.path("run/measurements.jsonl"));
  REQUIRE(read);
  REQUIRE(read->runs.size() == 1);
  CHECK(read->runs[0].first_step == 40);
}

TEST_CASE(
    "other settings are refused with each difference, and what is printed goes on with them") {
  Workspace w;
  with_run(w, "my runs/it's one");
  const fs::path run = w.path("my runs/it's one");
  const std::string plan = read_all(run / "plan.reckon");
  w.write("other job.yaml", damaged_job(kRate + "0.001}\n", 60));
  const std::string words = "run 'other job.yaml'" + std::string(kOptions) +
                            "--out 'my runs/it'\\''s one' --set workload.precision=fp32";
  const Output refused = w.run(words + " --resume");
  INFO(refused.err);
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "  learning_rate: recorded "));
  CHECK(contains(refused.err, ", now 0.001\n"));
  CHECK_FALSE(contains(refused.err, "  batch:"));
  CHECK(read_all(run / "plan.reckon") == plan);  // nothing has begun

  const Output taken = type(w, behind(refused.err, "take the new ones with: "));
  INFO(taken.err);
  CHECK(taken.code == 0);
  const auto read = read_measurement_log(run / "measurements.jsonl");
  REQUIRE(read);
  REQUIRE(read->changes.size() == 1);
  CHECK(read->changes[0].name == "learning_rate");
  CHECK(read->changes[0].value == "0.001");
  CHECK(read->changes[0].step == 40);
  CHECK(read->useful_steps().size() == 60);
  const auto now = read_artifact(read_all(run / "plan.reckon"), "plan.reckon");
  REQUIRE(now);
  CHECK(now->artifact.plan.jobs.front().optimizer_settings.learning_rate == 0.001);
  // From now on they are the run's.
  CHECK(w.run(words + " --resume").code == 0);
  CHECK(w.run(words + " --accept-changes").code == 2);  // without --resume
}

TEST_CASE("each setting that decides what is trained is compared") {
  Workspace w;
  with_run(w, "run");
  const auto refused_for = [&](const std::string& more, const std::string& set) {
    w.write("job.yaml", damaged_job(more));
    const Output r = w.run("run job.yaml" + std::string(kOptions) + "--out run --resume " + set);
    CHECK(r.code == 2);
    return r.err;
  };
  CHECK(contains(refused_for("  optimizer: {kind: adamw}\n", ""),
                 "  optimizer: recorded sgd, now "
                 "adamw\n"));
  CHECK(contains(refused_for("  optimizer: {kind: sgd, schedule: cosine}\n", ""), "  schedule: "));
  CHECK(contains(refused_for("  optimizer: {kind: sgd, momentum: 0.5}\n", ""),
                 "  optimizer_settings: recorded momentum 0.9"));
  CHECK(contains(refused_for("", "--set workload.batch_per_accelerator=4"),
                 "  batch: recorded 8, now 4\n"));
  CHECK(contains(refused_for("", "--set workload.dataset.samples=4041"),
                 "  samples: recorded 4040, now 4041\n"));
  CHECK(contains(refused_for("", "--seed 12"), "  seed: "));
}

TEST_CASE("another optimizer that is accepted goes on with the parameters") {
  Workspace w;
  with_run(w, "run");
  w.write("job.yaml", damaged_job("  optimizer: {kind: adamw}\n", 60));
  const Output r =
      w.run("run job.yaml" + std::string(kOptions) + "--out run --resume --accept-changes");
  INFO(r.err);
  CHECK(r.code == 0);
  const auto read = read_measurement_log(w.path("run/measurements.jsonl"));
  REQUIRE(read);
  REQUIRE_FALSE(read->changes.empty());
  CHECK(read->changes[0].name == "optimizer");
  CHECK(read->runs.back().first_step == 40);
}

TEST_CASE("a checkpoint of another model is refused with a command that begins elsewhere") {
  Workspace w;
  with_run(w, "a run");
  std::string other = damaged_job();
  other.replace(other.find("mlp_boston_housing"), 18, "mlp_mnist");
  w.write("other.yaml", other);
  const Output refused =
      w.run("run other.yaml" + std::string(kOptions) + "--out='a run' --resume --accept-changes");
  INFO(refused.err);
  REQUIRE(refused.code == 2);
  CHECK(contains(refused.err, "holds 5121 parameters of mlp_boston_housing"));
  const Output anew = type(w, behind(refused.err, "begin anew with: "));
  INFO(anew.err);
  CHECK(anew.code == 0);
  CHECK(fs::exists(w.path("a run-2/model.safetensors")));
}

TEST_CASE("a run that is stopped says how to go on in words that a shell takes as they are") {
  Workspace w;
  w.write("a job's.yaml", damaged_job("", 3000));
  BackgroundJob run(w, "\"a job's.yaml\"", "run", std::string(kOptions));
  REQUIRE(run.wait_for([&] { return !list_sets(w.path("run/checkpoints")).empty(); }));
  run.signal(SIGTERM);
  REQUIRE(run.code() == 75);
  INFO(run.errors());
  const Output again = type(w, behind(run.errors(), "go on with: "));
  INFO(again.err);
  CHECK(again.code == 0);
  CHECK(read_measurement_log(w.path("run/measurements.jsonl"))->useful_steps().size() == 3000);
}

TEST_CASE("doctor of a run finds the newest good checkpoint, repairs the rest and says both") {
  Workspace w;
  with_run(w, "my run");
  const fs::path run = w.path("my run");
  const Output sound = w.run("doctor 'my run' --check");
  INFO(sound.out);
  CHECK(sound.code == 0);
  CHECK(contains(sound.out, "--resume goes on from step 40\n"));
  const fs::path records = run / "measurements.jsonl", part = newest_part(run);
  const std::size_t byte = digit_of_step(records, 20);
  const std::string place = place_of(records, byte);
  flip(records, byte);
  flip(part, fs::file_size(part) - 5);
  const Output checked = w.run("doctor 'my run' --check");
  INFO(checked.out);
  CHECK(checked.code == 1);
  CHECK(contains(checked.out, "is damaged: the checksum of tensor 'optimizer.state."));
  CHECK(contains(checked.out, "line " + place + " (bytes "));
  CHECK(contains(checked.out, "--resume goes on from step 30\n"));
  CHECK(fs::exists(part));  // it only looked
  CHECK(contains(checked.out, "repair it with: reckon doctor 'my run'\n"));

  const Output repaired = w.run("doctor 'my run' --format json");
  CHECK(repaired.code == 0);
  const auto json = nlohmann::json::parse(repaired.out);
  CHECK(json["resumes_at"] == 30);
  CHECK_FALSE(fs::exists(part));
  CHECK(fs::exists(run / "checkpoints/step-000000000040.refused"));
  CHECK_FALSE(fs::exists(run / "lock"));
  CHECK(w.run("doctor 'my run'").code == 0);
  const Output resumed = w.run("run job.yaml" + std::string(kOptions) + "--out 'my run' --resume");
  CHECK(resumed.code == 0);
  CHECK(read_measurement_log(records)->runs.back().first_step == 30);
}

TEST_CASE("doctor tells what is lost, and what is no run") {
  Workspace w;
  with_run(w, "run");
  for (const CheckpointSet& set : list_sets(w.path("run/checkpoints")))
    flip(shard_file(set.directory, 0), 100);
  const Output r = w.run("doctor run");
  INFO(r.out);
  CHECK(r.code == 1);
  CHECK(contains(r.out, "none is whole: the run begins at step 0"));
  fs::create_directories(w.path("empty"));
  CHECK(w.run("doctor empty").code == 2);
  CHECK(w.run("doctor nowhere").code == 2);
  CHECK(w.run("doctor --check").code == 2);
}

TEST_CASE("doctor repairs nothing of a run that is going on, and does not disturb it") {
  Workspace w;
  w.write("job.yaml", damaged_job("", 100000));
  BackgroundJob run(w, "job.yaml", "run", std::string(kOptions));
  REQUIRE(run.wait_for([&] { return !list_sets(w.path("run/checkpoints")).empty(); }));
  const Output r = w.run("doctor run");
  INFO(r.out);
  CHECK(r.code == 0);
  CHECK(contains(r.out, "held by process "));
  CHECK(contains(r.out, "nothing was repaired"));
  CHECK(fs::exists(w.path("run/lock")));
  CHECK(run.running());
  run.signal(SIGTERM);
  CHECK(run.code() == 75);
}

TEST_CASE("an export takes the set before a damaged one, as a resume does, and says so") {
  Workspace w;
  w.write("job.yaml", damaged_job());
  REQUIRE(w.run("run job.yaml" + std::string(kOptions) + "--out run").code == 0);
  const std::string worker = "'" RECKON_BINARY_DIR "/bin/reckon-worker' export run ";
  const auto exported = [&](const std::string& model) { return w.run_shell(worker + model); };
  CHECK(exported("whole").err.empty());
  const std::string weights = read_all(w.path("whole/1/model.safetensors"));
  // The parameters are those that the damaged set's header names: they are the newest.
  const fs::path part = newest_part(w.path("run"));
  flip(part, fs::file_size(part) - 5);
  const Output attested = exported("attested");
  CHECK(attested.code == 0);
  CHECK(contains(attested.err, "the checksum of tensor 'optimizer.state."));
  CHECK(contains(attested.err, "exported in its place: model.safetensors"));
  flip(w.path("run/model.safetensors"), 100);
  const Output older = exported("older");
  INFO(older.err);
  CHECK(older.code == 0);
  CHECK(contains(older.err, "exported in its place: the checkpoint at step 30"));
  CHECK(read_all(w.path("older/1/model.safetensors")) != weights);
}

TEST_CASE("a run that has finished is not run again: no record is added, whatever is asked") {
  Workspace w;
  with_run(w, "run");
  const std::string resume = "run job.yaml" + std::string(kOptions) + "--out run --resume";
  const std::string records = read_all(w.path("run/measurements.jsonl"));
  const std::string diff = w.run("diff run/forecast.json run").out;
  const std::string history = w.run("history --format json").out;
  const Output again = w.run(resume);
  INFO(again.err);
  CHECK(again.code == 0);
  CHECK(contains(again.err, "has finished its 40 steps: nothing is run and no record is added"));
  CHECK(contains(again.out, "small: finished"));
  CHECK(read_all(w.path("run/measurements.jsonl")) == records);
  CHECK(w.run("diff run/forecast.json run").out == diff);
  CHECK(w.run("history --format json").out == history);
  // What it left is part of it: what is gone is made again, and then it has finished.
  fs::remove(w.path("run/model.safetensors"));
  CHECK(w.run(resume).code == 0);
  CHECK(fs::exists(w.path("run/model.safetensors")));
  CHECK_FALSE(read_all(w.path("run/measurements.jsonl")) == records);
  const std::string more = resume + " --set workload.train.steps=50";
  CHECK(w.run(more).code == 0);
  CHECK(read_measurement_log(w.path("run/measurements.jsonl"))->useful_steps().size() == 50);
}
