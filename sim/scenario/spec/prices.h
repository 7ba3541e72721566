#pragma once
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/base/unit_text.h"
#include "sim/base/words.h"

// `prices:` as written: what things cost, what was bought beforehand, what data costs that leaves.
namespace reckon {

/// How machines that the user holds were bought.
enum class ReservationKind {
  machines,    // held for the run, billed for what is used of them
  owned,       // paid already, whoever uses them: nothing, or the owner's own rate
  block,       // a Capacity Block, a calendar reservation: paid whole, its machines go at its end
  commitment,  // a price for a promise: an hourly sum over a term; it holds no machine
};
constexpr auto words_of(ReservationKind) {
  using Kind = Word<ReservationKind>;
  return std::array{Kind{"machines", ReservationKind::machines},
                    Kind{"private", ReservationKind::owned}, Kind{"block", ReservationKind::block},
                    Kind{"commitment", ReservationKind::commitment}};
}

struct ReservationSpec {
  std::string machine;
  int count = 0;
  ReservationKind kind = ReservationKind::machines;
  std::string from, until;         // first and last day; "": it holds now, it has no end
  std::optional<Seconds> length;   // from `from` on, in place of `until`
  std::optional<Seconds> term;     // of a commitment
  std::optional<MoneyText> price;  // of one machine
  std::optional<double> discount;  // 0..1 off what it costs on demand, in place of `price`
  bool whole = false;              // all of it is paid, used or not
};

/// What leaves a zone or a region, and what a GB (1e9 bytes) of it costs; prices not given: the
/// provider's.
struct EgressSpec {
  std::string checkpoints_in, data_in;  // regions of the buckets; "": the cluster's own
  int zones = 1;                        // over which the workers' nodes lie evenly
  std::optional<MoneyText> between_regions, between_zones;
};
struct PricesSpec {
  std::string currency = "USD";
  std::optional<double> usd_rate;  // 1 USD in that currency
  std::optional<double> discount;  // 0..1
  /// Half-range of all prices (5th to 95th percentile), own ones too; not given: what the catalog
  /// says of its own ones, and own ones are certain.
  std::optional<double> uncertainty;  // a share
  std::map<std::string, MoneyText> rates;
  std::vector<ReservationSpec> reserved;
  std::map<std::string, Seconds> minimum_rental;  // by machine: what one is rented for at least
  std::optional<EgressSpec> egress;
  bool suspect = false;  // use list prices that look wrong
};

}  // namespace reckon
