#include <catch2/catch.hpp>
#include <map>

#include "checkpoint_support.h"
#include "executor/train/checkpoint/durable_file.h"
#include "executor/train/records/measurement_log.h"
#include "executor/train/records/run_check.h"
#include "executor/train/records/run_directory.h"
#include "sim/base/random.h"
#include "sim/scenario/artifact/artifact.h"
#include "support/plans.h"

namespace reckon {
namespace {

using namespace reckon::test;
namespace fs = std::filesystem;
using State = RunFinding::State;

constexpr Purpose kFlips{"test_flipped_bytes"};

/// A run of two ranks that was stopped behind step 30 and keeps two sets.
void make_run(const fs::path& root) {
  const RunDirectory run{root};
  fs::create_directories(root);
  write_durably(run.plan(),
                write_artifact({.plan = make_round_plan(small_mlp(), StrategyKind::single, 1)}));
  save_toy(run.checkpoints(), 20, 2);
  save_toy(run.checkpoints(), 30, 2);
  MeasurementLog log(run.measurements());
  RunRecord start;
  start.started = "2026-12-04T18:00:00.123Z";
  log.append(start);
  for (std::int64_t step = 0; step < 30; ++step) {
    StepRecord r;
    r.step = step;
    log.append(r);
  }
  log.append(EndRecord{});
}

std::map<std::string, std::string> files_below(const fs::path& root) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.is_regular_file())
      files[entry.path().lexically_relative(root).string()] = read_file_text(entry.path());
  return files;
}

const RunFinding& finding(const RunCheck& check, const std::string& name) {
  for (const RunFinding& f : check.findings)
    if (f.name == name) return f;
  FAIL("no finding is named " << name);
  return check.findings.front();
}

void flip_last_bit(const fs::path& file) { flip_bit(file, fs::file_size(file) - 1); }

void repair_all(const RunCheck& check) {
  for (const RunFinding& f : check.findings) repair(f);
}

TEST_CASE("a run that is whole is sound, and looking at it changes nothing") {
  const Scratch scratch(memory_directory());
  const fs::path root = scratch.path() / "run";
  CHECK_FALSE(is_run_directory(root));
  make_run(root);
  CHECK(is_run_directory(root));
  const auto before = files_below(root);
  const RunCheck check = check_run(root, {});
  CHECK(check.sound());
  CHECK(check.resumes_at == 30);
  CHECK(files_below(root) == before);
}

TEST_CASE("damage is named with the file and the bytes, and repaired without deleting anything") {
  const Scratch scratch(memory_directory());
  const fs::path root = scratch.path() / "run";
  make_run(root);
  const RunDirectory run{root};
  const fs::path part = shard_file(set_directory(run.checkpoints(), 30), 1);
  const std::uintmax_t size = fs::file_size(part);
  flip_bit(part, size - 1);  // the last byte of `momenta`: 500 floats
  flip_bit(run.measurements(), 600);
  std::ofstream(root / "plan.reckon.part-123") << "name";
  fs::create_directories(set_directory(run.checkpoints(), 40));  // its save was broken off
  const RunCheck check = check_run(root, {});
  CHECK_FALSE(check.sound());
  CHECK_FALSE(check.lost());
  CHECK(check.resumes_at == 20);
  const RunFinding& set = finding(check, "checkpoint 30");
  REQUIRE(set.details.size() == 1);
  CHECK(contains(set.details[0], part.string() + " is damaged: the checksum of tensor 'momenta'"));
  CHECK(contains(set.details[0],
                 "(bytes " + std::to_string(size - 2000) + " to " + std::to_string(size) + ": "));
  CHECK(contains(finding(check, "measurements").details.at(1), "line "));
  CHECK(finding(check, "leftovers").details == std::vector<std::string>{"plan.reckon.part-123"});

  repair_all(check);
  const RunCheck after = check_run(root, {});
  CHECK(after.sound());
  CHECK(after.resumes_at == 20);
  CHECK(fs::exists(set_directory(run.checkpoints(), 30).string() + ".refused"));
  CHECK(fs::exists(damaged_lines_of(run.measurements())));
  CHECK_FALSE(fs::exists(root / "plan.reckon.part-123"));
}

