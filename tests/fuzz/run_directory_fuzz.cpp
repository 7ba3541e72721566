#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "executor/train/checkpoint/checkpoint.h"
#include "executor/train/records/measurement_log.h"
#include "executor/train/records/run_check.h"
#include "executor/train/records/run_directory.h"
#include "sim/model/zoo/zoo.h"
#include "sim/scenario/artifact/artifact.h"

// The directory of a small run whose files were changed: what is wrong with it is said, never
// thrown; a repair leaves nothing to repair; a checkpoint that a resume would take holds what was
// saved in it; and the measurements can be written on. The input is a script of changes.
namespace {

using namespace reckon;
namespace fs = std::filesystem;
using State = std::vector<float>;

constexpr int kRanks = 2;
constexpr std::array<std::int64_t, 2> kSteps{10, 20};

void require(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

const CheckpointIdentity& identity() {
  static const CheckpointIdentity one{
      .job = "fuzz", .model = "mlp", .ranks = kRanks, .recipe = {{"seed", "1"}}};
  return one;
}

/// What `rank` had at `step`.
State state_of(int rank, std::int64_t step) {
  State state(8);
  std::iota(state.begin(), state.end(), float(100 * step + rank));
  return state;
}

std::vector<StateTensor> tensors_of(const State& state) {
  return {{whole_tensor("fc.weight", {2, 4}), std::as_bytes(std::span(state))}};
}

void save(const fs::path& checkpoints, std::int64_t step) {
  const fs::path set = set_directory(checkpoints, step);
  fs::create_directories(set);
  Manifest manifest{identity(), step, 0, {}};
  for (int rank = 0; rank < kRanks; ++rank) {
    ShardHeader header{.identity = identity(), .rank = rank, .step = step};
    const State state = state_of(rank, step);
    header = write_shard(shard_file(set, rank), header, tensors_of(state));
    manifest.shards.push_back({header.file_bytes, header.digest});
  }
  write_manifest(set, manifest);
}

void record(const fs::path& file) {
  MeasurementLog log(file);
  RunRecord run;
  run.scenario = "fuzz";
  run.started = "2026-12-04T18:00:00.123Z";
  run.steps = 20;
  log.append(run);
  for (std::int64_t step = 0; step < 4; ++step) {
    StepRecord done;
    done.step = step;
    done.seconds = Seconds{0.5};
    done.loss = 2.5;
    log.append(done);
  }
  CheckpointRecord saved;
  saved.step = kSteps.back();
  log.append(saved);
  EndRecord end;
  end.finished = true;
  end.steps_done = 20;
  log.append(end);
}

using Files = std::map<std::string, std::string>;  // by path in the directory

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void put(const fs::path& root, const Files& files) {
  for (const auto& [name, text] : files) {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name, std::ios::binary) << text;
  }
}

/// A place in memory of this process, where there is one.
const fs::path& place() {
  static const fs::path root = [] {
    const fs::path memory = "/dev/shm";
    const fs::path above = fs::is_directory(memory) ? memory : fs::temp_directory_path();
    return above / ("reckon-fuzz-" + std::to_string(::getpid()));
  }();
  return root;
}

/// The files of the run before anything is changed.
const Files& whole_run() {
  static const Files files = [] {
    const RunDirectory run{place()};
    fs::remove_all(run.root);
    fs::create_directories(run.root);
    RunArtifact artifact;
    artifact.plan.jobs.resize(1);
    constexpr std::array<std::int64_t, 1> kHidden{4};
    artifact.plan.jobs.front().model = make_mlp("fuzz", 4, kHidden, 2).value();
    put(run.root, {{"plan.reckon", write_artifact(artifact)}, {"lock", "process 1 on nowhere\n"}});
    for (const std::int64_t step : kSteps) save(run.checkpoints(), step);
    record(run.measurements());
    const State trained = state_of(0, kSteps.back());
    write_shard(run.weights(), {.step = kSteps.back()}, tensors_of(trained));
    Files all;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(run.root))
      if (entry.is_regular_file())
        all[entry.path().lexically_relative(run.root).string()] = text_of(entry.path());
    std::atexit([] { fs::remove_all(place()); });
    return all;
  }();
  return files;
}

/// The script: which file, what is done to it, where, and with which byte.
void change(Files& files, std::span<const std::uint8_t> script) {
  constexpr std::size_t kOrder = 5;
  for (; script.size() >= kOrder; script = script.subspan(kOrder)) {
    if (files.empty()) return;
    const auto file = std::next(files.begin(), script[0] % std::ptrdiff_t(files.size()));
    std::string& text = file->second;
    const std::size_t at = text.empty() ? 0 : (script[2] * 256u + script[3]) % text.size();
    switch (script[1] % 8) {
      case 0:
        if (!text.empty()) text[at] = char(text[at] ^ script[4]);
        break;
      case 1:
        text.resize(at);
        break;
      case 2:
        text.insert(at, 1, char(script[4]));
        break;
      case 3:
        text.erase(at, script[4]);
        break;
      case 4:  // the file of another
        text = std::next(files.begin(), script[4] % std::ptrdiff_t(files.size()))->second;
        break;
      case 5:
        files.erase(file);
        break;
      case 6:  // what a broken save leaves
        files[file->first + ".part-" + std::to_string(script[4])] = text;
        break;
      default:  // a set that was to take the place of another
        files["checkpoints/step-000000000020.next/" + fs::path(file->first).filename().string()] =
            text;
    }
  }
}

/// A checkpoint that is taken holds what was saved.
void check_resume(const RunCheck& checked) {
  CheckpointOptions options;
  options.directory = place() / "checkpoints";
  options.identity = identity();
  CheckpointStore store(options);
  Recovery recovery;
  try {
    recovery = store.recover();
  } catch (const NoUsableCheckpoint&) {
    require(!checked.resumes_at,
            "a resume takes none of the checkpoints that the check calls whole");
    return;
  }
  require(recovery.step == checked.resumes_at, "a resume takes another checkpoint than was said");
  if (!recovery.step) return;
  State state(state_of(0, 0).size());
  const std::vector<RestoreTensor> tensors{
      {whole_tensor("fc.weight", {2, 4}), std::as_writable_bytes(std::span(state))}};
  store.load(*recovery.step, tensors);
  require(state == state_of(0, *recovery.step), "another state than was saved is restored");
}

void check_records() {
  const fs::path file = RunDirectory{place()}.measurements();
  if (fs::exists(file)) {
    const auto taken_up = take_up_measurement_log(file);
    if (!taken_up) return;  // of another version: said, and nothing is written
  }
  EndRecord end;
  end.detail = "written on";
  MeasurementLog(file).append(end);
  const auto again = read_measurement_log(file);
  require(again && again->damaged.empty() && again->torn_lines == 0, "records are damaged still");
  require(!again->ends.empty() && again->ends.back().detail == "written on", "a record is lost");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Files files = whole_run();
  change(files, {data, size});
  fs::remove_all(place());
  fs::create_directories(place());
  put(place(), files);
  const RunCheck first = check_run(place(), RunLock::look(place()));
  for (const RunFinding& finding : first.findings) {
    require(!finding.details.empty(), finding.name + " says nothing");
    if (finding.state == RunFinding::State::damaged) repair(finding);
  }
  const RunCheck second = check_run(place(), RunLock::look(place()));
  for (const RunFinding& finding : second.findings)
    require(finding.state != RunFinding::State::damaged,
            finding.name + " is damaged after its repair: " + finding.details.front());
  require(second.resumes_at == first.resumes_at, "a repair changes where the run resumes");
  check_resume(second);
  check_records();
  return 0;
}
