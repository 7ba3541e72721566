#include "sim/base/printed_currency.h"

#include <catch2/catch.hpp>

#include "sim/base/unit_text.h"

using namespace reckon;

TEST_CASE("money is printed in the currency that was set, values stay dollars") {
  CHECK(format_usd(Usd{1234.5}) == "1,234.50 USD");
  print_money_in({"EUR", 0.5});
  CHECK(format_usd(Usd{1234.5}) == "617.25 EUR");
  CHECK(in_printed_currency(10) == 5);
  print_money_in({});
  CHECK(format_usd(Usd{1234.5}) == "1,234.50 USD");
}

TEST_CASE("energies and masses are read and written with their units") {
  CHECK(parse_energy("500kWh").value() == 1.8e9);
  CHECK(parse_energy("1.2 MWh").value() == Approx(4.32e9));
  CHECK_FALSE(parse_energy("500"));
  CHECK(parse_mass("2t").value() == 2e6);
  CHECK(parse_mass("350 kg").value() == 3.5e5);
  CHECK_FALSE(parse_mass("3 lb"));
  CHECK(format_energy(1.8e9) == "500 kWh");
  CHECK(format_mass(1.25e6) == "1.25 t");
}
