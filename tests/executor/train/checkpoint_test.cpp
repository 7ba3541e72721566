#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "checkpoint_support.h"
#include "executor/train/checkpoint/durable_file.h"
#include "executor/train/records/run_lock.h"

namespace reckon {
namespace {

using namespace reckon::test;
namespace fs = std::filesystem;

TEST_CASE("what was saved is loaded bit for bit, with its counters") {
  const Scratch scratch;
  save_toy(scratch.path(), 7, 3);
  CheckpointStore zero(toy_options(scratch.path(), 0, 3));
  const Recovery recovery = zero.recover();
  REQUIRE(recovery.step == 7);
  CHECK(recovery.refused.empty());
  for (int rank = 0; rank < 3; ++rank) {
    CheckpointStore store(toy_options(scratch.path(), rank, 3));
    ToyState loaded;
    const Counters counters = store.load(7, loaded.targets());
    CHECK(loaded == ToyState::at(7, rank));
    CHECK(counters == Counters{{"sample", 224}});  // 7 * 32
  }
}

TEST_CASE("a job that never saved starts from the beginning") {
  const Scratch scratch;
  CheckpointStore store(toy_options(scratch.path() / "not" / "there"));
  const Recovery recovery = store.recover();
  CHECK(!recovery.step);
  CHECK(recovery.refused.empty());
}

TEST_CASE("saving copies the state: what is trained meanwhile does not change the checkpoint") {
  const Scratch scratch;
  CheckpointStore store(toy_options(scratch.path()));
  ToyState state = ToyState::at(1, 0);
  store.save(1, {}, state.tensors());
  state = ToyState::at(2, 0);
  store.finish();
  ToyState loaded;
  store.load(1, loaded.targets());
  CHECK(loaded == ToyState::at(1, 0));
}

TEST_CASE("directories are made with all that is missing above them") {
  const Scratch scratch;
  create_directories_durably(scratch.path() / "a" / "b" / "c");
  CHECK(std::filesystem::is_directory(scratch.path() / "a" / "b" / "c"));
  create_directories_durably(scratch.path() / "a" / "b");
  std::ofstream(scratch.path() / "file") << "x";
  CHECK(contains(message_of([&] { create_directories_durably(scratch.path() / "file"); }),
                 "file: Not a directory"));
  CHECK(contains(message_of([&] { create_directories_durably(scratch.path() / "file" / "d"); }),
                 "d: Not a directory"));
}

TEST_CASE("K complete sets are kept, the newest") {
  const Scratch scratch;
  for (const std::int64_t step : {1, 2, 3, 4}) save_toy(scratch.path(), step);
  const auto sets = list_sets(scratch.path());
  REQUIRE(sets.size() == 2);
  CHECK(sets[0].step == 4);
  CHECK(sets[1].step == 3);
}

TEST_CASE("a set without all its parts is not valid and the one before it is used") {
  const Scratch scratch;
  save_toy(scratch.path(), 5, 2);
  {
    CheckpointOptions options = toy_options(scratch.path(), 0, 2);
    options.deadline = Seconds{0.05};
    CheckpointStore lonely(options);
    lonely.save(6, {}, ToyState::at(6, 0).tensors());
    const std::string message = message_of([&] { lonely.finish(); });
    CHECK(contains(message, "step-000000000006 is not complete: rank 1 did not write its part"));
  }
  CheckpointStore store(toy_options(scratch.path(), 0, 2));
  CHECK(store.recover().step == 5);
  CHECK(list_sets(scratch.path()).size() == 1);  // what was incomplete is gone
}

TEST_CASE("a set is waited for as long as somebody writes in it") {
  const Scratch scratch;
  CheckpointOptions options = toy_options(scratch.path(), 0, 2);
  options.deadline = Seconds{2};
  CheckpointStore first(options);
  first.save(6, {}, ToyState::at(6, 0).tensors());
  const auto set = set_directory(scratch.path(), 6);
  for (int k = 0; k < 20; ++k) {  // twice the deadline
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    std::ofstream(set / "rank-1.part", std::ios::app) << "more";
  }
  CheckpointStore second(toy_options(scratch.path(), 1, 2));
  second.save(6, {}, ToyState::at(6, 1).tensors());
  second.finish();
  CHECK_NOTHROW(first.finish());
  CHECK(is_complete(set));
}

TEST_CASE("checkpoints that the storage cannot read now stay for a later start") {
  const Scratch scratch;
  save_toy(scratch.path(), 5, 2);
  const auto part = shard_file(set_directory(scratch.path(), 5), 1);
  const auto away = scratch.path() / "away";
  std::filesystem::rename(part, away);
  std::filesystem::create_directory(part);  // is there, and gives an error when it is read
  CheckpointStore store(toy_options(scratch.path(), 0, 2));
  CHECK_THROWS_AS(store.recover(), FileError);
  CHECK(list_sets(scratch.path()).size() == 1);
  std::filesystem::remove(part);
  std::filesystem::rename(away, part);

  // Of a manifest that gives an error nobody knows that it is missing.
  const auto manifest = set_directory(scratch.path(), 5) / "manifest.json";
  std::filesystem::rename(manifest, away);
  std::filesystem::create_symlink("manifest.json", manifest);  // ELOOP
  CHECK_THROWS_AS(store.recover(), FileError);
  REQUIRE(list_sets(scratch.path()).size() == 1);
  std::filesystem::remove(manifest);
  std::filesystem::rename(away, manifest);
  CHECK(store.recover().step == 5);
}

TEST_CASE("the part of an earlier start of the job does not complete a set") {
  const Scratch scratch;
  {
    CheckpointStore old(toy_options(scratch.path(), 1, 2));
    old.save(6, {}, ToyState::at(6, 1).tensors());
    old.finish();
  }
  CheckpointOptions options = toy_options(scratch.path(), 0, 2);
  options.attempt = 1;
  options.deadline = Seconds{0.05};
  CheckpointStore store(options);
  store.save(6, {}, ToyState::at(6, 0).tensors());
  CHECK(contains(message_of([&] { store.finish(); }), "rank 1 did not write"));
}

TEST_CASE("every flipped bit is found, wherever it is, and the set before it is used") {
  const Scratch scratch;
  const CheckpointIdentity identity = toy_options({}).identity;
  save_toy(scratch.path(), 1);
  save_toy(scratch.path(), 2);
  const fs::path file = shard_file(set_directory(scratch.path(), 2), 0);
  const std::size_t size = fs::file_size(file);
  // Header and tensors: the first 600 bytes each, then every 97th.
  for (std::size_t byte = 0; byte < size; byte += byte < 600 ? 1 : 97) {
    flip_bit(file, byte);
    INFO("byte " << byte);
    CHECK_THROWS_AS(verify_set(file.parent_path(), &identity), CheckpointError);
    flip_bit(file, byte);
  }
  verify_set(file.parent_path(), &identity);  // as it was: valid again

  flip_bit(file, size - 1);
  CheckpointStore store(toy_options(scratch.path()));
  const Recovery recovery = store.recover();
  CHECK(recovery.step == 1);
  REQUIRE(recovery.refused.size() == 1);
  CHECK(contains(recovery.refused[0],
                 "rank-0.safetensors is damaged: the checksum of tensor 'momenta' differs"));
  // Set aside, so that step 2 can be saved again.
  save_toy(scratch.path(), 2);
  CHECK(CheckpointStore(toy_options(scratch.path())).recover().step == 2);
}

TEST_CASE("a truncated part is refused at every length") {
  const Scratch scratch;
  const CheckpointIdentity identity = toy_options({}).identity;
  save_toy(scratch.path(), 1);
  const fs::path file = shard_file(set_directory(scratch.path(), 1), 0);
  const std::size_t size = fs::file_size(file);
  for (const std::size_t length :
       {size - 1, size / 2, std::size_t{100}, std::size_t{24}, std::size_t{7}, std::size_t{0}}) {
    fs::resize_file(file, length);
    INFO("length " << length);
    CHECK(contains(message_of([&] { verify_set(file.parent_path(), &identity); }), "is truncated"));
  }
}

TEST_CASE("a damaged manifest and a missing part are refused") {
  const Scratch scratch;
  save_toy(scratch.path(), 1, 2);
  const fs::path set = set_directory(scratch.path(), 1);
  const CheckpointIdentity identity = toy_options({}, 0, 2).identity;
  const std::size_t size = fs::file_size(set / "manifest.json");
  for (std::size_t byte = 0; byte + 1 < size; byte += 3) {
    flip_bit(set / "manifest.json", byte);
    INFO("byte " << byte);
    CHECK_THROWS_AS(verify_set(set, &identity), CheckpointError);
    flip_bit(set / "manifest.json", byte);
  }
  fs::remove(shard_file(set, 1));
  CHECK(contains(message_of([&] { verify_set(set, &identity); }), "rank-1.safetensors is missing"));
}

TEST_CASE("where no checkpoint can be used the job does not silently start again") {
  const Scratch scratch;
  save_toy(scratch.path(), 1);
  flip_bit(shard_file(set_directory(scratch.path(), 1), 0), 2000);
  CheckpointStore store(toy_options(scratch.path()));
  CHECK(contains(message_of([&] { store.recover(); }), "no checkpoint of"));
  CHECK(!CheckpointStore(toy_options(scratch.path())).recover().step);  // the second time it does
}

TEST_CASE("checkpoints of another job or model are refused and left alone") {
  const Scratch scratch;
  save_toy(scratch.path(), 3, 2);
  const auto refusal = [&](CheckpointIdentity identity) {
    CheckpointOptions options = toy_options(scratch.path(), 0, 2);
    options.identity = std::move(identity);
    CheckpointStore store(options);
    return message_of([&] { store.recover(); });
  };
  CHECK(contains(refusal({"other", "mlp 1500 sgd", 2}),
                 "was written by job 'job', this is job 'other'"));
  CHECK(contains(refusal({"job", "resnet18", 2}), "holds model 'mlp 1500 sgd', this job trains"));
  CHECK(CheckpointStore(toy_options(scratch.path(), 0, 2)).recover().step == 3);
}

/// One that trains under that learning rate and optimizer.
CheckpointOptions with_recipe(const std::filesystem::path& directory, const std::string& rate,
                              const std::string& optimizer = "sgd") {
  CheckpointOptions o = toy_options(directory);
  o.identity.model = "text of " + rate + optimizer;
  o.identity.recipe = {{"optimizer", optimizer}, {"learning_rate", rate}, {"parameters", "7"}};
  return o;
}

TEST_CASE("a checkpoint of other settings is refused with each, or taken on request") {
  const Scratch scratch;
  ToyState state = ToyState::at(5, 0);
  {
    CheckpointStore store(with_recipe(scratch.path(), "0.1"));
    store.save(5, {}, state.tensors());
    store.finish();
  }
  CHECK(CheckpointStore(with_recipe(scratch.path(), "0.1")).recover().step == 5);
  const std::string why =
      message_of([&] { CheckpointStore(with_recipe(scratch.path(), "0.05")).recover(); });
  CHECK(contains(why, "  learning_rate: recorded 0.1, now 0.05\n"));
  CHECK_FALSE(contains(why, "optimizer"));
  CHECK(changes_since(scratch.path(), with_recipe(scratch.path(), "0.05").identity).size() == 1);

  CheckpointOptions taken = with_recipe(scratch.path(), "0.05");
  taken.accept_changes = true;
  CheckpointStore store(taken);
  const Recovery recovery = store.recover();
  CHECK(recovery.step == 5);
  REQUIRE(recovery.changes.size() == 1);
  CHECK(recovery.changes[0].now == "0.05");
  ToyState loaded;
  store.load(5, loaded.targets());
  CHECK(loaded == state);

  // Others' parameters are of another model, whatever the user accepts.
  taken.identity.recipe[2].value = "8";
  CHECK_THROWS_AS(CheckpointStore(taken).recover(), ForeignCheckpoint);
}

TEST_CASE("a checkpoint of before recipes were kept is this job's by its model's text alone") {
  const Scratch scratch;
  save_toy(scratch.path(), 5);
  CheckpointOptions now = with_recipe(scratch.path(), "0.1");
  CHECK_THROWS_AS(CheckpointStore(now).recover(), ForeignCheckpoint);
  now.identity.model = toy_options(scratch.path()).identity.model;
  CHECK(CheckpointStore(now).recover().step == 5);
}

TEST_CASE("under another optimizer that was accepted the parameters are loaded, not its state") {
  const Scratch scratch;
  std::vector<float> weights{1, 2, 3}, moments{4, 5, 6};
  const auto room = [](const char* name, std::vector<float>& v) {
    return RestoreTensor{whole_tensor(name, {3}), std::as_writable_bytes(std::span(v))};
  };
  {
    CheckpointStore store(with_recipe(scratch.path(), "0.1", "sgd"));
    const std::vector<StateTensor> state{
        float_tensor("fc.weight", weights),
        float_tensor("optimizer.state.fc.weight.momentum_buffer", moments)};
    store.save(5, {}, state);
    store.finish();
  }
  CheckpointOptions other = with_recipe(scratch.path(), "0.1", "adamw");
  other.accept_changes = true;
  CheckpointStore store(other);
  CHECK(store.recover().changes.at(0).name == "optimizer");
  std::vector<float> loaded(3), first(3), second(3);
  const std::vector<RestoreTensor> targets{room("fc.weight", loaded),
                                           room("optimizer.state.fc.weight.exp_avg", first),
                                           room("optimizer.state.fc.weight.exp_avg_sq", second)};
  CHECK(store.load(5, targets).contains(kOptimizerBegins));
  CHECK(loaded == weights);
  CHECK(first == std::vector<float>(3));
}

TEST_CASE("a state of another shape is refused with both shapes") {
  const Scratch scratch;
  save_toy(scratch.path(), 3);
  CheckpointStore store(toy_options(scratch.path()));
  ToyState state;
  const auto targets = state.targets();
  CHECK(contains(message_of([&] { store.load(3, std::span(targets).first(1)); }),
                 "holds tensor 'momenta', which this job's state has not"));
  auto more = targets;
  more.push_back({whole_tensor("bias", {500}), targets[1].bytes});
  CHECK(contains(message_of([&] { store.load(3, more); }), "holds no tensor 'bias'"));
  state.momenta.resize(501);
  CHECK(contains(message_of([&] { store.load(3, state.targets()); }),
                 "holds tensor 'momenta' as F32 (500) where F32 (501) is wanted"));
}

TEST_CASE("a checkpoint in the format of before is refused with what to do, and left alone") {
  const Scratch scratch;
  const fs::path set = set_directory(scratch.path(), 40);
  write_old_set(set);
  const std::string why =
      message_of([&] { CheckpointStore(toy_options(scratch.path())).recover(); });
  CHECK(contains(why,
                 "step-000000000040 was written by an older reckon, in format 1; this one "
                 "reads format 2: go on with that reckon, or start in another directory"));
  CHECK(fs::exists(set / "rank-0.ckpt"));
  CHECK_THROWS_AS(changes_since(scratch.path(), toy_options({}).identity), OldCheckpoint);
}

TEST_CASE("a full disk surfaces at the next save, names itself, and leaves no part behind") {
  const Scratch scratch;
  save_toy(scratch.path(), 1);
  // A limit on the size of files stands for the full disk: same call, another errno.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit low{1024, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &low) == 0);
  std::string message;
  {
    CheckpointStore store(toy_options(scratch.path()));
    store.save(2, {}, ToyState::at(2, 0).tensors());
    message = message_of([&] { store.save(3, {}, ToyState::at(3, 0).tensors()); });
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  CHECK(contains(message, "rank-0.safetensors: the file-size limit (ulimit -f) is reached"));
  CHECK(fs::is_empty(set_directory(scratch.path(), 2)));
  CHECK(CheckpointStore(toy_options(scratch.path())).recover().step == 1);
}

TEST_CASE("saves are reported with their size and the time the caller waited") {
  const Scratch scratch;
  CheckpointStore store(toy_options(scratch.path()));
  store.save(1, {}, ToyState::at(1, 0).tensors());
  store.save(2, {}, ToyState::at(2, 0).tensors(), true);
  store.finish();
  const auto reports = store.take_reports();
  REQUIRE(reports.size() == 2);
  CHECK(reports[0].step == 1);
  CHECK(!reports[0].emergency);
  CHECK(reports[1].emergency);
  CHECK(reports[1].size.v ==
        double(fs::file_size(shard_file(set_directory(scratch.path(), 2), 0))));
  CHECK(reports[1].write.count() > 0);
  CHECK(store.take_reports().empty());
}

TEST_CASE("two jobs in one directory: the second is told who is there, a crash frees the place") {
  const Scratch scratch;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const RunLock lock(scratch.path());
    char byte = 1;
    if (::write(ready[1], &byte, 1) == 1) ::pause();
    ::_exit(0);
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  const std::string message = message_of([&] { const RunLock second(scratch.path()); });
  CHECK(contains(message, "is in use by process " + std::to_string(holder)));
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  CHECK(message_of([&] { const RunLock second(scratch.path()); }).empty());
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace reckon
