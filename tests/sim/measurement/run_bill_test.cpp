#include "sim/measurement/run/bill.h"

#include <catch2/catch.hpp>

namespace reckon {
namespace {

/// An hour, of which the second attempt was waited for ten minutes.
Measurements billed_run() {
  Measurements m;
  m.runs.resize(2);
  m.runs[1].attempt = 1;
  m.runs[1].at = Seconds{1800};
  InterruptionRecord lost;
  lost.at = Seconds{1200};
  m.interruptions.push_back(lost);
  EndRecord end;
  end.attempt = 1;
  end.finished = true;
  end.at = Seconds{3600};
  m.ends.push_back(end);
  return m;
}

RunRates rates() {
  RunRates r;
  PoolRates pool;
  pool.pool = "gpu";
  pool.nodes = 2;
  pool.price.machine = {1'000'000'000};
  pool.price.accelerators = {3'000'000'000};
  r.pools.push_back(pool);
  r.billing.management = {100'000'000};
  r.storage = {10'000'000};
  return r;
}

double usd(const RunBill& bill, CostPart part) { return to_usd(bill.parts[std::size_t(part)]).v; }

TEST_CASE("nodes are paid for while the job waits to be started again, as idle") {
  const RunBill bill = bill_of(rates(), billed_run());
  CHECK(usd(bill, CostPart::machines) == Approx(2 * 1 * 50.0 / 60));
  CHECK(usd(bill, CostPart::accelerators) == Approx(2 * 3 * 50.0 / 60));
  CHECK(usd(bill, CostPart::idle) == Approx(2 * 4 * 10.0 / 60));
  CHECK(usd(bill, CostPart::management) == Approx(0.1));
  CHECK(usd(bill, CostPart::storage) == Approx(0.01));
  CHECK(to_usd(bill.total).v == Approx(8.11));
  CHECK(bill.node_hours == std::vector<std::pair<std::string, double>>{{"gpu", 2.0}});
}

TEST_CASE("a node that was asked for later is paid for from then on") {
  Measurements m = billed_run();
  m.provisioning.push_back({"gpu", 1, "machine", Seconds{1800}, Seconds{60}, true});
  m.provisioning.push_back({"gpu", 0, "machine", Seconds{1200}, Seconds{60}, false});  // never came
  const RunBill bill = bill_of(rates(), m);
  CHECK(bill.node_hours[0].second == Approx(1.5));
}

TEST_CASE("a reserved node costs its reservation's price until that ends") {
  RunRates r = rates();
  r.billing.management = r.storage = {};
  r.pools[0].reservation = PlannedReservation{1, {2'000'000'000}, Seconds{1800}};
  const RunBill bill = bill_of(r, billed_run());
  CHECK(to_usd(bill.total).v == Approx(4 + 0.5 * 2 + 0.5 * 4));
}

}  // namespace
}  // namespace reckon
