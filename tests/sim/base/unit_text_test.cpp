#include "sim/base/unit_text.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>

using namespace reckon;
using namespace reckon::literals;

TEST_CASE("durations are read in every unit and as sums of parts") {
  CHECK(parse_duration("250us")->count() == Approx(250e-6));
  CHECK(parse_duration("10 min")->count() == 600);
  CHECK(parse_duration("1h30min")->count() == 5400);
  CHECK(parse_duration("1d 12h")->count() == 129600);
  CHECK(parse_duration("2w")->count() == 1209600);
  CHECK(parse_duration("-5min")->count() == -300);
  CHECK(parse_duration("-1h30min")->count() == -5400);
}

TEST_CASE(
    "a duration without a unit, with a wrong one or with garbage is refused with an example") {
  CHECK(parse_duration("90").error() ==
        "'90' has no unit; write a duration such as 30s, 10min, 8h, 30d (units: ns us ms s min h d "
        "w)");
  CHECK(
      parse_duration("8 hrs").error() ==
      "'8 hrs' has an unknown unit 'hrs'; write a duration such as 30s, 10min, 8h, 30d (units: ns "
      "us ms s min h d w)");
  for (const char* bad :
       {"", "h", "ten s", "nan s", "inf s", "1e999s", "1h-30min", "5s!", "--5s", "0x10s"})
    CHECK_FALSE(parse_duration(bad).has_value());
}

TEST_CASE("bandwidth tells bits from bytes") {
  CHECK(parse_bandwidth("100Gbps")->v == Approx(12.5e9));
  CHECK(parse_bandwidth("100 GB/s")->v == Approx(100e9));
  CHECK(parse_bandwidth("1.2GiB/s")->v == Approx(1.2 * 1073741824));
  CHECK_FALSE(parse_bandwidth("100GB").has_value());
  CHECK_FALSE(parse_bandwidth("100gbps").has_value());
}

TEST_CASE("sizes tell 1000s from 1024s") {
  CHECK(parse_bytes("110kB")->v == 110e3);
  CHECK(parse_bytes("16GiB")->v == 16 * 1073741824.0);
  CHECK(parse_bytes("1_000 MB")->v == 1e9);
  CHECK_FALSE(parse_bytes("16").has_value());
  CHECK_FALSE(parse_bytes("16 Gbit").has_value());
}

TEST_CASE("counts take suffixes, integers take grouping and exponents") {
  CHECK(*parse_count("10B") == 1e10);
  CHECK(*parse_count("1.5T") == 1.5e12);
  CHECK(*parse_integer("1_281_167") == 1281167);
  CHECK(*parse_integer("08") == 8);
  CHECK(*parse_integer("1e3") == 1000);
  CHECK_FALSE(parse_integer("1.5").has_value());
  CHECK_FALSE(parse_integer("1e300").has_value());
  CHECK_FALSE(parse_integer("_1").has_value());
}

TEST_CASE("fractions may be written in per cent") {
  CHECK(*parse_fraction("30%") == Approx(0.3));
  CHECK(*parse_fraction("0.3") == Approx(0.3));
}

TEST_CASE("money keeps its currency and prices become prices a second") {
  CHECK(*parse_money("20000 USD") == MoneyText{20000, "USD"});
  CHECK(parse_price("61.20 USD/h")->amount == Approx(61.20 / 3600));
  CHECK(parse_price("730 EUR/month")->amount == Approx(1.0 / 3600));  // a month is billed as 730 h
  CHECK(parse_price("730 EUR/month")->currency == "EUR");
  CHECK(parse_money("20000").error() ==
        "'20000' has no currency; write an amount such as 20000 USD");
  CHECK_FALSE(parse_price("4.10 USD").has_value());
  CHECK_FALSE(parse_price("4.10 dollars/h").has_value());
}

TEST_CASE("formats keep three digits and pick the unit that fits") {
  CHECK(format_duration(Seconds{34200}) == "9 h 30 min");
  CHECK(format_duration(Seconds{3599.9}) == "1 h");  // never "59 min 60 s"
  CHECK(format_duration(Seconds{90061}) == "1 d 1 h");
  CHECK(format_duration(Seconds{0.0123}) == "12.3 ms");
  CHECK(format_duration(Seconds{59.99}) == "60.0 s");
  CHECK(format_duration(Seconds{0}) == "0 s");
  CHECK(format_bytes(16.0_GiB) == "16.0 GiB");
  CHECK(format_bandwidth(12.5_GBps) == "12.5 GB/s");
  CHECK(format_flop_rate(125.0_TFLOPS) == "125 TFLOP/s");
  CHECK(format_flops(Flops{8.178e9}) == "8.18 GFLOP");
  CHECK(format_usd(Usd{1234.561}) == "1,234.56 USD");
  CHECK(format_usd(Usd{0.00123}) == "0.0012 USD");
  CHECK(format_count(1281167) == "1,281,167");
  CHECK(format_percent(0.1234) == "12.3 %");
}

TEST_CASE("no text crashes a reader") {
  CHECK(rc::check("any bytes", [](const std::string& text) {
    (void)parse_duration(text);
    (void)parse_bytes(text);
    (void)parse_bandwidth(text);
    (void)parse_price(text);
    (void)parse_money(text);
    (void)parse_integer(text);
    (void)parse_count(text);
  }));
}

TEST_CASE("whole seconds survive being printed as seconds and read back") {
  CHECK(rc::check("round trip", [](std::uint32_t n) {
    RC_ASSERT(parse_duration(std::to_string(n) + "s")->count() == double(n));
  }));
}
