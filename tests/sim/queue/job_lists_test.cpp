#include "sim/queue/lists/job_lists.h"

#include <catch2/catch.hpp>

using namespace reckon;
using Catch::Contains;
using Catch::StartsWith;

namespace {
const FixedTime& length_of(const JobRequest& job) { return std::get<FixedTime>(job.work); }
}  // namespace

TEST_CASE("lists of jobs with durations, and their mistakes") {
  const auto own = read_job_csv(
      "jobs.csv", "job_id,submit_seconds,duration_seconds,gpus\na,0,60,1\nb,5.5,1,8\n");
  REQUIRE(own);
  CHECK(own->jobs[1].submit == SimTime{} + std::chrono::milliseconds(5500));
  CHECK(own->jobs[1].gpus() == 8);
  CHECK_FALSE(length_of(own->jobs[1]).limit);
  const auto limited = read_job_csv(
      "jobs.csv", "submit_seconds,duration_seconds,gpus,limit_seconds\n0,60,1,90\n0,60,1,\n");
  REQUIRE(limited);
  CHECK(length_of(limited->jobs[0]).limit == std::chrono::seconds(90));
  CHECK_FALSE(length_of(limited->jobs[1]).limit);
  const auto bad = read_job_csv("jobs.csv", "submit_seconds,duration_seconds,gpus\n0,x,1\n0,1\n");
  REQUIRE_FALSE(bad);
  CHECK_THAT(format(bad.error()[0]), StartsWith("jobs.csv:2:3: error: duration_seconds is 'x'"));
  CHECK_THAT(format(bad.error()[1]), StartsWith("jobs.csv:3: error: the row has 2 fields"));
  const auto lacking = read_job_csv("jobs.csv", "submit,duration_seconds,gpus\n");
  CHECK_THAT(format(lacking.error()[0]), Contains("the header has no column 'submit_seconds'"));
  const auto philly = read_philly(
      "p.csv",
      "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,a\n"
      "2017-10-09 06:13:03,2951.0,2,2951.0,b\n2017-10-10 00:00:00,5,0,0,b\n");
  REQUIRE(philly);
  REQUIRE(philly->jobs.size() == 2);  // without GPU: left out
  CHECK(philly->jobs[0].submit == SimTime{} + std::chrono::seconds(2932));
  CHECK_THAT(read_philly("p.csv", "timestamp,duration,num_gpus\n2017-13-09 07:01:55,6,1\n")
                 .error()
                 .front()
                 .what,
             Contains("must be a date with its time"));
}

TEST_CASE("a list of one's own says whose jobs they are") {
  const auto list =
      read_job_csv("jobs.csv",
                   "submit_seconds,duration_seconds,gpus,user,team,queue,qos,priority\n"
                   "0,60,1,ann,vision,batch,high,5\n0,60,1,ben,vision,,,\n");
  REQUIRE(list);
  const JobOwner &first = list->jobs[0].owner, &second = list->jobs[1].owner;
  CHECK(first.team == second.team);
  CHECK(list->names.users.name(second.user) == "ben");
  CHECK(list->names.queues.name(first.queue) == "batch");
  CHECK(list->names.qos.name(first.qos) == "high");
  CHECK(first.priority == 5);
  CHECK(second.queue == JobOwner::kNotSaid);
  CHECK(second.priority == 0);
}

TEST_CASE("Helios's log becomes jobs, and what has no GPU is counted") {
  const auto list = read_helios_csv(
      "cluster_log.csv",
      "job_id,user,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue,"
      "vc\n"
      "1,u1,8,32,1,COMPLETED,2020-04-01 00:00:10,2020-04-01 00:01:00,2020-04-01 01:01:00,3600,50,"
      "vcA\n"
      "2,u2,0,4,1,FAILED,2020-04-01 00:00:00,2020-04-01 00:00:00,2020-04-01 00:00:09,9,0,vcA\n"
      "3,u2,1,4,1,FAILED,2020-04-01 00:00:05,2020-04-01 00:00:05,2020-04-01 00:00:15,10,0,vcB\n");
  REQUIRE(list);
  REQUIRE(list->jobs.size() == 2);
  CHECK(list->jobs[0].gpus() == 8);
  CHECK(list->jobs[0].submit == SimTime{} + std::chrono::seconds(5));
  CHECK(length_of(list->jobs[0]).time == std::chrono::hours(1));
  CHECK(list->names.teams.name(list->jobs[1].owner.team) == "vcB");
  CHECK(list->epoch == 1'585'699'205);
  CHECK(list->left_out.front() == std::pair<int, std::string>{1, "without a GPU"});
  const auto bad =
      read_helios_csv("h.csv", "gpu_num,submit_time,duration\n1,2020-04-31 00:00:00,x\n");
  REQUIRE_FALSE(bad);
  CHECK_THAT(format(bad.error()[0]),
             StartsWith("h.csv:2:3: error: submit_time is '2020-04-31 00:00:00'"));
  CHECK_THAT(format(bad.error()[1]), StartsWith("h.csv:2:23: error: duration is 'x'"));
}

TEST_CASE("Philly's log counts the GPUs of the first attempt and the time of all") {
  const auto list = read_philly("cluster_job_log", R"([
  {"status": "Pass", "vc": "ee9e8c", "jobid": "a", "user": "u1",
   "submitted_time": "2017-10-09 07:00:00",
   "attempts": [
     {"start_time": "2017-10-09 07:02:00", "end_time": "2017-10-09 07:03:00",
      "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0"]}]},
     {"start_time": "2017-10-09 08:00:00", "end_time": "2017-10-09 09:00:00",
      "detail": [{"ip": "m3", "gpus": ["gpu0", "gpu1", "gpu2"]}]}]},
  {"status": "Killed", "vc": "ee9e8c", "jobid": "b", "user": "u2",
   "submitted_time": "2017-10-09 06:59:00", "attempts": []}
])");
  REQUIRE(list);
  REQUIRE(list->jobs.size() == 1);
  CHECK(list->jobs[0].gpus() == 3);
  CHECK(length_of(list->jobs[0]).time == std::chrono::seconds(3660));
  CHECK(list->jobs[0].line == 2);
  CHECK(list->names.teams.names() == std::vector<std::string>{"ee9e8c"});
  CHECK(list->left_out.front() == std::pair<int, std::string>{1, "that never ran on a GPU"});
  const auto bad = read_philly(
      "log", "[\n{\"attempts\": []},\n\n{\"submitted_time\": \"2017-10-09 06:59:00\"}]");
  REQUIRE_FALSE(bad);
  CHECK_THAT(format(bad.error()[0]), StartsWith("log:2: error: submitted_time is ''"));
  CHECK_THAT(format(bad.error()[1]), StartsWith("log:4: error: the job has no list of attempts"));
  CHECK_THAT(format(read_philly("log", "[\n{\"attempts\" []}]").error()[0]), StartsWith("log:2:"));
}

