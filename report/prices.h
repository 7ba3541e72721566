#pragma once
#include <string>
#include <vector>

#include "sim/forecast/forecast.h"

// Prices in sentences: how sure they are, and at which one a rank turns.
namespace reckon {

/// One line a price: "p4d.24xlarge on spot in us-east-1 (aws)  5.33 USD/h (2.47 .. 8.19),
/// 2025-07-01, recorded-prices"; "" without any.
std::string price_lines(const Forecast& forecast);

/// "as long as an hour of p4d.24xlarge on spot in us-east-1 (aws) costs under 14.20 USD (now 11.57;
/// dearer with 12.0 % probability)"; "" where no price turns it.
std::string rank_turn_text(const Forecast& cheaper, const Forecast& other);

/// "0.35 USD/h (0.29 .. 0.37)".
std::string hour_range(const PriceForecast& price);

/// " 412 kWh (380 .. 450) at the meter", " 170 kg CO2 (...)"; "unknown" where nothing is known.
std::string energy_text(const Forecast& forecast);
std::string co2_text(const Forecast& forecast);

/// "the machines' 3.2 kW a node, PUE 1.1, 412 g CO2 a kWh (google-region-carbon)"; "" without.
std::string power_note(const Forecast& forecast);

}  // namespace reckon
