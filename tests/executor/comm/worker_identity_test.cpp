#include "executor/comm/identities.h"

namespace {
using namespace reckon;
using namespace reckon::test;

std::vector<std::string> tf_problems(const std::string& json) {
  return problems({}, with({{"TF_CONFIG", json}}));
}

const std::string kCluster =
    R"("cluster": {"chief": ["a:1"], "worker": ["b:2", "c:3"], "ps": ["d:4", "[::1]:5"]})";
WorkerIdentity of_task(const std::string& type, int index) {
  const auto identity = worker_identity(
      {}, with({{"TF_CONFIG", "{" + kCluster + R"(, "task": {"type": ")" + type +
                                  R"(", "index": )" + std::to_string(index) + "}}"}}));
  REQUIRE(identity.has_value());
  return *identity;
}
}  // namespace

TEST_CASE("nothing said: one process on its own") {
  const auto identity = worker_identity({}, with({}));
  REQUIRE(identity.has_value());
  CHECK(identity->members() == 1);
  CHECK(identity->rank == 0);
  CHECK(identity->source.empty());
}

TEST_CASE("TF_CONFIG: chief first, workers after it, then servers, the evaluator is no member") {
  CHECK(of_task("chief", 0).rank == 0);
  CHECK(of_task("chief", 0).role == Role::chief);
  CHECK(of_task("worker", 1).rank == 2);
  CHECK(of_task("worker", 1).port == 3);
  const WorkerIdentity server = of_task("ps", 1);
  CHECK(server.rank == 4);
  CHECK(server.role == Role::parameter_server);
  CHECK(server.workers == 3);
  CHECK(server.servers == 2);
  CHECK(server.port == 5);
  CHECK(server.master == HostPort{"a", 1});
  CHECK(of_task("evaluator", 0).rank == -1);
  CHECK(of_task("master", 0).rank == 0);  // AI Platform's older word
}

TEST_CASE("TF_CONFIG without a chief: worker 0 is it") {
  const auto identity =
      worker_identity({}, with({{"TF_CONFIG", R"({"cluster": {"worker": ["b:2", "c:3"]},)"
                                              R"( "task": {"type": "worker", "index": "0"}})"}}));
  REQUIRE(identity.has_value());
  CHECK(identity->role == Role::chief);
  CHECK(identity->master == HostPort{"b", 2});
}

TEST_CASE("TF_CONFIG: every mistake is reported, with what was read") {
  CHECK(tf_problems("{") == std::vector<std::string>{"TF_CONFIG: TF_CONFIG is no JSON object"});
  CHECK(tf_problems("[]") == std::vector<std::string>{"TF_CONFIG: TF_CONFIG is no JSON object"});
  CHECK(tf_problems(R"({"cluster": {"chief": ["a:1", "b:1"], "wroker": [], "ps": "x:1",
                         "worker": ["nowhere", 7]}, "task": {"type": 3, "index": -1}})") ==
        std::vector<std::string>{"TF_CONFIG: cluster.ps is no list of addresses",
                                 R"(TF_CONFIG: cluster.worker[0] is "nowhere", no address)",
                                 "TF_CONFIG: cluster.worker[1] is 7, no address",
                                 "TF_CONFIG: cluster.wroker is no role; did you mean 'worker'?",
                                 "TF_CONFIG: cluster.chief has 2 addresses; there is one chief",
                                 "TF_CONFIG: task.type is missing or no text",
                                 "TF_CONFIG: task.index is -1, no whole number from 0"});
  CHECK(
      tf_problems("{" + kCluster + R"(, "task": {"type": "worker", "index": 2}})") ==
      std::vector<std::string>{"TF_CONFIG: task is worker 2, but cluster.worker has 2 addresses"});
  CHECK(tf_problems("{" + kCluster + R"(, "task": {"type": "cheif"}})") ==
        std::vector<std::string>{"TF_CONFIG: task.type is 'cheif'; did you mean 'chief'?"});
  CHECK(tf_problems("{" + kCluster + "}") ==
        std::vector<std::string>{
            "TF_CONFIG: task is missing: which of the cluster's processes is this?"});
  CHECK(tf_problems(R"({"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 0}})") ==
        std::vector<std::string>{
            "TF_CONFIG: cluster has neither chief nor worker: nobody would train"});
  CHECK(tf_problems("{" + kCluster + R"(, "task": {"type": "worker", "index": 99999999999}})") ==
        std::vector<std::string>{"TF_CONFIG: task.index is 99999999999, no whole number from 0"});
  CHECK(tf_problems("{" + kCluster + R"(, "task": {"type": "worker", "index": "one"}})") ==
        std::vector<std::string>{R"(TF_CONFIG: task.index is "one", no whole number)"});
}

