#pragma once
#include <string>

// In which currency texts print money. All values, files and JSON keys ("cost_usd") stay in US
// dollars: only what format_usd() and the ranges of reports write is converted.
namespace reckon {

struct Currency {
  std::string code = "USD";  // ISO 4217
  double usd_rate = 1;       // what one US dollar is worth in it; > 0
  friend bool operator==(const Currency&, const Currency&) = default;
};

/// Like a program's locale: set once a command, before it makes any text and starts any thread,
/// from `prices.currency` of what it reads. Dollars until then.
void print_money_in(const Currency& currency);
const Currency& printed_currency();

/// An amount of dollars in the printed currency, without its name.
double in_printed_currency(double usd);

}  // namespace reckon
