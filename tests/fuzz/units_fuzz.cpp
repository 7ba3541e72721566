#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/base/unit_text.h"

// Every reader of sim/base/unit_text.h: whatever is read is a finite number, and what is printed of
// it is a text.
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

template <class T>
void require_finite(const reckon::Parsed<T>& value, double (*number)(const T&)) {
  if (value) require(std::isfinite(number(*value)));
  if (!value) require(!value.error().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reckon;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto plain = +[](const double& v) { return v; };
  require_finite<double>(parse_number(text), plain);
  require_finite<double>(parse_count(text), plain);
  require_finite<double>(parse_fraction(text), plain);
  require_finite<std::int64_t>(
      parse_integer(text), +[](const std::int64_t& v) { return double(v); });
  require_finite<Seconds>(
      parse_duration(text), +[](const Seconds& v) { return v.count(); });
  require_finite<Bytes>(
      parse_bytes(text), +[](const Bytes& v) { return v.v; });
  require_finite<BytesPerSecond>(
      parse_bandwidth(text), +[](const BytesPerSecond& v) { return v.v; });
  require_finite<Flops>(
      parse_flops(text), +[](const Flops& v) { return v.v; });
  require_finite<FlopsPerSecond>(
      parse_flop_rate(text), +[](const FlopsPerSecond& v) { return v.v; });
  require_finite<MoneyText>(
      parse_money(text), +[](const MoneyText& v) { return v.amount; });
  require_finite<MoneyText>(
      parse_price(text), +[](const MoneyText& v) { return v.amount; });
  if (const auto number = parse_number(text)) {
    require(!format_duration(Seconds{*number}).empty());
    require(!format_bytes(Bytes{*number}).empty());
    require(!format_usd(Usd{*number}).empty());
    require(!format_count(*number).empty());
    require(!format_percent(*number).empty());
  }
  return 0;
}
