#include "sim/queue/lists/sacct.h"

#include <catch2/catch.hpp>

using namespace reckon;
using Catch::Contains;

namespace {

// As `sacct --parsable2 --allusers --format=...` prints it.
const std::string kList =
    "JobID|User|Submit|Start|End|AllocTRES|ReqTRES|Timelimit|State\n"
    "101|ann|2024-05-01T07:00:00|2024-05-01T07:00:10|2024-05-01T09:00:10|"
    "billing=64,cpu=64,gres/gpu:a100=8,gres/gpu=8,mem=500G,node=1|cpu=64,gres/gpu=8|2-00:00:00|"
    "COMPLETED\n"
    "101.batch||2024-05-01T07:00:10|2024-05-01T07:00:10|2024-05-01T09:00:10|cpu=64,node=1|||"
    "COMPLETED\n"
    "102_3|ben|2024-05-01T06:59:00|2024-05-01T07:30:00|2024-05-01T07:31:30|"
    "cpu=8,gres/gpu:h100=2,gres/gpu:a100=1,node=2||30:00|TIMEOUT\n"
    "103|ben|2024-05-01T07:00:00|2024-05-01T07:00:00|2024-05-01T08:00:00|cpu=8,node=1||UNLIMITED|"
    "COMPLETED\n"
    "104|cem|2024-05-01T07:00:00|Unknown|Unknown||cpu=8,gres/gpu=4|01:00:00|PENDING\n"
    "105|cem|2024-05-01T07:00:00|2024-05-01T07:00:00|Unknown|cpu=8,gres/gpu=4||01:00:00|RUNNING\n";

}  // namespace

namespace {
const FixedTime& sacct_time_of(const JobRequest& job) { return std::get<FixedTime>(job.work); }
}  // namespace

TEST_CASE("what sacct says becomes jobs, and what is left out is counted") {
  const auto list = read_sacct("sacct.txt", kList);
  REQUIRE(list);
  REQUIRE(list->jobs.size() == 2);
  const JobRequest& whole_node = list->jobs[0];
  CHECK(whole_node.gpus() == 8);  // gres/gpu, not its types added to it
  CHECK(whole_node.submit == SimTime{} + std::chrono::seconds(60));
  CHECK(sacct_time_of(whole_node).time == std::chrono::hours(2));
  CHECK(sacct_time_of(whole_node).limit == std::chrono::hours(48));
  CHECK(whole_node.line == 2);
  const JobRequest& of_types = list->jobs[1];
  CHECK(of_types.gpus() == 3);
  CHECK(of_types.submit == SimTime{});
  CHECK(sacct_time_of(of_types).limit == std::chrono::minutes(30));
  using Rows = std::pair<int, std::string>;
  CHECK(list->left_out == std::vector<Rows>{{1, "steps of jobs"},
                                            {1, "without gres/gpu"},
                                            {1, "that never started"},
                                            {1, "that still run"}});
  CHECK(list->names.users.name(whole_node.owner.user) == "ann");
  CHECK(whole_node.owner.team == JobOwner::kNotSaid);  // no column Account
}

TEST_CASE("between commas, with minutes as the limit") {
  const auto list = read_sacct(
      "sacct.csv",
      "JobID,Submit,Start,End,ReqTRES,TimelimitRaw\n"
      "7,2024-05-01T07:00:00,2024-05-01T07:00:00,2024-05-01T07:00:05,\"cpu=4,gres/gpu=1\",90\n");
  REQUIRE(list);
  CHECK(list->jobs.at(0).gpus() == 1);
  CHECK(sacct_time_of(list->jobs.at(0)).limit == std::chrono::minutes(90));
}

TEST_CASE("what is wrong in a list of sacct is told with its place, all of it") {
  const auto bad = read_sacct("sacct.txt",
                              "JobID|Submit|Start|End|AllocTRES|Timelimit\n"
                              "1|yesterday|2024-05-01T07:00:00|2024-05-01T08:00:00|gres/gpu=8|1\n"
                              "2|2024-05-01T07:00:00|2024-05-01T07:00:00|2024-05-01T06:00:00|"
                              "gres/gpu=8|\n"
                              "3|2024-05-01T07:00:00|2024-05-01T07:00:00|2024-05-01T08:00:00|"
                              "gres/gpu=many|\n"
                              "4|2024-05-01T07:00:00|2024-05-01T07:00:00|2024-05-01T08:00:00|"
                              "gres/gpu=8|soon\n");
  REQUIRE_FALSE(bad);
  REQUIRE(bad.error().size() == 4);
  CHECK(format(bad.error()[0]).starts_with("sacct.txt:2:3: error: 'yesterday' is no date"));
  CHECK(format(bad.error()[1]).starts_with("sacct.txt:3:43: error: it ended before it started"));
  CHECK_THAT(format(bad.error()[2]), Contains("'gres/gpu=many' has no count of gres/gpu"));
  CHECK_THAT(format(bad.error()[3]), Contains("'soon' is no time limit"));
  const auto other = read_sacct("x.csv", "a,b\n1,2\n");
  CHECK_THAT(format(other.error().front()), Contains("the header has no column 'JobID'"));
  const auto none = read_sacct("x.txt", "JobID|Submit|Start|End\n");
  CHECK_THAT(format(none.error().front()), Contains("no job of the list had GPUs"));
}