TEST_CASE("Sia's lists take their lengths from the scenario") {
  const std::string text =
      "name,time,application,num_replicas,batch_size\ncifar10-0,107,cifar10,6,2048\n"
      "bert-1,110.5,bert,2,320\n";
  const std::map<std::string, Seconds> both{{"cifar10", Seconds{600}}, {"bert", Seconds{7200}}};
  const auto list = read_sia_csv("w.csv", text, both);
  REQUIRE(list);
  CHECK(list->jobs[0].gpus() == 6);
  CHECK(length_of(list->jobs[1]).time == std::chrono::hours(2));
  CHECK(list->jobs[1].submit == SimTime{} + std::chrono::milliseconds(110'500));
  const auto lacking = read_sia_csv("w.csv", text, {{"cifar1O", Seconds{600}}});
  REQUIRE_FALSE(lacking);
  CHECK(format(lacking.error()[0])
            .starts_with("w.csv:2:15: error: no duration of application 'cifar10'; did you mean "
                         "'cifar1O'?"));
}

TEST_CASE("Kueue's workloads count the GPUs of all pods, from admission to the end") {
  const auto list = read_kueue_workloads("workloads.json", R"({
"apiVersion": "v1",
"items": [
 {"metadata": {"name": "job-a", "namespace": "team-a", "creationTimestamp": "2024-05-01T07:00:00Z"},
  "spec": {"queueName": "lq", "priority": 100, "podSets": [
    {"count": 4, "template": {"spec": {"containers": [
      {"resources": {"requests": {"nvidia.com/gpu": "8", "cpu": "500m"}}}]}}},
    {"count": 1, "template": {"spec": {"containers": [{"resources": {}}]}}}]},
  "status": {"admission": {"clusterQueue": "cq"}, "conditions": [
    {"type": "QuotaReserved", "status": "True", "lastTransitionTime": "2024-05-01T07:00:05Z"},
    {"type": "Admitted", "status": "True", "lastTransitionTime": "2024-05-01T07:01:00Z"},
    {"type": "Finished", "status": "True", "lastTransitionTime": "2024-05-01T09:01:00Z"}]}},
 {"metadata": {"name": "job-b", "namespace": "team-b", "creationTimestamp": "2024-05-01T06:00:00Z"},
  "spec": {"podSets": [{"count": 1, "template": {"spec": {"containers": [
    {"resources": {"limits": {"nvidia.com/gpu": 1}}}]}}}]},
  "status": {}}
], "kind": "List"})");
  REQUIRE(list);
  REQUIRE(list->jobs.size() == 1);
  CHECK(list->jobs[0].gpus() == 32);
  CHECK(length_of(list->jobs[0]).time == std::chrono::hours(2));
  CHECK(list->jobs[0].line == 4);
  CHECK(list->jobs[0].owner.priority == 100);
  CHECK(list->names.teams.names().front() == "team-a");
  CHECK(list->names.queues.names().front() == "cq");
  CHECK(list->left_out.front() == std::pair<int, std::string>{1, "that were not admitted"});
  const auto bad =
      read_kueue_workloads("w.json", "{\"items\": [\n\n{\"metadata\": {\"name\": \"x\"}}]}");
  REQUIRE_FALSE(bad);
  CHECK_THAT(format(bad.error()[0]),
             StartsWith("w.json:3: error: workload 'x': spec.podSets has no pods"));
  CHECK_THAT(format(read_kueue_workloads("w.json", "{\n\"items\" [}").error()[0]),
             StartsWith("w.json:2:9: error: this is no JSON"));
  CHECK_THAT(read_kueue_workloads("w.json", "{}").error()[0].what,
             Contains("there is no list 'items'"));
}
