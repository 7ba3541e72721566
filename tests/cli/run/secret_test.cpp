#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <set>
#include <sstream>

#include "cli/background_job.h"
#include "cli/run/hand_started.h"
#include "support/small_job.h"

// What of a job's secret is seen from outside, and what is listened at.
using namespace reckon;
using namespace reckon::test;

namespace {

namespace fs = std::filesystem;

const std::string kTwo = "{kind: multi_worker_mirrored, workers: 2}";
const std::string kServer =
    "{kind: parameter_server, workers: 2, parameter_servers: 1, mode: synchronous}";

std::string job_with_server(int steps) {
  return small_job("served", kServer, steps) + small_pool(2) +
         "    - {name: servers, role: parameter_server, machine: {vcpu: 1, memory: 2GiB, network: "
         "10Gbps}, nodes: 1}\n";
}

/// Command line and environment of a process.
std::string seen_of(pid_t process) {
  const fs::path about = "/proc/" + std::to_string(process);
  return read_all(about / "cmdline") + read_all(about / "environ");
}

/// The hexadecimal addresses at which a process listens, as /proc/net/tcp and tcp6 write them.
std::vector<std::string> listens_at(pid_t process) {
  const fs::path about = "/proc/" + std::to_string(process);
  std::set<std::string> inodes;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(about / "fd", error)) {
    const std::string to = fs::read_symlink(entry.path(), error).string();
    if (to.starts_with("socket:[")) inodes.insert(to.substr(8, to.size() - 9));
  }
  std::vector<std::string> addresses;
  for (const char* table : {"net/tcp", "net/tcp6"}) {
    std::istringstream lines(read_all(about / table));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::vector<std::string> w;
      for (std::string word; words >> word;) w.push_back(word);
      constexpr const char* kListens = "0A";
      if (w.size() > 9 && w[3] == kListens && inodes.contains(w[9]))
        addresses.push_back(w[1].substr(0, w[1].find(':')));
    }
  }
  return addresses;
}

bool is_loopback_address(const std::string& hexadecimal) {
  return hexadecimal == "0100007F" || hexadecimal == "00000000000000000000000001000000";
}

}  // namespace

TEST_CASE("the secret of a run is in its file alone, which is its owner's, and goes with the run") {
  const Workspace w;
  w.write("job.yaml", small_job("kept", kTwo, 2000) + small_pool(2));
  const fs::path file = w.path("run/job.secret");
  std::string secret, seen;
  mode_t mode = 0;
  {
    BackgroundJob job(w, "job.yaml", "run", "--replications 20");
    REQUIRE(job.wait_for([&] {
      return fs::exists(w.path("run/measurements.jsonl")) && job.workers().size() == 2 &&
             contains(read_all(w.path("run/measurements.jsonl")), "step");
    }));
    secret = read_all(file);
    struct stat about {};
    REQUIRE(::stat(file.c_str(), &about) == 0);
    mode = about.st_mode & 07777;
    for (const pid_t worker : job.workers()) seen += seen_of(worker);
    job.signal(SIGINT);
    CHECK(job.code() == 75);
    seen += job.output() + job.errors();
  }
  CHECK(mode == 0600);
  REQUIRE(secret.size() == 65);
  secret.pop_back();
  CHECK(contains(seen, "--secret-file"));
  CHECK_FALSE(contains(seen, secret));
  CHECK_FALSE(fs::exists(file));
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(w.path("run"))) {
    if (!entry.is_regular_file()) continue;
    ++files;
    INFO(entry.path().string());
    CHECK_FALSE(contains(read_all(entry.path()), secret));
  }
  CHECK(files > 5);
}

TEST_CASE("each start of a run has a secret of its own, and a leftover is of no use") {
  const Workspace w;
  w.write("job.yaml", small_job("again", kTwo, 40) + small_pool(2));
  fs::create_directories(w.path("run"));
  const std::string leftover = JobSecret::random().text();
  w.write("run/job.secret", leftover);
  std::string during;
  BackgroundJob job(w, "job.yaml", "run", "--replications 20");
  job.wait_for([&] {
    during = read_all(w.path("run/job.secret"));
    return during.size() == 65 && !contains(during, leftover);
  });
  CHECK(during.size() == 65);
  CHECK_FALSE(contains(during, leftover));
  CHECK(job.code() == 0);
}

