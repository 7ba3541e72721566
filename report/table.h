#pragma once
#include <string>

#include "sim/forecast/forecast.h"

// What a person reads. Values in, text out: no terminal, no colours, the same text everywhere.
namespace reckon {

/// The answer with its range first, then what it is made of. `width` is where long lines are
/// broken.
std::string forecast_table(const Forecast& forecast, int width = 100);

// Ranges as the tables print them: the median and, in brackets, the 5th to the 95th percentile, in
// one unit.
std::string time_range(const Quantiles& seconds);   // "8.20 h (7.90 .. 9.10)"
std::string time_value(Seconds t);                  // "41.2 h", in the same units
std::string usd_range(const Quantiles& usd);        // "123 USD (110 .. 151)"
std::string energy_range(const Quantiles& joules);  // "412 kWh (380 .. 450)"
std::string mass_range(const Quantiles& grams);     // "1.2 t (1.1 .. 1.4)"
std::string usd_value(double usd);                  // "123 USD", as precise as the ranges
// Of differences, with their signs: "-3.20 h (-4.10 .. +0.50)".
std::string time_difference(const Quantiles& seconds);
std::string usd_difference(const Quantiles& usd);
std::string percent_range(const Quantiles& share);  // "93.1 % (90.0 .. 95.2)"
// Effects of assumptions, with their signs: "-12 h 52 min", "+132.00 USD".
std::string signed_duration(double seconds);
std::string signed_usd(double usd);

/// "104,448 tokens/s", "2,728 samples/s": of a model that reads tokens by these.
std::string rate_text(SamplesPerSecond rate, std::int64_t tokens_per_sample);
/// "tokens/s" or "samples/s".
const char* rate_unit(std::int64_t tokens_per_sample);
/// In that unit, three digits where it is small.
std::string rate_value(SamplesPerSecond rate, std::int64_t tokens_per_sample);
/// "104,448 tokens/s on 1024 accelerators (102 each, 51 samples/s), MFU 35.1 %".
std::string throughput_text(const StepEstimate& step, int accelerators,
                            std::int64_t tokens_per_sample);

/// ", MFU 39.9 %"; "" where the workers have no accelerators whose peak it would be a share of.
std::string mfu_text(const StepEstimate& step);

/// A share of n replications as a probability: "83.2 %"; where all or none are, what n can tell:
/// "> 99.9 %", "< 0.1 %".
std::string probability_text(double share, int n);

struct TimeUnit {
  double seconds;  // in one of it
  const char* name;
};
/// The largest unit in which the time is more than a handful: deadlines are written in hours, so
/// days come late.
TimeUnit time_unit(double seconds);

}  // namespace reckon