TEST_CASE("what a process is writing is not taken for damage while it holds the lock") {
  const Scratch scratch(memory_directory());
  const fs::path root = scratch.path() / "run";
  make_run(root);
  std::ofstream(root / "plan.reckon.part-123") << "name";
  fs::create_directories(set_directory(RunDirectory{root}.checkpoints(), 40));
  const RunLock lock(root);
  const RunLock::Look look = RunLock::look(root);
  CHECK(look.held);
  CHECK(contains(look.holder, "process " + std::to_string(::getpid())));
  CHECK_FALSE(RunLock::if_free(root));
  const RunCheck check = check_run(root, look);
  CHECK(check.in_use);
  CHECK(check.sound());
}

TEST_CASE("the lock of a dead process is told from one that is held, and removed for good") {
  const Scratch scratch;
  { const RunLock lock(scratch.path()); }
  CHECK_FALSE(RunLock::look(scratch.path()).held);
  CHECK_FALSE(RunLock::look(scratch.path()).dead);  // this process lives
  std::string text = read_file_text(scratch.path() / "lock");
  text.replace(text.find(std::to_string(::getpid())), std::to_string(::getpid()).size(), "4194305");
  std::ofstream(scratch.path() / "lock") << text;  // no process has a number above 4194304
  CHECK(RunLock::look(scratch.path()).dead);
  auto lock = RunLock::if_free(scratch.path());
  REQUIRE(lock);
  lock->remove(scratch.path());
  CHECK_FALSE(fs::exists(scratch.path() / "lock"));
  const RunLock next(scratch.path());  // of a new file: the removed one is locked still
  CHECK(RunLock::look(scratch.path()).held);
}

TEST_CASE("a plan that is damaged or missing is lost, and how another is made is said") {
  const Scratch scratch;
  const fs::path root = scratch.path() / "run";
  make_run(root);
  const RunCheck whole = check_run(root, {});
  CHECK(contains(finding(whole, "plan").details.at(0), "whole, digest "));
  flip_last_bit(RunDirectory{root}.plan());
  const RunCheck check = check_run(root, {});
  CHECK(check.lost());
  CHECK(contains(finding(check, "plan").details.at(0), "truncated or changed: its checksum is "));
  CHECK(contains(finding(check, "plan").todo, "--resume writes the plan again"));
  write_durably(RunDirectory{root}.forecast(), "{}");
  fs::remove(RunDirectory{root}.plan());
  CHECK(contains(finding(check_run(root, {}), "plan").details.at(0), "is missing"));
}

/// What a run leaves at its end.
void write_weights(const RunDirectory& run, std::int64_t step) {
  const std::vector<float> values(100, float(step));
  const std::vector<StateTensor> trained{float_tensor("fc.weight", values)};
  fs::create_directories(run.root);
  write_shard(run.weights(), {.step = step}, trained);
}

TEST_CASE("weights of a finished run are held against their own checksums") {
  const Scratch scratch;
  const RunDirectory run{scratch.path() / "run"};
  make_run(run.root);
  write_weights(run, 30);
  CHECK(finding(check_run(run.root, {}), "weights").details.at(0) == "whole, of step 30");
  flip_last_bit(run.weights());
  const RunCheck check = check_run(run.root, {});
  CHECK(finding(check, "weights").state == State::damaged);
  CHECK(contains(finding(check, "weights").details.at(0), "the checksum of tensor 'fc.weight'"));
  repair_all(check);
  CHECK(check_run(run.root, {}).sound());
  CHECK(fs::exists(run.weights().string() + ".refused"));
}

TEST_CASE("a folder that holds a model alone is no run, whoever wrote the model") {
  const Scratch scratch;
  write_weights({scratch.path()}, 20);
  CHECK_FALSE(is_run_directory(scratch.path()));
}

TEST_CASE("weights of an earlier end of a run are said to be that") {
  const Scratch scratch;
  const RunDirectory run{scratch.path() / "run"};
  make_run(run.root);
  write_weights(run, 20);
  CHECK(contains(finding(check_run(run.root, {}), "weights").details.at(0), "an earlier end"));
}

TEST_CASE("a checkpoint of an older reckon is a finding, and no repair touches it") {
  const Scratch scratch;
  const RunDirectory run{scratch.path() / "run"};
  make_run(run.root);
  const fs::path set = set_directory(run.checkpoints(), 40);
  write_old_set(set);
  const RunCheck check = check_run(run.root, {});
  CHECK(finding(check, "checkpoint 40").state == State::lost);
  CHECK(contains(finding(check, "checkpoint 40").details.at(0), "by an older reckon, in format 1"));
  repair_all(check);
  CHECK(fs::exists(set / "manifest.json"));
}