TEST_CASE("a run on this machine listens at its loopback alone, workers and servers") {
  const Workspace w;
  w.write("ring.yaml", small_job("ring", kTwo, 5000) + small_pool(2));
  w.write("served.yaml", job_with_server(5000));
  for (const auto& [file, processes] : {std::pair{"ring.yaml", 2u}, std::pair{"served.yaml", 3u}}) {
    const std::string out = std::string("run-") + file;
    BackgroundJob job(w, file, out, "--replications 20");
    // Gloo listens while its ranks connect, the others as long as they live.
    std::set<std::string> seen;
    std::size_t listeners = 0;
    REQUIRE(job.wait_for([&] {
      listeners = 0;
      for (const pid_t worker : job.workers())
        for (const std::string& address : listens_at(worker)) seen.insert(address), ++listeners;
      // Rank 0, and the parameter server; on a busy machine a look may find but one of them.
      return listeners >= processes - 1 &&
             contains(read_all(w.path(out + "/measurements.jsonl")), "\"record\":\"step\"");
    }));
    for (const std::string& address : seen) {
      INFO(file << ": listens at " << address);
      CHECK(is_loopback_address(address));
    }
    job.signal(SIGINT);
    CHECK(job.code() == 75);
  }
}

TEST_CASE("processes that are to meet are refused without a secret, and told how to make one") {
  const Workspace w;
  w.write("plan.yaml", small_plan(kRecords, kTwo, 2));
  const std::string worker = kWorker +
                             "plan.yaml --workers 2 --rank 1 --out run --master "
                             "127.0.0.1:1 ";
  const Output none = w.run_shell(worker);
  CHECK(none.code == 2);
  CHECK(contains(none.err,
                 "a job of several processes needs a secret: make one with: (umask 077 "
                 "&& openssl rand -hex 32 > job.secret)"));
  CHECK_FALSE(fs::exists(w.path("run")));
  w.write("open", JobSecret::random().text());
  ::chmod(w.path("open").c_str(), 0644);
  const Output open = w.run_shell(worker + "--secret-file open");
  CHECK(open.code == 2);
  CHECK(contains(open.err, "open is open to others (mode 0644)"));
  CHECK(w.run_shell(worker + "--secret-file missing").code == 2);
  // One that meets nobody needs none.
  w.write("alone.yaml", small_plan(kRecords));
  CHECK(w.run_shell(kWorker + "alone.yaml --threads 1").code == 0);
}

TEST_CASE("the command that makes a secret makes one that works") {
  const Workspace w;
  REQUIRE(w.run_shell("(umask 077 && openssl rand -hex 32 > job.secret)").code == 0);
  CHECK_NOTHROW(JobSecret::read(w.path("job.secret")));
}

TEST_CASE("two workers with two secrets do not train, and both say why") {
  const Workspace w;
  w.write("plan.yaml", small_plan(kRecords, kTwo, 2));
  const std::string first = secret_option(w, "first"), second = secret_option(w, "second");
  const std::string common = kWorker +
                             "plan.yaml --workers 2 --threads 1 --deadline 3s --master "
                             "127.0.0.1:" +
                             std::to_string(meeting_port());
  const Output out = w.run_shell(common + second + " --rank 1 2> other.txt & " + common + first +
                                 " --rank 0; code=$?; wait; exit $code");
  CHECK(out.code == 76);
  CHECK(contains(out.err, "warning: a connection from 127.0.0.1:"));
  CHECK(contains(out.err, "was turned away: it knows another secret"));
  CHECK(contains(read_all(w.path("other.txt")),
                 "knows another secret: give all processes of a "
                 "job the same --secret-file"));
}
