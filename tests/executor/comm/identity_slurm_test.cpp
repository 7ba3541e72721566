#include "executor/comm/rendezvous/identity_slurm.h"
#include "executor/comm/identities.h"

#include <set>

// A process that `srun` started knows its place in the job from Slurm's variables.
namespace {
using namespace reckon;
using namespace reckon::test;

using Variables = std::map<std::string, std::string>;

/// Of task 5 of step 1 of job 4242, with others in place of these or besides them.
Variables task(const Variables& others = {}) {
  Variables all{{"SLURM_JOB_ID", "4242"},
                {"SLURM_STEP_ID", "1"},
                {"SLURM_PROCID", "5"},
                {"SLURM_LOCALID", "1"},
                {"SLURM_NTASKS", "16"},
                {"SLURM_STEP_NUM_TASKS", "8"},
                {"SLURM_JOB_NODELIST", "node[01-04]"},
                {"SLURM_STEP_NODELIST", "node[03-04]"}};
  for (const auto& [name, value] : others) all[name] = value;
  return all;
}
Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}
}  // namespace

TEST_CASE("a task of srun is the rank of its number, all tasks know where rank 0 listens") {
  const auto me = worker_identity({}, with(task()));
  REQUIRE(me.has_value());
  CHECK(me->rank == 5);
  CHECK(me->role == Role::worker);
  CHECK(me->workers == 8);  // of the step, not of the job
  CHECK(me->local_rank == 1);
  CHECK(me->master == HostPort{"node03", 10000 + 4242 + 7919});
  CHECK(me->job == "slurm-4242.1");
  CHECK(me->attempt == 0);
  CHECK(me->source == "SLURM_PROCID");
  CHECK(worker_identity({}, with(task({{"SLURM_PROCID", "0"}})))->role == Role::chief);
  CHECK(worker_identity({}, with(task({{"SLURM_RESTART_COUNT", "2"}})))->attempt == 2);
}

TEST_CASE("older names of Slurm's variables do as well, and the job's where the step has none") {
  Variables old = without(without(task(), "SLURM_STEP_NUM_TASKS"), "SLURM_STEP_NODELIST");
  for (const auto& [name, older] :
       Variables{{"SLURM_STEP_ID", "SLURM_STEPID"}, {"SLURM_JOB_ID", "SLURM_JOBID"}}) {
    old[older] = old[name];
    old.erase(name);
  }
  const auto me = worker_identity({}, with(old));
  REQUIRE(me.has_value());
  CHECK(me->workers == 16);
  CHECK(me->master.host == "node01");
  CHECK(me->job == "slurm-4242.1");
}

TEST_CASE("a batch script, a shell of salloc and a step of one task are one process each") {
  const auto alone = [](const Variables& variables) {
    const auto me = worker_identity({}, with(variables));
    REQUIRE(me.has_value());
    return me->members() == 1 && me->rank == 0 && me->source.empty();
  };
  // sbatch --ntasks 16, outside of srun.
  CHECK(alone(
      without(without(task({{"SLURM_PROCID", "0"}}), "SLURM_STEP_ID"), "SLURM_STEP_NUM_TASKS")));
  CHECK(alone({{"SLURM_JOB_ID", "4242"}, {"SLURM_NTASKS", "16"}, {"SLURM_NODELIST", "node07"}}));
  CHECK(alone(task({{"SLURM_STEP_ID", "interactive"}})));
  CHECK(alone(task({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}})));
}

TEST_CASE("what torchrun, TF_CONFIG or the command line says goes before Slurm's word") {
  const auto torchrun = worker_identity({}, with(task({{"RANK", "1"},
                                                       {"WORLD_SIZE", "2"},
                                                       {"MASTER_ADDR", "head"},
                                                       {"MASTER_PORT", "29500"}})));
  REQUIRE(torchrun.has_value());
  CHECK(torchrun->source == "RANK");
  CHECK(torchrun->workers == 2);
  CHECK(torchrun->job == "reckon");
  const auto flagged = worker_identity({.rank = 0, .workers = 3, .master = "m:9"}, with(task()));
  REQUIRE(flagged.has_value());
  CHECK(flagged->source == "flags");
  CHECK(flagged->workers == 3);
  const std::string tf_config = R"({"cluster": {"worker": ["b:2", "c:3"]},)"
                                R"( "task": {"type": "worker", "index": 1}})";
  CHECK(worker_identity({}, with(task({{"TF_CONFIG", tf_config}})))->source == "TF_CONFIG");
}

