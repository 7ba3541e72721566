#pragma once
#include "sim/base/random.h"
#include "sim/serving/service.h"

namespace reckon {

/// Times at which requests come, in order, from `begin` (at or before the period's 0, at the first
/// rate until then). A rate holds until its hour ends; of a gap across the end the part that is
/// left passes at the next hour's rate: requests are evenly spaced, or exponentially, in the
/// integral of the rate (the time change of a Poisson process [Cinlar 1975, "Introduction to
/// Stochastic Processes", Sec. 4.7]).
class RequestStream {
 public:
  RequestStream(const ServiceSetting& setting, std::uint64_t seed, SimTime begin);
  /// SimTime::max(): no more.
  SimTime next();

 private:
  double rate_at(SimTime at) const;  // requests a second
  SimTime end_of_rate(SimTime at) const;

  const ServiceSetting& setting_;
  RandomStream random_;
  SimTime now_;
};

}  // namespace reckon
