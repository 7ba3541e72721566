#include "sim/queue/gavel/gavel.h"

#include <catch2/catch.hpp>

#include "sim/base/mapped_file.h"

using namespace reckon;
using Catch::Contains;

namespace {

SimTime at(double seconds) { return SimTime{} + to_clock(Seconds{seconds}); }
double since(const JobTimes& job) { return to_seconds(*job.end - job.submit).count(); }

JobRequest gavel_job(std::int64_t steps, int gpus, SimTime submit, std::vector<double> rates) {
  return {
      .submit = submit, .worker = pod_of_gpus(gpus), .work = StepsByKind{steps, std::move(rates)}};
}

const std::vector<GavelKind> kTwoKinds{{"k80", 1}, {"v100", 1}};

QueueRun run(const std::vector<JobRequest>& jobs, const std::vector<GavelKind>& kinds = kTwoKinds) {
  return run_gavel(jobs, kinds, {}, 0, jobs.size());
}

constexpr const char* kTable = R"json({"k80": {"('LM', 1)": {"null": 1.0, "('LM', 1)": [0.5, 0.5]}},
 "v100": {"('LM', 1)": {"null": 2.5}, "('LM', 2)": {"null": 4.0}}})json";

}  // namespace

TEST_CASE("a job takes the kind on which it is fastest, and ends with its last step") {
  // 1,000 steps at 2.5 a second: 900 in the first round of 360 s, 100 in the second.
  const QueueRun r = run({gavel_job(1000, 1, at(0), {1, 2.5})});
  CHECK(since(r.jobs[0]) == Approx(400));
  CHECK(*r.jobs[0].start == at(0));
}

TEST_CASE("a round is as long as its longest job needs for whole steps") {
  // 0.01 steps a second: 3 steps in 360 s, which take 300 s; then 3 and 1.
  const QueueRun r = run({gavel_job(7, 1, at(0), {0.01, 0.01})});
  CHECK(since(r.jobs[0]) == Approx(700));
  CHECK(r.gpu_seconds == Approx(700));
}

