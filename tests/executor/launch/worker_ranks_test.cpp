#include "executor/launch/worker_ranks.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "executor/comm/errors.h"
#include "executor/train/checkpoint/durable_file.h"
#include "executor/train/stop_signal.h"

using namespace reckon;

namespace {

namespace fs = std::filesystem;

class RanksDirectory {
 public:
  RanksDirectory() {
    std::string name = (fs::temp_directory_path() / "reckon-ranks-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
  }
  ~RanksDirectory() { fs::remove_all(path); }
  RanksDirectory(const RanksDirectory&) = delete;
  RanksDirectory& operator=(const RanksDirectory&) = delete;
  std::string read(const std::string& name) const {
    std::ifstream in(path / name);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  fs::path path;
};

/// Two ranks that are programs of the shell; $OWN is which of them.
WorkerRanks shell_ranks(const std::string& script, int first = 0, bool alone = false) {
  return {.command = {"sh", "-c", "OWN=$RECKON_RANK_OF_WORKER\n" + script},
          .ranks = 2,
          .first = first,
          .alone = alone,
          .grace = Seconds{0.3}};
}

StopRequest nobody() { return StopRequest::none; }

}  // namespace

TEST_CASE("each rank of a worker is told which it is, and where they meet if they are alone") {
  const RanksDirectory d;
  const std::string script =
      "echo $LOCAL_RANK $LOCAL_WORLD_SIZE $RECKON_PARENT ${RECKON_MEETING%:*} "
      "${RECKON_RENDEZVOUS_FD:+listens} > " +
      d.path.string() + "/$OWN; [ -z \"$RECKON_MEETING\" ] || wc -c < \"$RECKON_SECRET_FILE\" > " +
      d.path.string() + "/secret$OWN; echo \"$RECKON_SECRET_FILE\" > " + d.path.string() +
      "/file; exit 0";
  const std::string own = std::to_string(getpid());
  CHECK(run_worker_ranks(shell_ranks(script, 4), nobody) == 0);
  CHECK(d.read("0") == "0 2 " + own + "\n");
  CHECK(d.read("1") == "1 2 " + own + "\n");
  CHECK(run_worker_ranks(shell_ranks(script, 0, true), nobody) == 0);
  CHECK(d.read("0") == "0 2 " + own + " 127.0.0.1 listens\n");
  CHECK(d.read("1") == "1 2 " + own + " 127.0.0.1\n");
  CHECK(d.read("secret1") == "65\n");  // 64 digits and the end of the line
  std::string file = d.read("file");
  file.pop_back();
  CHECK_FALSE(fs::exists(file));  // it went with them
}

TEST_CASE("a worker ends as the rank that failed first, and takes the others with it") {
  const auto code = [](const std::string& script) {
    const auto begin = std::chrono::steady_clock::now();
    const int ended = run_worker_ranks(shell_ranks(script), nobody);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
    return ended;
  };
  CHECK(code("[ $OWN = 1 ] && exit 3; exec sleep 100") == 3);
  CHECK(code("[ $OWN = 1 ] && kill -9 $$; exec sleep 100") == 128 + SIGKILL);
  // Who lost a peer is not to blame for it, whoever is seen first.
  CHECK(code("[ $OWN = 0 ] && exit 76; sleep 0.1; exit 2") == 2);
  CHECK(code("exit 76") == kExitLostPeer);
}

TEST_CASE("a request to stop goes to all ranks, and they take the time that they need") {
  const RanksDirectory d;
  const std::string there = d.path.string() + "/there";
  const auto stop = [&] {
    return fs::exists(there + "0") && fs::exists(there + "1") ? StopRequest::graceful
                                                              : StopRequest::none;
  };
  const std::string script =
      "trap 'sleep 1; exit 75' TERM; : > " + there + "$OWN; while :; do sleep 0.05; done";
  CHECK(run_worker_ranks(shell_ranks(script), stop) == kExitStoppedOnRequest);
  // Where one was told by whoever takes its node away, so are all in their next step.
  CHECK(run_worker_ranks(shell_ranks("[ $OWN = 0 ] && exit 75; sleep 0.6; exit 75"), nobody) ==
        kExitStoppedOnRequest);
}

TEST_CASE("of the starts that its ranks take part in a worker speaks once, as the pod that it is") {
  const RanksDirectory d;
  // The second rank is told of start 4 too late: it leaves start 3 alone.
  const std::string waits = "echo 'reckon-worker: waits for an order; start left: '";
  const std::string part = "echo 'reckon-worker: takes part in start '";
  const std::string next = "; sleep 0.1; [ $OWN = 1 ] && sleep 0.2; ";
  const std::string script = waits + "none" + next + part + "\"3 as rank $((4 + OWN)) of 8\"" +
                             next + waits + "3" + next + "[ $OWN = 1 ] || { " + part +
                             "'4 as rank 2 of 6'; echo works; " + waits + "4; }";
  {
    std::fflush(stdout);
    const FileHandle kept(::dup(STDOUT_FILENO));
    const FileHandle file(::creat((d.path / "printed").c_str(), 0600));
    REQUIRE((kept.get() >= 0 && ::dup2(file.get(), STDOUT_FILENO) >= 0));
    const int code = run_worker_ranks(shell_ranks(script, 0), nobody);
    std::fflush(stdout);
    ::dup2(kept.get(), STDOUT_FILENO);
    CHECK(code == 0);
  }
  CHECK(d.read("printed") ==
        "reckon-worker: waits for an order; start left: none\n"
        "reckon-worker: takes part in start 3 as rank 2 of 4\n"
        "reckon-worker: waits for an order; start left: 3\n"
        "reckon-worker: takes part in start 4 as rank 1 of 3\n"
        "[rank 2] works\n"
        "reckon-worker: waits for an order; start left: 4\n");
}
