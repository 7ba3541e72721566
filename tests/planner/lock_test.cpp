#include "planner/lock/lock.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "planner/lock/attribution.h"
#include "support/shipped_catalog.h"

using namespace reckon;
using namespace reckon::planner;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

PublishedRun run_of(TextPool& pool, const char* id, double rate) {
  PublishedRun run;
  run.id = pool.keep(id);
  run.source = "dle";
  run.trust = 'A';
  run.measured = SamplesPerSecond{rate};
  run.run.accelerator = "V100-SXM2-16";
  run.run.accelerators = 8;
  run.run.model = "resnet50";
  run.run.inter_node = BytesPerSecond{1.25e9};
  run.run.zero_stage = 0;
  run.run.overlap = false;
  run.run.micro_batch = 0.5;
  return run;
}

Lock whole_lock() {
  TextPool pool;
  const std::vector runs{run_of(pool, "a", 812.25), run_of(pool, "b", 1.0 / 3)};
  Lock lock;
  lock.made = {"0.1.0", "00ff", "11", "2026-07-20", "22"};
  lock.scenario = {"q.yaml", "name: \"x\"\nworkload: {}\n"};
  lock.files = {{"model.json", "0123456789abcdef"}};
  lock.calibrations = {{"own.yaml", "schema_version: 1\n"}};
  lock.forecast =
      LockedForecast{{7, std::nullopt},
                     Quantiles{3.1, 2, 3, 4},
                     std::nullopt,
                     {{"p95(time) <= 4s", 4.0, true}, {"mean(cost) < 1 USD", {}, false}}};
  lock.plan =
      LockedPlan{{}, "cost", 12.5, "name: x\n", Quantiles{1, 1, 1, 1}, Quantiles{2, 2, 2, 2}};
  lock.prices = locked_prices(test::shipped_catalog(), {"gcp"});
  lock.used = {locked(runs[0])};
  lock.evidence = locked_sources(runs);
  return lock;
}

}  // namespace

TEST_CASE("a lock is read as it was written, to the last digit") {
  const std::string text = write_lock(whole_lock());
  CHECK(is_lock(text));
  CHECK_FALSE(is_lock("name: reckon_lock\n"));
  const auto read = read_lock(text, "q.lock.json");
  REQUIRE(read);
  CHECK(write_lock(*read) == text);
  CHECK(read->prices == whole_lock().prices);
  CHECK(read->forecast->expect[0].value == 4.0);
  CHECK(read->used[0].run.at("zero_stage") == "0");  // which is not the same as not said
}

TEST_CASE("a lock that was cut, of another version or with other fields is refused with its name") {
  const std::string text = write_lock(whole_lock());
  for (std::size_t at = 0; at < text.size(); at += 97)
    CHECK_FALSE(read_lock(text.substr(0, at), "q.lock.json"));
  const auto with = [&](const std::string& old, const std::string& now) {
    std::string other = text;
    const std::size_t at = other.find(old);
    REQUIRE(at != std::string::npos);
    return read_lock(other.replace(at, old.size(), now), "q.lock.json");
  };
  const auto newer = with("\"reckon_lock\": 1", "\"reckon_lock\": 2");
  REQUIRE_FALSE(newer);
  CHECK(newer.error()[0].what == "a lock of version 2, and this reckon reads version 1");
  CHECK(newer.error()[0].at.file == "q.lock.json");
  const auto unknown = with("\"catalog_digest\"", "\"catalogue\"");
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().size() == 2);  // the field that is missing, and the one that is unknown
  CHECK(unknown.error()[0].hint.find("plan FILE --lock") != std::string::npos);
  CHECK_FALSE(with("12.5", "\"many\""));
}

