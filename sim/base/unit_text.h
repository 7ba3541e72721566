#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "sim/base/quantity.h"

// Quantities as people write them, read strictly and printed for people. Every reader takes the
// whole text or fails with a sentence that names the allowed units with an example. All of them
// refuse NaN, infinity and trailing garbage; sign and range are the caller's to judge (`-5min` is a
// duration). A bare number has no unit and is refused wherever a unit is needed ("90" is not a
// duration).
namespace reckon {

template <class T>
using Parsed = tl::expected<T, std::string>;  // the error is a sentence for a Diagnostic's `what`

Parsed<double> parse_number(std::string_view text);  // 3, 0.5, 1e3; locale-free
Parsed<std::int64_t> parse_integer(
    std::string_view text);  // 1281167, 1_281_167, 08 is 8, 1e3 is 1000
Parsed<double> parse_count(
    std::string_view text);  // 10B = 1e10, 300M, 4k, 1.5T; for tokens and samples
Parsed<double> parse_fraction(std::string_view text);  // 30% = 0.3, or 0.3
Parsed<Seconds> parse_duration(
    std::string_view text);                        // 250us 10ms 30s 10min 8h 30d 2w, also 1h30min
Parsed<Bytes> parse_bytes(std::string_view text);  // 110kB 16GiB 512MiB 1TB
Parsed<BytesPerSecond> parse_bandwidth(
    std::string_view text);                        // 100Gbps (bits), 50GB/s, 1.2GiB/s, 131MB/s
Parsed<Flops> parse_flops(std::string_view text);  // 4.09GFLOP
Parsed<FlopsPerSecond> parse_flop_rate(std::string_view text);  // 125TFLOPS, 989.4 TFLOP/s

Parsed<double> parse_energy(std::string_view text);  // 500kWh, 1.2MWh, 3.6MJ, in joules
Parsed<double> parse_mass(std::string_view text);    // 2t, 350kg, 10g, in grams

/// An amount with its currency as written: "20000 USD", "4.10 EUR".
struct MoneyText {
  double amount = 0;  // in `currency`; of a price, a second
  std::string currency;
  friend bool operator==(const MoneyText&, const MoneyText&) = default;
};
Parsed<MoneyText> parse_money(std::string_view text);
/// "61.20 USD/h", also /s /min /d /month (730 h): the amount is per second afterwards.
Parsed<MoneyText> parse_price(std::string_view text);

// For people: three significant digits, the unit that fits. format_duration(34200 s) = "9 h 30
// min".
std::string format_duration(Seconds s);
std::string format_bytes(Bytes b);               // "16.0 GiB" (binary, as memory is sold)
std::string format_bandwidth(BytesPerSecond r);  // "12.5 GB/s"
std::string format_flops(Flops f);               // "8.18 GFLOP"
std::string format_flop_rate(FlopsPerSecond r);  // "125 TFLOP/s"
/// "1,234.56 USD"; below one cent as many digits as it needs. In printed_currency().
std::string format_usd(Usd amount);
std::string format_energy(double joules);     // "412 kWh"
std::string format_mass(double grams);        // "1.2 t"
std::string format_count(double n);           // "1,281,167"
std::string format_percent(double fraction);  // "12.3 %"

}  // namespace reckon