TEST_CASE("RANK and its companions, as torchrun sets them") {
  const auto identity = worker_identity({}, with({{"RANK", "3"},
                                                  {"WORLD_SIZE", "8"},
                                                  {"LOCAL_RANK", "1"},
                                                  {"MASTER_ADDR", "node0"},
                                                  {"MASTER_PORT", "29500"},
                                                  {"TORCHELASTIC_RUN_ID", "job7"},
                                                  {"TORCHELASTIC_RESTART_COUNT", "2"}}));
  REQUIRE(identity.has_value());
  CHECK(identity->rank == 3);
  CHECK(identity->workers == 8);
  CHECK(identity->local_rank == 1);
  CHECK(identity->master == HostPort{"node0", 29500});
  CHECK(identity->job == "job7");
  CHECK(identity->attempt == 2);
  CHECK(identity->common_attempt() == 0);  // torchrun's agents count each for itself
  CHECK(identity->source == "RANK");
}

TEST_CASE("an attempt that is said, or Slurm's, is all ranks'") {
  const auto identity =
      worker_identity({.attempt = 3}, with({{"TORCHELASTIC_RESTART_COUNT", "2"}}));
  REQUIRE(identity.has_value());
  CHECK(identity->common_attempt() == 3);
}

TEST_CASE(
    "a job's name that is too long is refused with the variable, an IPv6 master loses its []") {
  const std::string of_300(300, 'x');
  CHECK(problems({}, with({{"TORCHELASTIC_RUN_ID", of_300}})) ==
        std::vector<std::string>{
            "TORCHELASTIC_RUN_ID: TORCHELASTIC_RUN_ID has 300 characters, more than 255"});
  CHECK(problems({.job = of_300}, with({})) ==
        std::vector<std::string>{"--job: --job has 300 characters, more than 255"});
  const auto identity = worker_identity({}, with({{"RANK", "1"},
                                                  {"WORLD_SIZE", "2"},
                                                  {"MASTER_ADDR", "[fd77::1]"},
                                                  {"MASTER_PORT", "29500"}}));
  REQUIRE(identity.has_value());
  CHECK(identity->master == HostPort{"fd77::1", 29500});
}

TEST_CASE("variables of launchers that are not read are known by name") {
  CHECK(unread_launcher(with({{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "0"}})) ==
        "OMPI_COMM_WORLD_SIZE, PMIX_RANK");
  CHECK(unread_launcher(with({{"RANK", "0"}})).empty());
}

TEST_CASE("RANK: every mistake is reported, with the variable") {
  CHECK(problems({}, with({{"RANK", "x"}, {"LOCAL_RANK", "-1"}})) ==
        std::vector<std::string>{"WORLD_SIZE: WORLD_SIZE is not set", "RANK: RANK is 'x'",
                                 "LOCAL_RANK: LOCAL_RANK is '-1'"});
  CHECK(problems({}, with({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "70000"}})) ==
        std::vector<std::string>{"RANK: RANK is 2, but WORLD_SIZE is 2",
                                 "MASTER_ADDR: MASTER_ADDR is not set",
                                 "MASTER_PORT: MASTER_PORT is '70000'"});
}

TEST_CASE("flags win over TF_CONFIG, and TF_CONFIG over RANK") {
  const Environment both =
      with({{"RANK", "1"},
            {"WORLD_SIZE", "2"},
            {"MASTER_ADDR", "node0"},
            {"MASTER_PORT", "1"},
            {"TF_CONFIG", "{" + kCluster + R"(, "task": {"type": "ps", "index": 0}})"}});
  CHECK(worker_identity({}, both)->source == "TF_CONFIG");
  const auto flagged =
      worker_identity({.rank = 1, .workers = 2, .servers = 2, .role = "ps", .master = "m:9"}, both);
  REQUIRE(flagged.has_value());
  CHECK(flagged->source == "flags");
  CHECK(flagged->rank == 3);
  CHECK(flagged->master == HostPort{"m", 9});
  CHECK(worker_identity({.master = "m:9"}, both)->master == HostPort{"m", 9});
}

TEST_CASE("flags: every mistake is reported") {
  CHECK(problems({.rank = 4, .workers = 2, .master = "nowhere"}, with({})) ==
        std::vector<std::string>{"--rank: --rank is 4 of 2 workers",
                                 "--master: --master is 'nowhere'"});
  CHECK(problems({.rank = 0, .workers = 2, .role = "wroker"}, with({})) ==
        std::vector<std::string>{
            "--role: --role is 'wroker'; did you mean 'worker'?",
            "--master: --master is missing: where do the processes of the job meet?"});
}