TEST_CASE("prices of a lock put into a catalog are the very prices") {
  const Catalog& shipped = test::shipped_catalog();
  Catalog catalog = shipped;
  const auto gcp = locked_prices(shipped, {"gcp"});
  REQUIRE(gcp.size() > 100);
  for (Offering& o : catalog.offerings)
    if (o.on_demand) o.on_demand->value.v *= 1.07;
  CHECK(locked_prices(catalog, {"gcp"}) != gcp);
  const auto aws = locked_prices(catalog, {"aws"});
  set_prices(catalog, gcp);
  CHECK(locked_prices(catalog, {"gcp"}) == gcp);
  CHECK(locked_prices(catalog, {"aws"}) == aws);  // today's
  for (const Offering& now : catalog.offerings) {
    if (now.provider.name != "gcp") continue;
    const auto was = std::ranges::find_if(shipped.offerings, [&](const Offering& o) {
      return o.provider == now.provider && o.region == now.region && o.zones == now.zones &&
             o.item == now.item && o.covers == now.covers && o.count == now.count &&
             o.date == now.date;
    });
    REQUIRE(was != shipped.offerings.end());
    REQUIRE(was->on_demand.has_value() == now.on_demand.has_value());
    if (was->on_demand) REQUIRE(was->on_demand->value == now.on_demand->value);
  }
}

TEST_CASE("evidence of a lock: new runs are left out, used ones come back, others are counted") {
  TextPool pool;
  const std::vector then{run_of(pool, "kept", 100), run_of(pool, "used", 200),
                         run_of(pool, "unused", 300)};
  const auto evidence = locked_sources(then);
  REQUIRE(evidence.size() == 1);
  const std::vector used{locked(then[1])};
  // Today: one is as it was, one was corrected, one is gone, one is new.
  const std::vector today{run_of(pool, "new", 400), run_of(pool, "kept", 100),
                          run_of(pool, "used", 222)};
  const RestoredRuns restored = restored_runs(today, evidence, used, pool);
  REQUIRE(restored.runs.size() == 2);
  CHECK(restored.runs[0].id == "kept");
  CHECK(restored.runs[1].id == "used");
  CHECK(restored.runs[1].measured.v == 200);
  CHECK(restored.runs[1].run == then[1].run);
  CHECK(name_of(restored.runs[1]) == name_of(then[1]));
  CHECK(restored.lost == 1);
  const RestoredRuns same = restored_runs(then, evidence, used, pool);
  CHECK(same.runs.size() == 3);
  CHECK(same.lost == 0);
}

TEST_CASE("shares of a change add up to it, each with its own cause") {
  // 10 then; the same again today 11; edited 14; repriced 12; now 17.
  const Swaps s{10, 11, 14, 12, 17};
  const auto shares = shares_of(s);
  REQUIRE(shares);
  CHECK(*shares == std::array{3.0, -2.0, 5.0, 1.0});
  double sum = 0;
  for (const double share : *shares) sum += share;
  CHECK(sum == s.now - s.then);
  CHECK_FALSE(shares_of({10, kNever, 14, 12, 17}));
}

TEST_CASE("the first cause after which a limit does not hold has broken it") {
  const auto below = [](double limit) { return [limit](double v) { return v <= limit; }; };
  const Swaps s{10, 11, 14, 12, 17};  // 10, then 13, 11, 16, 17
  CHECK(first_to_break(s, below(12)) == Cause::edit);
  CHECK(first_to_break(s, below(15)) == Cause::evidence);
  CHECK(first_to_break(s, below(16)) == Cause::reckon);
  CHECK(first_to_break(s, below(17)) == std::nullopt);
  CHECK(first_to_break(s, below(9)) == std::nullopt);  // it did not hold then
  CHECK(first_to_break({10, 10, 10, 12, 12}, below(11)) == Cause::prices);
  // Without an answer at one of the swaps.
  CHECK(first_to_break({10, 10, kNever, kNever, kNever}, below(11)) == Cause::edit);
  CHECK(first_to_break({10, 10, 10, kNever, kNever}, below(11)) == Cause::prices);
  CHECK(first_to_break({10, 10, 10, 10, kNever}, below(11)) == Cause::evidence);
  CHECK(first_to_break({10, kNever, kNever, kNever, kNever}, below(11)) == Cause::reckon);
}
