#include "sim/base/printed_currency.h"

#include "sim/base/check.h"

namespace reckon {
namespace {

Currency& printed() {
  static Currency currency;
  return currency;
}

}  // namespace

void print_money_in(const Currency& currency) {
  RECKON_CHECK(currency.usd_rate > 0);
  printed() = currency;
}

const Currency& printed_currency() { return printed(); }

double in_printed_currency(double usd) { return usd * printed().usd_rate; }

}  // namespace reckon
