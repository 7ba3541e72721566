#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/resolve/pricing.h"
#include "support/skip.h"

using namespace reckon;
using namespace reckon::planning;
using Catch::Matchers::Contains;

namespace {

class TraceFile {
 public:
  explicit TraceFile(const std::string& text) {
    std::string name = (std::filesystem::temp_directory_path() / "reckon-trace-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    directory_ = name;
    std::ofstream(directory_ / "trace.json") << text;
  }
  ~TraceFile() { std::filesystem::remove_all(directory_); }
  Parsed<ReclaimTimes> read(int nodes, std::optional<Seconds> gap = {}) const {
    return reclaim_times(TraceReclaim{"trace.json", gap, {}}, directory_, nodes);
  }

 private:
  std::filesystem::path directory_;
};

}  // namespace

TEST_CASE("a fall in a recorded trace takes as many node slots, the highest first") {
  const TraceFile file(R"({"metadata": {"gap_seconds": 300}, "data": [2, 2, 0, 1, 2, 1]})");
  const Parsed<ReclaimTimes> times = file.read(2);
  REQUIRE(times);
  CHECK(times->length == Seconds{1800});
  CHECK(times->by_slot[0] == std::vector<Seconds>{Seconds{600}});                 // 2 -> 0
  CHECK(times->by_slot[1] == std::vector<Seconds>{Seconds{600}, Seconds{1500}});  // and 2 -> 1
}

TEST_CASE("a gap given in the scenario replaces the file's") {
  const TraceFile file(R"({"metadata": {"gap_seconds": 600}, "data": [1, 0, 1]})");
  CHECK(file.read(1, Seconds{60})->by_slot[0] == std::vector<Seconds>{Seconds{60}});
}

TEST_CASE("nodes beyond the recorded ones replay the trace, shifted") {
  const TraceFile file(R"({"metadata": {"gap_seconds": 100}, "data": [1, 0, 1, 1]})");
  const Parsed<ReclaimTimes> times = file.read(2);
  REQUIRE(times);
  // 400 s long, two rounds: the second node half a trace later
  CHECK(times->by_slot[0] == std::vector<Seconds>{Seconds{100}});
  CHECK(times->by_slot[1] == std::vector<Seconds>{Seconds{300}});
}

TEST_CASE("a trace that cannot be read or means nothing says so") {
  CHECK_THAT(reclaim_times(TraceReclaim{"absent.json", {}, {}}, "/nonexistent", 1).error(),
             Contains("cannot read the trace"));
  CHECK_THAT(TraceFile("[1, 2").read(1).error(), Contains("is not a trace of the form"));
  CHECK_THAT(TraceFile(R"({"metadata": {"gap_seconds": 300}, "data": [0, 0]})").read(1).error(),
             Contains("no instance that is ever up"));
}

TEST_CASE("a trace that memory does not hold is refused before it is made") {
  CHECK_THAT(
      TraceFile(R"({"metadata": {"gap_seconds": 300}, "data": [2000000000, 0]})").read(1).error(),
      Contains("has 2000000000 instances at once; at most 65536 can be"));
  CHECK_THAT(TraceFile(R"({"metadata": {"gap_seconds": 1e10}, "data": [1, 0]})").read(1).error(),
             Contains("is longer than 100 years"));
  CHECK_THAT(TraceFile(std::string(5'000'000, ' ')).read(1).error(),
             Contains("is larger than 4 MiB"));
  TraceReclaim trace;  // 1e6 reclaims of one slot, replayed on each of 65,536
  trace.generate = TraceReclaim::Generate{Seconds{1}, Seconds{1e6}, 1, 7};
  CHECK_THAT(reclaim_times(trace, "", 65'536).error(),
             Contains("the generated trace has more than 1e+07 reclaims on 65536 nodes"));
  CHECK(reclaim_times(trace, "", 2));
}

TEST_CASE("a generated trace is the same every time and has the mean it was asked for") {
  TraceReclaim trace;
  trace.generate = TraceReclaim::Generate{Seconds{3600}, Seconds{3600.0 * 1000}, 20, 7};
  const Parsed<ReclaimTimes> first = reclaim_times(trace, "", 20),
                             again = reclaim_times(trace, "", 20);
  REQUIRE(first);
  CHECK(first->by_slot == again->by_slot);
  std::size_t reclaims = 0;
  for (const auto& slot : first->by_slot) reclaims += slot.size();
  // Poisson with mean 20 x 1000: standard deviation 141
  CHECK(double(reclaims) == Approx(20000).margin(5 * 141));
}

TEST_CASE("more nodes in a generated trace change nothing for the first ones") {
  TraceReclaim trace;
  trace.generate = TraceReclaim::Generate{Seconds{3600}, Seconds{36000}, 2, 7};
  const auto two = reclaim_times(trace, "", 2);
  trace.generate->nodes = 5;
  const auto five = reclaim_times(trace, "", 5);
  REQUIRE((two && five));
  CHECK(two->by_slot[1] == five->by_slot[1]);
}

TEST_CASE("ages of prices are counted in days of the calendar") {
  CHECK(days_between("2024-01-01", "2025-07-01") == 547);  // 366 + 181
  CHECK(days_between("2024-02", "2024-03-01") == 29);
  CHECK_FALSE(days_between("about 2022", "2024-03-01"));
}