TEST_CASE("what a broken save left in a damaged set goes with it") {
  const Scratch scratch;
  const RunDirectory run{scratch.path() / "run"};
  make_run(run.root);
  const fs::path set = set_directory(run.checkpoints(), 30);
  flip_last_bit(shard_file(set, 1));
  write_durably(set / "rank-0.safetensors.part-7", "torn");
  repair_all(check_run(run.root, {}));
  CHECK(check_run(run.root, {}).sound());
}

/// One byte of one file of the run, changed; the rest as it was.
struct Flip {
  std::string file;
  std::size_t byte;
  int bit;
};

/// Never a crash, never a wrong value, and the run goes on from a set that is whole.
void survives(const fs::path& root, const Flip& flip) {
  INFO(flip.file << " byte " << flip.byte << " bit " << flip.bit);
  const RunDirectory run{root};
  const RunCheck check = check_run(root, {});
  const bool of_newest = contains(flip.file, "step-000000000030/");
  const bool of_older = contains(flip.file, "step-000000000020/");
  REQUIRE(check.resumes_at == (of_newest ? 20 : 30));
  if (of_older || of_newest || flip.file == "measurements.jsonl") {
    const bool torn = flip.file == "measurements.jsonl" && check.sound();
    REQUIRE((torn || !check.sound()));  // torn: the flip hit the last newline
  }
  repair_all(check);
  REQUIRE(check_run(root, {}).resumes_at == check.resumes_at);
  const auto records = read_measurement_log(run.measurements());
  REQUIRE(records);
  REQUIRE(records->damaged.empty());
  const std::size_t kept = records->runs.size() + records->steps.size() + records->ends.size();
  REQUIRE(kept >= 31);  // of 32
  for (const StepRecord& s : records->steps) REQUIRE((s.step >= 0 && s.step < 30));
  CheckpointStore store(toy_options(run.checkpoints(), 0, 2));
  const Recovery recovery = store.recover();
  REQUIRE(recovery.step == check.resumes_at);
  ToyState state;
  store.load(*recovery.step, state.targets());
  REQUIRE(state == ToyState::at(*recovery.step, 0));
}

TEST_CASE("a flipped bit in any file of a run costs at most a record or a set") {
  const Scratch scratch(memory_directory());
  const fs::path good = scratch.path() / "good", root = scratch.path() / "run";
  make_run(good);
  const auto files = files_below(good);
  RandomStream random(1, 0, kFlips, 1);
  for (const auto& [name, text] : files) {
    for (int k = 0; k < 150; ++k) {
      const Flip flip{name, std::size_t(random.uniform() * double(text.size())),
                      int(random.uniform() * 8)};
      fs::remove_all(root);
      fs::copy(good, root, fs::copy_options::recursive);
      std::string changed = text;
      changed[flip.byte] = char(changed[flip.byte] ^ (1 << flip.bit));
      std::ofstream(root / name, std::ios::binary) << changed;
      survives(root, flip);
    }
  }
}

TEST_CASE("cut, emptied, missing files and directories in their place are findings, not errors") {
  const Scratch scratch(memory_directory());
  const fs::path good = scratch.path() / "good", root = scratch.path() / "run";
  make_run(good);
  for (const auto& [name, text] : files_below(good)) {
    for (const int how : {0, 1, 2, 3}) {
      fs::remove_all(root);
      fs::copy(good, root, fs::copy_options::recursive);
      if (how == 0) fs::resize_file(root / name, text.size() / 2);
      if (how == 1) fs::resize_file(root / name, 0);
      if (how >= 2) fs::remove(root / name);
      if (how == 3) fs::create_directories(root / name / "inside");
      INFO(name << " how " << how);
      const RunCheck check = check_run(root, {});
      CHECK(check.resumes_at == (contains(name, "step-000000000030/") ? 20 : 30));
      REQUIRE_NOTHROW(repair_all(check));
      CheckpointStore store(toy_options(RunDirectory{root}.checkpoints(), 0, 2));
      CHECK(store.recover().step == check.resumes_at);
    }
  }
}

}  // namespace
}  // namespace reckon