TEST_CASE("a meeting point that is said goes before the one that Slurm's variables give") {
  const auto host = worker_identity({}, with(task({{"MASTER_ADDR", "head"}})));
  CHECK(host->master == HostPort{"head", slurm_meeting_port(4242, 1)});
  const auto both =
      worker_identity({}, with(task({{"MASTER_ADDR", "head"}, {"MASTER_PORT", "29500"}})));
  CHECK(both->master == HostPort{"head", 29500});
  const auto flag =
      worker_identity({.master = "m:9"}, with(task({{"SLURM_STEP_NODELIST", "bad["}})));
  REQUIRE(flag.has_value());
  CHECK(flag->master == HostPort{"m", 9});
  CHECK(flag->rank == 5);
}

TEST_CASE("WORLD_SIZE alone, as batch scripts export it, has to be the number of tasks") {
  const auto same = worker_identity({}, with(task({{"WORLD_SIZE", "8"}})));
  REQUIRE(same.has_value());
  CHECK(same->source == "SLURM_PROCID");
  CHECK(problems({}, with(task({{"WORLD_SIZE", "16"}}))) ==
        std::vector<std::string>{"WORLD_SIZE: WORLD_SIZE is 16, but SLURM_STEP_NUM_TASKS is 8"});
}

TEST_CASE("Slurm's variables: every mistake is reported, with the variable") {
  CHECK(problems({}, with(task({{"SLURM_PROCID", "x"},
                                {"SLURM_STEP_NUM_TASKS", "none"},
                                {"SLURM_LOCALID", "-1"},
                                {"SLURM_JOB_ID", "4242_7"},
                                {"SLURM_STEP_NODELIST", "node[03-04"}}))) ==
        std::vector<std::string>{"SLURM_STEP_NUM_TASKS: SLURM_STEP_NUM_TASKS is 'none'",
                                 "SLURM_PROCID: SLURM_PROCID is 'x'",
                                 "SLURM_LOCALID: SLURM_LOCALID is '-1'",
                                 "SLURM_JOB_ID: SLURM_JOB_ID is '4242_7'",
                                 "SLURM_STEP_NODELIST: SLURM_STEP_NODELIST is 'node[03-04'"});
  CHECK(problems({}, with(task({{"SLURM_PROCID", "8"}}))) ==
        std::vector<std::string>{"SLURM_PROCID: SLURM_PROCID is 8, but SLURM_STEP_NUM_TASKS is 8"});
  CHECK(problems({}, with(without(without(task(), "SLURM_STEP_NODELIST"), "SLURM_JOB_NODELIST"))) ==
        std::vector<std::string>{"SLURM_STEP_NODELIST: SLURM_STEP_NODELIST is not set"});
}

TEST_CASE("the first node of a list keeps its zeros, whatever comes behind it") {
  using Case = std::pair<std::string, std::optional<std::string>>;
  const auto [list, first] = GENERATE(values<Case>({{"node7", "node7"},
                                                    {"node7,other", "node7"},
                                                    {"node[03-05,9],other", "node03"},
                                                    {"node[9,03-05]", "node9"},
                                                    {"rack[1-2]n[07,09]", "rack1n07"},
                                                    {"gpu-[001-128].cluster", "gpu-001.cluster"},
                                                    {"127.0.0.[1-2]", "127.0.0.1"},
                                                    {"", std::nullopt},
                                                    {",node7", std::nullopt},
                                                    {"node[", std::nullopt},
                                                    {"node[]", std::nullopt},
                                                    {"node[a-b]", std::nullopt},
                                                    {"node[-3]", std::nullopt},
                                                    {"node]", std::nullopt},
                                                    {"node 7", std::nullopt}}));
  INFO(list);
  CHECK(first_slurm_node(list) == first);
}

TEST_CASE("steps that share a node have ports of their own, below those that the system gives") {
  std::set<std::uint16_t> of_jobs, of_steps;
  for (int k = 0; k < 2'000; ++k) {
    of_jobs.insert(slurm_meeting_port(67'000'000 + k, 0));
    of_steps.insert(slurm_meeting_port(4242, k));
  }
  CHECK(of_jobs.size() == 2'000);
  CHECK(of_steps.size() == 2'000);
  for (const auto* ports : {&of_jobs, &of_steps}) {
    CHECK(*ports->begin() >= 10000);
    CHECK(*ports->rbegin() < 30000);
  }
}

TEST_CASE("tasks on a node of a step of Slurm") {
  for (const auto& [list, node, tasks] :
       std::vector<std::tuple<std::string, int, int>>{{"8", 0, 8},
                                                      {"8(x2),4", 0, 8},
                                                      {"8(x2),4", 1, 8},
                                                      {"8(x2),4", 2, 4},
                                                      {"1,2(x10),3", 11, 3}})
    CHECK(slurm_tasks_on_node(list, node) == tasks);
  for (const std::string list : {"", "0", "x", "8(x", "8(x)", "8(x0),2", "8(x2", "8;2", "8,"})
    CHECK(slurm_tasks_on_node(list, 3) == std::nullopt);
  CHECK(slurm_tasks_on_node("8(x2),4", 3) == std::nullopt);
}