TEST_CASE("what comes within a round waits for its end, and for the next decision") {
  // The first decision is at 0 and, as Gavel has it, one more at the first round's end; from then
  // on 1,920 s pass: job 2 comes at 400 and starts at 360 + 6 x 360.
  const std::vector<JobRequest> jobs{gavel_job(100'000, 1, at(0), {1, 2}),
                                     gavel_job(100, 1, at(10), {1, 2}),
                                     gavel_job(100, 1, at(400), {1, 2})};
  const QueueRun r = run(jobs, {{"k80", 2}, {"v100", 1}});
  CHECK(*r.jobs[1].start == at(360));
  CHECK(*r.jobs[2].start == at(360 + 6 * 360));
}

TEST_CASE("a decision moves a job to a faster kind that became free") {
  // Job 1 runs on the K80 at 1 step a second until job 0 left the V100 and 1,920 s passed.
  const std::vector<JobRequest> jobs{gavel_job(720, 1, at(0), {1, 2}),
                                     gavel_job(10'000, 1, at(0), {1, 2})};
  const QueueRun r = run(jobs);
  CHECK(since(r.jobs[0]) == Approx(360));
  // Decided at 0 and (job 0 left) at 360: 360 steps are done by then, 9,640 follow at 2 a second.
  CHECK(since(r.jobs[1]) == Approx(360 + 9640 / 2.0));
}

TEST_CASE("who finds no GPU free ends the decision, who runs nowhere is passed over") {
  const std::vector<JobRequest> jobs{gavel_job(100'000, 1, at(0), {1, 2}),
                                     gavel_job(1000, 1, at(0), {0, 5}),   // not on a K80
                                     gavel_job(1000, 1, at(0), {1, 2}),   // gets the K80
                                     gavel_job(1000, 3, at(0), {1, 2})};  // no kind has three
  const QueueRun r = run_gavel(jobs, kTwoKinds, {}, 0, 3);
  CHECK(*r.jobs[2].start == at(0));
  CHECK(*r.jobs[1].start > at(50'000 - 1));
  CHECK(r.never == std::vector<std::size_t>{3});
}

TEST_CASE("the table of throughputs is read as Gavel writes it") {
  const auto table = read_throughputs("t.json", kTable);
  REQUIRE(table);
  REQUIRE(table->of("LM", 1) != nullptr);
  CHECK(table->of("LM", 1)->at("v100") == 2.5);
  CHECK(table->of("LM", 2)->at("v100") == 4.0);
  CHECK(table->of("LM", 3) == nullptr);
  const auto broken = read_throughputs("t.json", "{\n\"v100\": }");
  REQUIRE_FALSE(broken);
  CHECK_THAT(broken.error().front().what, Contains("line 2"));
  const auto shapeless =
      read_throughputs("t.json", R"json({"v100": {"LM": {"null": -1}, "('A', 1)": {}}})json");
  REQUIRE_FALSE(shapeless);
  CHECK(shapeless.error().size() == 2);
}

TEST_CASE("mistakes in a list of jobs are told with their lines") {
  const auto table = read_throughputs("t.json", kTable);
  const auto read = [&](const char* text, std::size_t running = 0) {
    return read_gavel_jobs("list.csv", text, *table, kTwoKinds, running);
  };
  const std::string header = "job_id,job_type,total_steps,gpus,arrival_seconds\n";
  const auto bad = read((header + "0,LM,0,1,0\n1,GAN,5,1,0\n2,LM,5,1,7\n3,LM,5,1,6\n").c_str());
  REQUIRE_FALSE(bad);
  REQUIRE(bad.error().size() == 3);
  CHECK(format(bad.error()[0]).starts_with("list.csv:2:6: error: total_steps is '0'"));
  CHECK(format(bad.error()[1]).starts_with("list.csv:3:3: error: no rate of 'GAN' on 1 GPUs"));
  CHECK(format(bad.error()[2]).starts_with("list.csv:5:10: error: the job arrives before"));
  CHECK_THAT(read((header + "0,LM,5,1,0\n").c_str(), 1).error().front().what,
             Contains("1 jobs ran already, and the list has 1"));
}

TEST_CASE("the job that opens the window counts once, however many are said to have run") {
  const auto table = read_throughputs("t.json", kTable);
  const std::string text =
      "job_id,job_type,total_steps,gpus,arrival_seconds\n"
      "0,LM,5,1,0\n1,LM,9,1,0\n2,LM,7,1,0\n3,LM,7,1,0.000000\n4,LM,3,1,50\n";
  for (const std::size_t running : {3, 4}) {
    const auto list = read_gavel_jobs("list.csv", text, *table, kTwoKinds, running);
    REQUIRE(list);
    CHECK(list->jobs.size() == 4);
    CHECK(list->running == 2);
    CHECK(std::get<StepsByKind>(list->jobs[2].work).steps == 7);
    CHECK(list->repeated_line == 4);
  }
  const auto fewer = read_gavel_jobs("list.csv", text, *table, kTwoKinds, 2);
  CHECK(fewer->jobs.size() == 5);  // the window begins where the user says
  CHECK(fewer->running == 2);
}

TEST_CASE("Gavel's own results on the lists that it wrote") {
  // stanford-futuredata/gavel under fifo_perf: 45,680.44 s with 36 GPUs of each kind and
  // 152,855.91 s with 6, over the window's 200 jobs.
  const std::string folder = RECKON_SOURCE_DIR "/scenarios/traces/gavel/";
  const MappedFile rates(folder + "simulation_throughputs.json");
  const auto table = read_throughputs("rates", rates.bytes());
  REQUIRE(table);
  const auto mean = [&](const std::string& name, int gpus, std::size_t running) {
    const std::vector<GavelKind> kinds{{"k80", gpus}, {"p100", gpus}, {"v100", gpus}};
    const MappedFile file(folder + name);
    const auto list = read_gavel_jobs(name, file.bytes(), *table, kinds, running);
    REQUIRE(list);
    return run_gavel(list->jobs, kinds, {}, list->running, 200).completion.mean;
  };
  CHECK(mean("fifo_perf_36.csv", 36, 16) == Approx(45'680.44).epsilon(0.005));
  CHECK(mean("fifo_perf_6.csv", 6, 24) == Approx(152'855.91).epsilon(0.01));
}
